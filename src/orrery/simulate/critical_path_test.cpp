// The critical path of jobs on clusters: hand cases, and slack against longer nodes that are simulated.
#include "orrery/simulate/critical_path.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/network/test_cluster.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::critical_path_test {
namespace {

using network::test::plain_cluster;
using Lists = std::vector<std::vector<NodeRecord>>;

constexpr std::uint64_t kMicrosecond = 1'000'000;  // picoseconds

FlowJob job_on(const hardware::Cluster& cluster, const Lists& nodes, std::vector<Group> groups = {}) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  job.groups = std::move(groups);
  job.spans = job.explain = true;
  return unfolded(cluster, with_graphs(std::move(job), nodes));
}

results::Simulation run(const FlowJob& job, bool shared = true) {
  auto simulation = simulate_flows(job, shared);
  if (!simulation) { throw std::runtime_error(simulation.error().text()); }
  return *simulation;
}

const results::PathActivity& activity(const results::CriticalPath& path, std::string_view name) {
  for (const auto& row : path.activities) {
    if (row.name.starts_with(name)) { return row; }
  }
  throw std::runtime_error("no activity " + std::string(name));
}

// Rank 1 reaches the all-reduce last; rank 0 could compute 200 us longer.
TEST(CriticalPath, goes_through_the_member_that_reaches_a_collective_last) {
  const Lists nodes = {{compute(1, 100), all_reduce(2, 1 << 20, {1})},
                       {compute(1, 300), all_reduce(2, 1 << 20, {1}), compute(3, 50, {2})}};
  const auto simulation = run(job_on(plain_cluster({2}), nodes));
  const results::CriticalPath& path = *simulation.path;
  ASSERT_EQ(path.steps.size(), 3U);
  EXPECT_EQ(path.steps[0].rank, 1U);
  EXPECT_EQ(path.steps[0].end_ps, 300 * kMicrosecond);
  EXPECT_EQ(path.activities[path.steps[1].activity].name, "all_reduce of groups of 2 on d");
  EXPECT_EQ(path.steps[2].end_ps - path.steps[2].start_ps, 50 * kMicrosecond);
  const auto& kernels = activity(path, "compute");
  EXPECT_EQ(kernels.on_path_ps, 350 * kMicrosecond);
  EXPECT_EQ(kernels.off_path, 1U);
  EXPECT_EQ(kernels.least_slack_ps, 200 * kMicrosecond);
  EXPECT_EQ(kernels.per_rank_ps, 225 * kMicrosecond);  // (100 + 300 + 50) / 2
}

// Two kernels without a dependency run one after the other on the accelerator.
TEST(CriticalPath, goes_through_the_kernel_that_had_the_accelerator_before) {
  const auto path = *run(job_on(plain_cluster({1}), {{compute(1, 10), compute(2, 20)}})).path;
  ASSERT_EQ(path.steps.size(), 2U);
  EXPECT_EQ(path.steps[0].node, 1U);
  EXPECT_EQ(path.steps[1].start_ps, 10 * kMicrosecond);
}

// A message of 1 MB takes 1 us of latency and 1 ms at 1 GB/s; the receiver waits for it.
TEST(CriticalPath, goes_from_a_receive_to_the_kernel_before_its_send) {
  const Lists nodes = {{compute(1, 100), send(2, 1, 1'000'000, {1}), compute(3, 7, {1})},
                       {compute(1, 30), receive(2, 0, 1'000'000), compute(3, 5, {1, 2})}};
  const auto path = *run(job_on(plain_cluster({2}), nodes)).path;
  ASSERT_EQ(path.steps.size(), 3U);
  EXPECT_EQ(path.steps[0].rank, 0U);
  EXPECT_EQ(path.steps[2].rank, 1U);
  EXPECT_EQ(path.end_ps(), 1106 * kMicrosecond);
  EXPECT_EQ(activity(path, "messages").on_path_ps, 1001 * kMicrosecond);
  std::map<std::string, std::uint64_t> parts;
  for (const auto& part : path.parts) { parts[part.name] = part.time_ps; }
  EXPECT_EQ(parts.at("compute"), 105 * kMicrosecond);
  EXPECT_EQ(parts.at("bandwidth of d"), 1000 * kMicrosecond);
  EXPECT_EQ(parts.at("latency"), 1 * kMicrosecond);
  // Kernel 1 of rank 1 ends at 30 us, kernel 3 starts at 1,101 us; kernel 3 of rank 0 ends at 107 us of 1,106 us.
  EXPECT_EQ(activity(path, "compute").least_slack_ps, 999 * kMicrosecond);
}

// Two messages share a port, so each takes longer than alone.
TEST(CriticalPath, names_the_time_that_sharing_ports_takes) {
  const Lists nodes = {
      {send(1, 1, 1'000'000), send(2, 2, 1'000'000)}, {receive(1, 0, 1'000'000)}, {receive(1, 0, 1'000'000)}};
  const auto path = *run(job_on(plain_cluster({3}), nodes)).path;
  const auto shared = std::find_if(path.parts.begin(), path.parts.end(),
                                   [](const auto& part) { return part.name == "sharing of ports and links"; });
  ASSERT_NE(shared, path.parts.end());
  EXPECT_NEAR(static_cast<double>(shared->time_ps), 1000.0 * kMicrosecond, 2.0 * kMicrosecond);
}

TEST(CriticalPath, begins_before_a_rank_that_starts_late) {
  FlowJob job = job_on(plain_cluster({2}), {{compute(1, 10)}, {compute(1, 5)}});
  job.starts_ps = {0, 40 * kMicrosecond};
  const auto path = *run(job).path;
  ASSERT_EQ(path.steps.size(), 2U);
  EXPECT_EQ(path.steps[0].end_ps, 40 * kMicrosecond);
  EXPECT_EQ(path.end_ps(), 45 * kMicrosecond);
}

// ---- laws ----------------------------------------------------------------------------------------------------------

// Every rank has a chain of kernels. Between them are collectives of random groups, in one order on all ranks, and
// messages to the next rank.
struct RandomJob {
  hardware::Cluster cluster = plain_cluster({4});
  Lists nodes = Lists(4);
  std::vector<Group> groups = {{"pair", {0, 1}}, {"far", {1, 3}}, {"most", {0, 2, 3}}};

  explicit RandomJob(RandomNumbers& dice) {
    std::vector<std::uint64_t> last(4, 0), next(4, 1);
    const auto add = [&](std::uint32_t rank, NodeRecord made) {
      last[rank] = made.id;
      nodes[rank].push_back(std::move(made));
    };
    const auto after = [&](std::uint32_t rank) {
      return last[rank] == 0 ? std::vector<std::uint64_t>{} : std::vector<std::uint64_t>{last[rank]};
    };
    static constexpr std::string_view kNames[] = {"pair", "far", "most"};
    for (int i = 0; i < 12; ++i) {
      const std::uint32_t what = dice.below(4);
      if (what < 2) {
        const std::uint32_t rank = dice.below(4);
        add(rank, compute(next[rank]++, 1 + dice.below(2000), after(rank)));
      } else if (what == 2) {
        const std::uint32_t group = dice.below(3);
        for (const std::uint32_t rank : groups[group].ranks) {
          add(rank, all_reduce(next[rank]++, 1000 * (i + 1), after(rank), kNames[group]));
        }
      } else {
        const std::uint32_t from = dice.below(4), to = (from + 1) % 4;
        add(from, send(next[from]++, to, 1000 * (i + 1), after(from)));
        add(to, receive(next[to]++, from, 1000 * (i + 1), after(to)));
      }
    }
    for (std::uint32_t rank = 0; rank < 4; ++rank) { add(rank, compute(next[rank]++, 1, after(rank))); }
  }
};

RC_GTEST_PROP(CriticalPathLaw, steps_and_parts_add_up_to_the_run, ()) {
  RandomNumbers dice(*rc::gen::arbitrary<std::uint32_t>());
  const RandomJob random(dice);
  const auto simulation = run(job_on(random.cluster, random.nodes, random.groups));
  const results::CriticalPath& path = *simulation.path;
  std::uint64_t at = 0, steps = 0, parts = 0;
  for (const auto& step : path.steps) {
    RC_ASSERT(step.start_ps == at);
    RC_ASSERT(step.end_ps > step.start_ps);
    at = step.end_ps;
  }
  for (const auto& row : path.activities) { steps += row.on_path_ps; }
  for (const auto& part : path.parts) { parts += part.time_ps; }
  RC_ASSERT(steps == at);
  RC_ASSERT(parts == at);
  RC_ASSERT((at + 999) / 1000 == simulation.makespan_ns());
}

// A kernel that takes its slack longer leaves the end of the run where it is; 1 us more delays it by 1 us. Ports are
// not shared: otherwise calls that move meet others.
RC_GTEST_PROP(CriticalPathLaw, a_longer_kernel_delays_the_run_beyond_its_slack, ()) {
  RandomNumbers dice(*rc::gen::arbitrary<std::uint32_t>());
  const RandomJob random(dice);
  FlowJob job = job_on(random.cluster, random.nodes, random.groups);
  const auto before = run(job, false);
  const std::uint32_t rank = dice.below(4);
  const auto& tasks = job.job.rank_graphs[rank].nodes;
  std::vector<std::uint32_t> kernels;
  for (std::uint32_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].act == Act::busy) { kernels.push_back(i); }
  }
  const std::uint32_t kernel = kernels[dice.below(static_cast<std::uint32_t>(kernels.size()))];
  const auto end_with = [&](std::uint64_t longer) {
    FlowJob changed = job;
    changed.job.rank_graphs.own(rank).nodes[kernel].amount += longer;
    return run(changed, false).path->end_ps();
  };
  // The slack by the definition, found without the report: how much of a long delay the run absorbs.
  constexpr std::uint64_t kLong = 100'000 * kMicrosecond;
  const std::uint64_t end = before.path->end_ps();
  const std::uint64_t slack = kLong - (end_with(kLong) - end);
  // A mark on the host names the kernel alone: it becomes the only node of its activity.
  FlowJob marked = job;
  marked.job.rank_graphs.own(rank).nodes[kernel].slot = Slot::cpu;
  const auto path = *run(marked, false).path;
  RC_ASSERT(path.end_ps() == end);
  const auto& row = activity(path, "host");
  RC_ASSERT(row.steps + row.off_path == 1);
  RC_ASSERT((row.steps == 1 ? 0 : row.least_slack_ps) == slack);
  RC_ASSERT(end_with(slack) == end);
  RC_ASSERT(end_with(slack + kMicrosecond) == end + kMicrosecond);
}

}  // namespace
}  // namespace orrery::simulate::test::critical_path_test
