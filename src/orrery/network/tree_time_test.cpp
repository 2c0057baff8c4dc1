// The closed form of collectives in switches against the simulation of every chunk.
#include "orrery/network/tree_time.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "orrery/core/random.hpp"

namespace orrery::network::tree_time_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it
using hardware::TopologyKind;
using hardware::TopologySpec;

constexpr std::array kOperations = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                    Collective::all_to_all, Collective::broadcast,      Collective::barrier};

TopologySpec tree_of(std::vector<std::int64_t> down) {
  TopologySpec spec;
  spec.kind = TopologyKind::switch_tree;
  spec.bandwidth = 1_GBps;
  spec.link.name = "plain";
  spec.down = std::move(down);
  return spec;
}

// 4 devices below 2 switches below one: a way has 4 links of 1 us and of 1 ms for each of 64 chunks.
TEST(TreeTime, is_latencies_and_a_chunk_on_every_link_and_the_others_on_the_slowest) {
  const hardware::Topology topology = hardware::build(tree_of({2, 2}));
  const std::vector<LevelRule> levels(topology.levels.size(), {1e-6, 1.0});
  const std::vector<std::uint32_t> devices = {0, 1, 2, 3};
  const TreeCall call{*switch_tree(topology, devices), Collective::all_reduce, 64e6, 0};
  const TreeTime made = tree_time(topology, levels, {}, call);
  EXPECT_NEAR(made.time, 4 * 1e-6 + 4 * 1e-3 + 63 * 1e-3, 1e-12);
  EXPECT_NEAR(made.latency, 4e-6, 1e-15);
  TreeLimits slow;
  slow.rate = 1e9;  // a switch reduces 2 MB of each chunk in 2 ms, two of them on a way
  EXPECT_NEAR(tree_time(topology, levels, slow, call).time, 4 * 1e-6 + 4 * 1e-3 + 2 * 2e-3 + 63 * 2e-3, 1e-12);
}

// Any tree, any subset of devices, parallel cables, payloads, latencies, buffers, rates.
TEST(TreeTimeLaw, equals_the_simulation_of_every_chunk) {
  RandomStream random = stream_of(23, 0);
  int calls = 0;
  for (int round = 0; round < 300; ++round) {
    TopologySpec spec = tree_of({1 + random.below(4), 2 + random.below(3), 1 + random.below(3)});
    if (random.below(2) == 0) { spec.cables = {1, 1 + random.below(3), 1 + random.below(2)}; }
    if (random.below(2) == 0) { spec.bandwidths = {2_GBps, 3_GBps}; }
    if (hardware::mistake_in(spec)) { continue; }
    const hardware::Topology topology = hardware::build(spec);
    std::vector<LevelRule> levels;
    for (std::size_t i = 0; i < topology.levels.size(); ++i) {
      levels.push_back({1e-6 * static_cast<double>(random.below(5)), random.below(2) == 0 ? 1.0 : 0.9});
    }
    std::vector<std::uint32_t> devices;
    for (std::uint32_t device = 0; device < topology.devices; ++device) {
      if (random.below(4) != 0) { devices.push_back(device); }
    }
    if (devices.size() < 2) { continue; }
    TreeLimits limits;
    if (random.below(2) == 0) { limits.buffer = 1e5 * static_cast<double>(1 + random.below(30)); }
    if (random.below(2) == 0) { limits.rate = 5e8 * static_cast<double>(1 + random.below(6)); }
    for (const Collective collective : kOperations) {
      const double bytes = collective == Collective::barrier ? 0 : 1e6 * static_cast<double>(1 + random.below(9));
      const TreeCall call{*switch_tree(topology, devices), collective, bytes, devices.back()};
      hardware::Routes routes(topology);
      const SteppedTimes run = run_trees(routes, levels, levels, {{call}, {}}, limits);
      const TreeTime made = tree_time(topology, levels, limits, call);
      EXPECT_NEAR(made.time, run.finish.front(), 1e-9 * run.finish.front()) << static_cast<int>(collective);
      std::vector<double> carried(topology.links.size(), 0.0);
      for (const auto& [link, moved] : made.carried) { carried[link] = moved; }
      for (std::size_t i = 0; i < carried.size(); ++i) { EXPECT_NEAR(carried[i], run.carried[i], 1e-3); }
      ++calls;
    }
  }
  EXPECT_GT(calls, 600);
}

}  // namespace
}  // namespace orrery::network::tree_time_test
