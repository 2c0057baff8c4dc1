// Which rank of a group holds which part of which embedding table.
//
// Ranks differ where whole tables, or columns of them, are distributed. A program has one rank class for all of them,
// so the busiest rank represents all; the others wait for it in the all-to-all that follows.
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
  balanced,    // as table, but a table larger than a rank's even share is split by rows and its parts are placed
};

// How tables are sharded over the ranks of a stage.
struct TablePlan {
  TableSharding sharding = TableSharding::none;
  std::int64_t ranks = 0;             // ranks that one copy of the sharded tables is distributed over; 0: all
  std::int64_t replicated_below = 0;  // tables with fewer rows are replicated

  friend bool operator==(const TablePlan&, const TablePlan&) = default;
};

// `count` identical parts of tables on one rank.
struct TablePart {
  double count = 0;
  double rows = 0;
  std::int64_t width = 0;
  double lookups = 0;  // per sample, in each part

  friend bool operator==(const TablePart&, const TablePart&) = default;
};
using TableShare = std::vector<TablePart>;

// What each rank of a group holds; one entry where all ranks are identical.
struct TableShares {
  std::vector<TableShare> sharded;  // [rank]
  TableShare replicated;            // on every rank
};

// Columns per part when a table of `width` is split over `ranks`: a row of a part has at least 64 bytes (one memory
// access), and there are no more parts than ranks.
[[nodiscard]] std::int64_t column_width(std::int64_t width, double element, std::int64_t ranks);

// Deterministic. Identical parts are distributed round-robin. The rest is placed greedily, largest first, on the rank
// where the larger of memory and lookups, each relative to its even share, stays smallest.
[[nodiscard]] TableShares table_shares(const Recommender& recommender, const TablePlan& plan, std::int64_t ranks);

// Default: whole tables if every rank can have one, else rows.
[[nodiscard]] TableSharding default_sharding(const Recommender& recommender, const TablePlan& plan, std::int64_t ranks);

// Tables that are sharded, not replicated.
[[nodiscard]] std::int64_t sharded_tables(const Recommender& recommender, const TablePlan& plan);

// Expected number of distinct rows, of `rows`, that `lookups` uniform accesses read: rows (1 - (1 - 1 / rows)^lookups).
[[nodiscard]] double distinct_rows(double rows, double lookups);

}  // namespace orrery::workload
