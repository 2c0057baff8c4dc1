// Steps on nodes of different accelerators: programs that can be calculated on paper, and laws by random plans.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/unlike_nodes.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::estimate::unlike_nodes_test {
namespace {

using parallel::Block;
using parallel::BlockId;
using parallel::Program;
using parallel::Purpose;
using parallel::test::Case;
using parallel::test::SeededRandom;

// Entries of nodes by their memory bandwidth in GB/s, one device a node. A stream kernel of 1 GB takes 1 s at 1 GB/s.
hardware::Cluster cluster_of(const std::vector<double>& rates) {
  auto cluster = network::test::plain_cluster({1, static_cast<std::int64_t>(rates.size())});
  cluster.accelerator.memory_efficiency = 1.0;
  for (const double rate : rates) {
    cluster.nodes.push_back({1, cluster.accelerator});
    cluster.nodes.back().accelerator.memory_bandwidth = BytesPerSecond(rate * 1e9);
  }
  cluster.accelerator = cluster.nodes.front().accelerator;
  for (auto& dimension : cluster.dimensions) {
    dimension.link.latency = Seconds();
    dimension.link.protocols = {{"only", Seconds(), Seconds(), Seconds(), Seconds(), 1.0}};
  }
  return cluster;
}

Block work(double gigabytes, Purpose purpose) {
  hardware::Kernel kernel;
  kernel.kind = hardware::KernelKind::stream;
  kernel.bytes = Bytes(gigabytes * 1e9);
  kernel.launches = 0;
  return {"work", {{"work", purpose, parallel::KernelLaunch{kernel}}}};
}

// Two stages with four micro-batches: 1 GB forward, 2 GB backward, 0.5 GB optimizer each.
Program two_stages(std::int64_t replicas) {
  Program program;
  program.plan.pp = 2;
  program.plan.dp = replicas;
  program.pipeline = {parallel::ScheduleKind::one_f_one_b, 2, 1, 4};
  program.mesh.transfer_dimension = {1, 1};
  program.blocks = {work(1.0, Purpose::forward), work(2.0, Purpose::backward), work(0.5, Purpose::optimizer)};
  parallel::ChunkProgram chunk;
  chunk.forward = chunk.first_forward = {{BlockId(0), 1, {}, {}}};
  chunk.backward = chunk.last_backward = {{BlockId(1), 1, {}, {}}};
  program.chunks = {chunk};
  parallel::RankClass rank_class;
  rank_class.stages = 2;
  rank_class.chunks = {{0, 1, parallel::ChunkProgramId(0)}};
  rank_class.finish = {{BlockId(2), 1, {}, {}}};
  program.classes = {rank_class};
  program.class_of_stage.assign(2, parallel::RankClassId(0));
  return program;
}

// Step time in seconds on devices of these rates, in the order of ranks: replicas of the first stage, of the second.
double step_on(const std::vector<double>& rates, int zero = 0) {
  const hardware::Cluster cluster = cluster_of(rates);
  const workload::Model model = parallel::test::gpt(2, 64, 1, 128);
  const hardware::Stack stack;
  const network::Fabric fabric(cluster);
  network::PriceCache prices(fabric);
  StepSolver solver(stack, prices);
  Program program = two_stages(static_cast<std::int64_t>(rates.size()) / 2);
  program.plan.zero = zero;
  UnlikeNodes nodes(model, cluster, stack);
  return nodes.solve(program, solver, Explained::no, Ports::shared).step.time.value();
}

constexpr double kTicks = 1e-9;

// Stage 0 starts with one forward, stage 1 computes without a pause, and the last backward of stage 0 ends the step:
// 1 + 4 (2 + 4) + 2 = 27 s, and the optimizer of the slow stage takes 1 s.
TEST(UnlikeNodes, a_slow_last_stage_computes_without_a_pause) { EXPECT_NEAR(step_on({1.0, 0.5}), 28.0, kTicks); }

// Stage 0 computes 4 (2 + 4) = 24 s without a pause but for 1 s: its first backward waits until stage 1, which has the
// first forward after 2 s, has needed 3 s for it, and the second forward of stage 0 ends after 4 s.
TEST(UnlikeNodes, a_slow_first_stage_waits_for_the_first_backward) { EXPECT_NEAR(step_on({0.5, 1.0}), 26.0, kTicks); }

// Of the two pipelines above the second one decides.
TEST(UnlikeNodes, the_slowest_pipeline_of_all_replicas_decides) {
  EXPECT_NEAR(step_on({0.5, 1.0, 1.0, 0.5}), 28.0, kTicks);
}

// Gathers of every micro-batch join all replicas: both stages are as slow as their slow device. (4 + 1) (2 + 4) + 1.
TEST(UnlikeNodes, with_zero_3_all_replicas_wait_for_the_slowest_in_every_layer) {
  EXPECT_NEAR(step_on({0.5, 1.0, 1.0, 0.5}, 3), 31.0, kTicks);
}

// The optimizer waits for the gradients of all replicas: a slow one makes the step that of slow devices.
TEST(UnlikeNodes, a_slow_replica_makes_the_step_that_of_slow_devices) {
  EXPECT_NEAR(step_on({1.0, 0.5, 1.0, 0.5}), step_on({0.5, 0.5, 0.5, 0.5}), kTicks);
}

TEST(UnlikeNodes, ranks_are_joined_by_what_they_wait_for_in_every_layer) {
  hardware::Cluster cluster = cluster_of({1.0, 2.0, 3.0, 4.0});
  cluster.devices = 4;
  const workload::Model model = parallel::test::gpt(2, 64, 2, 128);
  const hardware::Stack stack;
  parallel::Plan plan;
  plan.tp = 2;
  plan.dp = 2;
  EXPECT_EQ(stage_nodes(cluster, model, plan, stack), (std::vector<StageNodes>{{0b0011}, {0b1100}}));
  plan.zero = 3;
  EXPECT_EQ(stage_nodes(cluster, model, plan, stack), (std::vector<StageNodes>{{0b1111}}));
  plan.zero = 0;
  plan.dp = 1;
  plan.pp = 2;
  EXPECT_EQ(stage_nodes(cluster, model, plan, stack), (std::vector<StageNodes>{{0b0011, 0b1100}}));
}

// ---- by random plans -----------------------------------------------------------------------------------------------

// A training job without what nodes of several kinds do not have; nothing if the plan has it.
std::optional<Case> training_case(std::uint64_t seed) {
  SeededRandom random(seed);
  Case c = parallel::test::any_case(random);
  c.stack.overlap.dispatch = false;
  const std::int64_t nodes = c.cluster.devices / c.cluster.node_size();
  if (c.plan.schedule == parallel::ScheduleKind::dualpipe || nodes < 2) { return std::nullopt; }
  return seed % 2 == 1 ? parallel::test::pinned(random, c) : c;
}

// The nodes in up to three parts.
std::vector<std::int64_t> parts_of(std::int64_t nodes) {
  if (nodes < 3) { return {1, 1}; }
  return {1, (nodes - 1) / 2, nodes - 1 - (nodes - 1) / 2};
}

void divide_nodes(hardware::Cluster& cluster) {
  for (const std::int64_t count : parts_of(cluster.devices / cluster.node_size())) {
    cluster.nodes.push_back({count, cluster.accelerator});
  }
}

void slow_down(hardware::Accelerator& accelerator, double factor) {
  for (auto& [precision, rate] : accelerator.matrix_peak) { rate = rate * (1.0 / factor); }
  accelerator.vector_peak = accelerator.vector_peak * (1.0 / factor);
  accelerator.memory_bandwidth = accelerator.memory_bandwidth * (1.0 / factor);
  accelerator.kernel_latency = accelerator.kernel_latency * factor;
}

Seconds step_time(const Case& c, Ports ports = Ports::shared) {
  return Estimator(c.model, c.cluster, c.stack, c.job).step_time(c.plan, ports);
}

TEST(UnlikeNodes, kinds_of_nodes_that_are_equal_change_nothing) {
  int jobs = 0;
  for (std::uint64_t seed = 0; jobs < orrery::test::cases(150); ++seed) {
    const auto plain = training_case(seed);
    if (!plain) { continue; }
    ++jobs;
    Case divided = *plain;
    divide_nodes(divided.cluster);
    Estimator one(plain->model, plain->cluster, plain->stack, plain->job);
    Estimator many(divided.model, divided.cluster, divided.stack, divided.job);
    ASSERT_EQ(one.step_time(plain->plan), many.step_time(divided.plan)) << seed << "\n"
                                                                        << parallel::test::to_text(*plain);
    ASSERT_EQ(one.memory(plain->plan).need, many.memory(divided.plan).need);
    ASSERT_EQ(one.memory(plain->plan).fits, many.memory(divided.plan).fits);
    const auto a = one.estimate(plain->plan), b = many.estimate(divided.plan);
    ASSERT_EQ(a.step_time, b.step_time) << seed;
    ASSERT_NEAR(a.mfu, b.mfu, 1e-12);
  }
}

// A case with one kind of nodes at half the speed, `seed` says which, and with all nodes at half the speed.
struct Slowed {
  Case mixed, slow;
};
Slowed slowed(const Case& fast, std::uint64_t seed) {
  Slowed cases{fast, fast};
  hardware::Cluster& mixed = cases.mixed.cluster;
  divide_nodes(mixed);
  slow_down(mixed.nodes.at(seed % mixed.nodes.size()).accelerator, 2.0);
  mixed.accelerator = mixed.nodes.front().accelerator;
  slow_down(cases.slow.cluster.accelerator, 2.0);
  return cases;
}

// A step on nodes of two kinds takes at least as long as on the fast kind, and at most as long as on the slow one.
TEST(UnlikeNodes, a_step_is_between_those_of_its_fastest_and_of_its_slowest_nodes) {
  int jobs = 0, above = 0, below = 0;
  for (std::uint64_t seed = 0; jobs < orrery::test::cases(150); ++seed) {
    const auto fast = training_case(seed);
    if (!fast) { continue; }
    ++jobs;
    const auto [mixed, slow] = slowed(*fast, seed);
    const Seconds least = step_time(*fast, Ports::separate), most = step_time(slow, Ports::separate);
    const Seconds time = step_time(mixed, Ports::separate);
    const Seconds tick = Seconds(1e-9);  // of rounded tasks
    ASSERT_GE(time, least * (1.0 - 1e-9) - tick) << seed << "\n" << parallel::test::to_text(*fast);
    ASSERT_LE(time, most * (1.0 + 1e-9) + tick) << seed << "\n" << parallel::test::to_text(*fast);
    above += time > least * 1.01 ? 1 : 0;
    below += time < most * 0.99 ? 1 : 0;
  }
  EXPECT_GT(above, jobs / 2);
  EXPECT_GT(below, 0);
}

// ---- batches of requests -------------------------------------------------------------------------------------------

std::optional<Case> batch_case(std::uint64_t seed) {
  SeededRandom random(seed);
  Case c = parallel::test::any_inference_case(random);
  if (c.cluster.devices / c.cluster.node_size() < 2) { return std::nullopt; }
  return c;
}

TEST(UnlikeNodesInference, kinds_of_nodes_that_are_equal_change_nothing) {
  int jobs = 0;
  for (std::uint64_t seed = 0; jobs < orrery::test::cases(60); ++seed) {
    const auto plain = batch_case(seed);
    if (!plain) { continue; }
    ++jobs;
    Case divided = *plain;
    divide_nodes(divided.cluster);
    Estimator one(plain->model, plain->cluster, plain->stack, plain->job);
    Estimator many(divided.model, divided.cluster, divided.stack, divided.job);
    const auto a = one.estimate(plain->plan), b = many.estimate(divided.plan);
    ASSERT_EQ(a.step_time, b.step_time) << seed << "\n" << parallel::test::to_text(*plain);
    ASSERT_EQ(a.inference->time_to_first_token, b.inference->time_to_first_token);
    ASSERT_NEAR(a.mfu, b.mfu, 1e-12);
    ASSERT_EQ(one.step_time(plain->plan), many.step_time(divided.plan));
  }
}

// Of replicas the slowest decides, and a pipeline of fast and slow stages is between both.
TEST(UnlikeNodesInference, a_batch_is_between_those_of_its_fastest_and_of_its_slowest_nodes) {
  int jobs = 0, above = 0, below = 0;
  for (std::uint64_t seed = 1000; jobs < orrery::test::cases(60); ++seed) {
    const auto fast = batch_case(seed);
    if (!fast) { continue; }
    ++jobs;
    const auto [mixed, slow] = slowed(*fast, seed);
    const Seconds least = step_time(*fast), most = step_time(slow), time = step_time(mixed);
    ASSERT_GE(time, least * (1.0 - 1e-9)) << seed << "\n" << parallel::test::to_text(*fast);
    ASSERT_LE(time, most * (1.0 + 1e-9)) << seed << "\n" << parallel::test::to_text(*fast);
    above += time > least * 1.01 ? 1 : 0;
    below += time < most * 0.99 ? 1 : 0;
    if (fast->plan.pp == 1) { ASSERT_NEAR(time / most, 1.0, 1e-9) << seed; }
  }
  EXPECT_GT(above, jobs / 2);
  EXPECT_GT(below, 0);
}

// The stage on the small nodes has less room; the other one has the room of its own nodes.
TEST(UnlikeNodes, memory_is_that_of_the_nodes_of_each_stage) {
  Case c;
  c.model = parallel::test::gpt(8, 1024, 16, 51200);
  c.cluster = parallel::test::cluster_of({2, 2});
  c.plan.tp = c.plan.pp = 2;
  c.job.global_batch = 8;
  c.job.seq = 1024;
  Estimator plain(c.model, c.cluster, c.stack, c.job);
  const parallel::Program program = parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack);
  const Bytes first = program.memory[0].total(), second = program.memory[1].total();
  divide_nodes(c.cluster);
  const double usable = 1.0 - c.stack.memory_reserve;
  const auto fits = [&](Bytes on_first, Bytes on_second) {
    c.cluster.nodes[0].accelerator.memory = on_first * (1.0 / usable);
    c.cluster.nodes[1].accelerator.memory = on_second * (1.0 / usable);
    Estimator estimator(c.model, c.cluster, c.stack, c.job);
    const MemoryOutcome outcome = estimator.memory(c.plan);
    EXPECT_EQ(outcome.fits, outcome.need <= outcome.capacity);
    EXPECT_EQ(estimator.price(c.plan).has_value(), outcome.fits);
    return outcome.fits;
  };
  EXPECT_TRUE(fits(first * 1.001, second * 1.001));
  EXPECT_FALSE(fits(first * 0.999, second * 2.0));
  EXPECT_FALSE(fits(first * 2.0, second * 0.999));
}

}  // namespace
}  // namespace orrery::estimate::unlike_nodes_test
