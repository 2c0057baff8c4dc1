// Collectives message by message: hand-derived times, laws on random topologies, and a slow reference that holds every
// message of the schedule at once.
#include "orrery/network/stepped_collective.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "orrery/core/random.hpp"
#include "orrery/core/test_effort.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/network/test_flows.hpp"

namespace orrery::network::stepped_collective_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it
using hardware::Routing;
using hardware::TopologyKind;
using hardware::TopologySpec;

TopologySpec spec_of(TopologyKind kind) {
  TopologySpec spec;
  spec.kind = kind;
  spec.bandwidth = 1_GBps;
  spec.link.name = "plain";
  return spec;
}

// `n` devices on one switch of 1 GB/s.
TopologySpec star(std::int64_t n) {
  TopologySpec spec = spec_of(TopologyKind::switch_tree);
  spec.down = {n};
  return spec;
}

// Leaves of 4 with two uplinks.
TopologySpec two_to_one() {
  TopologySpec spec = spec_of(TopologyKind::fat_tree);
  spec.radix = 6;
  spec.blocks = 4;
  spec.oversubscription = {2};
  return spec;
}

TopologySpec torus() {
  TopologySpec spec = spec_of(TopologyKind::torus);
  spec.sizes = {4, 3};
  return spec;
}

TopologySpec dragonfly(Routing routing) {
  TopologySpec spec = spec_of(TopologyKind::dragonfly);
  spec.groups = 3;
  spec.routers = 2;
  spec.hosts = 2;
  spec.global_links = 1;
  spec.routing = routing;
  return spec;
}

SteppedCollective call_of(Collective collective, CollectiveAlgorithm algorithm, std::vector<std::uint32_t> nodes,
                          double block_bytes) {
  SteppedCollective call;
  call.schedule.collective = collective;
  call.schedule.algorithm = algorithm;
  call.schedule.members = static_cast<std::uint32_t>(nodes.size());
  call.nodes = std::move(nodes);
  call.block_bytes = block_bytes;
  return call;
}

std::vector<std::uint32_t> first(std::uint32_t n) {
  std::vector<std::uint32_t> nodes(n);
  std::iota(nodes.begin(), nodes.end(), 0U);
  return nodes;
}

SteppedTimes times_of(const TopologySpec& spec, const std::vector<SteppedCollective>& calls, double latency = 0,
                      FairRates::Method method = FairRates::Method::automatic) {
  const hardware::Topology topology = hardware::build(spec);
  hardware::Routes routes(topology);
  const std::vector<LevelRule> levels(topology.levels.size(), {latency, 1.0});
  return run_collectives(routes, levels, calls, method);
}

// ---- hand cases ----------------------------------------------------------------------------------------------------

// A ring of 4 on one switch: 6 steps of 1 us and a block of 1 MB at 1 GB/s, 1 ms.
TEST(SteppedCollective, a_ring_on_a_switch_takes_its_steps) {
  const auto times =
      times_of(star(4), {call_of(Collective::all_reduce, CollectiveAlgorithm::ring, first(4), 1e6)}, 1e-6);
  EXPECT_NEAR(times.finish[0], 6 * (1e-3 + 1e-6), 1e-12);
  EXPECT_EQ(times.messages, 4U * 6);
  for (const double bytes : times.carried) { EXPECT_DOUBLE_EQ(bytes, 6e6); }
}

// An incast: 7 members send 1 MB each to the root, whose link takes 7 ms; a scatter is the same backwards.
TEST(SteppedCollective, gather_and_scatter_wait_for_the_link_of_the_root) {
  for (const Collective collective : {Collective::gather, Collective::scatter}) {
    const auto times = times_of(star(8), {call_of(collective, CollectiveAlgorithm::direct, first(8), 1e6)});
    EXPECT_NEAR(times.finish[0], 7e-3, 1e-12);
  }
}

// A barrier of 8 by pairs at doubling distances: three messages without bytes, one after another.
TEST(SteppedCollective, a_barrier_takes_the_latency_of_its_steps) {
  const auto times =
      times_of(star(8), {call_of(Collective::barrier, CollectiveAlgorithm::halving_doubling, first(8), 0)}, 1e-6);
  EXPECT_NEAR(times.finish[0], 3e-6, 1e-15);
}

// All-to-all of 16 on 4 leaves of 4 with two uplinks: a leaf sends 4 x 12 blocks over 2 GB/s.
TEST(SteppedCollective, an_all_to_all_takes_the_time_of_the_uplinks) {
  const auto times =
      times_of(two_to_one(), {call_of(Collective::all_to_all, CollectiveAlgorithm::direct, first(16), 1e6)});
  EXPECT_NEAR(times.finish[0], 48e6 / 2e9, 1e-12);
}

// Unequal parts: member 0 sends 3 MB to each of the others, these nothing. Its link has 9 MB; with 1 MB from 1 to 2
// too, the link into 2 has 4 MB and is not the bottleneck.
TEST(SteppedCollective, an_all_to_all_of_unequal_parts_takes_the_time_of_the_busiest_link) {
  auto call = call_of(Collective::all_to_all, CollectiveAlgorithm::direct, first(4), 0);
  call.pair_bytes.assign(16, 0.0);
  for (const std::size_t to : {1U, 2U, 3U}) { call.pair_bytes[to] = 3e6; }
  call.pair_bytes[1 * 4 + 2] = 1e6;
  const auto times = times_of(star(4), {call});
  EXPECT_NEAR(times.finish[0], 9e-3, 1e-12);
  EXPECT_DOUBLE_EQ(std::accumulate(times.carried.begin(), times.carried.end(), 0.0), 2 * 10e6);
}

// Two rings between the same two leaves, members 0, 4 and 1, 5: with d-mod-k their uplinks differ, and neither is
// slower than alone. Rings 0, 4 and 2, 6 have the same uplinks and take twice as long.
TEST(SteppedCollective, collectives_share_the_links_that_they_really_use) {
  const auto ring = [](std::uint32_t a, std::uint32_t b) {
    return call_of(Collective::all_reduce, CollectiveAlgorithm::ring, {a, b}, 1e6);
  };
  const double alone = times_of(two_to_one(), {ring(0, 4)}).finish[0];
  EXPECT_NEAR(alone, 2e-3, 1e-12);
  EXPECT_NEAR(times_of(two_to_one(), {ring(0, 4), ring(1, 5)}).finish[1], alone, 1e-12);
  EXPECT_NEAR(times_of(two_to_one(), {ring(0, 4), ring(2, 6)}).finish[1], 2 * alone, 1e-12);
}

// ---- laws ----------------------------------------------------------------------------------------------------------

struct Random {
  TopologySpec spec;
  std::vector<SteppedCollective> calls;
};

// One to three collectives of random kinds among random members, with random starts.
Random random_case(RandomStream& random) {
  static const std::array specs = {star(8), two_to_one(), torus(), dragonfly(Routing::d_mod_k),
                                   dragonfly(Routing::valiant)};
  static constexpr std::array kOperations = {Collective::all_reduce,     Collective::all_gather, Collective::broadcast,
                                             Collective::reduce_scatter, Collective::all_to_all, Collective::reduce,
                                             Collective::gather,         Collective::scatter};
  static constexpr std::array kAlgorithms = {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct,
                                             CollectiveAlgorithm::tree, CollectiveAlgorithm::halving_doubling};
  Random made;
  made.spec = specs[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(specs.size())))];
  const auto devices = static_cast<std::uint32_t>(hardware::device_count(made.spec));
  const auto count = static_cast<std::size_t>(1 + random.below(3));
  while (made.calls.size() < count) {
    auto nodes = first(devices);
    for (std::size_t i = nodes.size(); i > 1; --i) {
      std::swap(nodes[i - 1], nodes[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    }
    nodes.resize(static_cast<std::size_t>(2 + random.below(devices - 1)));
    auto call = call_of(kOperations[static_cast<std::size_t>(random.below(8))],
                        kAlgorithms[static_cast<std::size_t>(random.below(4))], std::move(nodes),
                        1e5 * static_cast<double>(1 + random.below(20)));
    call.start = 1e-4 * static_cast<double>(random.below(4));
    if (refusal(call.schedule).empty()) { made.calls.push_back(std::move(call)); }
  }
  return made;
}

// All messages of the schedules as a list of flows with dependencies: the rules of member_schedule.hpp, literally.
FlowList listed(const Random& given) {
  const hardware::Topology topology = hardware::build(given.spec);
  hardware::Routes routes(topology);
  FlowList flows;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    flows.links.push_back({i, std::to_string(i), topology.links[i].bandwidth, 0.0});
  }
  std::vector<std::vector<std::uint32_t>> all_routes, all_dependencies;
  for (const SteppedCollective& call : given.calls) {
    struct Received {
      std::uint32_t step, flow;
    };
    std::vector<std::vector<Received>> received(call.nodes.size());
    for (std::uint32_t step = 0; step < step_count(call.schedule); ++step) {
      for (std::uint32_t p = 0; p < call.nodes.size(); ++p) {
        for (std::uint32_t i = 0; i < send_count(call.schedule, p, step); ++i) {
          const StepMessage message = send(call.schedule, p, step, i);
          std::vector<std::uint32_t> on;
          for (const Received& one : received[p]) {
            if (one.step < step) { on.push_back(one.flow); }
          }
          received[message.peer].push_back({step, static_cast<std::uint32_t>(flows.size())});
          all_routes.push_back(routes.route(call.nodes[p], call.nodes[message.peer]));
          all_dependencies.push_back(std::move(on));
          flows.ids.push_back(flows.ids.size());
          flows.bytes.push_back(call.block_bytes * message.count);
          flows.starts.push_back(call.start);
        }
      }
    }
  }
  for (const auto& [lists, into] :
       {std::pair{&all_routes, &flows.routes}, std::pair{&all_dependencies, &flows.dependencies}}) {
    into->first = {0};
    for (const auto& list : *lists) {
      into->items.insert(into->items.end(), list.begin(), list.end());
      into->first.push_back(static_cast<std::uint32_t>(into->items.size()));
    }
  }
  return flows;
}

TEST(SteppedCollectiveLaw, messages_made_on_the_fly_end_as_those_of_the_whole_list) {
  RandomStream random(11);
  for (int i = 0; i < orrery::test::cases(150); ++i) {
    const Random given = random_case(random);
    const SteppedTimes times = times_of(given.spec, given.calls);
    const FlowList flows = listed(given);
    test::expect_times_of(times, flows);
  }
}

// No link carries more than its bandwidth allows in the time; latency never makes a collective earlier than the sum of
// its own dependent latencies would, and local repair finds the times of full solutions.
TEST(SteppedCollectiveLaw, links_are_within_their_bandwidth_and_methods_agree) {
  RandomStream random(12);
  for (int i = 0; i < orrery::test::cases(100); ++i) {
    const Random given = random_case(random);
    const hardware::Topology topology = hardware::build(given.spec);
    const SteppedTimes times = times_of(given.spec, given.calls, 1e-6, FairRates::Method::full);
    const double last = *std::max_element(times.finish.begin(), times.finish.end());
    for (std::size_t link = 0; link < times.carried.size(); ++link) {
      EXPECT_LE(times.carried[link], topology.links[link].bandwidth * last * (1 + 1e-9));
    }
    const SteppedTimes local = times_of(given.spec, given.calls, 1e-6, FairRates::Method::local);
    for (std::size_t c = 0; c < given.calls.size(); ++c) {
      EXPECT_NEAR(local.finish[c], times.finish[c], 1e-7 * times.finish[c]);
    }
  }
}

// Devices of a star have no names: any permutation of the members' devices gives the same times.
TEST(SteppedCollectiveLaw, permuted_devices_of_a_star_take_the_same_time) {
  RandomStream random(13);
  for (int i = 0; i < orrery::test::cases(50); ++i) {
    Random given = random_case(random);
    given.spec = star(hardware::device_count(given.spec));
    const auto devices = static_cast<std::uint32_t>(hardware::device_count(given.spec));
    auto names = first(devices);
    for (std::size_t j = names.size(); j > 1; --j) {
      std::swap(names[j - 1], names[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(j)))]);
    }
    const SteppedTimes times = times_of(given.spec, given.calls, 1e-6);
    for (SteppedCollective& call : given.calls) {
      for (std::uint32_t& node : call.nodes) { node = names[node]; }
    }
    const SteppedTimes permuted = times_of(given.spec, given.calls, 1e-6);
    for (std::size_t c = 0; c < given.calls.size(); ++c) {
      EXPECT_NEAR(permuted.finish[c], times.finish[c], 1e-9 * times.finish[c]);
    }
  }
}

// All links twice as fast, no latency, one start: everything happens in half the time. (One faster link alone may make
// a collective later: with dependencies, max-min rates do not exclude that.)
TEST(SteppedCollectiveLaw, twice_the_bandwidth_of_all_links_halves_a_collective_without_latency) {
  RandomStream random(14);
  for (int i = 0; i < orrery::test::cases(50); ++i) {
    Random given = random_case(random);
    for (SteppedCollective& call : given.calls) { call.start = 0; }
    const SteppedTimes times = times_of(given.spec, given.calls);
    given.spec.bandwidth = 2_GBps;
    const SteppedTimes fast = times_of(given.spec, given.calls);
    for (std::size_t c = 0; c < given.calls.size(); ++c) {
      EXPECT_NEAR(fast.finish[c], times.finish[c] / 2, 1e-9 * times.finish[c]);
    }
  }
}

// Four rings from one leaf to another over two uplinks each way: d-mod-k to members of one parity puts all on one
// uplink, adaptive routing finds both.
TEST(SteppedCollective, adaptive_routing_takes_the_way_with_fewer_flows) {
  auto spec = two_to_one();
  const std::vector<SteppedCollective> calls = {call_of(Collective::broadcast, CollectiveAlgorithm::ring, {0, 4}, 1e6),
                                                call_of(Collective::broadcast, CollectiveAlgorithm::ring, {1, 6}, 1e6)};
  EXPECT_NEAR(times_of(spec, calls).finish[1], 2e-3, 1e-12);
  spec.routing = Routing::adaptive;
  EXPECT_NEAR(times_of(spec, calls).finish[1], 1e-3, 1e-12);
}

// ---- the closed form -----------------------------------------------------------------------------------------------

// All groups of `members` along a level, of neighbours or spread evenly.
std::vector<std::vector<std::uint32_t>> groups_along(const hardware::Topology& topology, std::int64_t stride,
                                                     std::int64_t size, std::int64_t members, bool are_spread) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::uint32_t>> groups;
  for (std::uint32_t device = 0; device < topology.devices; ++device) {
    const std::int64_t position = device / stride % size;
    const std::int64_t number = are_spread ? position % (size / members) : position / members;
    groups[{device - position * stride, number}].push_back(device);
  }
  std::vector<std::vector<std::uint32_t>> all;
  for (auto& [at, nodes] : groups) { all.push_back(std::move(nodes)); }
  return all;
}

// The bandwidth of the closed form is that at which all groups of a level really send: an all-to-all, and on rings and
// lines an all-gather around a part, whose messages from the last to the first member pass the way back.
TEST(SteppedCollectiveLaw, groups_along_a_level_take_the_time_of_the_closed_form) {
  TopologySpec hyperx = spec_of(TopologyKind::hyperx);
  hyperx.sizes = {4, 3};
  hyperx.hosts = 2;
  TopologySpec mesh = torus();
  mesh.kind = TopologyKind::mesh;
  mesh.sizes = {6, 4};
  TopologySpec ring = torus();
  ring.sizes = {8};
  constexpr double kBlock = 1e6;
  int compared = 0;
  for (const TopologySpec& spec : {hyperx, mesh, ring, dragonfly(Routing::shortest), two_to_one()}) {
    const hardware::Topology topology = hardware::build(spec);
    std::int64_t stride = 1;
    for (const hardware::NetworkDimension& dimension : hardware::dimensions_of(spec, topology)) {
      const bool is_ring = hardware::has_neighbours_only(dimension.wiring);
      for (std::int64_t members = 2; members <= dimension.size; ++members) {
        const bool is_closed_ring = spec.kind == TopologyKind::torus && members == dimension.size;
        if (dimension.size % members != 0 || is_closed_ring) { continue; }
        double slowest = 0;
        for (const bool are_spread : {false, true}) {
          if (is_ring && are_spread) { continue; }
          std::vector<SteppedCollective> calls;
          for (auto& nodes : groups_along(topology, stride, dimension.size, members, are_spread)) {
            calls.push_back(
                is_ring ? call_of(Collective::all_gather, CollectiveAlgorithm::ring, std::move(nodes), kBlock)
                        : call_of(Collective::all_to_all, CollectiveAlgorithm::direct, std::move(nodes), kBlock));
          }
          const auto times = times_of(spec, calls);
          slowest = std::max(slowest, *std::max_element(times.finish.begin(), times.finish.end()));
        }
        const double closed_form =
            kBlock * static_cast<double>(members - 1) / dimension.bandwidth_among(members).value();
        EXPECT_NEAR(slowest / closed_form, 1, 1e-9)
            << static_cast<int>(spec.kind) << " " << dimension.name << " " << members;
        ++compared;
      }
      stride *= dimension.size;
    }
  }
  EXPECT_GT(compared, 15);
}

}  // namespace
}  // namespace orrery::network::stepped_collective_test
