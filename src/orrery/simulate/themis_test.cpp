// ASTRA-sim 1.0's order of chunks: loads by hand, and cycles that the program printed.
//
// The program is ASTRA-sim's tag tutorial-asplos2023 with the analytical back end of that tag (commit 4ac1ddb), built
// with g++ 12 and run for these tests: one layer whose weight gradient has the collective. It prints 5 cycles more than
// the collective takes, for the layer's update. A Ring there has 2 links of half the bandwidth, a Switch 1, a full mesh
// n - 1; its local memory moves 500,000 bytes per ns.
#include "orrery/simulate/themis.hpp"

#include <gtest/gtest.h>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::themis_test {
namespace {

constexpr auto kRing = Wiring::ring;
constexpr auto kFull = Wiring::mesh;
constexpr auto kSwitch = Wiring::switched;

using Order = std::vector<std::uint32_t>;

Network network_of(const std::vector<std::tuple<Wiring, std::uint32_t, double>>& dimensions) {
  Network network;
  for (const auto& [wiring, ranks, bandwidth] : dimensions) {
    network.dimensions.push_back({wiring, ranks, bandwidth});
  }
  return network;
}

// Two dimensions of 4, the inner one twice as fast; chunks of 1 MiB. Loads in MiB at the inner bandwidth:
//   chunk 0  no gap: inner first    0.75, and 3/4 x 1/4 x 2 = 0.375
//   chunk 1  outer has less; the gap 0.375 is that of a chunk of 0.375 / 2 / 0.75 = 0.25 MiB > 1/16: outer first:
//            0.375 + 1.5 = 1.875, and inner 0.75 + 0.1875 = 0.9375
//   chunk 2  inner first: 1.6875, and 2.25
//   chunk 3  inner first: 2.4375, and 2.625
//   chunk 4  the gap 0.1875 is that of 0.25 MiB: inner first
TEST(Themis, the_dimension_with_the_least_load_is_first) {
  ThemisLoads loads(network_of({{kSwitch, 4, 2e9}, {kSwitch, 4, 1e9}}));
  const std::vector<bool> both = {true, true};
  const Order inner_first = {0, 1}, outer_first = {1, 0};
  EXPECT_EQ(loads.order(1 << 20, false, both), inner_first);
  EXPECT_EQ(loads.order(1 << 20, false, both), outer_first);
  EXPECT_EQ(loads.order(1 << 20, false, both), inner_first);
  EXPECT_EQ(loads.order(1 << 20, false, both), inner_first);
  EXPECT_EQ(loads.order(1 << 20, false, both), inner_first);
  loads.clear();
  EXPECT_EQ(loads.order(1 << 20, false, both), inner_first);
  EXPECT_EQ(loads.order(1 << 20, false, both), outer_first);
}

// Full mesh of 5 with links of 1 GB/s: 4 GB/s of an NPU, twice the switch's 2 GB/s.
TEST(Themis, a_full_mesh_has_the_bandwidth_of_all_its_links) {
  ThemisLoads mesh(network_of({{kFull, 5, 1e9}, {kSwitch, 5, 2e9}}));
  ThemisLoads switches(network_of({{kSwitch, 5, 4e9}, {kSwitch, 5, 2e9}}));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(mesh.order(1 << 20, false, {true, true}), switches.order(1 << 20, false, {true, true}));
  }
}

struct Printed {
  std::vector<RigDimension> dimensions;
  const char* algorithm;
  CollectiveType type;
  std::int64_t bytes;
  std::uint32_t splits, active;
  Optimization optimization;
  IntraDimension intra;
  std::uint64_t cycles;  // printed
};

std::uint64_t finish_of(const Printed& row, InterDimension order) {
  Rig rig({}, {});
  rig.dimensions = row.dimensions;
  rig.use(std::vector<std::string>(row.dimensions.size(), row.algorithm)).chunks(row.splits, row.active);
  rig.system.optimization = row.optimization;
  rig.system.inter_dimension = order;
  rig.system.intra_dimension = row.intra;
  rig.system.local_memory_gb = 500'000;
  return finish(rig, collective(1, row.type, row.bytes)).front();
}

constexpr auto kReduce = CollectiveType::all_reduce;
constexpr auto kGather = CollectiveType::all_gather;
constexpr auto kScatter = CollectiveType::reduce_scatter;
constexpr auto kAll = CollectiveType::all_to_all;
constexpr auto kLocal = Optimization::localBWAware;
constexpr auto kPlain = Optimization::baseline;
constexpr auto kFifo = IntraDimension::fifo;
constexpr auto kSmallest = IntraDimension::smallest_first;

const std::vector<Printed>& rows() {
  static const std::vector<RigDimension> a = {{kSwitch, 4, 200, 500}, {kSwitch, 4, 50, 1000}};
  static const std::vector<RigDimension> b = {{kRing, 4, 100, 100}, {kSwitch, 8, 100, 1000}};
  static const std::vector<RigDimension> c = {{kRing, 2, 250, 500}, {kFull, 4, 25, 500}, {kSwitch, 2, 12.5, 500}};
  static const std::vector<RigDimension> d = {{kFull, 4, 50, 50}, {kSwitch, 4, 150, 500}};
  static const std::vector<RigDimension> e = {{kSwitch, 2, 100, 30}, {kSwitch, 4, 50, 500}, {kSwitch, 2, 200, 1000}};
  static const std::vector<Printed> all = {
      {a, "ring", kReduce, 8388608, 4, 1, kLocal, kFifo, 127644},
      {a, "ring", kGather, 262144, 16, 1, kLocal, kSmallest, 158473},
      {a, "ring", kScatter, 8388608, 16, 1, kPlain, kFifo, 130795},
      {a, "direct", kReduce, 8388608, 16, 2, kLocal, kFifo, 45345},
      {a, "direct", kReduce, 8388608, 16, 1, kLocal, kSmallest, 87425},
      {a, "direct", kGather, 262144, 4, 1, kLocal, kFifo, 28938},
      {a, "direct", kScatter, 8388608, 16, 1, kLocal, kSmallest, 43715},
      {a, "direct", kAll, 8388608, 16, 1, kPlain, kFifo, 73011},
      {b, "ring", kReduce, 8388608, 16, 2, kLocal, kFifo, 271957},
      {b, "ring", kReduce, 8388608, 16, 1, kLocal, kSmallest, 529497},
      {b, "ring", kGather, 262144, 4, 1, kLocal, kFifo, 126843},
      {b, "ring", kScatter, 8388608, 16, 1, kLocal, kSmallest, 265547},
      {b, "direct", kReduce, 8388608, 16, 1, kPlain, kFifo, 84005},
      {b, "direct", kGather, 262144, 16, 2, kLocal, kFifo, 21417},
      {b, "direct", kGather, 262144, 16, 1, kLocal, kSmallest, 42457},
      {b, "direct", kScatter, 8388608, 4, 1, kLocal, kFifo, 14187},
      {b, "direct", kAll, 8388608, 16, 1, kLocal, kSmallest, 43525},
      {c, "ring", kReduce, 8388608, 16, 1, kPlain, kFifo, 692821},
      {c, "ring", kGather, 262144, 16, 2, kLocal, kFifo, 50520},
      {c, "ring", kGather, 262144, 16, 1, kLocal, kSmallest, 98438},
      {c, "ring", kScatter, 8388608, 4, 1, kLocal, kFifo, 138562},
      {c, "direct", kReduce, 8388608, 16, 1, kLocal, kSmallest, 119671},
      {c, "direct", kGather, 262144, 16, 1, kPlain, kFifo, 52935},
      {c, "direct", kScatter, 8388608, 16, 2, kLocal, kFifo, 32150},
      {c, "direct", kScatter, 8388608, 16, 1, kLocal, kSmallest, 59838},
      {c, "direct", kAll, 8388608, 4, 1, kLocal, kFifo, 341062},
      {d, "ring", kReduce, 8388608, 16, 1, kLocal, kSmallest, 153566},
      {d, "ring", kGather, 262144, 16, 1, kPlain, kFifo, 69238},
      {d, "ring", kScatter, 8388608, 16, 2, kLocal, kFifo, 38137},
      {d, "ring", kScatter, 8388608, 16, 1, kLocal, kSmallest, 79918},
      {d, "direct", kReduce, 8388608, 4, 1, kLocal, kFifo, 53670},
      {d, "direct", kGather, 262144, 16, 1, kLocal, kSmallest, 23196},
      {d, "direct", kScatter, 8388608, 16, 1, kPlain, kFifo, 25533},
      {d, "direct", kAll, 8388608, 16, 2, kLocal, kFifo, 21926},
      {d, "direct", kAll, 8388608, 16, 1, kLocal, kSmallest, 42014},
      {e, "ring", kReduce, 8388608, 4, 1, kLocal, kFifo, 119270},
      {e, "ring", kGather, 262144, 16, 1, kLocal, kSmallest, 66830},
      {e, "ring", kScatter, 8388608, 16, 1, kPlain, kFifo, 82276},
      {e, "direct", kReduce, 8388608, 16, 2, kLocal, kFifo, 51845},
      {e, "direct", kReduce, 8388608, 16, 1, kLocal, kSmallest, 107409},
      {e, "direct", kGather, 262144, 4, 1, kLocal, kFifo, 22610},
      {e, "direct", kScatter, 8388608, 16, 1, kLocal, kSmallest, 53707},
      {e, "direct", kAll, 8388608, 16, 1, kPlain, kFifo, 61142},
      // 8 MiB are not 7 chunks: an eighth chunk of the 4 bytes that are left has messages of 0 bytes.
      {a, "ring", kReduce, 8388608, 7, 2, kLocal, kFifo, 96255},
      {a, "ring", kScatter, 8388608, 7, 2, kLocal, kFifo, 48130},
      {a, "direct", kReduce, 8388608, 7, 2, kLocal, kFifo, 32155},
      {b, "ring", kReduce, 8388608, 7, 2, kLocal, kFifo, 156917},
      {b, "ring", kScatter, 8388608, 7, 2, kLocal, kFifo, 78291},
      {b, "direct", kReduce, 8388608, 7, 2, kLocal, kFifo, 24752},
      {c, "ring", kReduce, 8388608, 7, 2, kLocal, kFifo, 135998},
      {c, "ring", kScatter, 8388608, 7, 2, kLocal, kFifo, 68495},
      {c, "direct", kReduce, 8388608, 7, 2, kLocal, kFifo, 78132},
      {d, "ring", kReduce, 8388608, 7, 2, kLocal, kFifo, 81230},
      {d, "ring", kScatter, 8388608, 7, 2, kLocal, kFifo, 42615},
      {d, "direct", kReduce, 8388608, 7, 2, kLocal, kFifo, 27140},
      {e, "ring", kReduce, 8388608, 7, 2, kLocal, kFifo, 72293},
      {e, "ring", kScatter, 8388608, 7, 2, kLocal, kFifo, 36588},
      {e, "direct", kReduce, 8388608, 7, 2, kLocal, kFifo, 36933},
  };
  return all;
}

TEST(ThemisCycles, are_those_that_astra_sim_1_printed) {
  for (const Printed& row : rows()) {
    EXPECT_EQ(finish_of(row, InterDimension::themis) + 5, row.cycles)
        << row.algorithm << " " << static_cast<int>(row.type) << " " << row.splits << " " << row.dimensions.size();
  }
}

// Chunks of a network whose inner dimension is the slow one finish earlier; loads are those of one instant: of two
// collectives of the same instant, the second one starts from the loads of the first.
TEST(Themis, balances_a_network_whose_inner_dimension_is_slow) {
  const Printed row{{{kSwitch, 4, 50, 50}, {kSwitch, 4, 150, 50}}, "ring", kReduce, 64 << 20, 32, 1, kLocal, kFifo, 0};
  EXPECT_LT(finish_of(row, InterDimension::themis),
            0.75 * static_cast<double>(finish_of(row, InterDimension::baseline)));
}

}  // namespace
}  // namespace orrery::simulate::test::themis_test
