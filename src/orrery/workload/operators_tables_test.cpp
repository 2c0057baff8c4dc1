// Kernels and boundaries of a small recommender's tables, by hand (docs/models/recommenders.md).
#include <gtest/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_recommenders.hpp"

namespace orrery::workload::operators_tables_test {
namespace {

using test::completed_recommender;
using test::small_recommender;

// A billion rows, so that every lookup reads a different row.
Recommender large_tables() {
  Recommender r = small_recommender();
  r.tables = {{4, 1'000'000'000, 8, 3.0}};
  return r;
}

Slice slice_of(TableSharding sharding, std::int64_t ranks, std::int64_t replicas) {
  Slice slice;
  slice.micro_batch = 10;
  slice.seq = 1;
  slice.tables.sharding = sharding;
  slice.table_ranks = ranks;
  slice.replicas = replicas;
  return slice;
}

const Operator& find(const std::vector<Operator>& list, std::string_view name) {
  for (const auto& op : list) {
    if (op.name == name) { return op; }
  }
  static const Operator none;
  ADD_FAILURE() << name;
  return none;
}

std::vector<Operator> tables_of(const Recommender& r, const Slice& slice) {
  return embedding_operators(completed_recommender(r), {}, slice);
}

// 10 samples, 12 lookups each: 120 rows of 32 bytes, 120 numbers of rows of 8 bytes, and 10 samples of 4 vectors of 8
// two-byte numbers written.
TEST(TableOperators, a_lookup_reads_its_rows_and_writes_their_sums) {
  const auto list = tables_of(large_tables(), slice_of(TableSharding::table, 1, 1));
  EXPECT_NEAR(find(list, "tables.lookup").forward.bytes.value(), 120 * 32 + 120 * 8 + 10 * 32 * 2, 0.01);
}

// 120 lookups sorted in four passes, in and out, 8 bytes each; the gradients of 10 x 32 two-byte numbers read; then
// 120 rows in and out, with as much Adagrad state.
TEST(TableOperators, an_update_sorts_lookups_and_writes_the_rows_they_met) {
  const auto list = tables_of(large_tables(), slice_of(TableSharding::table, 1, 1));
  EXPECT_NEAR(find(list, "tables.lookup").backward_input.bytes.value(), 120 * 64 + 10 * 32 * 2, 0.01);
  EXPECT_NEAR(find(list, "tables.update").backward_input.bytes.value(), 120 * 2 * (32 + 32), 0.01);
  EXPECT_EQ(find(list, "tables.update").in_place.weights, Bytes(4e9 * 8 * 4));
  EXPECT_EQ(find(list, "tables.update").in_place.state, Bytes(4e9 * 8 * 4));
}

// Of the 120 rows of the test above: a lookup reads 120 x 32 bytes of tables, an update reads and writes them and as
// many bytes of state. With 4 replicas of 10 samples each, updates also read the sums of gradients of the 480 rows of
// all replicas, 8 fp32 numbers each, and a replica writes those of its own 120 rows.
TEST(TableOperators, traffic_belongs_to_tables_their_state_and_their_gradients) {
  const auto list = tables_of(large_tables(), slice_of(TableSharding::table, 1, 1));
  EXPECT_NEAR(find(list, "tables.lookup").forward.held.tables.value(), 120 * 32, 0.01);
  EXPECT_EQ(find(list, "tables.lookup").backward_input.held.total(), Bytes(0));
  const auto& held = find(list, "tables.update").backward_input.held;
  EXPECT_NEAR(held.tables.value(), 120 * 2 * 32, 0.01);
  EXPECT_NEAR(held.optimizer.value(), 120 * 2 * 32, 0.01);
  EXPECT_EQ(held.gradients, Bytes(0));
  const auto copies = tables_of(large_tables(), slice_of(TableSharding::table, 1, 4));
  EXPECT_NEAR(find(copies, "tables.lookup").backward_input.held.gradients.value(), 120 * 32, 0.01);
  EXPECT_NEAR(find(copies, "tables.update").backward_input.held.gradients.value(), 480 * 32, 0.1);
  EXPECT_NEAR(find(copies, "tables.update").backward_input.held.optimizer.value(), 480 * 2 * 32, 0.1);
}

// Two tables on each of two ranks: a rank sends the vectors of two tables for 20 samples; 20 x 6 row indices come in.
TEST(TableOperators, whole_tables_exchange_the_vectors_of_all_samples) {
  const auto list = tables_of(large_tables(), slice_of(TableSharding::table, 2, 2));
  const Operator& exchange = find(list, "tables.exchange");
  EXPECT_EQ(exchange.boundary, Boundary::pool);
  EXPECT_EQ(exchange.boundary_bytes, Bytes(20 * 2 * 8 * 2));
  EXPECT_EQ(find(list, "tables.spread").boundary_bytes, Bytes(20 * 6 * 8));
  EXPECT_EQ(list.back().name, "tables.exchange");
  EXPECT_EQ(list.back().end, End::second);
}

// Row-wise, every rank has partial sums of all four vectors of all samples.
TEST(TableOperators, rows_exchange_partial_sums_of_everything) {
  const auto list = tables_of(large_tables(), slice_of(TableSharding::row, 2, 2));
  const Operator& exchange = find(list, "tables.exchange");
  EXPECT_EQ(exchange.boundary, Boundary::pool_sum);
  EXPECT_EQ(exchange.boundary_bytes, Bytes(20 * 4 * 8 * 2));
  EXPECT_NEAR(find(list, "tables.lookup").forward.bytes.value(), 120 * 32 + 120 * 8 + 20 * 32 * 2, 0.01);
}

// Replicated small tables all-reduce whole gradients; large ones send the accessed rows: 2 x 30 rows of 8 fp32 numbers
// and a row index for each of four tables.
TEST(TableOperators, holders_of_the_same_rows_exchange_whatever_is_less) {
  Recommender r = small_recommender();
  r.tables = {{4, 10, 8, 3.0}};
  const auto small = tables_of(r, slice_of(TableSharding::replicated, 1, 2));
  EXPECT_EQ(find(small, "small_tables.share").boundary, Boundary::share_sum);
  EXPECT_EQ(find(small, "small_tables.share").boundary_bytes, Bytes(4 * 10 * 8 * 4));
  const auto large = tables_of(large_tables(), slice_of(TableSharding::replicated, 1, 2));
  EXPECT_EQ(find(large, "small_tables.share").boundary, Boundary::share_rows);
  EXPECT_NEAR(find(large, "small_tables.share").boundary_bytes.value(), 4 * 2 * 30 * (8 * 4 + 8), 0.01);
}

TEST(TableOperators, inference_looks_up_and_keeps_nothing) {
  Slice slice = slice_of(TableSharding::table, 2, 2);
  slice.pass = Pass::prefill;
  for (const auto& op : tables_of(large_tables(), slice)) {
    EXPECT_EQ(op.backward_input.kind, KernelKind::none);
    EXPECT_EQ(op.in_place.state, Bytes(0));
    EXPECT_EQ(op.saved, Bytes(0));
  }
}

}  // namespace
}  // namespace orrery::workload::operators_tables_test
