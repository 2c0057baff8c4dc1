// Plans on nodes of different accelerators: the closed form against the simulation of their graphs.
#include <algorithm>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "orrery/api/plan_simulation.hpp"
#include "orrery/core/test_effort.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/unlike_nodes.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/simulate/flow.hpp"

namespace orrery::api::unlike_nodes_test {
namespace {

using parallel::Program;
using parallel::test::Case;
using parallel::test::SeededRandom;
using simulate::Folding;

Program program_of(const Case& c) { return parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack); }

// Nodes of two or three kinds: some have other rates of memory and of matrix units than the others.
void divide_nodes(SeededRandom& random, hardware::Cluster& cluster) {
  const std::int64_t nodes = cluster.devices / cluster.node_size();
  const std::int64_t first = random(1, nodes);
  cluster.nodes = {{first, cluster.accelerator}, {nodes - first, cluster.accelerator}};
  hardware::Accelerator& other = cluster.nodes[static_cast<std::size_t>(random(0, 2))].accelerator;
  other.memory_bandwidth = other.memory_bandwidth * (0.2 * static_cast<double>(random(1, 10)));
  const double matrices = 0.2 * static_cast<double>(random(1, 10));
  for (auto& [precision, rate] : other.matrix_peak) { rate = rate * matrices; }
  cluster.accelerator = cluster.nodes.front().accelerator;
}

// A training job, or a batch of requests, whose closed form has no other rules than the simulator.
std::optional<Case> any_job(std::uint64_t seed) {
  SeededRandom random(seed);
  Case c = seed % 4 == 2 ? parallel::test::any_inference_case(random) : parallel::test::any_case(random);
  c.stack.overlap.dispatch = false;
  c.stack.overlap.interference = 0.0;
  const std::int64_t nodes = c.cluster.devices / c.cluster.node_size();
  if (c.plan.schedule == parallel::ScheduleKind::dualpipe || nodes < 2 || c.plan.devices() > 64) { return {}; }
  if (c.plan.zero == 3) { c.stack.gradients.reduce_every = hardware::ReduceEvery::micro_batch; }
  if (seed % 2 == 1) { c = parallel::test::pinned(random, c); }
  divide_nodes(random, c.cluster);
  return c;
}

simulate::FoldedJob job_on(const Case& c, const generate::JobGraphs& graphs, Folding folding) {
  PlanSimulationOptions options;
  options.folding = folding;
  const auto classes = class_job(graphs, c.cluster, options);
  if (!classes) { throw InternalError(classes.error().text()); }
  auto job = folded_job(c.cluster, graphs, *classes, options);
  if (!job) { throw InternalError(job.error().text()); }
  return std::move(*job);
}

results::Simulation run(const simulate::FlowJob& job, bool shared) {
  auto simulation = simulate::simulate_flows(job, shared);
  if (!simulation) { throw InternalError(simulation.error().text()); }
  return std::move(*simulation);
}

// As in plan_simulation_test.cpp: half a nanosecond a node, half a byte a message.
double tolerance(const simulate::FlowJob& job, const hardware::Cluster& cluster) {
  std::size_t nodes = 0;
  for (const auto& graph : job.job.rank_graphs) { nodes = std::max(nodes, graph.nodes.size()); }
  double byte = 0.0;
  for (const auto& dimension : cluster.dimensions) { byte = std::max(byte, 1.0 / dimension.rate().value()); }
  return (1e-9 + byte) * static_cast<double>(nodes + 1);
}

bool agrees_when_alike(const Case& c, const Program& program, const generate::JobGraphs& graphs) {
  const auto classes = class_job(graphs, c.cluster, {});
  if (!classes) { throw InternalError(classes.error().text()); }
  const auto notes = differences(program, c.cluster, c.stack, graphs, *classes);
  return std::all_of(notes.begin(), notes.end(),
                     [](const std::string& note) { return note.starts_with("a stage starts its optimizer"); });
}

// Whether ranks that wait for each other in every layer are on one kind of nodes, and all replicas alike.
bool is_one_pipeline_of_kinds(const Case& c) {
  const auto sets = estimate::stage_nodes(c.cluster, c.model, c.plan, c.stack);
  const auto is_one = [](estimate::NodeSet set) { return (set & (set - 1)) == 0; };
  return sets.size() == 1 && std::all_of(sets.front().begin(), sets.front().end(), is_one);
}

TEST(UnlikeNodesSimulation, stages_on_different_nodes_take_the_time_of_the_estimate) {
  int jobs = 0, unlike = 0, batches = 0;
  for (std::uint64_t seed = 0; jobs < orrery::test::cases(40); ++seed) {
    const auto c = any_job(seed);
    if (!c || !is_one_pipeline_of_kinds(*c)) { continue; }
    const Program program = program_of(*c);
    const generate::JobGraphs graphs(program, c->cluster, c->stack, {generate::Granularity::operators, 1});
    if (!agrees_when_alike(*c, program, graphs)) { continue; }
    ++jobs;
    unlike += c->plan.pp > 1 ? 1 : 0;
    batches += c->plan.pp > 1 && c->job.is_inference() && c->job.generate > 1 ? 1 : 0;
    const simulate::FoldedJob job = job_on(*c, graphs, Folding::automatic);
    const double simulated = static_cast<double>(run(job.job, false).makespan_ns()) * 1e-9;
    estimate::Estimator estimator(c->model, c->cluster, c->stack, c->job);
    const double estimated = estimator.step_time(c->plan, estimate::Ports::separate).value();
    const auto egress = network::egress_of(c->stack.transfers.ports);
    const double slack = c->job.is_inference() ? 0.0 : optimizer_slack(program, c->cluster, egress).value();
    const double rounding = tolerance(job.job, c->cluster);
    ASSERT_LE(simulated, estimated + rounding) << seed << "\n" << parallel::test::to_text(*c);
    ASSERT_GE(simulated, estimated - slack - rounding) << seed << "\n" << parallel::test::to_text(*c);
  }
  EXPECT_GT(unlike, 0);
  EXPECT_GT(batches, 0);
}

TEST(UnlikeNodesSimulation, folded_ranks_have_the_times_of_unfolded_ones) {
  int folded_jobs = 0;
  for (std::uint64_t seed = 500; folded_jobs < orrery::test::cases(30); ++seed) {
    const auto c = any_job(seed);
    if (!c) { continue; }
    const Program program = program_of(*c);
    const generate::JobGraphs graphs(program, c->cluster, c->stack, {generate::Granularity::block, 1});
    const simulate::FoldedJob folded = job_on(*c, graphs, Folding::automatic);
    const simulate::FoldedJob unfolded = job_on(*c, graphs, Folding::off);
    if (folded.job.job.rank_graphs.size() == unfolded.job.job.rank_graphs.size()) { continue; }
    ++folded_jobs;
    ASSERT_EQ(run(folded.job, true).ranks, run(unfolded.job, true).ranks) << seed << "\n"
                                                                          << parallel::test::to_text(*c);
  }
}

TEST(UnlikeNodesSimulation, kinds_of_nodes_that_are_equal_change_nothing) {
  int jobs = 0;
  for (std::uint64_t seed = 800; jobs < orrery::test::cases(20); ++seed) {
    auto c = any_job(seed);
    if (!c) { continue; }
    ++jobs;
    for (hardware::Nodes& nodes : c->cluster.nodes) { nodes.accelerator = c->cluster.accelerator; }
    Case plain = *c;
    plain.cluster.nodes.clear();
    const Program program = program_of(*c);
    const generate::JobGraphs graphs(program, c->cluster, c->stack, {generate::Granularity::block, 1});
    const generate::JobGraphs plain_graphs(program, plain.cluster, plain.stack, {generate::Granularity::block, 1});
    ASSERT_EQ(run(job_on(*c, graphs, Folding::off).job, true).ranks,
              run(job_on(plain, plain_graphs, Folding::off).job, true).ranks);
  }
}

}  // namespace
}  // namespace orrery::api::unlike_nodes_test
