// Laws of physical semantics on random jobs.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <map>
#include <numeric>
#include <thread>

#include "orrery/network/member_schedule.hpp"
#include "orrery/simulate/physical_machine.hpp"
#include "orrery/simulate/physical_result.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::physical_law_test {
namespace {

constexpr std::uint64_t kHop = 500'000;  // 500 ns
constexpr std::uint64_t kByte = 20;      // 50 GB/s

using Shape = std::vector<std::pair<Wiring, std::uint32_t>>;
using Graphs = std::vector<std::vector<NodeRecord>>;

results::Simulation simulated(const Rig& rig, const Graphs& graphs) {
  auto result = run(rig, [&](std::uint32_t rank) { return graphs[rank]; });
  if (!result) { throw std::runtime_error(result.error().text()); }
  return *result;
}

std::uint32_t below(std::uint32_t end) { return *rc::gen::inRange<std::uint32_t>(0, end); }

constexpr std::array kTypes = {CollectiveType::all_reduce, CollectiveType::all_gather, CollectiveType::reduce_scatter,
                               CollectiveType::all_to_all};

bool can(const std::string& algorithm, CollectiveType type) {
  if (algorithm == "doubleBinaryTree") { return type == CollectiveType::all_reduce; }
  return algorithm != "halvingDoubling" || type != CollectiveType::all_to_all;
}

// Dimensions of 2 or 4 ranks, so that every algorithm can run on them.
Rig any_rig(std::uint32_t most_dimensions = 3) {
  static const std::vector<std::string> names = {"ring", "direct", "direct2", "halvingDoubling", "doubleBinaryTree"};
  Shape shape;
  std::vector<std::string> algorithms;
  const std::uint32_t dimensions = 1 + below(most_dimensions);
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    shape.emplace_back(static_cast<Wiring>(below(3)), 2U << below(2));
    algorithms.push_back(names[below(static_cast<std::uint32_t>(names.size()))]);
  }
  Rig rig(shape, algorithms);
  rig.physical().chunks(1 + below(5));
  rig.system.local_memory_gb = below(2) * 1600;
  rig.system.scheduling = static_cast<Scheduling>(below(3));
  rig.system.endpoint_delay_ns = below(3) * 10;
  if (below(4) == 0) {
    for (auto& dimension : rig.dimensions) { dimension.latency_ns = 0; }
  }
  return rig;
}

std::uint32_t ranks_of(const Rig& rig) {
  std::uint32_t ranks = 1;
  for (const auto& dimension : rig.dimensions) { ranks *= dimension.ranks; }
  return ranks;
}

bool can(const Rig& rig, CollectiveType type) {
  const auto& list = std::get<std::vector<DimensionAlgorithm>>(rig.system.algorithms[0]);
  return std::all_of(list.begin(), list.end(), [&](const DimensionAlgorithm& one) { return can(name_of(one), type); });
}

CollectiveType any_type(const Rig& rig) {
  const CollectiveType type = kTypes[below(kTypes.size())];
  return can(rig, type) ? type : CollectiveType::all_reduce;
}

// ---- bounds --------------------------------------------------------------------------------------------------------

// The bytes that a rank must send at least; `bytes` as Chakra counts them.
double minimum_sent(CollectiveType type, double bytes, double n) {
  if (type == CollectiveType::all_reduce) { return 2 * bytes * (n - 1) / n; }
  if (type == CollectiveType::all_gather) { return bytes * (n - 1); }
  return bytes * (n - 1) / n;
}

double links_of(const RigDimension& dimension) {
  if (dimension.wiring == Wiring::mesh) { return dimension.ranks - 1; }
  return dimension.wiring == Wiring::ring && dimension.ranks > 2 ? 2 : 1;
}

RC_GTEST_PROP(PhysicalLaw, no_collective_is_faster_than_its_latency_and_its_bytes_allow, ()) {
  const Rig rig = any_rig();
  const CollectiveType type = any_type(rig);
  const std::int64_t bytes = 1 + below(1U << below(24));
  const std::uint32_t ranks = ranks_of(rig);
  const auto result = simulated(rig, Graphs(ranks, {collective(1, type, bytes)}));
  double links = 0, latency = 0;
  for (const RigDimension& dimension : rig.dimensions) {
    links += links_of(dimension);
    latency += dimension.latency_ns * 1000 * (dimension.wiring == Wiring::switched ? 2 : 1);
  }
  // On average over the ranks: a tree's root sends less than its other ranks.
  const double sent = minimum_sent(type, static_cast<double>(bytes), ranks);
  const auto last = static_cast<double>(result.makespan_ns()) * 1000;
  RC_ASSERT(last >= latency);
  RC_ASSERT(last * links >= sent * kByte);
}

RC_GTEST_PROP(PhysicalLaw, links_are_busy_for_the_time_of_their_bytes_and_never_longer_than_the_run, ()) {
  const Rig rig = any_rig();
  const auto result = simulated(rig, Graphs(ranks_of(rig), {collective(1, any_type(rig), 1 + below(1U << 20))}));
  for (const auto& link : result.tables->links) {
    RC_ASSERT(link.busy_ps == link.bytes * kByte);
    RC_ASSERT(link.busy_ps <= result.makespan_ns() * 1000);
  }
}

// If every pair of ranks has a link, the bytes of a link are those that the schedule sends from one to the other.
RC_GTEST_PROP(PhysicalLaw, bytes_on_every_link_are_those_of_the_schedule, ()) {
  const std::map<CollectiveType, Collective> operations = {{CollectiveType::all_reduce, Collective::all_reduce},
                                                           {CollectiveType::all_gather, Collective::all_gather},
                                                           {CollectiveType::reduce_scatter, Collective::reduce_scatter},
                                                           {CollectiveType::all_to_all, Collective::all_to_all}};
  const std::map<std::string, CollectiveAlgorithm> algorithms = {
      {"ring", CollectiveAlgorithm::ring},
      {"direct", CollectiveAlgorithm::direct},
      {"halvingDoubling", CollectiveAlgorithm::halving_doubling},
      {"doubleBinaryTree", CollectiveAlgorithm::tree}};
  const std::uint32_t n = 2 + below(12);
  auto pair = algorithms.begin();
  std::advance(pair, below(4));
  const CollectiveType type = kTypes[below(4)];
  const network::MemberSchedule schedule{operations.at(type), pair->second, n};
  RC_PRE(network::refusal(schedule).empty());
  const std::uint64_t block = 1 + below(1000);
  const std::uint64_t bytes = type == CollectiveType::all_gather ? block : block * network::block_count(schedule);
  const Rig rig = Rig({{Wiring::mesh, n}}, {pair->first}).physical();
  const auto result = simulated(rig, Graphs(n, {collective(1, type, static_cast<std::int64_t>(bytes))}));
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> expected, sent;
  for (std::uint32_t p = 0; p < n; ++p) {
    for (std::uint32_t s = 0; s < network::step_count(schedule); ++s) {
      for (std::uint32_t i = 0; i < network::send_count(schedule, p, s); ++i) {
        const network::StepMessage message = network::send(schedule, p, s, i);
        expected[{p, message.peer}] += message.count * block;
      }
    }
  }
  for (const auto& link : result.tables->links) { sent[{link.from, link.to}] = link.bytes; }
  RC_ASSERT(sent == expected);
}

// ---- times of ranks ------------------------------------------------------------------------------------------------

// Chains of compute nodes and collectives with different durations on each rank, and a host node.
Graphs skewed(const Rig& rig, std::uint32_t collectives) {
  Graphs graphs(ranks_of(rig));
  std::vector<NodeRecord> shared;
  for (std::uint32_t i = 0; i < collectives; ++i) {
    shared.push_back(collective(10 + i, any_type(rig), 1 + below(1U << 16)));
  }
  for (auto& graph : graphs) {
    for (std::uint32_t i = 0; i < collectives; ++i) {
      graph.push_back(
          compute(100 + i, below(40),
                  i > 0 && below(2) == 0 ? std::vector<std::uint64_t>{99 + i} : std::vector<std::uint64_t>{}));
      NodeRecord made = shared[i];
      made.data_deps = {100 + below(i + 1)};  // ranks reach the collectives in any order
      graph.push_back(made);
    }
    graph.push_back(on_host(compute(200, below(50))));
  }
  return graphs;
}

RC_GTEST_PROP(PhysicalLaw, ranks_that_arrive_late_and_in_another_order_finish, ()) {
  const Rig rig = any_rig();
  const auto result = simulated(rig, skewed(rig, 1 + below(5)));
  for (const results::RankTimes& times : result.tables->ranks) {
    RC_ASSERT(times.compute_ps + times.exposed_comm_ps + times.exposed_memory_ps + times.exposed_host_ps +
                  times.idle_ps ==
              times.finish_ps);
    RC_ASSERT(times.exposed_comm_ps <= times.comm_ps && times.waiting_ps <= times.idle_ps);
    RC_ASSERT(times.host_ps <= times.finish_ps && times.comm_ps <= times.finish_ps);
  }
}

// Counting messages when their arrival becomes known gives what an event for each of them gives.
RC_GTEST_PROP(PhysicalLaw, counting_messages_ahead_changes_no_time, ()) {
  const Rig rig = any_rig();
  const Graphs graphs = skewed(rig, 1 + below(5));
  const auto job = job_of(rig, [&](std::uint32_t rank) { return graphs[rank]; });
  RC_ASSERT(job.has_value());
  PhysicalMachine ahead(*job), by_events(*job, Counting::by_events);
  ahead.run();
  by_events.run();
  RC_ASSERT(physical_result(*job, ahead.nodes()).ranks == physical_result(*job, by_events.nodes()).ranks);
  RC_ASSERT(ahead.delivered() == by_events.delivered());
  for (std::size_t i = 0; i < ahead.collectives().all().size(); ++i) {
    RC_ASSERT(ahead.collectives().all()[i].end == by_events.collectives().all()[i].end);
  }
}

// ---- symmetry ------------------------------------------------------------------------------------------------------

std::vector<results::RankTimes> moved(const std::vector<results::RankTimes>& times,
                                      const std::vector<std::uint32_t>& to) {
  std::vector<results::RankTimes> result(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) { result[to[i]] = times[i]; }
  return result;
}

template <class T>
std::vector<T> moved_to(const std::vector<T>& things, const std::vector<std::uint32_t>& to) {
  std::vector<T> result(things.size());
  for (std::size_t i = 0; i < things.size(); ++i) { result[to[i]] = things[i]; }
  return result;
}

// A random translation of all ranks along every dimension.
std::vector<std::uint32_t> translation(const Rig& rig) {
  std::vector<std::uint32_t> shifts;
  for (const auto& dimension : rig.dimensions) { shifts.push_back(below(dimension.ranks)); }
  std::vector<std::uint32_t> to(ranks_of(rig));
  for (std::uint32_t rank = 0; rank < to.size(); ++rank) {
    std::uint32_t left = rank, stride = 1;
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      const std::uint32_t n = rig.dimensions[i].ranks;
      to[rank] += (left % n + shifts[i]) % n * stride;
      left /= n;
      stride *= n;
    }
  }
  return to;
}

// Messages between any ranks; the graphs of a permuted job name the permuted peers.
Graphs messages(std::uint32_t ranks, std::uint32_t count, const std::vector<std::uint32_t>& sources,
                const std::vector<std::uint32_t>& targets, const std::vector<std::int64_t>& sizes,
                const std::vector<std::uint32_t>& to) {
  Graphs graphs(ranks, {node(1, NodeType::metadata)});  // graphs without nodes are refused
  for (std::uint32_t i = 0; i < count; ++i) {
    if (sources[i] == targets[i]) { continue; }
    auto& from = graphs[to[sources[i]]];
    from.push_back(send(from.size() + 1, to[targets[i]], sizes[i]));
    auto& into = graphs[to[targets[i]]];
    into.push_back(receive(into.size() + 1, to[sources[i]], sizes[i]));
  }
  return graphs;
}

struct Traffic {
  std::vector<std::uint32_t> sources, targets;
  std::vector<std::int64_t> sizes;
};
Traffic traffic(std::uint32_t ranks, std::uint32_t count) {
  Traffic made;
  for (std::uint32_t i = 0; i < count; ++i) {
    made.sources.push_back(below(ranks));
    made.targets.push_back(below(ranks));
    made.sizes.push_back(std::array{1000, 1000, 30000, 1}[below(4)]);  // many of equal size
  }
  return made;
}

RC_GTEST_PROP(PhysicalLaw, messages_translated_along_a_torus_take_the_same_time, ()) {
  Rig rig = any_rig();
  for (auto& dimension : rig.dimensions) { dimension.ranks = 2 + below(4); }
  rig.system.rendezvous = below(2) == 0;
  const std::uint32_t ranks = ranks_of(rig), count = below(40);
  const Traffic made = traffic(ranks, count);
  std::vector<std::uint32_t> same(ranks);
  std::iota(same.begin(), same.end(), 0U);
  const auto to = translation(rig);
  const auto before = simulated(rig, messages(ranks, count, made.sources, made.targets, made.sizes, same));
  const auto after = simulated(rig, messages(ranks, count, made.sources, made.targets, made.sizes, to));
  RC_ASSERT(after.tables->ranks == moved(before.tables->ranks, to));
}

RC_GTEST_PROP(PhysicalLaw, ranks_of_a_switch_are_interchangeable, ()) {
  const std::uint32_t ranks = 2 + below(8), count = below(40);
  Rig rig = Rig({{static_cast<Wiring>(1 + below(2)), ranks}}, {"direct"}).physical();
  rig.system.rendezvous = below(2) == 0;
  const Traffic made = traffic(ranks, count);
  std::vector<std::uint32_t> same(ranks);
  std::iota(same.begin(), same.end(), 0U);
  std::vector<std::uint32_t> to = same;
  for (std::uint32_t i = ranks; i > 1; --i) { std::swap(to[i - 1], to[below(i)]); }
  const auto before = simulated(rig, messages(ranks, count, made.sources, made.targets, made.sizes, same));
  const auto after = simulated(rig, messages(ranks, count, made.sources, made.targets, made.sizes, to));
  RC_ASSERT(after.tables->ranks == moved(before.tables->ranks, to));
}

RC_GTEST_PROP(PhysicalLaw, skewed_collectives_translated_along_a_torus_take_the_same_time, ()) {
  Rig rig = any_rig();
  std::vector<std::string> names;
  for (auto& dimension : rig.dimensions) {
    dimension.ranks = 2 + below(4);
    names.push_back(below(2) == 0 ? "ring" : "direct");  // their schedules do not change under a translation
  }
  rig.use(names);
  const Graphs graphs = skewed(rig, 1 + below(4));
  const auto to = translation(rig);
  const auto before = simulated(rig, graphs);
  const auto after = simulated(rig, moved_to(graphs, to));
  RC_ASSERT(after.tables->ranks == moved(before.tables->ranks, to));
}

// Through switches and full meshes, which do not change under any permutation of the ranks.
RC_GTEST_PROP(PhysicalLaw, skewed_halving_and_doubling_with_ranks_permuted_by_an_xor_takes_the_same_time, ()) {
  Rig rig = Rig({{static_cast<Wiring>(1 + below(2)), 2U << below(3)}, {static_cast<Wiring>(1 + below(2)), 4}},
                {"halvingDoubling", "halvingDoubling"})
                .physical()
                .chunks(1 + below(4));
  const Graphs graphs = skewed(rig, 1 + below(4));
  std::vector<std::uint32_t> to(graphs.size());
  const std::uint32_t mask = below(static_cast<std::uint32_t>(to.size()));
  for (std::uint32_t rank = 0; rank < to.size(); ++rank) { to[rank] = rank ^ mask; }
  const auto before = simulated(rig, graphs);
  const auto after = simulated(rig, moved_to(graphs, to));
  RC_ASSERT(after.tables->ranks == moved(before.tables->ranks, to));
}

// ---- concurrent simulations ----------------------------------------------------------------------------------------

TEST(Sweep, concurrent_simulations_have_the_same_results_as_sequential_ones) {
  std::vector<SimulationJob> jobs;
  for (std::uint32_t i = 0; i < 12; ++i) {
    Rig rig({{Wiring::ring, 4}, {Wiring::switched, 2 + i % 3}}, {i % 2 == 0 ? "ring" : "direct", "direct"});
    rig.chunks(1 + i);
    if (i % 2 == 1) { rig.physical(); }
    const auto graph = [&](std::uint32_t rank) {
      return std::vector{compute(1, rank % 3 * i), all_reduce(2, kMiB * (1 + i % 4), {1}),
                         collective(3, CollectiveType::all_to_all, 70'000 + i, {2})};
    };
    auto job = job_of(rig, graph);
    ASSERT_TRUE(job) << job.error().text();
    jobs.push_back(std::move(*job));
  }
  const auto times = [](const SimulationJob& job) {
    Times all_times;
    const auto result = simulate(job);
    for (const auto& rank : result.value().ranks) {
      all_times.push_back(rank.finish_ns);
      all_times.push_back(rank.exposed_comm_ns);
    }
    return all_times;
  };
  std::vector<Times> alone, together(jobs.size());
  for (const SimulationJob& job : jobs) { alone.push_back(times(job)); }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    threads.emplace_back([&, i] { together[i] = times(jobs[i]); });
  }
  for (std::thread& thread : threads) { thread.join(); }
  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace orrery::simulate::test::physical_law_test
