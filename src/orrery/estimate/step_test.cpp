// Programs written by hand, whose step times can be calculated on paper.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/estimate/step.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::estimate::step_test {
namespace {

using parallel::Block;
using parallel::BlockId;
using parallel::ChunkProgramId;
using parallel::Program;
using parallel::Purpose;
using parallel::RankClassId;
using parallel::ScheduleKind;

// Memory of 1 GB/s without floor or ramp: a stream kernel without launch time takes as many seconds as it moves
// gigabytes. Two network dimensions of two devices and 1 GB/s each: an all-gather of 2 x GB over two devices takes x
// seconds.
hardware::Cluster cluster() {
  auto cluster = network::test::plain_cluster({2, 2});
  cluster.accelerator.memory_bandwidth = 1_GBps;
  cluster.accelerator.memory_efficiency = 1.0;
  for (auto& dimension : cluster.dimensions) {
    dimension.link.latency = Seconds();
    dimension.link.protocols = {{"only", Seconds(), Seconds(), Seconds(), Seconds(), 1.0}};
    dimension.link.in_switch_efficiency = 0.0;
  }
  return cluster;
}

Block work(double seconds, Purpose purpose = Purpose::forward) {
  hardware::Kernel kernel;
  kernel.kind = hardware::KernelKind::stream;
  kernel.bytes = Bytes(seconds * 1e9);
  kernel.launches = 0;
  return {"work", {{"work", purpose, parallel::KernelLaunch{kernel}}}};
}

Block gather(double seconds, parallel::GroupKind group = parallel::GroupKind::dp, bool asynchronous = false) {
  const parallel::CollectiveCall call{Collective::all_gather, group, Bytes(2e9 * seconds)};
  return {"gather", {{"gather", Purpose::forward, parallel::CollectiveLaunch{call, asynchronous}}}};
}

parallel::BlockUse use(std::size_t work, std::int64_t repeat, parallel::OptionalBlockId gather = {},
                       parallel::OptionalBlockId reduce = {}) {
  return {BlockId(work), repeat, gather, reduce};
}

// One layer per stage, of one block: 1 s forward, 2 s backward, 0.5 s optimizer.
struct Made {
  Program program;

  Made(ScheduleKind schedule, std::int64_t p, std::int64_t v, std::int64_t m, std::int64_t layers) {
    program.plan.pp = p;
    program.plan.vpp = v;
    program.plan.schedule = schedule;
    program.pipeline = {schedule, p, v, m};
    program.mesh.group(parallel::GroupKind::dp) = {{{0, 2}}, true};
    program.mesh.transfer_dimension.assign(static_cast<std::size_t>(p), 1);
    program.blocks = {work(1.0), work(2.0, Purpose::backward), work(0.5, Purpose::optimizer)};
    parallel::ChunkProgram chunk;
    chunk.forward = chunk.first_forward = {use(0, layers)};
    chunk.backward = chunk.last_backward = {use(1, layers)};
    parallel::RankClass rank_class;
    rank_class.stages = p;
    program.chunks = {chunk};
    rank_class.chunks.assign(static_cast<std::size_t>(v), {0, layers, ChunkProgramId(0)});
    rank_class.finish = {use(2, 1)};
    program.classes = {rank_class};
    program.class_of_stage.assign(static_cast<std::size_t>(p), RankClassId(0));
  }
  [[nodiscard]] parallel::ChunkProgram& chunk() { return program.chunks.front(); }

  // Of 0.5 GB between stages, each of two ranks sends a half; both gather them.
  void transfer_in_two_parts() {
    program.plan.tp = 2;
    program.mesh.group(parallel::GroupKind::tp) = {{{0, 2}}, true};
    program.transfer_bytes = Bytes(0.25e9);
    program.gathers_transfers = true;
  }

  // Step time in seconds.
  [[nodiscard]] double time(double interference = 0.0) const {
    const auto machine = cluster();
    const network::Fabric fabric(machine);
    hardware::Stack stack;
    stack.overlap.interference = interference;
    network::PriceCache prices(fabric);
    return StepSolver(stack, prices).solve(program).time.value();
  }
};

constexpr double kTicks = 1e-9;  // about a hundred tasks, each rounded up to a picosecond
constexpr double kFinish = 0.5;

// Narayanan et al. (arXiv:2104.04473), section 2.2: the bubble is (p - 1) (f + b), a fraction (p - 1) / m of the work
// m (f + b), here 3 s per layer.
TEST(Step, bubble_of_1f1b_and_gpipe_is_p_minus_1_over_m) {
  for (const auto schedule : {ScheduleKind::one_f_one_b, ScheduleKind::gpipe}) {
    for (const std::int64_t p : {1, 2, 4, 8}) {
      for (const std::int64_t m : {1, 3, 8, 32}) {
        const double ideal = 2.0 * 3.0 * static_cast<double>(m);
        const double bubble = Made(schedule, p, 1, m, 2).time() - kFinish - ideal;
        EXPECT_NEAR(bubble / ideal, static_cast<double>(p - 1) / static_cast<double>(m), kTicks) << p << " " << m;
      }
    }
  }
}

TEST(Step, bubble_of_interleaving_is_p_minus_1_over_v_m) {
  for (const std::int64_t p : {2, 4}) {
    for (const std::int64_t v : {2, 3}) {
      for (const std::int64_t m : {p, 2 * p, 5 * p}) {
        const double ideal = 3.0 * static_cast<double>(v * m);
        const double bubble = Made(ScheduleKind::interleaved, p, v, m, 1).time() - kFinish - ideal;
        EXPECT_NEAR(bubble / ideal, static_cast<double>(p - 1) / static_cast<double>(v * m), kTicks);
      }
    }
  }
}

// One micro-batch crosses 3 stage borders in each direction, 0.25 s each: 4 x 3 + 6 x 0.25.
TEST(Step, a_single_micro_batch_takes_every_transfer_in_both_directions) {
  Made made(ScheduleKind::one_f_one_b, 4, 1, 1, 1);
  made.program.transfer_bytes = Bytes(0.25e9);
  EXPECT_NEAR(made.time(), 4 * 3.0 + 6 * 0.25 + kFinish, kTicks);
}

// The same 0.5 GB: two ranks send 0.25 GB each and then gather them at 1 GB/s: 6 x (0.25 + 0.25).
TEST(Step, parts_of_a_transfer_are_gathered_after_it) {
  Made made(ScheduleKind::one_f_one_b, 4, 1, 1, 1);
  made.transfer_in_two_parts();
  EXPECT_NEAR(made.time(), 4 * 3.0 + 6 * 0.5 + kFinish, kTicks);
}

// Two stages, four micro-batches, the same transfers. The gather begins the task that needs it, and delays the stage:
//   stage 0: F0 0-1, F1 1-2, B0 4.75-7, F2 7-8, B1 8-10.25, F3 10.25-11.25, B2 11.75-14, B3 15-17.25
//   stage 1: F0 1.25-2.5, B0 2.5-4.5, F1 4.5-5.75, B1 5.75-7.75, F2 8.25-9.5, B2 9.5-11.5, F3 11.5-12.75,
//   B3 12.75-14.75
TEST(Step, a_gather_of_received_parts_begins_when_the_task_before_has_ended) {
  Made made(ScheduleKind::one_f_one_b, 2, 1, 4, 1);
  made.transfer_in_two_parts();
  EXPECT_NEAR(made.time(), 17.25 + kFinish, kTicks);
}

// 4 layers of 2 s backward, reductions of 1.5 s on the side stream: only the last one ends after the 8 s of compute.
// Reductions of 3 s are slower than compute: the first starts at 2 s, the fourth ends at 14 s.
TEST(Step, reductions_that_end_after_the_last_backward_are_exposed) {
  Made made(ScheduleKind::one_f_one_b, 1, 1, 3, 4);
  made.program.blocks.emplace_back(gather(1.5));
  made.chunk().last_backward = {use(1, 4, {}, BlockId(3))};
  EXPECT_NEAR(made.time(), 3 * 12.0 + 1.5 + kFinish, kTicks);
  made.program.blocks[BlockId(3)] = gather(3.0);
  EXPECT_NEAR(made.time(), 3 * 12.0 + (14.0 - 8.0) + kFinish, kTicks);
}

// Weights are gathered one execution ahead, 4 layers of 1 s: the first gather of 0.75 s is exposed, the others overlap.
// With gathers of 1.5 s the fourth arrives at 6 s and its layer ends at 7 s instead of 4 s. The same in every forward.
TEST(Step, gathers_in_every_forward_stall_every_micro_batch) {
  Made made(ScheduleKind::one_f_one_b, 1, 1, 3, 4);
  made.program.blocks.emplace_back(gather(0.75));
  made.chunk().forward = made.chunk().first_forward = {use(0, 4, BlockId(3))};
  EXPECT_NEAR(made.time(), 3 * (12.0 + 0.75) + kFinish, kTicks);
  made.program.blocks[BlockId(3)] = gather(1.5);
  EXPECT_NEAR(made.time(), 3 * (12.0 + 3.0) + kFinish, kTicks);
}

// The same weights gathered once per step, all gathers issued when the step starts: one stall instead of three.
TEST(Step, gathers_of_the_first_forward_stall_the_step_once) {
  Made made(ScheduleKind::one_f_one_b, 1, 1, 3, 4);
  made.program.blocks.emplace_back(gather(1.5));
  made.chunk().first_forward = {use(0, 4, BlockId(3))};
  EXPECT_NEAR(made.time(), 3 * 12.0 + 3.0 + kFinish, kTicks);
}

// 4 layers of 2 s backward, reductions of 1.5 s. Three reductions, 4.5 s, overlap with the backward pass. With
// interference 0.2 it loses 0.9 s, with 0.5 2.25 s. The last reduction, 1.5 s, follows.
TEST(Step, reductions_under_the_last_backward_slow_it) {
  Made made(ScheduleKind::one_f_one_b, 1, 1, 3, 4);
  made.program.blocks.emplace_back(gather(1.5));
  made.chunk().last_backward = {use(1, 4, {}, BlockId(3))};
  EXPECT_NEAR(made.time(0.2), 3 * 12.0 + 0.9 + 1.5 + kFinish, kTicks);
  EXPECT_NEAR(made.time(0.5), 3 * 12.0 + 2.25 + 1.5 + kFinish, kTicks);
}

// The gathers of the first forward take 6 s: 3 s are exposed (gathers_of_the_first_forward_stall_the_step_once) and 3 s
// overlap with compute.
TEST(Step, gathers_of_the_first_forward_slow_the_compute_that_overlaps) {
  Made made(ScheduleKind::one_f_one_b, 1, 1, 3, 4);
  made.program.blocks.emplace_back(gather(1.5));
  made.chunk().first_forward = {use(0, 4, BlockId(3))};
  EXPECT_NEAR(made.time(0.2), 3 * 12.0 + 3.0 + 0.6 + kFinish, kTicks);
}

// On the second of two stages the gathers overlap with the first stage's forward: all 4 x 1.5 s have arrived at 6 s,
// two seconds after the activations; the fourth layer ends at 7 s instead of 8 s. No stall.
TEST(Step, a_later_stage_has_time_to_gather) {
  Made made(ScheduleKind::one_f_one_b, 2, 1, 2, 4);
  made.program.blocks.emplace_back(gather(1.5));
  auto late = made.program.classes.front();
  late.first_stage = 1;
  made.program.chunks.push_back(made.chunk());
  made.program.chunks.back().first_forward = {use(0, 4, BlockId(3))};
  late.chunks[0].program = ChunkProgramId(1);
  made.program.classes.push_back(late);
  made.program.class_of_stage = {RankClassId(0), RankClassId(1)};
  EXPECT_NEAR(made.time(), (2 + 1) * 12.0 + kFinish, kTicks);
  made.program.blocks[BlockId(3)] = gather(2.0);  // the last arrives at 8 s, its layer ends at 9 s: one second late
  EXPECT_NEAR(made.time(), (2 + 1) * 12.0 + 1.0 + kFinish, kTicks);
}

// Fully sharded, gather g = 1 s and reduction r = 2 s around 2 s of backward: from the second layer on the stream needs
// g + r = 3 s per layer. First gather 1, first layer until 3 (second gather until 2); reduction until 5, third gather
// until 6, ... worked out line by line: layers start at 1, 3, 6, 9, the last ends at 11 and its reduction at 13.
//   gather 1: 0-1   work 1: 1-3   gather 2: 1-2   reduce 1: 3-5   work 2: 3-5   gather 3: 5-6 (issued at 3, behind
//   reduce 1) work 3: 6-8   reduce 2: 6-8 (behind gather 3)   gather 4: 8-9   work 4: 9-11   reduce 3: 9-11   reduce 4:
//   11-13
TEST(Step, fully_sharded_backward_takes_gather_plus_reduction_per_layer) {
  Made made(ScheduleKind::one_f_one_b, 1, 1, 1, 4);
  made.program.blocks.emplace_back(gather(1.0));
  made.program.blocks.emplace_back(gather(2.0));
  made.chunk().backward = made.chunk().last_backward = {use(1, 4, BlockId(3), BlockId(4))};
  made.chunk().waits_for_reduce = true;
  EXPECT_NEAR(made.time(), 4.0 + 13.0 + kFinish, kTicks);
}

// Stage 1 takes twice as long for its optimizer: all gradients are synchronised at (m + 1) 3 s, and the step ends 1 s
// later.
TEST(Step, the_slowest_optimizer_ends_the_step) {
  Made made(ScheduleKind::one_f_one_b, 2, 1, 4, 1);
  made.program.blocks.emplace_back(work(1.0, Purpose::optimizer));
  made.program.classes.push_back(made.program.classes.front());
  made.program.classes.back().finish = {use(3, 1)};
  made.program.class_of_stage = {RankClassId(0), RankClassId(1)};
  EXPECT_NEAR(made.time(), 5 * 3.0 + 1.0, kTicks);
}

// An asynchronous collective of 1.5 s overlaps with 1 s of compute; an item waits for it: 0.5 s exposed.
TEST(Step, a_block_waits_for_its_asynchronous_collectives_where_they_are_needed) {
  const auto machine = cluster();
  const network::Fabric fabric(machine);
  parallel::Mesh mesh;
  mesh.group(parallel::GroupKind::tp) = {{{0, 2}}, true};
  Block block = gather(1.5, parallel::GroupKind::tp, true);
  block.items.push_back(work(1.0).items[0]);
  const Cost ended = price_block(block, fabric, mesh);  // no item waits for it, so the end of the block does
  EXPECT_NEAR(ended.time.value(), 1.5, 1e-12);
  block.items.push_back(work(2.0).items[0]);
  EXPECT_NEAR(price_block(block, fabric, mesh).time.value(), 3.0, 1e-12);
  std::get<parallel::KernelLaunch>(block.items[2].action).waits_for = parallel::ItemId(0);
  const Cost cost = price_block(block, fabric, mesh);
  EXPECT_NEAR(cost.time.value(), 3.5, 1e-12);
  EXPECT_NEAR(cost.compute.value(), 3.0, 1e-12);
  EXPECT_NEAR(cost.of(TrafficKind::tp).busy.value(), 1.5, 1e-12);
  EXPECT_NEAR(cost.of(TrafficKind::tp).exposed.value(), 0.5, 1e-12);
}

}  // namespace
}  // namespace orrery::estimate::step_test
