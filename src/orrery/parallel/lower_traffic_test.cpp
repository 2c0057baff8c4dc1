// Traffic of a step between replicas, mirrored stages and memory tiers, and when gradients are reduced.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_totals.hpp"

namespace orrery::parallel::lower_traffic_test {
namespace {

using test::any_case;
using test::bytes_of;
using test::Case;
using test::micro_batches_of_chunk;
using test::per_rank;
using test::PerRank;

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

Case drawn_case() {
  const Case c = any_case(kDraw);
  RC_LOG(test::to_text(c) + "\n");
  return c;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-11 * std::max(std::abs(a), std::abs(b)); }

Program lowered(const Case& c) { return lower(c.model, c.job, c.plan, c.cluster, c.stack); }

// Rajbhandari et al., "ZeRO" (arXiv:1910.02054), section 7, with m micro-batches: up to ZeRO 1 gradients are reduced
// once per step, from ZeRO 2 on in every backward, unless the stack accumulates whole gradients; weights are gathered
// once per step with a sharded optimizer, and in every forward and backward with sharded weights (frozen ones too).
// Overlap and buckets do not change the bytes. Hybrid: each copy reduces within itself, then its shards over the
// copies.
RC_GTEST_PROP(LowerTraffic, data_parallel_traffic_is_that_of_the_zero_stage_whether_overlapped_or_not, ()) {
  const Case c = drawn_case();
  const Program program = lowered(c);
  const Plan& plan = c.plan;
  const PerRank weights = per_rank(program);
  const double m = micro_batches_of_chunk(program), g = c.stack.gradients.reduce_element.value();
  const double reductions = reduces_every_micro_batch(plan, c.stack) ? m : 1.0;
  const double gathers = plan.zero == 0 ? 0.0 : plan.zero == 3 ? 2.0 * m : 1.0;
  const bool hybrid = plan.zero > 0 && plan.sharded_copies() > 1;
  const GroupKind group = hybrid ? GroupKind::shard : GroupKind::dp;
  const double members = hybrid ? real(plan.shards()) : real(plan.replicas());
  const double dense = members > 1 ? weights.dense : 0.0, all_dense = members > 1 ? weights.all_dense : 0.0;
  const double expert = plan.expert_replicas() > 1 ? weights.expert : 0.0;
  const double all_expert = plan.expert_replicas() > 1 ? weights.all_expert : 0.0;
  const auto expect = [&](GroupKind kind, Collective collective, double bytes) {
    RC_ASSERT(std::abs(bytes_of(program, kind, collective) - bytes) <= 1e-11 * bytes);
  };
  const auto reduced = plan.zero == 0 ? Collective::all_reduce : Collective::reduce_scatter;
  expect(group, reduced, reductions * dense * g);
  expect(GroupKind::expert_dp, reduced, reductions * expert * g);
  expect(GroupKind::copies, Collective::all_reduce, hybrid ? reductions * weights.dense / members * g : 0.0);
  expect(group, Collective::all_gather, gathers * 2.0 * (plan.zero == 3 ? all_dense : dense));
  expect(GroupKind::expert_dp, Collective::all_gather, gathers * 2.0 * (plan.zero == 3 ? all_expert : expert));
  expect(hybrid ? GroupKind::dp : GroupKind::shard, Collective::all_gather, 0.0);
}

// Under DualPipe two ranks hold a layer: once per step they reduce the gradients that their replicas have reduced, each
// its own shard.
RC_GTEST_PROP(LowerTraffic, mirrored_stages_sum_the_gradients_they_own, ()) {
  const Case c = drawn_case();
  const Program program = lowered(c);
  const PerRank weights = per_rank(program);
  const double dense = c.plan.zero > 0 ? real(c.plan.shards()) : 1.0;
  const double expert = c.plan.zero > 0 ? real(c.plan.expert_replicas()) : 1.0;
  const double owned =
      c.plan.schedule == ScheduleKind::dualpipe ? weights.dense / dense + weights.expert / expert : 0.0;
  RC_ASSERT(near(bytes_of(program, GroupKind::mirror, Collective::all_reduce),
                 owned * c.stack.gradients.reduce_element.value()));
}

// Per step and rank: stored weights are fetched for every forward and backward, and trained ones are written back once;
// activations are written and fetched for every micro-batch; the optimizer state once. Shards that are the master copy
// are stored in fp32 and also updated there.
RC_GTEST_PROP(LowerTraffic, data_in_the_second_tier_is_fetched_for_every_use, ()) {
  Case c = drawn_case();
  c.job.adapter.rank = 0;
  c.plan.optimizer_device = OptimizerDevice::device;
  const Program program = lowered(c);
  const double m = micro_batches_of_chunk(program);
  const PerRank weights = per_rank(program);
  const auto owned = [&](int zero) {
    if (c.plan.zero < zero) { return weights.dense + weights.expert; }
    return weights.dense / real(c.plan.shards()) + weights.expert / real(c.plan.expert_replicas());
  };
  const bool in_fp32 = c.stack.optimizer.shards_are_master && c.plan.zero == 3 && c.plan.shards() > 1;
  const double masters = in_fp32 ? owned(3) : 0.0;
  double expected = 0.0;
  if (c.plan.offload.weights) { expected += (2.0 * m + 1.0) * (2.0 * owned(3) + 2.0 * masters); }
  if (c.plan.offload.optimizer) { expected += 12.0 * owned(1) - 4.0 * masters; }
  const double before = bytes_of(program, GroupKind::host, Collective::broadcast);
  if (!c.plan.offload.activations) {
    RC_ASSERT(near(before, expected));
    return;
  }
  // With one micro-batch in flight, the bytes of a chunk's activations equal its activation memory.
  c.plan.offload.activations = false;
  const double without = bytes_of(lowered(c), GroupKind::host, Collective::broadcast);
  RC_ASSERT(near(without, expected));
  RC_ASSERT(before > without);
}

// max(40 million, 1 million x dp x cp), the default of Megatron-Core.
TEST(LowerTraffic, buckets_grow_with_the_replicas_where_the_stack_says_so) {
  hardware::GradientPolicy gradients;
  EXPECT_EQ(gradients.bucket(512), 0.0);
  gradients.bucket_parameters = 40e6;
  EXPECT_EQ(gradients.bucket(512), 40e6);
  gradients.bucket_parameters_per_replica = 1e6;
  EXPECT_EQ(gradients.bucket(8), 40e6);
  EXPECT_EQ(gradients.bucket(512), 512e6);
}

// Layers of 3,146,240 weights, embedding and head of 0.52 million. On 4 replicas (2 million): head and a layer, 9
// layers one by one, the embedding. On 32 (16 million): head and 5 layers, 5 layers and the embedding.
TEST(LowerTraffic, more_replicas_reduce_in_fewer_collectives) {
  const auto collectives = [](std::int64_t dp) {
    Case c;
    c.model = test::llama(10, 512, 8, 8, 1365, 1024);
    c.job = {32, 128, hardware::Precision::bf16, Task::pretrain};
    c.plan.dp = dp;
    c.plan.zero = 1;
    c.cluster = test::cluster_of({dp});
    c.stack.gradients.bucket_parameters_per_replica = 0.5e6;
    const Program program = lowered(c);
    std::int64_t count = 0;
    for (const auto& use : program.chunks.front().last_backward) { count += use.reduce ? use.repeat : 0; }
    return count;
  };
  EXPECT_EQ(collectives(4), 11);
  EXPECT_EQ(collectives(32), 2);
}

// 10 layers of 6 tensors, embedding, last norm and head: 63 tensors. The largest one, 2 x 512 x 1,365 weights, is more
// than the 128th part of all 32,511,488.
TEST(LowerTraffic, owners_of_whole_tensors_broadcast_their_weights_one_after_another) {
  const double weights = 10.0 * 3'146'240 + 2.0 * 1024 * 512 + 512;
  for (const std::int64_t dp : {4, 128}) {
    Case c;
    c.model = test::llama(10, 512, 8, 8, 1365, 1024);
    c.job = {dp, 128, hardware::Precision::bf16, Task::pretrain};
    c.plan.dp = dp;
    c.plan.zero = 1;
    c.cluster = test::cluster_of({dp});
    c.stack.optimizer.owns_whole_tensors = true;
    const Program program = lowered(c);
    const BlockUse& last = program.classes.front().finish.back();
    EXPECT_EQ(last.repeat, std::min<std::int64_t>(dp, 63));
    const CollectiveCall& call = program.block(last.work).items.front().collective()->call;
    EXPECT_EQ(call.collective, Collective::broadcast);
    EXPECT_DOUBLE_EQ(real(last.repeat) * call.bytes.value(), 2.0 * weights);
    EXPECT_DOUBLE_EQ(bytes_of(program, GroupKind::dp, Collective::all_reduce), 4.0 * weights);
    EXPECT_EQ(bytes_of(program, GroupKind::dp, Collective::reduce_scatter), 0.0);
    EXPECT_EQ(bytes_of(program, GroupKind::dp, Collective::all_gather), 0.0);
    const double most = dp == 4 ? weights / 4.0 : 2.0 * 512 * 1365;
    EXPECT_DOUBLE_EQ(program.memory.front().optimizer.value(), 12.0 * most);
  }
}

// Reduced once a step, ZeRO-2 does what ZeRO-1 does.
RC_GTEST_PROP(LowerTraffic, zero_2_reduced_once_a_step_moves_and_executes_what_zero_1_does, ()) {
  Case c = drawn_case();
  c.plan.offload = {};
  c.plan.optimizer_device = OptimizerDevice::device;
  c.stack.gradients.reduce_every = hardware::ReduceEvery::step;
  c.plan.zero = 1;
  const Program first = lowered(c);
  c.plan.zero = 2;
  const Program second = lowered(c);
  RC_ASSERT(first.chunks.size() == second.chunks.size());
  for (std::size_t i = 0; i < first.chunks.size(); ++i) {
    const auto &a = first.chunks[ChunkProgramId(i)], &b = second.chunks[ChunkProgramId(i)];
    RC_ASSERT(a.waits_for_reduce == b.waits_for_reduce);
    RC_ASSERT(a.backward.size() == b.backward.size() && a.last_backward.size() == b.last_backward.size());
    RC_ASSERT(a.first_forward.size() == b.first_forward.size());
  }
  for (const auto kind : {GroupKind::dp, GroupKind::shard, GroupKind::copies, GroupKind::expert_dp}) {
    for (const auto collective : {Collective::reduce_scatter, Collective::all_gather, Collective::all_reduce}) {
      RC_ASSERT(bytes_of(first, kind, collective) == bytes_of(second, kind, collective));
    }
  }
}

// Reductions wait until a bucket is full; the last bucket may be smaller.
TEST(LowerTraffic, reductions_of_layers_are_joined_until_their_bucket_is_full) {
  Case c;
  c.model = test::llama(10, 512, 8, 8, 2048, 1024);
  c.job = {8, 128, hardware::Precision::bf16, Task::pretrain};
  c.plan.dp = 4;
  c.plan.zero = 1;
  c.cluster = test::cluster_of({4});
  const double layer = real(workload::layer_parameters(c.model, {}));
  const double table = 1024.0 * 512, head = table + 512;
  c.stack.gradients.bucket_parameters =
      head + 3.5 * layer;  // head and 4 layers fill one bucket, 4 layers the next; head = layer / 8
  const Program program = lowered(c);
  std::vector<double> reduced;
  std::int64_t executions = 0;
  for (const auto& use : program.chunks.front().last_backward) {
    executions += use.repeat;
    if (!use.reduce) { continue; }
    EXPECT_EQ(use.repeat, 1);
    reduced.push_back(test::call_of(program.block(*use.reduce).items.front()).bytes.value() / 4.0);
  }
  EXPECT_EQ(executions, 12);
  EXPECT_EQ(reduced, (std::vector<double>{head + 4 * layer, 4 * layer, 2 * layer + table}));
}

}  // namespace
}  // namespace orrery::parallel::lower_traffic_test
