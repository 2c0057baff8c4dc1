// Collectives dimension by dimension in chunks, message by message: against the list of all messages
// (composition.hpp), against the closed form, and against a slow reference that starts every message when all those
// that its sender has to wait for have arrived.
#include "orrery/network/composition_run.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "orrery/core/random.hpp"
#include "orrery/core/test_effort.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/composition.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/network/level_rules.hpp"
#include "orrery/network/stepped_collective.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/network/test_collectives.hpp"
#include "orrery/network/test_flows.hpp"

namespace orrery::network::composition_run_test {
namespace {

using hardware::Wiring;

hardware::LinkClass link_with(double step) {
  hardware::LinkClass link = test::plain_link();
  link.protocols = {{"only", 1_us, Seconds(step), 1_us, Seconds(step), 1.0}};
  return link;
}

// Axes of 1, 2, 3, … GB/s.
hardware::Cluster grid(const std::vector<std::int64_t>& sizes, const std::vector<Wiring>& wirings, double step = 1e-6) {
  hardware::TopologySpec spec;
  spec.kind = hardware::TopologyKind::grid;
  spec.sizes = sizes;
  spec.wirings = wirings;
  spec.bandwidth = 1_GBps;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    spec.bandwidths.push_back(BytesPerSecond(1e9 * static_cast<double>(i + 1)));
  }
  spec.link = link_with(step);
  return test::cluster_on(std::move(spec));
}

hardware::Cluster fat_tree(std::int64_t domain, double step) {
  return test::non_blocking_tree(link_with(step), domain);
}

Group everyone(const hardware::Cluster& cluster) {
  Group group;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    if (cluster.dimensions[d].size > 1) { group.extents.push_back({static_cast<int>(d), cluster.dimensions[d].size}); }
  }
  return group;
}

std::vector<std::uint32_t> first(std::uint32_t n) {
  std::vector<std::uint32_t> nodes(n);
  std::iota(nodes.begin(), nodes.end(), 0U);
  return nodes;
}

SteppedCollective call_of(const Fabric& fabric, const Schedule& schedule, const Group& group) {
  const PhaseRules rules = phase_rules(fabric, schedule, group, "only");
  SteppedCollective call;
  call.nodes = first(static_cast<std::uint32_t>(group.size()));
  call.by_dimension = ByDimension{schedule, group, rules.both_ways, rules.latency};
  return call;
}

SteppedTimes times_of(const hardware::Cluster& cluster, const std::vector<SteppedCollective>& calls) {
  const hardware::Topology topology = hardware::build(*cluster.topology);
  hardware::Routes routes(topology);
  return run_collectives(routes, level_rules(cluster, "only", CollectiveAlgorithm::ring).levels, calls);
}

double simulated(const Fabric& fabric, const Schedule& schedule, const Group& group) {
  const PhaseRules rules = phase_rules(fabric, schedule, group, "only");
  return rules.base.value() + times_of(fabric.cluster(), {call_of(fabric, schedule, group)}).finish[0];
}

// ---- against the list of all messages ------------------------------------------------------------------------------

// Sizes of 2 to 4 along one to three dimensions.
Group random_group(RandomStream& random) {
  Group group;
  const auto count = static_cast<int>(1 + random.below(3));
  for (int d = 0; d < count; ++d) { group.extents.push_back({d, 2 + random.below(3)}); }
  return group;
}

// Every algorithm by dimension, a chunk count from 1 to 5.
Schedule random_schedule(RandomStream& random, const Group& group, bool in_switch) {
  static constexpr std::array kAlgorithms = {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct,
                                             CollectiveAlgorithm::tree, CollectiveAlgorithm::in_switch};
  while (true) {
    Recipe recipe{};
    for (auto& algorithm : recipe) {
      algorithm = kAlgorithms[static_cast<std::size_t>(random.below(in_switch ? 4 : 3))];
    }
    const auto collective = test::kPricedCollectives[static_cast<std::size_t>(random.below(5))];
    Schedule schedule = make_schedule(collective, recipe, Bytes(1e6 * static_cast<double>(1 + random.below(9))), group);
    schedule.chunks = 1 + random.below(5);
    if (!schedule.phases.empty()) { return schedule; }
  }
}

// By phase, source and destination; switches by the composition's numbers.
using Sums = std::map<std::tuple<std::size_t, std::int64_t, std::int64_t>, double>;

Sums listed_bytes(const Schedule& schedule, const Group& group) {
  const Composition composition = compose(schedule, group);
  Sums sums;
  for (const Transfer& transfer : composition.transfers) {
    if (transfer.source >= composition.members || transfer.destination >= composition.members) { continue; }
    sums[{transfer.phase, transfer.source, transfer.destination}] +=
        composition.block_bytes.value() * static_cast<double>(transfer.blocks);
  }
  return sums;
}

TEST(CompositionRunLaw, messages_made_on_the_fly_are_those_of_the_list_in_any_order_of_arrival) {
  RandomStream random(21);
  for (int i = 0; i < orrery::test::cases(200); ++i) {
    const Group group = random_group(random);
    const Schedule schedule = random_schedule(random, group, true);
    CompositionRun run(schedule, group, std::vector<char>(group.extents.size(), 0));
    run.start();
    Sums sums;
    std::vector<CompositionRun::Message> alive = run.take_messages();
    while (!alive.empty()) {
      const auto next = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(alive.size())));
      const CompositionRun::Message message = alive[next];
      alive[next] = alive.back();
      alive.pop_back();
      if (message.from < run.members() && message.to < run.members()) {
        sums[{message.phase, message.from, message.to}] += message.bytes;
      }
      run.arrive(message);
      const auto made = run.take_messages();
      alive.insert(alive.end(), made.begin(), made.end());
    }
    EXPECT_TRUE(run.is_finished());
    const Sums expected = listed_bytes(schedule, group);
    ASSERT_EQ(sums.size(), expected.size());
    for (const auto& [key, bytes] : expected) { EXPECT_NEAR(sums[key], bytes, 1e-6 * bytes); }
  }
}

// ---- against the closed form ---------------------------------------------------------------------------------------

// Dimensions with ports of their own, all members alike: every round takes what its busiest dimension takes.
TEST(CompositionRunLaw, collectives_by_dimension_on_grids_take_the_time_of_the_closed_form_with_any_number_of_chunks) {
  const auto all = [](Wiring wiring, std::size_t n) { return std::vector<Wiring>(n, wiring); };
  const std::vector<hardware::Cluster> clusters = {grid({4, 3}, all(Wiring::switched, 2)),
                                                   grid({4, 3}, all(Wiring::ring, 2)),
                                                   grid({3, 4}, all(Wiring::mesh, 2)),
                                                   grid({4, 3, 2}, all(Wiring::switched, 3)),
                                                   grid({3, 4, 5}, all(Wiring::ring, 3)),
                                                   grid({4, 2, 3}, {Wiring::mesh, Wiring::switched, Wiring::ring}),
                                                   grid({3, 5}, {Wiring::switched, Wiring::ring}),
                                                   fat_tree(1, 1e-6)};
  int compared = 0;
  for (const hardware::Cluster& cluster : clusters) {
    const Fabric fabric(cluster);
    const Group group = everyone(cluster);
    const bool is_tree = cluster.topology->kind != hardware::TopologyKind::grid;
    for (const Collective op :
         {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
      for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct}) {
        // Direct along a ring of links shares them: no closed form.
        Schedule schedule = make_schedule(op, algorithm, Bytes(6e6), group);
        if (algorithm == CollectiveAlgorithm::direct &&
            std::any_of(cluster.dimensions.begin(), cluster.dimensions.end(),
                        [](const auto& d) { return hardware::has_neighbours_only(d.wiring); })) {
          continue;
        }
        // A ring along a full mesh is as many rings as there are links: messages use one of them.
        if (algorithm == CollectiveAlgorithm::ring &&
            std::any_of(cluster.dimensions.begin(), cluster.dimensions.end(),
                        [](const auto& d) { return hardware::has_pair_links(d.wiring); })) {
          continue;
        }
        for (const std::int64_t chunks : {1, 2, 5, 16}) {
          if (is_tree && chunks > 1) { continue; }
          schedule.chunks = chunks;
          const double expected = fabric.price(schedule).time.value();
          EXPECT_NEAR(simulated(fabric, schedule, group) / expected, 1, 1e-9)
              << cluster.dimensions.size() << ' ' << static_cast<int>(op) << ' ' << static_cast<int>(algorithm) << ' '
              << chunks;
          ++compared;
        }
      }
    }
  }
  EXPECT_GE(compared, 100);
}

// The steps of one level of a tree use some ports less than its busiest one, and only the root's line scatters. Both
// ways of trees at once share ports a little worse than the closed form assumes (up to 2 % here).

TEST(CompositionRunLaw, trees_and_broadcasts_are_hardly_later_than_the_closed_form) {
  for (const hardware::Cluster& cluster :
       {grid({4, 3}, {Wiring::switched, Wiring::switched}), grid({3, 8}, {Wiring::switched, Wiring::switched}),
        grid({2, 3, 7}, {Wiring::switched, Wiring::switched, Wiring::switched})}) {
    const Fabric fabric(cluster);
    const Group group = everyone(cluster);
    for (const auto& [op, algorithm] : {std::pair{Collective::all_reduce, CollectiveAlgorithm::tree},
                                        {Collective::broadcast, CollectiveAlgorithm::ring},
                                        {Collective::broadcast, CollectiveAlgorithm::tree},
                                        {Collective::broadcast, CollectiveAlgorithm::direct}}) {
      for (const std::int64_t chunks : {1, 4, 32}) {
        Schedule schedule = make_schedule(op, algorithm, Bytes(6e6), group);
        schedule.chunks = chunks;
        const double expected = fabric.price(schedule).time.value();
        const double time = simulated(fabric, schedule, group);
        EXPECT_LE(time, expected * (op == Collective::all_reduce ? 1.03 : 1 + 1e-9)) << static_cast<int>(algorithm);
        EXPECT_GE(time, expected * 0.5) << static_cast<int>(op) << ' ' << static_cast<int>(algorithm);
      }
    }
  }
}

// Leaf and spine are two dimensions of one port. One chunk uses them one after the other; several chunks share the
// port, which without latency is always busy: the closed form again. Latency of one dimension then hides behind bytes
// of the other, which the closed form counts.
TEST(CompositionRunLaw, dimensions_that_share_a_port_take_the_time_of_the_closed_form_but_for_latency) {
  for (const std::int64_t domain : {1, 4}) {
    for (const double step : {0.0, 1e-6}) {
      const hardware::Cluster cluster = fat_tree(domain, step);
      const Fabric fabric(cluster);
      const Group group = everyone(cluster);
      for (const Collective op :
           {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather, Collective::all_to_all}) {
        for (const std::int64_t chunks : {1, 2, 5, 16}) {
          const auto algorithm = op == Collective::all_to_all ? CollectiveAlgorithm::direct : CollectiveAlgorithm::ring;
          Schedule schedule = make_schedule(op, algorithm, Bytes(6e6), group);
          schedule.chunks = chunks;
          const double expected = fabric.price(schedule).time.value();
          const double ratio = simulated(fabric, schedule, group) / expected;
          const double tolerance = step == 0 || chunks == 1 ? 1e-9 : 0.05;
          EXPECT_NEAR(ratio, 1, tolerance) << domain << ' ' << step << ' ' << static_cast<int>(op) << ' ' << chunks;
        }
      }
    }
  }
}

// ---- against a slow reference --------------------------------------------------------------------------------------

struct Listed {
  std::int64_t round = 0;
  std::size_t phase = 0;
  std::int64_t step = 0, source = 0, destination = 0;
  double bytes = 0;
};

// Whether a member works on `a` before it may start `b`.
bool precedes(const Schedule& schedule, const ScheduleShape& shape, const Listed& a, const Listed& b) {
  if (a.round != b.round) { return a.round < b.round; }
  if (schedule.phases[a.phase].dimension != schedule.phases[b.phase].dimension) { return false; }
  const std::size_t stage_a = shape.stage_of_phase[a.phase], stage_b = shape.stage_of_phase[b.phase];
  if (stage_a != stage_b) { return stage_a > stage_b; }  // older chunks first
  if (level_per_step(schedule.phases[a.phase].pattern)) { return false; }
  return std::pair(a.phase, a.step) < std::pair(b.phase, b.step);
}

FlowList reference_of(const hardware::Topology& topology, const std::vector<std::pair<Schedule, Group>>& calls,
                      const std::vector<std::vector<std::uint32_t>>& nodes) {
  hardware::Routes routes(topology);
  FlowList flows;
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    flows.links.push_back({i, std::to_string(i), topology.links[i].bandwidth, 0.0});
  }
  flows.routes.first = flows.dependencies.first = {0};
  for (std::size_t c = 0; c < calls.size(); ++c) {
    const auto& [schedule, group] = calls[c];
    const Composition composition = compose(schedule, group);
    const ScheduleShape shape = shape_of(schedule);
    std::map<std::tuple<std::int64_t, std::size_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>, double> sum;
    for (const Transfer& t : composition.transfers) {
      sum[{t.round, t.phase, t.chunk, t.step, t.source, t.destination}] +=
          composition.block_bytes.value() * static_cast<double>(t.blocks);
    }
    std::vector<Listed> messages;
    for (const auto& [key, bytes] : sum) {
      const auto& [round, phase, chunk, step, source, destination] = key;
      messages.push_back({round, phase, step, source, destination, bytes});
    }
    const auto begin = static_cast<std::uint32_t>(flows.size());
    for (const Listed& message : messages) {
      const auto route = routes.route(nodes[c][static_cast<std::size_t>(message.source)],
                                      nodes[c][static_cast<std::size_t>(message.destination)]);
      flows.routes.items.insert(flows.routes.items.end(), route.begin(), route.end());
      flows.routes.first.push_back(static_cast<std::uint32_t>(flows.routes.items.size()));
      for (std::uint32_t i = 0; i < messages.size(); ++i) {
        const bool touches = messages[i].source == message.source || messages[i].destination == message.source;
        if (touches && precedes(schedule, shape, messages[i], message)) {
          flows.dependencies.items.push_back(begin + i);
        }
      }
      flows.dependencies.first.push_back(static_cast<std::uint32_t>(flows.dependencies.items.size()));
      flows.ids.push_back(flows.ids.size());
      flows.bytes.push_back(message.bytes);
      flows.starts.push_back(0.0);
    }
  }
  return flows;
}

// One or two groups among random devices of a random network, so that they share links.
TEST(CompositionRunLaw, messages_end_as_those_of_a_list_with_every_dependency) {
  RandomStream random(22);
  const std::vector<hardware::Cluster> clusters = {fat_tree(1, 0.0), fat_tree(4, 0.0),
                                                   grid({4, 4}, {Wiring::ring, Wiring::switched}, 0.0)};
  for (int i = 0; i < orrery::test::cases(60); ++i) {
    const hardware::Cluster& cluster = clusters[static_cast<std::size_t>(random.below(3))];
    const hardware::Topology topology = hardware::build(*cluster.topology);
    std::vector<std::pair<Schedule, Group>> calls;
    std::vector<std::vector<std::uint32_t>> nodes;
    std::vector<SteppedCollective> given;
    for (std::int64_t c = 1 + random.below(2); c > 0; --c) {
      Group group = random_group(random);
      while (group.size() > 12) { group = random_group(random); }
      const Schedule schedule = random_schedule(random, group, false);
      auto names = first(static_cast<std::uint32_t>(cluster.devices));
      for (std::size_t j = names.size(); j > 1; --j) {
        std::swap(names[j - 1], names[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(j)))]);
      }
      names.resize(static_cast<std::size_t>(group.size()));
      SteppedCollective call;
      call.nodes = names;
      call.by_dimension = ByDimension{
          schedule, group, std::vector<char>(group.extents.size(), 0),
          std::vector<std::vector<double>>(schedule.phases.size(), std::vector<double>(topology.levels.size(), 0.0))};
      given.push_back(std::move(call));
      nodes.push_back(std::move(names));
      calls.emplace_back(schedule, group);
    }
    const SteppedTimes times = times_of(cluster, given);
    const FlowList flows = reference_of(topology, calls, nodes);
    test::expect_times_of(times, flows);
  }
}

// Devices of a switched grid have no names: permuted coordinates along each axis give the same times.
TEST(CompositionRunLaw, permuted_devices_of_a_switched_grid_take_the_same_time) {
  RandomStream random(23);
  const hardware::Cluster cluster = grid({4, 3}, {Wiring::switched, Wiring::switched});
  const Fabric fabric(cluster);
  const Group group = everyone(cluster);
  for (int i = 0; i < orrery::test::cases(30); ++i) {
    const Schedule schedule = random_schedule(random, group, false);
    SteppedCollective call = call_of(fabric, schedule, group);
    const double time = times_of(cluster, {call}).finish[0];
    const auto x = static_cast<std::uint32_t>(random.below(4)), y = static_cast<std::uint32_t>(random.below(3));
    for (std::uint32_t& node : call.nodes) { node = (node % 4 ^ x) + (node / 4 + y) % 3 * 4; }
    EXPECT_NEAR(times_of(cluster, {call}).finish[0], time, 1e-9 * time);
  }
}

}  // namespace
}  // namespace orrery::network::composition_run_test
