// Invariants of lowering: FLOPs, weights, and the parts of each stage.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_totals.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel::lower_test {
namespace {

using test::Alone;
using test::any_case;
using test::Case;
using test::flops_of;
using test::whole_model;
using test::works_of;

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

Case drawn(Case c) {
  RC_LOG(test::to_text(c) + "\n");
  return c;
}

Case drawn_case() { return drawn(any_case(kDraw)); }

bool near(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

Program lowered(const Case& c) { return lower(c.model, c.job, c.plan, c.cluster, c.stack); }

// One factor of an adapter is whole on every tensor-parallel rank, so its GEMMs are repeated.
Case without_copied_factors(Case c) {
  if (c.plan.tp > 1 || c.plan.etp > 1) { c.job.adapter = {}; }
  return c;
}

RC_GTEST_PROP(Lower, all_ranks_and_micro_batches_together_compute_the_model, ()) {
  const Case c = without_copied_factors(drawn_case());
  RC_ASSERT(is_valid(c.model, c.job, c.plan, c.cluster.devices));
  const double expected = real(c.job.global_batch) * whole_model(c, test::undivided(c)).flops;
  RC_ASSERT(std::abs(flops_of(lowered(c)) - expected) <= 1e-11 * expected);
}

// Without recompute, and with a plain core, whose backward repeats nothing, this equals the model's formula.
RC_GTEST_PROP(Lower, without_recompute_that_is_the_model_s_formula, ()) {
  Case c = without_copied_factors(drawn_case());
  c.plan.recompute = Recompute::none;
  c.plan.recompute_layers = 0;
  c.stack.attention.kernel = hardware::AttentionKernel::plain;
  c.model.sliding_window = 0;  // a plain core computes what the window masks
  const double model = workload::model_flops(c.model, c.stack, c.job.global_batch, c.job.seq, c.job.adapter).value();
  RC_ASSERT(std::abs(flops_of(lowered(c)) - model) <= 1e-11 * model);
}

// A model with fewer heads, padded, is computed as the padded model: FLOPs, weights and memory.
RC_GTEST_PROP(Lower, padded_heads_are_computed_as_heads_of_the_model, ()) {
  Case c = drawn_case();
  c.model.kv_heads = c.model.heads;
  Case fewer = c;
  fewer.job.pads_heads = true;
  fewer.model.heads = fewer.model.kv_heads = c.model.heads - kDraw(0, c.plan.tp);
  RC_PRE(is_valid(c.model, c.job, c.plan, c.cluster.devices));
  RC_ASSERT(is_valid(fewer.model, fewer.job, fewer.plan, fewer.cluster.devices));
  const Program whole = lowered(c), padded = lowered(fewer);
  RC_ASSERT(flops_of(padded) == flops_of(whole));
  RC_ASSERT(padded.memory.size() == whole.memory.size());
  for (std::size_t stage = 0; stage < whole.memory.size(); ++stage) {
    RC_ASSERT(padded.memory[stage].total() == whole.memory[stage].total());
  }
  for (std::size_t i = 0; i < whole.classes.size(); ++i) {
    RC_ASSERT(padded.classes[RankClassId(i)].parameters == whole.classes[RankClassId(i)].parameters);
  }
}

// 50257 rows become 51200 (a multiple of 128 x 8); each of the 943 padding rows costs 2 h FLOPs per token forward and 4
// h backward.
TEST(Lower, padding_of_the_vocabulary_is_computed_and_not_counted_as_the_model_s) {
  Case c;
  c.model = test::gpt(4, 1024, 16, 50257);
  c.job = {32, 512, hardware::Precision::bf16, Task::pretrain};
  c.plan.tp = 8;
  c.plan.pp = 2;
  c.plan.dp = 2;
  c.cluster = test::cluster_of({8, 4});
  c.stack.attention.kernel = hardware::AttentionKernel::plain;
  const double model = workload::model_flops(c.model, c.stack, 32, 512).value();
  EXPECT_NEAR(flops_of(lowered(c)) - model, 6.0 * 1024 * 943 * 32 * 512, 1e-9 * model);
}

// Weights of one replica of the dense part, all stages and slices, and of all experts. The slice is the plan's: norms,
// some biases and tables are on every tensor-parallel rank.
Alone held(const Case& c) {
  Alone sum = whole_model(c, slice_of(c.job, c.plan));
  const bool copies =
      (c.model.tied_embeddings || c.model.mtp_layers > 0) && c.plan.pp > 1 && c.plan.schedule != ScheduleKind::dualpipe;
  if (copies) { sum.dense += workload::table_parameters(c.model, c.plan.tp); }
  sum.dense *= real(c.plan.tp);
  sum.expert *= real(c.plan.ep * c.plan.etp);
  return sum;
}

// Under DualPipe every layer is on two stages.
double mirrored(const Plan& plan) { return plan.schedule == ScheduleKind::dualpipe ? 2.0 : 1.0; }

RC_GTEST_PROP(Lower, stages_and_slices_hold_every_weight_once_and_replicas_hold_it_again, ()) {
  const Case c = drawn_case();
  const Program program = lowered(c);
  double dense = 0.0, expert = 0.0;
  for (const auto& rank_class : program.classes) {
    const double ranks = real(rank_class.stages * c.plan.stage_ranks());
    dense += ranks * (rank_class.parameters + rank_class.frozen);
    expert += ranks * (rank_class.expert_parameters + rank_class.frozen_expert);
  }
  const Alone expected = held(c);
  RC_ASSERT(near(dense, mirrored(c.plan) * real(c.plan.replicas()) * expected.dense));
  RC_ASSERT(near(expert, mirrored(c.plan) * real(c.plan.expert_replicas()) * expected.expert));
}

// On one tensor-parallel rank, with only experts distributed, this equals the model's own count.
RC_GTEST_PROP(Lower, the_weights_held_are_those_of_the_parameter_count, ()) {
  Case c = drawn_case();
  RC_PRE(c.plan.tp == 1 && c.plan.etp == 1 && c.job.adapter.rank == 0);
  const Alone weights = held(c);
  const double table = real(c.model.vocab * c.model.hidden);
  const bool copies =
      (c.model.tied_embeddings || c.model.mtp_layers > 0) && c.plan.pp > 1 && c.plan.schedule != ScheduleKind::dualpipe;
  const double expected = real(workload::parameter_count(c.model).total) + (copies ? table : 0.0);
  RC_ASSERT(near(weights.dense + weights.expert, expected));
}

// Adapters add weights to the model, and only they are trained.
RC_GTEST_PROP(Lower, under_an_adapter_the_model_s_own_weights_are_frozen, ()) {
  Case c = drawn_case();
  c.job.adapter.rank = 0;
  const Program full = lowered(c);
  c.job.adapter.rank = 8;
  const Program adapted = lowered(c);
  for (std::size_t i = 0; i < full.classes.size(); ++i) {
    const auto &whole = full.classes[RankClassId(i)], &frozen = adapted.classes[RankClassId(i)];
    RC_ASSERT(near(frozen.frozen, whole.parameters));
    RC_ASSERT(near(frozen.frozen_expert, whole.expert_parameters));
    RC_ASSERT(frozen.parameters < whole.parameters);
    RC_ASSERT(full.memory[i].optimizer >= adapted.memory[i].optimizer);
  }
}

// zero 3 leaves one copy of the weights in every hybrid shard group, zero 2 one of the gradients, zero 1 one of the
// optimizer state; below that every replica has its own. Experts are sharded over all their replicas.
RC_GTEST_PROP(Lower, what_zero_shards_exists_once_per_sharded_copy_and_the_rest_on_every_replica, ()) {
  Case c = drawn_case();
  c.job.adapter.rank = 0;
  c.plan.offload = {};
  c.plan.optimizer_device = OptimizerDevice::device;
  MemoryNeed sum;
  for (const auto& need : lowered(c).memory) {
    sum.weights += real(c.plan.stage_ranks()) * need.weights;
    sum.gradients += real(c.plan.stage_ranks()) * need.gradients;
    sum.optimizer += real(c.plan.stage_ranks()) * need.optimizer;
  }
  const Alone weights = held(c);
  const auto copies = [&](bool shards) {
    return mirrored(c.plan) * (weights.dense * real(shards ? c.plan.sharded_copies() : c.plan.replicas()) +
                               weights.expert * real(shards ? 1 : c.plan.expert_replicas()));
  };
  // Of weights whose shards are their master copy: one fp32 copy instead of a bf16 and an fp32 one.
  const bool in_fp32 = c.stack.optimizer.shards_are_master && c.plan.zero == 3 && c.plan.shards() > 1;
  const double masters =
      in_fp32 ? mirrored(c.plan) * (weights.dense * real(c.plan.sharded_copies()) + weights.expert) : 0.0;
  RC_ASSERT(near(sum.weights.value(), 2.0 * copies(c.plan.zero >= 3) + 2.0 * masters));
  RC_ASSERT(near(sum.gradients.value(),
                 copies(reduces_every_micro_batch(c.plan, c.stack)) * c.stack.gradients.element.value()));
  RC_ASSERT(near(sum.optimizer.value(), 12.0 * copies(c.plan.zero >= 1) - 4.0 * masters));
}

// Which block belongs to which part of the model; each to one only.
class Blocks {
 public:
  bool stands_for(BlockId block, const std::string& part) {
    const auto [known, is_new] = parts_.try_emplace(block, part);
    const auto [back, is_new_back] = blocks_.try_emplace(part, block);
    return known->second == part && back->second == block;
  }

 private:
  std::map<BlockId, std::string> parts_;
  std::map<std::string, BlockId> blocks_;
};

std::string text_of(const workload::LayerKind& kind) {
  return std::to_string(kind.experts) + std::to_string(kind.encoder) + std::to_string(kind.cross) + " " +
         std::to_string(kind.window) + " " + std::to_string(static_cast<int>(kind.mixer)) + std::to_string(kind.mlp);
}

// Parts of a virtual stage in forward order, layer by layer, without classes and runs.
std::vector<std::string> parts_of(const Case& c, std::int64_t q) {
  const auto shares = layers_per_virtual_stage(c.model, c.plan);
  std::vector<std::string> list;
  if (q == 0) {
    if (c.model.tower.images > 0) {
      list.emplace_back("patches");
      for (std::int64_t i = 0; i < c.model.tower.layers; ++i) {
        list.emplace_back(c.model.tower.attends_in_windows(i) ? "tower layer in windows" : "tower layer");
      }
      list.emplace_back("projector");
    }
    list.emplace_back("embedding");
  }
  const auto before = std::accumulate(shares.begin(), shares.begin() + q, std::int64_t{0});
  for (std::int64_t i = 0; i < shares[static_cast<std::size_t>(q)]; ++i) {
    const bool again = c.plan.recompute != Recompute::none && test::is_recomputed(c, before + i);
    list.push_back(text_of(workload::layer_kind(c.model, before + i)) + (again ? " recomputed" : ""));
  }
  if (q + 1 == static_cast<std::int64_t>(shares.size())) {
    list.emplace_back("head");
    list.insert(list.end(), static_cast<std::size_t>(c.model.mtp_layers), "further");
  }
  return list;
}

// Every stage unrolled, compared with its class. Each chunk's forward pass is its parts; its backward pass the same in
// reverse, and so is its weight pass, if any.
RC_GTEST_PROP(Lower, a_class_says_of_every_stage_what_that_stage_runs, ()) {
  const Case c = drawn_case();
  const Program program = lowered(c);
  RC_ASSERT(static_cast<std::int64_t>(program.class_of_stage.size()) == c.plan.pp);
  Blocks forward, backward, weight;
  std::vector<std::int64_t> members(program.classes.size(), 0);
  for (std::int64_t stage = 0; stage < c.plan.pp; ++stage) {
    const RankClassId id = program.class_of_stage[static_cast<std::size_t>(stage)];
    const RankClass& rank_class = program.classes[id];
    if (members[id.index()]++ == 0) { RC_ASSERT(rank_class.first_stage == stage); }
    RC_ASSERT(static_cast<std::int64_t>(rank_class.chunks.size()) == chunks_of(c.plan));
    for (std::int64_t k = 0; k < chunks_of(c.plan); ++k) {
      const ChunkProgram& chunk = program.program_of(rank_class.chunks[static_cast<std::size_t>(k)]);
      auto parts = parts_of(c, virtual_stage(c.plan, stage, k));
      const auto expect = [&](const Segment& segment, Blocks& blocks) {
        const auto works = works_of(program, segment);
        RC_ASSERT(works.size() == parts.size());
        for (std::size_t i = 0; i < works.size(); ++i) { RC_ASSERT(blocks.stands_for(works[i], parts[i])); }
      };
      expect(chunk.forward, forward);
      expect(chunk.first_forward, forward);
      std::reverse(parts.begin(), parts.end());
      expect(chunk.backward, backward);
      const bool splits = splits_backward(c.plan.schedule);
      RC_ASSERT(splits != chunk.weight.empty());
      if (splits) { expect(chunk.weight, weight); }
      expect(chunk.last_backward, splits ? weight : backward);
    }
  }
  for (std::size_t i = 0; i < members.size(); ++i) { RC_ASSERT(members[i] == program.classes[RankClassId(i)].stages); }
}

// Mixtral 8x7B over 8 ranks, two replicas of ep 4: a rank holds 2 of 8 experts of every layer, three matrices of 4096 x
// 14336 each, and its dense half: qkv 4096 x 6144, output 4096 x 4096, router 4096 x 8, two norms of 4096.
TEST(Lower, mixtral_8x7b_by_hand) {
  Case c;
  c.model = test::llama(32, 4096, 32, 8, 14336, 32000);
  c.model.experts = {.count = 8, .active = 2, .ffn = 14336};
  c.job = {64, 4096, hardware::Precision::bf16, Task::pretrain};
  c.plan.dp = 8;
  c.plan.ep = 4;
  c.plan.zero = 1;
  c.cluster = test::cluster_of({8});
  const Program program = lowered(c);
  const auto& only = program.classes.front();
  constexpr double kExperts = 2.0 * 3 * 4096 * 14336;
  constexpr double kDense = 4096.0 * 6144 + 4096.0 * 4096 + 4096.0 * 8 + 2 * 4096.0;
  EXPECT_EQ(only.expert_parameters, 32 * kExperts);
  EXPECT_EQ(only.parameters, 32 * kDense + 2 * 32000.0 * 4096 + 4096);
  // Optimizer state: dense weights over 8 ranks, experts over the 2 ranks with the same ones.
  EXPECT_EQ(program.memory.front().optimizer, Bytes(12.0 * (only.parameters / 8 + only.expert_parameters / 2)));
  const auto& reduce = program.block(*program.program_of(only.chunks.front()).last_backward[1].reduce).items;
  ASSERT_EQ(reduce.size(), 2U);
  EXPECT_EQ(test::call_of(reduce[0]).group, GroupKind::dp);
  EXPECT_EQ(test::call_of(reduce[0]).bytes, Bytes(4.0 * kDense));
  EXPECT_EQ(test::call_of(reduce[1]).group, GroupKind::expert_dp);
  EXPECT_EQ(test::call_of(reduce[1]).bytes, Bytes(4.0 * kExperts));
}

// 2 of 8 experts on a rank, with 2,048 rows each: two kernels instead of one for each of the three passes of their
// GEMMs and for each pass of their activation, the same FLOPs and bytes, and never less time.
TEST(Lower, experts_without_grouped_gemms_run_one_after_another) {
  Case c;
  c.model = test::llama(2, 1024, 16, 8, 2048, 4096);
  c.model.experts = {.count = 8, .active = 2, .ffn = 2048};
  c.job = {16, 4096, hardware::Precision::bf16, Task::pretrain};
  c.plan.dp = c.plan.ep = 4;
  c.cluster = test::cluster_of({4});
  const Program together = lowered(c);
  c.stack.fusion.grouped_experts = false;
  const Program apart = lowered(c);
  ASSERT_EQ(together.blocks.size(), apart.blocks.size());
  int kernels = 0;
  for (std::size_t b = 0; b < apart.blocks.size(); ++b) {
    const auto &one = together.block(BlockId(b)).items, &other = apart.block(BlockId(b)).items;
    ASSERT_EQ(one.size(), other.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (one[i].kernel() == nullptr) { continue; }
      const hardware::Kernel &first = one[i].kernel()->kernel, &second = other[i].kernel()->kernel;
      EXPECT_EQ(first.flops, second.flops) << one[i].name;
      EXPECT_EQ(first.bytes, second.bytes) << one[i].name;
      if (first == second) { continue; }
      EXPECT_EQ(second.launches, 2 * first.launches) << one[i].name;
      EXPECT_GT(cost::kernel_cost(second, c.cluster.accelerator).time,
                cost::kernel_cost(first, c.cluster.accelerator).time)
          << one[i].name;
      ++kernels;
    }
  }
  EXPECT_EQ(kernels, 3 * 2 + 2);
}

// 2 sequences of 128 tokens of 256 numbers in bf16: 128 KiB, sent by every rank; or a quarter from each of four ranks,
// which then gather. With sequence parallelism a rank only needs its quarter.
TEST(Lower, a_stack_that_scatters_sends_each_rank_s_part_of_what_all_have) {
  Case c;
  c.model = test::gpt(4, 256, 4, 1024);
  c.job = {4, 128, hardware::Precision::bf16, Task::pretrain};
  c.plan.pp = 2;
  c.plan.micro_batch = 2;
  const auto program = [&](std::int64_t tp, bool scatters, bool sequence_parallel) {
    c.plan.tp = tp;
    c.plan.sequence_parallel = sequence_parallel;
    c.cluster = test::cluster_of({2 * tp});
    c.stack.transfers.stages = scatters ? hardware::StageTransfer::scattered : hardware::StageTransfer::whole;
    return lowered(c);
  };
  const Bytes whole(2.0 * 128 * 256 * 2);
  EXPECT_EQ(program(4, false, false).transfer_bytes, whole);
  EXPECT_EQ(program(4, true, false).transfer_bytes, whole / 4.0);
  EXPECT_TRUE(program(4, true, false).gathers_transfers);
  EXPECT_EQ(program(4, true, true).transfer_bytes, whole / 4.0);
  EXPECT_FALSE(program(4, true, true).gathers_transfers);
  EXPECT_EQ(program(1, true, false).transfer_bytes, whole);
  EXPECT_FALSE(program(1, true, false).gathers_transfers);
}

TEST(Lower, a_plan_that_is_not_valid_breaks_the_contract) {
  Case c;
  c.model = test::gpt(4, 256, 4, 1024);
  c.job = {4, 128, hardware::Precision::bf16, Task::pretrain};
  c.cluster = test::cluster_of({2});
  EXPECT_THROW((void)lowered(c), InternalError);  // one device of two
}

}  // namespace
}  // namespace orrery::parallel::lower_test
