// Which rank of a group holds which part of which embedding table.
//
// Ranks differ where whole tables, or columns of them, are shared out: the program's ranks are alike, so that the one
// with most to do stands for all; everybody waits for it in the exchange that follows.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/workload/recommender.hpp"

namespace orrery::workload {

enum class TableSharding : std::uint8_t {
  none,        // there are no tables
  table,       // a rank holds whole tables
  row,         // every rank holds a part of the rows of every table
  column,      // a rank holds some columns of tables, for all rows
  replicated,  // every rank holds all tables
  balanced,    // as table, but one that is more than a rank's even share is cut by rows, and its parts placed
};

// How tables lie over the ranks of a stage.
struct TablePlan {
  TableSharding sharding = TableSharding::none;
  std::int64_t ranks = 0;             // that share out one copy of the sharded tables; 0: all of the stage
  std::int64_t replicated_below = 0;  // tables of fewer rows are replicated, whatever is done with the others

  friend bool operator==(const TablePlan&, const TablePlan&) = default;
};

// `count` parts of tables, alike, on one rank.
struct TablePart {
  double count = 0;
  double rows = 0;
  std::int64_t width = 0;
  double lookups = 0;  // of these rows, by a sample, in each

  friend bool operator==(const TablePart&, const TablePart&) = default;
};
using TableShare = std::vector<TablePart>;

// What each rank of a group holds; one entry that stands for all where they are alike.
struct TableShares {
  std::vector<TableShare> sharded;  // [rank]
  TableShare replicated;            // on every rank
};

// Columns of one part of a table of `width`, shared out over `ranks`: as few as leave a part of 64 bytes at least,
// which memory hands out at once, and no more parts than ranks.
[[nodiscard]] std::int64_t column_width(std::int64_t width, double element, std::int64_t ranks);

// Deterministic. Parts that are alike go round evenly; what is left over goes, the largest first, where the fuller of
// memory and lookups stays least, each measured against its even share.
[[nodiscard]] TableShares table_shares(const Recommender& recommender, const TablePlan& plan, std::int64_t ranks);

// Where nobody says: whole tables if every rank can have one, else rows.
[[nodiscard]] TableSharding usual_sharding(const Recommender& recommender, const TablePlan& plan, std::int64_t ranks);

// Tables that are shared out, not replicated.
[[nodiscard]] std::int64_t sharded_tables(const Recommender& recommender, const TablePlan& plan);

// Rows, of `rows`, that `lookups` meet, each of them any row alike: rows (1 - (1 - 1 / rows)^lookups).
[[nodiscard]] double distinct_rows(double rows, double lookups);

}  // namespace orrery::workload
