// Collectives of switches on trees: hand-derived times, bytes of links, limits.
#include "orrery/network/switch_tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "orrery/core/random.hpp"

namespace orrery::network::switch_tree_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it
using hardware::TopologyKind;
using hardware::TopologySpec;

// Four devices, two on each of two switches, below one switch; 1 GB/s.
TopologySpec tree() {
  TopologySpec spec;
  spec.kind = TopologyKind::switch_tree;
  spec.bandwidth = 1_GBps;
  spec.link.name = "plain";
  spec.down = {2, 2};
  return spec;
}

struct TestNetwork {
  hardware::Topology topology;
  hardware::Routes routes;
  std::vector<LevelRule> levels;
  std::vector<std::uint32_t> devices;

  explicit TestNetwork(const TopologySpec& spec, double latency = 0)
      : topology(hardware::build(spec)), routes(topology), levels(topology.levels.size(), {latency, 1.0}) {
    devices.resize(topology.devices);
    std::iota(devices.begin(), devices.end(), 0U);
  }
  TestNetwork(const TestNetwork&) = delete;
  TestNetwork& operator=(const TestNetwork&) = delete;

  SteppedTimes run(Collective collective, double bytes, const TreeLimits& limits = {}) {
    return run_trees(routes, levels, levels, {{{*switch_tree(topology, devices), collective, bytes, 0}}, {}}, limits);
  }
};

double finish(Collective collective, double bytes, double latency = 0, const TreeLimits& limits = {}) {
  TestNetwork net(tree(), latency);
  return net.run(collective, bytes, limits).finish.front();
}

TEST(SwitchTree, has_the_switches_that_lead_to_the_devices) {
  const TestNetwork net(tree());
  const auto all = switch_tree(net.topology, net.devices);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->nodes.size(), 7U);
  EXPECT_EQ(all->below.front(), 4U);
  const std::vector<std::uint32_t> near = {2, 3};
  const auto two = switch_tree(net.topology, near);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->nodes.size(), 3U);  // their own switch is the top
  TopologySpec grid;
  grid.kind = TopologyKind::torus;
  grid.bandwidth = 1_GBps;
  grid.sizes = {3, 3};
  const TestNetwork torus(grid);
  EXPECT_FALSE(switch_tree(torus.topology, torus.devices));
}

// 64 MB in 64 chunks of 1 ms: a chunk passes four links, the others follow it: 67 ms.
TEST(SwitchTree, an_all_reduce_passes_every_link_once_each_way) {
  EXPECT_NEAR(finish(Collective::all_reduce, 64e6), 0.067, 1e-9);
  EXPECT_NEAR(finish(Collective::broadcast, 64e6), 0.067, 1e-9);
  // Four links of 1 us each.
  EXPECT_NEAR(finish(Collective::all_reduce, 64e6, 1e-6), 0.067 + 4e-6, 1e-9);
  EXPECT_NEAR(finish(Collective::barrier, 0, 1e-6), 4e-6, 1e-12);
}

// Up as above, 64 ms and one chunk more; down half a chunk to a switch, a quarter to a device.
TEST(SwitchTree, a_reduce_scatter_goes_down_in_parts) {
  EXPECT_NEAR(finish(Collective::reduce_scatter, 64e6), 0.065 + 0.0005 + 0.00025, 1e-9);
}

// A device sends 1/4 and gets 3/4; a chunk is 0.25, 0.5, 0.5 and 0.75 ms on the four links, and the last link is the
// slowest: 64 x 0.75 ms after the first 1.25 ms.
TEST(SwitchTree, an_all_gather_brings_each_device_what_it_lacks) {
  EXPECT_NEAR(finish(Collective::all_gather, 64e6), 0.048 + 0.00125, 1e-9);
}

// Of the 64 MB that each device sends, 3/4 go to others: 48 ms on its link; a switch's two devices send half of theirs
// to the other switch, 64 ms. First chunk: 0.75 ms up, then 1 ms up and 1 ms down for 64 chunks, 0.75 ms down.
TEST(SwitchTree, an_all_to_all_crosses_the_top_with_what_is_for_others) {
  EXPECT_NEAR(finish(Collective::all_to_all, 64e6), 0.00075 + 0.064 + 0.001 + 0.00075, 1e-9);
}

TEST(SwitchTree, links_carry_what_the_operation_needs) {
  TestNetwork net(tree());
  for (const auto& [collective, device_up, device_down] :
       {std::tuple(Collective::all_reduce, 1.0, 1.0), std::tuple(Collective::reduce_scatter, 1.0, 0.25),
        std::tuple(Collective::all_gather, 0.25, 0.75), std::tuple(Collective::all_to_all, 0.75, 0.75)}) {
    const SteppedTimes times = net.run(collective, 1e6);
    for (std::size_t i = 0; i < times.carried.size(); ++i) {
      const auto& link = net.topology.links[i];
      if (link.from < 4) { EXPECT_NEAR(times.carried[i], device_up * 1e6, 1e-3); }
      if (link.to < 4) { EXPECT_NEAR(times.carried[i], device_down * 1e6, 1e-3); }
    }
  }
}

// Two messages of a chunk arrive at a switch: 2 MB at 1 GB/s, 2 ms a chunk where links need 1 ms. First chunk: 1 ms up,
// 2 ms; 1 ms up; then the top's 64 x 2 ms; 1 ms and 1 ms down.
TEST(SwitchTree, a_slow_switch_reduces_one_chunk_after_the_other) {
  TreeLimits limits;
  limits.rate = 1e9;
  EXPECT_NEAR(finish(Collective::all_reduce, 64e6, 0, limits), 0.001 + 0.002 + 0.001 + 0.128 + 0.002, 1e-9);
}

// A buffer for all chunks changes nothing; one for two chunks makes children wait until a chunk is sent on.
TEST(SwitchTree, a_small_buffer_makes_children_wait) {
  TreeLimits limits;
  limits.buffer = 64e6;
  const double free = finish(Collective::all_reduce, 64e6);
  EXPECT_NEAR(finish(Collective::all_reduce, 64e6, 0, limits), free, 1e-9);
  limits.buffer = 2e6;
  EXPECT_EQ(tree_chunks(64e6, limits), 64U);
  const double tight = finish(Collective::all_reduce, 64e6, 0, limits);
  EXPECT_GE(tight, free);
  limits.buffer = 1000;
  EXPECT_EQ(tree_chunks(64e6, limits), 0U);  // 128,000 chunks
}

// Two groups with one device on each switch: their trees share the links between switches.
TEST(SwitchTree, groups_share_links) {
  TestNetwork net(tree());
  const std::vector<std::uint32_t> even = {0, 2}, odd = {1, 3};
  const TreeCalls calls{{{*switch_tree(net.topology, even), Collective::all_reduce, 64e6, 0},
                         {*switch_tree(net.topology, odd), Collective::all_reduce, 64e6, 0}},
                        {}};
  const SteppedTimes times = run_trees(net.routes, net.levels, net.levels, calls, {});
  EXPECT_GT(times.finish[0], 0.128);
  EXPECT_LT(times.finish[0], 0.135);
  EXPECT_NEAR(times.finish[0], times.finish[1], 1e-9);
}

// A ring by the other run is the same ring.
TEST(SwitchTree, calls_without_switches_take_what_they_take_alone) {
  TestNetwork net(tree(), 1e-6);
  SteppedCollective ring;
  ring.schedule.members = 4;
  ring.nodes = net.devices;
  ring.block_bytes = 1e6;
  const SteppedTimes alone = run_collectives(net.routes, net.levels, std::span(&ring, 1));
  const SteppedTimes times = run_trees(net.routes, net.levels, net.levels, {{}, {ring}}, {});
  EXPECT_NEAR(times.finish[0], alone.finish[0], 1e-12);
  EXPECT_EQ(times.messages, alone.messages);
  EXPECT_EQ(times.messages, message_count(ring.schedule));
}

// On random trees: never faster than the busiest link or the latencies of the way up and down.
TEST(SwitchTreeLaw, no_call_is_faster_than_its_links) {
  RandomStream random = stream_of(7, 0);
  for (int round = 0; round < 60; ++round) {
    TopologySpec spec = tree();
    spec.down = {1 + random.below(4), 2 + random.below(3), 1 + random.below(3)};
    TestNetwork net(spec, 1e-6);
    TreeLimits limits;
    if (random.below(2) == 0) { limits.buffer = 1e5 * static_cast<double>(1 + random.below(30)); }
    if (random.below(2) == 0) { limits.rate = 1e9; }
    const auto collective =
        std::array{Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all,
                   Collective::broadcast}[static_cast<std::size_t>(random.below(5))];
    const double bytes = 1e6 * static_cast<double>(1 + random.below(9));
    const SteppedTimes times = net.run(collective, bytes, limits);
    for (const double carried : times.carried) { EXPECT_GE(times.finish.front(), carried / 1e9); }
    limits.rate = 0;  // the same chunks
    EXPECT_LE(net.run(collective, bytes, limits).finish.front(), times.finish.front() * (1 + 1e-9));
    EXPECT_GE(times.finish.front(), 2e-6);
  }
}

}  // namespace
}  // namespace orrery::network::switch_tree_test
