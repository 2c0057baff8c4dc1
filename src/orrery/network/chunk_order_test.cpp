// Orders of chunks by hand, and laws for all of them.
#include "orrery/network/chunk_order.hpp"

#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include "orrery/core/random.hpp"
#include "orrery/core/test_effort.hpp"

namespace orrery::network::chunk_order_test {
namespace {

using Orders = std::vector<std::vector<std::uint32_t>>;
constexpr std::array kOrders = {ChunkOrder::baseline, ChunkOrder::greedy, ChunkOrder::themis};

ChunkCall call_of(Collective collective, double bytes, std::int64_t chunks, ChunkOrder order = ChunkOrder::baseline) {
  ChunkCall call;
  call.collective = collective;
  call.bytes = bytes;
  call.chunks = chunks;
  call.order = order;
  return call;
}

// ---- by hand -------------------------------------------------------------------------------------------------------

// 8 B on 2 x 2 at 1 B/s: 4 and 2 to reduce and scatter, 2 and 4 to gather.
TEST(ChunkOrder, one_chunk_visits_the_dimensions_one_after_another) {
  const std::vector<ChunkDimension> dimensions = {{2, 1, 0}, {2, 1, 0}};
  EXPECT_DOUBLE_EQ(run_chunks(call_of(Collective::all_reduce, 8, 1), dimensions).finish, 12);
  EXPECT_DOUBLE_EQ(run_chunks(call_of(Collective::reduce_scatter, 8, 1), dimensions).finish, 6);
  EXPECT_DOUBLE_EQ(run_chunks(call_of(Collective::all_gather, 8, 1), dimensions).finish, 6);
}

// Two chunks of 4 B: the inner dimension sends 2 and 2 B, the outer one 1 B from second 2 to 3 and from 4 to 5. With a
// latency of 1 s of the inner one, each arrives a second later; sending goes on.
TEST(ChunkOrder, chunks_follow_each_other) {
  std::vector<ChunkDimension> dimensions = {{2, 1, 0}, {2, 1, 0}};
  EXPECT_DOUBLE_EQ(run_chunks(call_of(Collective::reduce_scatter, 8, 2), dimensions).finish, 5);
  dimensions[0].latency = 1;
  EXPECT_DOUBLE_EQ(run_chunks(call_of(Collective::reduce_scatter, 8, 2), dimensions).finish, 6);
}

// Greedy: the second chunk finds 2 s of work on the inner dimension and starts with the other one. Both end after 2
// + 1.
TEST(ChunkOrder, greedy_takes_the_dimension_with_the_least_work) {
  const std::vector<ChunkDimension> dimensions = {{2, 1, 0}, {2, 1, 0}};
  EXPECT_DOUBLE_EQ(run_chunks(call_of(Collective::reduce_scatter, 8, 2, ChunkOrder::greedy), dimensions).finish, 3);
}

// 4 x 4, chunks of 64 B. The first loads 48 and 12; the second starts with the other dimension: 60 and 60. Equal loads:
// the default order again.
TEST(ChunkOrder, themis_alternates_between_equal_dimensions) {
  const std::vector<ChunkDimension> dimensions = {{4, 1, 0}, {4, 1, 0}};
  EXPECT_EQ(themis_orders(call_of(Collective::reduce_scatter, 256, 4), dimensions),
            (Orders{{0, 1}, {1, 0}, {0, 1}, {1, 0}}));
}

// The outer dimension has half of the bandwidth, so its bytes count twice. Loads after each chunk: 48 and 24; 60 and
// 120; 108 and 144; 156 and 168; 204 and 192; then the outer one is the less loaded, by 12: 8 B more on it close the
// gap, and 64 / 16 = 4 B are enough to change the order.
TEST(ChunkOrder, themis_weighs_loads_by_bandwidth) {
  const std::vector<ChunkDimension> dimensions = {{4, 2, 0}, {4, 1, 0}};
  auto call = call_of(Collective::all_reduce, 6 * 64, 6);
  EXPECT_EQ(themis_orders(call, dimensions), (Orders{{0, 1}, {1, 0}, {0, 1}, {0, 1}, {0, 1}, {1, 0}}));
  call.gap_denominator = 64.0 / 9;  // a gap below 9 B is left as it is
  EXPECT_EQ(themis_orders(call, dimensions).back(), (std::vector<std::uint32_t>{0, 1}));
}

// An all-gather starts with the most loaded dimension, where its chunk is smallest. A shard of 1 B on 2 x 2: by default
// outer first, 1 B, then 2 B on the inner one. The loads are then 2 and 1: inner first, which makes them 3 and 3.
TEST(ChunkOrder, themis_gathers_from_the_most_loaded_dimension) {
  const std::vector<ChunkDimension> dimensions = {{2, 1, 0}, {2, 1, 0}};
  EXPECT_EQ(themis_orders(call_of(Collective::all_gather, 4 * 3, 3), dimensions), (Orders{{1, 0}, {0, 1}, {1, 0}}));
}

// The second chunk, smaller, overtakes the first in the queue of the dimension that both wait for.
TEST(ChunkOrder, smaller_chunks_can_go_first) {
  const std::vector<ChunkDimension> dimensions = {{2, 1, 0}, {2, 1, 0}, {2, 1, 0}};
  for (const ChunkOrder order : kOrders) {
    auto call = call_of(Collective::all_reduce, 64, 8, order);
    const double fifo = run_chunks(call, dimensions).finish;
    call.queue = ChunkQueue::smallest_first;
    EXPECT_LE(run_chunks(call, dimensions).finish, 1.2 * fifo);
    EXPECT_GE(run_chunks(call, dimensions).finish, 2 * 64 * (7.0 / 8) / 3);
  }
}

// ---- laws ----------------------------------------------------------------------------------------------------------

// Whatever the order, a device sends S (N - 1) / N (twice for an all-reduce); no dimension is busy longer than the call
// takes; one chunk alone is no faster than its phases.
TEST(ChunkOrderLaw, bytes_do_not_depend_on_the_order_and_bandwidth_bounds_the_time) {
  RandomStream random(5);
  for (int i = 0; i < orrery::test::cases(200); ++i) {
    std::vector<ChunkDimension> dimensions;
    double members = 1, bandwidth = 0;
    for (std::int64_t d = 0; d < 2 + random.below(3); ++d) {
      dimensions.push_back({1 + random.below(8), 1.0 + static_cast<double>(random.below(16)),
                            0.01 * static_cast<double>(random.below(3))});
      members *= static_cast<double>(dimensions.back().members);
      bandwidth += dimensions.back().members > 1 ? dimensions.back().bandwidth : 0;
    }
    if (members < 2) { continue; }
    for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
      for (const ChunkOrder order : kOrders) {
        const double bytes = 1000;
        const auto times = run_chunks(call_of(collective, bytes, 1 + random.below(40), order), dimensions);
        const double sent = (collective == Collective::all_reduce ? 2 : 1) * bytes * (members - 1) / members;
        EXPECT_NEAR(std::accumulate(times.sent.begin(), times.sent.end(), 0.0), sent, 1e-9 * sent);
        EXPECT_GE(times.finish * (1 + 1e-12), sent / bandwidth);
        EXPECT_LE(times.bandwidth_use(dimensions), 1 + 1e-12);
        for (const double busy : times.busy) { EXPECT_LE(busy, times.finish * (1 + 1e-12)); }
      }
    }
  }
}

// On one dimension there is one order.
TEST(ChunkOrderLaw, orders_agree_on_one_dimension) {
  const std::vector<ChunkDimension> dimensions = {{1, 9, 0}, {8, 2, 0.5}};
  const double baseline = run_chunks(call_of(Collective::all_reduce, 640, 10), dimensions).finish;
  for (const ChunkOrder order : kOrders) {
    EXPECT_DOUBLE_EQ(run_chunks(call_of(Collective::all_reduce, 640, 10, order), dimensions).finish, baseline);
  }
}

// Unequal dimensions, 64 chunks: balancing loads is never worse than the fixed order by more than the ends of the run,
// and on the mean a good deal better.
TEST(ChunkOrderLaw, themis_uses_more_bandwidth_than_the_fixed_order) {
  RandomStream random(6);
  double gain = 0;
  const int count = orrery::test::cases(100);
  for (int i = 0; i < count; ++i) {
    std::vector<ChunkDimension> dimensions;
    for (std::int64_t d = 0; d < 2 + i % 3; ++d) {
      dimensions.push_back({std::int64_t{2} << random.below(4), 50.0 * static_cast<double>(1 + random.below(8)), 0});
    }
    const double fixed = run_chunks(call_of(Collective::all_reduce, 1e6, 64), dimensions).finish;
    const double balanced = run_chunks(call_of(Collective::all_reduce, 1e6, 64, ChunkOrder::themis), dimensions).finish;
    EXPECT_LT(balanced, 1.1 * fixed);
    gain += fixed / balanced;
  }
  EXPECT_GT(gain / count, 1.3);
}

}  // namespace
}  // namespace orrery::network::chunk_order_test
