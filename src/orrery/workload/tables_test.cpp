// Distribution of tables over ranks: complete, and as even as possible.
#include "orrery/workload/tables.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/workload/test_recommenders.hpp"

namespace orrery::workload::tables_test {
namespace {

using test::any_recommender;
using test::small_recommender;

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::max(std::abs(a), std::abs(b))); }

struct Sum {
  double elements = 0, numbers = 0;  // numbers: that lookups of a sample read
};

void add(Sum& sum, const TableShare& share, double times) {
  for (const TablePart& part : share) {
    sum.elements += times * part.count * part.rows * static_cast<double>(part.width);
    sum.numbers += times * part.count * part.lookups * static_cast<double>(part.width);
  }
}

RC_GTEST_PROP(Tables, every_number_lies_on_one_rank_and_every_lookup_reads_it_there, ()) {
  const Recommender r = any_recommender(kDraw);
  TablePlan plan;
  plan.sharding = static_cast<TableSharding>(kDraw(1, 6));
  plan.replicated_below = *rc::gen::element<std::int64_t>(0, 1000, 100'000);
  const std::int64_t ranks = plan.sharding == TableSharding::replicated ? 1 : kDraw(1, 20);
  const TableShares shares = table_shares(r, plan, ranks);
  Sum sum;
  for (const auto& share : shares.sharded) {
    add(sum, share, plan.sharding == TableSharding::row ? static_cast<double>(ranks) : 1.0);
  }
  add(sum, shares.replicated, 1.0);
  double numbers = 0;
  for (const Table& table : r.tables) { numbers += static_cast<double>(table.count * table.width) * table.lookups; }
  RC_ASSERT(near(sum.elements, r.table_elements()));
  RC_ASSERT(near(sum.numbers, numbers));
}

// 8 identical tables over 4 ranks: two each. One table of 100 lookups in addition can only be balanced if it is split
// by rows.
TEST(Tables, identical_tables_are_distributed_evenly_and_a_hot_one_is_split_if_balanced) {
  Recommender r = small_recommender();
  r.tables = {{8, 1000, 8, 1.0}};
  for (const auto& share : table_shares(r, {TableSharding::table}, 4).sharded) {
    ASSERT_EQ(share.size(), 1U);
    EXPECT_EQ(share.front().count, 2.0);
  }
  r.tables = {{8, 1000, 8, 1.0}, {1, 1000, 8, 100.0}};
  const auto most_lookups = [&](TableSharding sharding) {
    double most = 0;
    for (const auto& share : table_shares(r, {sharding}, 4).sharded) {
      double sum = 0;
      for (const TablePart& part : share) { sum += part.count * part.lookups; }
      most = std::max(most, sum);
    }
    return most;
  };
  EXPECT_GE(most_lookups(TableSharding::table), 100.0);
  EXPECT_LE(most_lookups(TableSharding::balanced), 1.3 * 108.0 / 4.0);
}

// 128 columns of 4 bytes: a part of 64 bytes has 16 columns, so a table has at most eight parts.
TEST(Tables, parts_of_a_row_stay_as_long_as_memory_hands_out_at_once) {
  EXPECT_EQ(column_width(128, 4.0, 4), 32);
  EXPECT_EQ(column_width(128, 4.0, 64), 16);
  EXPECT_EQ(column_width(10, 4.0, 4), 10);
}

// A table of one row has one distinct row for any number of lookups; of two rows, 4 lookups miss each with probability
// 1/16.
TEST(Tables, different_rows_that_lookups_meet) {
  EXPECT_EQ(distinct_rows(1.0, 100.0), 1.0);
  EXPECT_NEAR(distinct_rows(2.0, 4.0), 2.0 * (1.0 - 1.0 / 16.0), 1e-12);
  EXPECT_NEAR(distinct_rows(1e12, 1000.0), 1000.0, 1e-3);
}

RC_GTEST_PROP(Tables, different_rows_are_no_more_than_lookups_and_rows_and_grow_with_either, ()) {
  const double rows = static_cast<double>(kDraw(1, 1'000'000)), n = static_cast<double>(kDraw(1, 1'000'000));
  const double met = distinct_rows(rows, n);
  RC_ASSERT(met > 0.0 && met <= rows * (1.0 + 1e-9) && met <= n * (1.0 + 1e-9));
  RC_ASSERT(distinct_rows(rows, 2.0 * n) >= met * (1.0 - 1e-9));
  RC_ASSERT(distinct_rows(2.0 * rows, n) >= met * (1.0 - 1e-9));
}

}  // namespace
}  // namespace orrery::workload::tables_test
