// Laws of simulated plans: folding changes nothing; without shared ports, a plan takes the time of its estimate.
#include "orrery/api/plan_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <tuple>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/calls.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/fold.hpp"
#include "orrery/workload/test_recommenders.hpp"

namespace orrery::api::plan_simulation_test {
namespace {

using parallel::Program;
using parallel::test::any_case;
using parallel::test::any_inference_case;
using parallel::test::Case;
using parallel::test::SeededRandom;
using simulate::Folding;

Program program_of(const Case& c) { return parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack); }

// A recommender whose embedding tables are sharded in any way, if the plan that is drawn is valid.
std::optional<Case> any_recommender_case(SeededRandom& random) {
  Case c;
  c.model = workload::test::completed_recommender(workload::test::any_recommender(random));
  c.cluster = any_case(random).cluster;
  c.stack = parallel::test::any_stack(random);
  c.plan.dp = c.cluster.devices;
  c.plan.zero = static_cast<int>(random(0, 3));
  c.plan.recompute = random(0, 2) == 0 ? parallel::Recompute::none : parallel::Recompute::full;
  c.plan.micro_batch = random(1, 500);
  c.plan.dp_overlap = random(0, 2) == 0;
  c.plan.tables.sharding = static_cast<workload::TableSharding>(random(1, 6));
  c.plan.tables.replicated_below = random(0, 2) == 0 ? 0 : 10'000;
  c.job.seq = 1;
  c.job.global_batch = c.plan.dp * c.plan.micro_batch * random(1, 4);
  if (workload::inconsistency(c.model) || !parallel::is_valid(c.model, c.job, c.plan, c.cluster.devices)) { return {}; }
  return c;
}

// Training, inference, or a recommender; every other one with pinned groups.
Case any_job(std::uint64_t seed) {
  SeededRandom random(seed);
  if (seed % 7 == 6) {
    if (const auto recommender = any_recommender_case(random)) { return *recommender; }
  }
  Case c = seed % 5 == 4 ? any_inference_case(random) : any_case(random);
  c.stack.overlap.dispatch = seed % 3 != 0;
  return seed % 2 == 1 ? parallel::test::pinned(random, c) : c;
}

struct Simulated {
  results::Simulation shared, unshared;
  std::string unfolded_because;
};

simulate::ClassJob job_of(const Case& c, const generate::JobGraphs& graphs, bool tables) {
  PlanSimulationOptions options;
  options.tables = options.roofline = options.energy = tables;
  auto job = class_job(graphs, c.cluster, options);
  if (!job) { throw InternalError(job.error().text()); }
  return std::move(*job);
}

results::Simulation run(const simulate::FlowJob& job, bool shared) {
  auto simulation = simulate::simulate_flows(job, shared);
  if (!simulation) { throw InternalError(simulation.error().text()); }
  return std::move(*simulation);
}

// Finish times and activities of every rank, to the picosecond. With classes finer than stages, of several full ports
// that limit a flow another one may be named: contention is not compared then.
void expect_same_ranks(const simulate::FoldedJob& folded, const simulate::FoldedJob& unfolded, bool shared,
                       bool by_stage) {
  const results::Simulation one = run(folded.job, shared), all = run(unfolded.job, shared);
  ASSERT_EQ(one.ranks, all.ranks);
  if (by_stage) { ASSERT_EQ(one.contention, all.contention); }
  ASSERT_EQ(one.roofline->ranks, all.roofline->ranks);
  ASSERT_EQ(one.energy->parts.size(), all.energy->parts.size());
  for (std::size_t i = 0; i < all.energy->parts.size(); ++i) {
    constexpr double kRounding = 1e-9;  // of sums in another order
    const double joules = all.energy->parts[i].joules;
    ASSERT_NEAR(one.energy->parts[i].joules, joules, kRounding * joules) << all.energy->parts[i].name;
  }
  for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
    ASSERT_EQ(one.tables->ranks[folded.job.simulated[rank]], all.tables->ranks[rank]) << "rank " << rank;
  }
}

TEST(PlanSimulation, folded_ranks_have_the_times_of_unfolded_ones) {
  const char* more = std::getenv("ORRERY_FOLD_JOBS");
  const int wanted = more != nullptr ? std::atoi(more) : orrery::test::cases(100);
  const std::int64_t most_devices = more != nullptr ? 512 : 64;  // a run of ORRERY_FOLD_JOBS=10000 takes minutes
  int jobs = 0, finer = 0;
  for (std::uint64_t seed = 0; jobs < wanted; ++seed) {
    const Case c = any_job(seed);
    if (c.plan.devices() > most_devices) { continue; }
    const Program program = program_of(c);
    const generate::JobGraphs graphs(program, c.cluster, c.stack, {generate::Granularity::block, 1});
    const simulate::ClassJob job = job_of(c, graphs, true);
    const auto folded = simulate::folded(c.cluster, job, Folding::automatic);
    if (!folded.unfolded_because.empty()) { continue; }
    ++jobs;
    const auto unfolded = simulate::folded(c.cluster, job, Folding::off);
    const bool by_stage = !simulate::fold_obstacle(c.cluster, job).has_value();
    const std::size_t simulated = folded.job.job.rank_graphs.size();
    ASSERT_TRUE(by_stage ? simulated == static_cast<std::size_t>(c.plan.pp)
                         : simulated > static_cast<std::size_t>(c.plan.pp));
    finer += by_stage ? 0 : 1;
    expect_same_ranks(folded, unfolded, true, by_stage);
    if (seed % 4 == 0) { expect_same_ranks(folded, unfolded, false, by_stage); }
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
  constexpr int kEnough = 100;  // the few cases of a sanitizer build may have none
  if (wanted >= kEnough) { EXPECT_GT(finer, wanted / 50); }
  if (more != nullptr) { std::cout << "  " << jobs << " jobs, " << finer << " with classes finer than stages\n"; }
}

// Ranks of a stage share a graph; here every rank gets a graph of its own, without slots.
TEST(PlanSimulation, ranks_that_share_a_graph_have_the_times_of_ranks_with_graphs_of_their_own) {
  int jobs = 0;
  for (std::uint64_t seed = 2000; jobs < orrery::test::cases(40); ++seed) {
    const Case c = any_job(seed);
    if (c.plan.devices() > 64 || c.plan.devices() == c.plan.pp) { continue; }
    ++jobs;
    const Program program = program_of(c);
    const generate::JobGraphs graphs(program, c.cluster, c.stack, {generate::Granularity::block, 1});
    const simulate::FoldedJob shared = simulate::folded(c.cluster, job_of(c, graphs, true), Folding::off);
    simulate::FoldedJob owned = shared;
    ASSERT_TRUE(owned.job.job.rank_graphs.has_slots());
    for (std::size_t rank = 0; rank < owned.job.job.rank_graphs.size(); ++rank) {
      (void)owned.job.job.rank_graphs.own(rank);
    }
    ASSERT_FALSE(owned.job.job.rank_graphs.has_slots());
    const results::Simulation one = run(shared.job, true), each = run(owned.job, true);
    EXPECT_EQ(one.ranks, each.ranks);
    EXPECT_EQ(one.contention, each.contention);
    EXPECT_EQ(one.tables->ranks, each.tables->ranks);
    ASSERT_EQ(one.tables->collectives.size(), each.tables->collectives.size());
    for (std::size_t i = 0; i < one.tables->collectives.size(); ++i) {
      const auto &a = one.tables->collectives[i], &b = each.tables->collectives[i];
      EXPECT_EQ(std::tie(a.group, a.bytes, a.first_start_ns, a.last_start_ns, a.end_ns),
                std::tie(b.group, b.bytes, b.first_start_ns, b.last_start_ns, b.end_ns));
    }
    EXPECT_EQ(one.events, each.events);
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
}

// The classes are found by comparing the graphs of all ranks.
TEST(PlanSimulation, ranks_that_are_found_to_be_alike_have_the_times_of_unfolded_ones) {
  int folded = 0;
  for (std::uint64_t seed = 1000; folded < orrery::test::cases(40); ++seed) {
    const Case c = any_job(seed);
    if (c.plan.devices() > 64) { continue; }
    const Program program = program_of(c);
    const generate::JobGraphs graphs(program, c.cluster, c.stack, {generate::Granularity::block, 1});
    const simulate::FoldedJob all = simulate::folded(c.cluster, job_of(c, graphs, true), Folding::off);
    const simulate::FoldedJob found = simulate::fold(all.job);
    if (!found.unfolded_because.empty()) { continue; }
    ++folded;
    EXPECT_LE(found.job.job.rank_graphs.size(), all.job.job.rank_graphs.size());
    // Of several full ports that limit a flow, another one may be named: contention is not compared.
    const results::Simulation one = run(found.job, true), each = run(all.job, true);
    EXPECT_EQ(one.ranks, each.ranks);
    for (std::size_t rank = 0; rank < each.ranks.size(); ++rank) {
      ASSERT_EQ(one.tables->ranks[found.job.simulated[rank]], each.tables->ranks[rank]) << "rank " << rank;
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
}

// One to three levels of a pool, of blocks of any size; some combine what groups access.
hardware::Cluster with_pool(SeededRandom& random, hardware::Cluster cluster) {
  for (std::int64_t i = 0; i < random(1, 4); ++i) {
    hardware::PoolLevel level;
    level.name = "level " + std::to_string(i);
    level.devices = random(0, 2) == 0 ? std::min<std::int64_t>(std::int64_t{1} << random(0, 7), cluster.devices)
                                      : random(1, cluster.devices + 1);
    level.units = random(1, 4);
    level.bandwidth = BytesPerSecond(1e9 * static_cast<double>(random(1, 100)));
    level.combines = random(0, 2) == 0;
    cluster.second_tier.levels.push_back(level);
  }
  return cluster;
}

// Some of the accesses of a class are of bytes that a group accesses together.
void combine_some(SeededRandom& random, simulate::ClassJob& job) {
  for (std::size_t c = 0; c < job.classes.size(); ++c) {
    for (simulate::NodeTask& task : job.classes[c].graph.nodes) {
      if (task.act != simulate::Act::memory || random(0, 2) == 0) { continue; }
      const auto family = static_cast<std::uint32_t>(random(0, static_cast<std::int64_t>(job.families.size()) + 1));
      const bool is_world = family == job.families.size();
      if (!is_world && !job.group_of(job.families[family], job.first_rank(c))) { continue; }
      task.dimensions = simulate::kCombined;
      task.group = is_world ? simulate::kWholeMachine : 1 + family;
    }
  }
}

// Ranks share the levels of a pool with as many ranks of every class, or the classes are finer. Those that are found by
// comparing graphs, too.
TEST(PlanSimulation, with_a_pool_folded_ranks_have_the_times_of_unfolded_ones) {
  const int wanted = orrery::test::cases(40);
  int jobs = 0, combined = 0, found = 0;
  for (std::uint64_t seed = 0; jobs < wanted; ++seed) {
    Case c = any_job(seed);
    SeededRandom random(seed + 7);
    if (c.plan.devices() > 64 || !(c.cluster.second_tier.memory > Bytes(0))) { continue; }
    c.cluster = with_pool(random, c.cluster);
    const Program program = program_of(c);
    const generate::JobGraphs graphs(program, c.cluster, c.stack, {generate::Granularity::block, 1});
    simulate::ClassJob job = job_of(c, graphs, true);
    const auto& nodes = job.classes.front().graph.nodes;
    const auto is_memory = [](const simulate::NodeTask& task) { return task.act == simulate::Act::memory; };
    if (std::none_of(nodes.begin(), nodes.end(), is_memory)) { continue; }
    const bool combines = random(0, 2) == 0;
    if (combines) { combine_some(random, job); }
    const auto folded = simulate::folded(c.cluster, job, Folding::automatic);
    if (!folded.unfolded_because.empty()) { continue; }
    ++jobs;
    combined += combines ? 1 : 0;
    const auto unfolded = simulate::folded(c.cluster, job, Folding::off);
    expect_same_ranks(folded, unfolded, true, !simulate::fold_obstacle(c.cluster, job).has_value());
    const simulate::FoldedJob alike = simulate::fold(unfolded.job);
    if (alike.unfolded_because.empty()) {
      found += alike.job.job.rank_graphs.size() < unfolded.job.job.rank_graphs.size() ? 1 : 0;
      EXPECT_EQ(run(alike.job, true).ranks, run(unfolded.job, true).ranks);
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
  EXPECT_GT(combined, wanted / 10);
  EXPECT_GT(found, wanted / 10);
}

// A job whose closed form has no other rules than the simulator: kernels are not slowed by collectives beside them.
Case expressible(Case c) {
  c.stack.overlap.interference = 0.0;
  // With reductions once a step, gathers wait for them: a difference that the output names.
  if (c.plan.zero == 3 && c.job.seq % 5 != 0) { c.stack.gradients.reduce_every = hardware::ReduceEvery::micro_batch; }
  c.plan.gather_overlap = c.plan.zero < 3 || c.job.seq % 3 != 0;  // any_plan() always has it
  return c;
}

// Graphs have whole nanoseconds and bytes: every node on the critical path may be half a nanosecond off, and half a
// byte on the slowest link. The path has at most the nodes of all stages; errors add up like random ones on long paths,
// so that twice as much for each node of the largest stage is far above what occurs.
double tolerance(const simulate::FlowJob& job, const hardware::Cluster& cluster) {
  std::size_t nodes = 0;
  for (const auto& graph : job.job.rank_graphs) { nodes = std::max(nodes, graph.nodes.size()); }
  double byte = 0.0;
  for (const auto& dimension : cluster.dimensions) { byte = std::max(byte, 1.0 / dimension.rate().value()); }
  return (1e-9 + byte) * static_cast<double>(nodes + 1);
}

// Whether the output names a cause of a difference other than the start of the optimizer, which is bounded.
bool has_other_differences(const Program& program, const Case& c, const generate::JobGraphs& graphs,
                           const simulate::ClassJob& job) {
  const auto notes = differences(program, c.cluster, c.stack, graphs, job);
  return std::any_of(notes.begin(), notes.end(),
                     [](const std::string& note) { return !note.starts_with("a stage starts its optimizer"); });
}

// Excluded: groups of unequal shapes, and messages of a stage that cross different dimensions (estimate has one price
// for all, that of the slowest).
bool expect_agreement(const Case& c) {
  const Program program = program_of(c);
  const generate::JobGraphs graphs(program, c.cluster, c.stack, {generate::Granularity::operators, 1});
  const simulate::ClassJob job = job_of(c, graphs, false);
  const double slack = c.job.is_inference() ? 0.0 : optimizer_slack(program, c.cluster, job.egress).value();
  if (has_other_differences(program, c, graphs, job)) { return false; }
  const auto folded = simulate::folded(c.cluster, job, Folding::automatic);
  EXPECT_EQ(folded.unfolded_because, "");
  const double simulated = static_cast<double>(run(folded.job, false).makespan_ns()) * 1e-9;
  estimate::Estimator estimator(c.model, c.cluster, c.stack, c.job);
  const double estimated = estimator.step_time(c.plan, estimate::Ports::separate).value();
  const double rounding = tolerance(folded.job, c.cluster);
  EXPECT_LE(simulated, estimated + rounding);
  EXPECT_GE(simulated, estimated - slack - rounding);
  return true;
}

TEST(PlanSimulation, without_shared_ports_a_plan_takes_the_time_of_its_estimate) {
  const char* more = std::getenv("ORRERY_AGREEMENT_JOBS");
  const int wanted = more != nullptr ? std::atoi(more) : 80;
  int jobs = 0, pairs = 0, dispatch = 0, gathers = 0, placed = 0, tables = 0, batches = 0;
  for (std::uint64_t seed = 0; jobs < wanted; ++seed) {
    const Case c = expressible(any_job(seed));
    if (!expect_agreement(c)) { continue; }
    ++jobs;
    pairs += c.plan.schedule == parallel::ScheduleKind::dualpipe ? 1 : 0;
    dispatch += program_of(c).pipeline.pairs ? 1 : 0;
    gathers += parallel::input_gather(program_of(c)) ? 1 : 0;
    placed += c.plan.placement.any() ? 1 : 0;
    tables += c.model.is_recommender() ? 1 : 0;
    batches += c.job.is_inference() && c.plan.pp > 1 && c.job.generate > 1 ? 1 : 0;
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
  EXPECT_GT(pairs, 0);
  EXPECT_GT(dispatch, 0);
  EXPECT_GT(gathers, 0);
  EXPECT_GT(placed, 0);
  EXPECT_GT(tables, 0);
  EXPECT_GT(batches, 0);
  if (more != nullptr) { std::cout << "  " << dispatch << " jobs overlap dispatch\n"; }
}

// Two nodes of eight devices: 100 GB/s of each device to a switch of its node with 200 GB/s to a pool. Weights of 16
// replicas, and their gradients, which the pool reduces; with tp 4, four groups share the switch. Without latency,
// which the simulator hides where loads wait for each other.
TEST(PlanSimulation, replicas_use_a_pool_in_the_time_of_the_estimate) {
  for (const std::int64_t tp : {1, 4}) {
    for (const auto& [zero, offload] : {std::pair{0, parallel::Offload{.weights = true}},
                                        {3, parallel::Offload{.weights = true}},
                                        {0, parallel::Offload{.gradients = true}},
                                        {1, parallel::Offload{.gradients = true}},
                                        {3, parallel::Offload{.weights = true, .gradients = true}}}) {
      Case c;
      c.model = parallel::test::llama(8, 1024, 16, 16, 4096, 32768);
      c.job = {16, 1024, hardware::Precision::bf16, parallel::Task::pretrain};
      c.cluster = parallel::test::cluster_of({8, 2});
      c.cluster.second_tier = {1024_GiB, 100_GBps, 0_us, {}, 0.5};
      c.cluster.second_tier.levels = {{"nodes", 8, 4, 50_GBps, true}, {"memories", 16, 16, 20_GBps, true}};
      c.plan.tp = tp;
      c.plan.dp = 16 / tp;
      c.plan.zero = zero;
      c.plan.offload = offload;
      c.plan.dp_overlap = false;
      const Program program = program_of(c);
      const generate::JobGraphs graphs(program, c.cluster, c.stack, {generate::Granularity::operators, 1});
      const simulate::ClassJob job = job_of(c, graphs, false);
      const auto folded = simulate::folded(c.cluster, job, Folding::automatic);
      EXPECT_EQ(folded.unfolded_because, "");
      const double simulated = static_cast<double>(run(folded.job, true).makespan_ns()) * 1e-9;
      estimate::Estimator estimator(c.model, c.cluster, c.stack, c.job);
      EXPECT_NEAR(estimator.step_time(c.plan).value(), simulated, tolerance(folded.job, c.cluster)) << tp << zero;
    }
  }
}

// The closed form prices all groups of a kind as the slowest of them.
TEST(PlanSimulation, with_groups_of_unequal_shapes_a_plan_takes_no_longer_than_its_estimate) {
  const char* more = std::getenv("ORRERY_AGREEMENT_JOBS");
  const int wanted = more != nullptr ? std::atoi(more) / 10 : orrery::test::cases(15);
  int jobs = 0;
  for (std::uint64_t seed = 0; jobs < wanted; ++seed) {
    const Case c = expressible(any_job(seed));
    if (c.plan.devices() > 64) { continue; }
    const Program program = program_of(c);
    const generate::JobGraphs graphs(program, c.cluster, c.stack, {generate::Granularity::operators, 1});
    const simulate::ClassJob job = job_of(c, graphs, false);
    const auto notes = differences(program, c.cluster, c.stack, graphs, job);
    const auto is_of_shapes = [](const std::string& note) { return note.ends_with("as the slowest"); };
    const auto is_expected = [&](const std::string& note) {
      return is_of_shapes(note) || note.starts_with("a stage starts its optimizer");
    };
    if (std::none_of(notes.begin(), notes.end(), is_of_shapes)) { continue; }
    if (!std::all_of(notes.begin(), notes.end(), is_expected)) { continue; }
    ++jobs;
    const auto unfolded = simulate::folded(c.cluster, job, Folding::off);
    const double simulated = static_cast<double>(run(unfolded.job, false).makespan_ns()) * 1e-9;
    estimate::Estimator estimator(c.model, c.cluster, c.stack, c.job);
    const double estimated = estimator.step_time(c.plan, estimate::Ports::separate).value();
    ASSERT_LE(simulated, estimated + tolerance(unfolded.job, c.cluster)) << seed << "\n" << parallel::test::to_text(c);
  }
}

// |difference| to the simulation with shared ports, of the closed form with and without sharing.
struct Errors {
  double with = 0.0, without = 0.0;
};

std::optional<Errors> difference_by_sharing(const Case& c) {
  const Program program = program_of(c);
  const generate::JobGraphs graphs(program, c.cluster, c.stack, {generate::Granularity::operators, 1});
  const simulate::ClassJob job = job_of(c, graphs, false);
  if (has_other_differences(program, c, graphs, job)) { return std::nullopt; }
  if (!simulate::fold_obstacle(c.cluster, job)) {
    const results::Simulation shared = run(simulate::folded(c.cluster, job, Folding::automatic).job, true);
    if (shared.contention.empty()) { return std::nullopt; }
    const double time = static_cast<double>(shared.makespan_ns()) * 1e-9;
    estimate::Estimator estimator(c.model, c.cluster, c.stack, c.job);
    const auto from = [&](estimate::Ports ports) {
      return std::abs(estimator.step_time(c.plan, ports).value() / time - 1.0);
    };
    return Errors{from(estimate::Ports::shared), from(estimate::Ports::separate)};
  }
  return std::nullopt;
}

TEST(PlanSimulation, sharing_ports_in_the_closed_form_brings_it_closer_to_the_simulation) {
  double with = 0.0, without = 0.0;
  int jobs = 0, farther = 0;
  for (std::uint64_t seed = 0; jobs < orrery::test::cases(30); ++seed) {
    SeededRandom random(seed);
    const auto difference = difference_by_sharing(expressible(any_case(random)));
    // The simulator shares between some calls for which the closed form has no rule.
    if (!difference || difference->with == difference->without) { continue; }
    ++jobs;
    with += difference->with;
    without += difference->without;
    farther += difference->with > difference->without + 1e-3 ? 1 : 0;
  }
  EXPECT_LT(with, 0.3 * without) << with << " and " << without;
  EXPECT_LE(farther, jobs / 10);
}

}  // namespace
}  // namespace orrery::api::plan_simulation_test
