// Memory of a rank: calculated by hand, and laws.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::memory_test {
namespace {

using test::any_case;
using test::Case;

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

Case drawn(Case c) {
  RC_LOG(test::to_text(c) + "\n");
  return c;
}

Case drawn_case() { return drawn(any_case(kDraw)); }

std::vector<MemoryNeed> memory_of(const Case& c) { return lower(c.model, c.job, c.plan, c.cluster, c.stack).memory; }

// GPT-3 175B: 96 layers, h = 12288, a = 96, V = 51200, tp 8 (t), pp 8, dp 8, micro-batches of 1 x 2048 (s) tokens,
// fp16, plain attention with dropout, nothing recomputed, gradients in fp16, master copy and moments 4 + 8 bytes.
//
// Weights of a layer on one rank:
//   qkv  h 3h/t + 3h/t = 56,623,104 + 4,608       output  h h/t + h = 18,874,368 + 12,288
//   mlp  h 4h/t + 4h/t = 75,497,472 + 6,144                4h/t h + h = 75,497,472 + 12,288       norms  2 x 2h =
//   49,152 together 226,576,896
// Stage 0: 12 layers, table V/t h = 78,643,200 and positions s h = 25,165,824: 2,822,731,776.
// Stage 7: 12 layers, copy of the table, final norm 2h = 24,576: 2,797,590,528.
//
// Activations of a layer (Korthikanti et al., arXiv:2205.05198, equation 2):
//   s b h (10 + 24/t + 5 a s / (h t)) = 25,165,824 x (10 + 3 + 10) = 578,813,952 bytes
// Stage 0 keeps 8 micro-batches: each 12 layers, the embedding's dropout mask s b h = 25,165,824 and 8 bytes of token
// id per token, 16,384: 8 x 6,970,949,632 = 55,767,597,056. Stage 7 keeps one: 6,945,767,424, and the head's tensors:
// norm input and logits input 2 s b h each, fp32 probabilities 4 s b V/t = 52,428,800: together 153,092,096.
TEST(Memory, gpt_3_175b_by_hand) {
  Case c;
  c.model = test::gpt(96, 12288, 96, 51200);
  c.model.max_seq = c.model.position_rows = 2048;
  c.job = {512, 2048, hardware::Precision::fp16, Task::pretrain};
  c.plan.tp = c.plan.pp = c.plan.dp = 8;
  c.cluster = test::cluster_of({8, 64});
  c.stack.attention.kernel = hardware::AttentionKernel::plain;
  c.stack.fusion.loss = false;
  c.stack.gradients.element = c.stack.gradients.reduce_element = Bytes(2.0);
  const auto memory = memory_of(c);
  EXPECT_EQ(memory[0].weights, Bytes(2.0 * 2'822'731'776));
  EXPECT_EQ(memory[0].gradients, Bytes(2.0 * 2'822'731'776));
  EXPECT_EQ(memory[0].optimizer, Bytes(12.0 * 2'822'731'776));
  EXPECT_EQ(memory[0].activations, Bytes(55'767'597'056));
  EXPECT_EQ(memory[0].buffers, Bytes(0.0));
  EXPECT_EQ(memory[7].weights, Bytes(2.0 * 2'797'590'528));
  EXPECT_EQ(memory[7].activations, Bytes(6'945'767'424));
  EXPECT_EQ(memory[7].buffers, Bytes(153'092'096));
}

// The same with sequence parallelism and selective recompute: s b h (10 + 24) / t = 106,954,752 per layer (equation 6
// of the same paper), 12 layers x 8 micro-batches on stage 0; the dropout mask is split too. One layer's core, 5 a s^2
// b / t = 251,658,240, is in memory while it is recomputed.
TEST(Memory, gpt_3_175b_with_sequence_parallelism_and_selective_recompute_by_hand) {
  Case c;
  c.model = test::gpt(96, 12288, 96, 51200);
  c.job = {512, 2048, hardware::Precision::fp16, Task::pretrain};
  c.plan.tp = c.plan.pp = c.plan.dp = 8;
  c.plan.sequence_parallel = true;
  c.plan.recompute = Recompute::selective;
  c.cluster = test::cluster_of({8, 64});
  c.stack.attention.kernel = hardware::AttentionKernel::plain;
  const auto memory = memory_of(c);
  EXPECT_EQ(memory[0].activations, Bytes(8.0 * (12.0 * 106'954'752 + 3'145'728 + 16'384)));
  EXPECT_EQ(memory[0].buffers, Bytes(251'658'240));
}

// The same at stage 0: two layers are 2 x 226,576,896 weights, table, positions and a layer 78,643,200 + 25,165,824 +
// 226,576,896 = 330,385,920: the layers are more. Gradients and weights are whole in 2 bytes each. At stage 7 two
// layers are the most, too, beside what the head keeps.
TEST(Memory, sharded_parts_are_whole_while_they_are_at_work) {
  Case c;
  c.model = test::gpt(96, 12288, 96, 51200);
  c.model.max_seq = c.model.position_rows = 2048;
  c.job = {512, 2048, hardware::Precision::fp16, Task::pretrain};
  c.plan.tp = c.plan.pp = c.plan.dp = 8;
  c.cluster = test::cluster_of({8, 64});
  c.stack.attention.kernel = hardware::AttentionKernel::plain;
  constexpr double kLayers = 2.0 * 226'576'896;
  const double expected[4] = {0.0, 0.0, 2.0 * kLayers, 4.0 * kLayers};
  c.plan.zero = 0;
  const Bytes head = memory_of(c)[7].buffers;
  for (; c.plan.zero <= 3; ++c.plan.zero) {
    const auto memory = memory_of(c);
    EXPECT_EQ(memory[0].buffers, Bytes(expected[c.plan.zero]));
    EXPECT_EQ(memory[7].buffers, Bytes(expected[c.plan.zero]) + head);
  }
}

// PyTorch FSDP: fp32 shard 4 B, two moments 8 B, gradient 4 B; with a separate bf16 shard (DeepSpeed) 18 B. Frozen
// weights have no master.
TEST(Memory, shards_that_are_the_master_copy_take_16_bytes_a_parameter) {
  Case c;
  c.model = test::llama(8, 4096, 32, 8, 14336, 128256);
  c.job = {64, 4096, hardware::Precision::bf16, Task::pretrain};
  c.plan.dp = 8;
  c.plan.zero = 3;
  c.cluster = test::cluster_of({8});
  const auto per_parameter = [&] {
    const Program program = lower(c.model, c.job, c.plan, c.cluster, c.stack);
    const MemoryNeed& need = program.memory[0];
    return (need.weights + need.gradients + need.optimizer).value() * 8.0 / program.classes.front().parameters;
  };
  EXPECT_DOUBLE_EQ(per_parameter(), 18.0);
  const Bytes buffers = memory_of(c)[0].buffers;
  c.stack.optimizer.shards_are_master = true;
  EXPECT_DOUBLE_EQ(per_parameter(), 16.0);
  EXPECT_EQ(memory_of(c)[0].buffers, buffers);  // gathered in 2 bytes, as before
}

// Weights exist in both formats below ZeRO-3 and where the dense ones have one replica.
RC_GTEST_PROP(Memory, whole_weights_have_a_master_copy_in_any_case, ()) {
  Case c = drawn_case();
  c.plan.offload = {};
  c.plan.optimizer_device = OptimizerDevice::device;
  c.stack.optimizer.shards_are_master = false;
  const auto apart = memory_of(c);
  c.stack.optimizer.shards_are_master = true;
  const auto together = memory_of(c);
  const bool sharded =
      c.plan.zero == 3 && (c.plan.shards() > 1 || (c.model.has_experts() && c.plan.expert_replicas() > 1));
  for (std::size_t s = 0; s < apart.size(); ++s) {
    const double more = apart[s].total().value() - together[s].total().value();
    RC_ASSERT(more >= -1e-12 * apart[s].total().value());
    if (!sharded) { RC_ASSERT(more == 0.0); }
  }
}

// Sharded gradients that are reduced once a step are accumulated whole: under ZeRO-2 a rank then needs what it needs
// under ZeRO-1.
RC_GTEST_PROP(Memory, zero_2_reduced_once_a_step_needs_what_zero_1_needs, ()) {
  Case c = drawn_case();
  c.plan.gather_overlap = true;
  c.stack.gradients.reduce_every = hardware::ReduceEvery::step;
  c.plan.zero = 1;
  const auto first = memory_of(c);
  c.plan.zero = 2;
  const auto second = memory_of(c);
  for (std::size_t s = 0; s < first.size(); ++s) {
    RC_ASSERT(second[s].gradients == first[s].gradients && second[s].buffers == first[s].buffers);
    RC_ASSERT(second[s].total() == first[s].total());
  }
  c.plan.zero = 3;
  const auto third = memory_of(c);
  for (std::size_t s = 0; s < first.size(); ++s) { RC_ASSERT(third[s].gradients == first[s].gradients); }
}

// An offloaded optimizer state takes the master copy with it, except at ZeRO-3 where the shards are that copy: they
// stay on the device, and weights that nobody shards (experts with one replica) are stored there in 4 bytes instead
// of 2.
RC_GTEST_PROP(Memory, a_higher_zero_stage_never_needs_more_but_for_the_parts_at_work, ()) {
  Case c = drawn_case();
  c.plan.shard = 0;
  const bool master_stays = c.stack.optimizer.shards_are_master && c.plan.offload.optimizer;
  std::vector<MemoryNeed> before;
  for (c.plan.zero = 0; c.plan.zero <= 3; ++c.plan.zero) {
    const auto memory = memory_of(c);
    for (std::size_t s = 0; s < before.size(); ++s) {
      const double wider = master_stays && c.plan.zero == 3 ? 2.0 : 1.0;
      const Bytes now = memory[s].weights + memory[s].optimizer, then = wider * before[s].weights + before[s].optimizer;
      RC_ASSERT(now <= then * (1.0 + 1e-12));
      // Weights that become their own master move from the optimizer's part to that of the weights.
      if (!c.stack.optimizer.shards_are_master) { RC_ASSERT(memory[s].weights <= before[s].weights); }
      RC_ASSERT(memory[s].optimizer <= before[s].optimizer);
      RC_ASSERT(memory[s].gradients <= before[s].gradients);
      RC_ASSERT(memory[s].activations == before[s].activations);
      if (c.plan.zero < 2) { RC_ASSERT(memory[s].buffers == before[s].buffers); }
    }
    before = memory;
  }
}

RC_GTEST_PROP(Memory, recomputing_more_never_needs_more, ()) {
  Case c = drawn_case();
  c.plan.offload = {};
  c.plan.optimizer_device = OptimizerDevice::device;
  const std::int64_t some_layers = c.plan.recompute_layers;
  std::vector<MemoryNeed> before;
  for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
    c.plan.recompute = recompute;
    c.plan.recompute_layers = recompute == Recompute::none ? 0 : some_layers;
    const auto memory = memory_of(c);
    for (std::size_t s = 0; s < before.size(); ++s) {
      RC_ASSERT(memory[s].activations <= before[s].activations);
      RC_ASSERT(memory[s].total().value() <= before[s].total().value() * (1.0 + 1e-12));
    }
    before = memory;
  }
}

// Recompute of more layers per chunk keeps less, down to full recompute of all layers.
RC_GTEST_PROP(Memory, recomputing_more_layers_never_keeps_more, ()) {
  Case c = drawn_case();
  c.plan.recompute = test::any_flag(kDraw) ? Recompute::full : Recompute::selective;
  c.plan.recompute_layers = 0;
  const auto all = memory_of(c);
  const auto layers = layers_per_virtual_stage(c.model, c.plan);
  const std::int64_t most = *std::max_element(layers.begin(), layers.end());
  std::vector<MemoryNeed> before;
  for (c.plan.recompute_layers = 1; c.plan.recompute_layers <= most; ++c.plan.recompute_layers) {
    const auto memory = memory_of(c);
    for (std::size_t s = 0; s < before.size(); ++s) { RC_ASSERT(memory[s].activations <= before[s].activations); }
    before = memory;
  }
  for (std::size_t s = 0; s < before.size(); ++s) {
    RC_ASSERT(before[s].activations == all[s].activations);
    RC_ASSERT(before[s].buffers == all[s].buffers);
  }
}

// Inner stages of the same shape differ only in the number of micro-batches in flight: fewer on later stages.
RC_GTEST_PROP(Memory, earlier_stages_of_a_shape_keep_at_least_as_much_as_later_ones, ()) {
  const Case c = drawn_case();
  const Program program = lower(c.model, c.job, c.plan, c.cluster, c.stack);
  for (const auto& rank_class : program.classes) {
    for (std::int64_t s = rank_class.first_stage + 1; s < rank_class.first_stage + rank_class.stages; ++s) {
      const auto i = static_cast<std::size_t>(s);
      RC_ASSERT(program.memory[i].activations <= program.memory[i - 1].activations);
    }
  }
}

RC_GTEST_PROP(Memory, a_larger_micro_batch_never_keeps_less, ()) {
  Case c = drawn_case();
  const auto before = memory_of(c);
  c.plan.micro_batch *= 2;
  c.job.global_batch *= 2;
  const auto after = memory_of(c);
  for (std::size_t s = 0; s < before.size(); ++s) {
    RC_ASSERT(after[s].activations >= before[s].activations);
    RC_ASSERT(after[s].weights == before[s].weights);
  }
}

// Offloaded data is not lost: both tiers together hold at least as much as one did.
RC_GTEST_PROP(Memory, the_second_tier_takes_from_the_first, ()) {
  Case c = drawn_case();
  c.plan.offload = {};
  c.plan.optimizer_device = OptimizerDevice::device;
  const auto alone = memory_of(c);
  c.plan.offload = {test::any_flag(kDraw), test::any_flag(kDraw), test::any_flag(kDraw)};
  const auto both = memory_of(c);
  for (std::size_t s = 0; s < alone.size(); ++s) {
    RC_ASSERT(alone[s].offloaded == Bytes(0));
    RC_ASSERT(both[s].total() <= alone[s].total());
    RC_ASSERT(both[s].total() + both[s].offloaded >= alone[s].total() * (1.0 - 1e-12));
    Bytes moved;
    if (c.plan.offload.weights) { moved += alone[s].weights; }
    if (c.plan.offload.activations) { moved += alone[s].activations; }
    if (c.plan.offload.optimizer) { moved += alone[s].optimizer; }
    RC_ASSERT(std::abs((both[s].offloaded - moved).value()) <= 1e-12 * moved.value());
    RC_ASSERT(both[s].gradients == alone[s].gradients);
  }
}

// With experts over more ranks a rank holds fewer of them, and shards each over fewer replicas.
RC_GTEST_PROP(Memory, more_expert_parallelism_never_holds_more_experts, ()) {
  Case c = drawn(test::any_case_of(kDraw, true));
  c.model.experts.count *= 2;
  c.plan.dp *= 2;
  c.job.global_batch *= 2;
  c.cluster = test::cluster_of({c.plan.devices()});
  const Program fewer = lower(c.model, c.job, c.plan, c.cluster, c.stack);
  c.plan.ep *= 2;
  const Program more = lower(c.model, c.job, c.plan, c.cluster, c.stack);
  for (std::size_t i = 0; i < more.classes.size(); ++i) {
    const auto &before = fewer.classes[RankClassId(i)], &after = more.classes[RankClassId(i)];
    RC_ASSERT(2.0 * after.expert_parameters == before.expert_parameters);
    RC_ASSERT(after.parameters == before.parameters);
  }
  for (std::size_t s = 0; s < more.memory.size(); ++s) {
    RC_ASSERT(more.memory[s].weights <= fewer.memory[s].weights);
    RC_ASSERT(more.memory[s].optimizer <= fewer.memory[s].optimizer * (1.0 + 1e-12));
  }
}

// With cp doubled, half the activations and the same weights per rank.
RC_GTEST_PROP(Memory, context_parallelism_shares_out_activations_and_no_weights, ()) {
  Case c = drawn(test::any_case_of(kDraw, false));
  RC_PRE(c.plan.cp == 1 && !c.model.has_mixers());  // their heads need not divide further
  c.model.tower = {};                               // every rank has all images
  c.plan.offload = {};
  c.plan.optimizer_device = OptimizerDevice::device;
  c.plan.zero = 0;
  c.plan.shard = 0;
  c.plan.cp_method = workload::ContextMethod::ring;
  c.stack.attention.kernel = hardware::AttentionKernel::flash;
  c.job.seq *= 2;
  const auto whole = memory_of(c);
  c.plan.cp = 2;
  c.cluster = test::cluster_of({c.plan.devices()});
  const auto halves = memory_of(c);
  for (std::size_t s = 0; s < whole.size(); ++s) {
    RC_ASSERT(halves[s].weights == whole[s].weights);
    RC_ASSERT(std::abs(2.0 * halves[s].activations.value() - whole[s].activations.value()) <=
              1e-12 * whole[s].activations.value());
  }
}

// Qi et al. (arXiv:2401.10241): a deferred weight gradient still needs the inputs of its GEMMs. Under full recompute
// these are recomputed in the backward task and kept until the weight task. 3 stages of 2 layers; the last stage defers
// 2 backwards in addition to the current one.
TEST(Memory, deferred_weight_gradients_hold_what_recompute_made_again) {
  Case c;
  c.model = test::llama(6, 512, 8, 8, 2048, 1024);
  c.job = {8, 128, hardware::Precision::bf16, Task::pretrain};
  c.plan.pp = 3;
  c.plan.schedule = ScheduleKind::zero_bubble;
  c.cluster = test::cluster_of({3});
  const Bytes kept_whole = memory_of(c)[1].activations / 6.0;  // 3 micro-batches in flight, 2 layers each
  c.plan.recompute = Recompute::full;
  const auto memory = memory_of(c);
  const Bytes input = Bytes(128.0 * 512 * 2), core = Bytes(4.0 * 8 * 128);
  EXPECT_EQ(memory[1].activations, 6.0 * input);
  EXPECT_EQ(memory[1].buffers, 2.0 * 2.0 * (kept_whole - core - input) + core);
}

RC_GTEST_PROP(Memory, gpipe_never_keeps_less_than_1f1b, ()) {
  Case c = drawn_case();
  c.plan.vpp = 1;
  c.plan.schedule = ScheduleKind::one_f_one_b;
  const auto alternating = memory_of(c);
  c.plan.schedule = ScheduleKind::gpipe;
  const auto all_first = memory_of(c);
  for (std::size_t s = 0; s < all_first.size(); ++s) { RC_ASSERT(all_first[s].total() >= alternating[s].total()); }
}

}  // namespace
}  // namespace orrery::parallel::memory_test
