// What lowering keeps: FLOPs, weights, layers, bytes of data-parallel collectives.
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
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {
namespace {

using network::Collective;
using test::any_case;
using test::Case;

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

Case drawn(Case c) {
  RC_LOG(test::to_text(c) + "\n");
  return c;
}

Case drawn_case() { return drawn(any_case(kDraw)); }

double real(std::int64_t n) { return static_cast<double>(n); }

bool near(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

Program lowered(const Case& c) { return lower(c.model, c.job, c.plan, c.cluster, c.stack); }

double flops_of(const Program& program, const Segment& segment) {
  double sum = 0.0;
  for (const auto& use : segment) {
    for (const auto& item : program.blocks[static_cast<std::size_t>(use.work)].items) {
      sum += real(use.repeat) * item.kernel.flops.value();
    }
  }
  return sum;
}

// Micro-batches that go through one chunk.
double micro_batches_of_chunk(const Program& program) {
  const bool both_ways = program.plan.schedule == ScheduleKind::dualpipe;
  return real(program.pipeline.micro_batches) * (both_ways ? 0.5 : 1.0);
}

// Matrix FLOPs of all ranks in one step.
double flops_of(const Program& program) {
  const double m = micro_batches_of_chunk(program);
  double per_slice = 0.0;
  for (const auto& rank_class : program.classes) {
    double rank = flops_of(program, rank_class.finish_reduce) + flops_of(program, rank_class.finish);
    for (const auto& chunk : rank_class.chunks) {
      const bool splits = !chunk.weight.empty();
      const auto& completing = splits ? chunk.weight : chunk.backward;
      rank += flops_of(program, chunk.first_forward) + (m - 1.0) * flops_of(program, chunk.forward);
      rank += flops_of(program, chunk.last_backward) + (m - 1.0) * flops_of(program, completing);
      if (splits) { rank += m * flops_of(program, chunk.backward); }
    }
    per_slice += real(rank_class.stages) * rank;
  }
  return real(program.plan.stage_ranks()) * per_slice;
}

// One part of a model on one rank that does all of it alone.
struct Alone {
  double flops = 0;              // forward, backward and what recompute adds
  double dense = 0, expert = 0;  // weights, trained and frozen
};

Alone alone(const std::vector<workload::Operator>& operators, Recompute recompute) {
  Alone sum;
  for (const auto& op : operators) {
    const double forward = op.forward.flops.value();
    sum.flops += forward + op.backward_input.flops.value() + op.backward_weight.flops.value();
    const bool again = recompute == Recompute::full || (recompute == Recompute::selective && op.attention_core);
    if (again) { sum.flops += forward; }
    (op.expert ? sum.expert : sum.dense) += op.parameters + op.frozen;
  }
  return sum;
}

// All parts of the model, for one sequence.
Alone whole_model(const Case& c, const workload::Slice& slice) {
  Alone sum;
  const auto add = [&](const std::vector<workload::Operator>& operators, Recompute recompute) {
    const Alone part = alone(operators, recompute);
    sum.flops += part.flops;
    sum.dense += part.dense;
    sum.expert += part.expert;
  };
  add(workload::embedding_operators(c.model, c.stack, slice), Recompute::none);
  for (std::int64_t i = 0; i < c.model.depth(); ++i) {
    add(workload::layer_operators(c.model, c.stack, slice, workload::layer_kind(c.model, i)), c.plan.recompute);
  }
  add(workload::head_operators(c.model, c.stack, slice), Recompute::none);
  for (std::int64_t i = 0; i < c.model.mtp_layers; ++i) {
    add(workload::mtp_operators(c.model, c.stack, slice), Recompute::none);
  }
  return sum;
}

// A slice that is everything: one rank, one sequence.
workload::Slice undivided(const Case& c) {
  Plan plan;
  return slice_of(c.job, plan);
}

// One factor of an adapter is whole on every tensor-parallel rank, and its products with it.
Case without_copied_factors(Case c) {
  if (c.plan.tp > 1 || c.plan.etp > 1) { c.job.adapter = {}; }
  return c;
}

RC_GTEST_PROP(Lower, all_ranks_and_micro_batches_together_compute_the_model, ()) {
  const Case c = without_copied_factors(drawn_case());
  RC_ASSERT(is_valid(c.model, c.job, c.plan, c.cluster.devices));
  const double expected = real(c.job.global_batch) * whole_model(c, undivided(c)).flops;
  RC_ASSERT(std::abs(flops_of(lowered(c)) - expected) <= 1e-11 * expected);
}

// Without recompute, and with a plain core, whose backward makes nothing again, that is what the model's formula says.
RC_GTEST_PROP(Lower, without_recompute_that_is_the_model_s_formula, ()) {
  Case c = without_copied_factors(drawn_case());
  c.plan.recompute = Recompute::none;
  c.stack.attention = hardware::AttentionKernel::plain;
  c.model.sliding_window = 0;  // a plain core computes what the window hides
  const double model = workload::model_flops(c.model, c.stack, c.job.global_batch, c.job.seq, c.job.adapter).value();
  RC_ASSERT(std::abs(flops_of(lowered(c)) - model) <= 1e-11 * model);
}

// 50257 rows become 51200 (a multiple of 128 x 8); each of the 943 rows that nobody asked for costs 2 h FLOPs per token
// forward and 4 h backward.
TEST(Lower, padding_of_the_vocabulary_is_computed_and_not_counted_as_the_model_s) {
  Case c;
  c.model = test::gpt(4, 1024, 16, 50257);
  c.job = {32, 512, hardware::Precision::bf16, Task::pretrain};
  c.plan.tp = 8;
  c.plan.pp = 2;
  c.plan.dp = 2;
  c.cluster = test::cluster_of({8, 4});
  c.stack.attention = hardware::AttentionKernel::plain;
  const double model = workload::model_flops(c.model, c.stack, 32, 512).value();
  EXPECT_NEAR(flops_of(lowered(c)) - model, 6.0 * 1024 * 943 * 32 * 512, 1e-9 * model);
}

// Weights of one replica of the dense part, all stages and slices together, and of all experts. The slice is the
// plan's: norms, some biases and tables are on every tensor-parallel rank.
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

// On one tensor-parallel rank, with nothing but experts shared out, that is the model's own count.
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
    const auto &whole = full.classes[i], &frozen = adapted.classes[i];
    RC_ASSERT(near(frozen.frozen, whole.parameters));
    RC_ASSERT(near(frozen.frozen_expert, whole.expert_parameters));
    RC_ASSERT(frozen.parameters < whole.parameters);
    RC_ASSERT(full.memory[i].optimizer >= adapted.memory[i].optimizer);
  }
}

// zero 3 leaves one copy of the weights in every hybrid shard group, zero 2 one of the gradients, zero 1 one of the
// optimizer's state; below that each replica has its own. Experts are sharded over all their replicas.
RC_GTEST_PROP(Lower, what_zero_shards_exists_once_per_sharded_copy_and_the_rest_on_every_replica, ()) {
  Case c = drawn_case();
  c.job.adapter.rank = 0;
  c.plan.offload = {};
  MemoryNeed sum;
  for (const auto& need : lowered(c).memory) {
    sum.weights += real(c.plan.stage_ranks()) * need.weights;
    sum.gradients += real(c.plan.stage_ranks()) * need.gradients;
    sum.optimizer += real(c.plan.stage_ranks()) * need.optimizer;
  }
  const Alone weights = held(c);
  const auto copies = [&](int from) {
    const bool shards = c.plan.zero >= from;
    return mirrored(c.plan) * (weights.dense * real(shards ? c.plan.sharded_copies() : c.plan.replicas()) +
                               weights.expert * real(shards ? 1 : c.plan.expert_replicas()));
  };
  RC_ASSERT(near(sum.weights.value(), 2.0 * copies(3)));
  RC_ASSERT(near(sum.gradients.value(), copies(2) * c.stack.gradient_element.value()));
  RC_ASSERT(near(sum.optimizer.value(), 12.0 * copies(1)));
}

RC_GTEST_PROP(Lower, layers_are_shared_out_evenly_and_the_ends_come_short_first, ()) {
  const auto stages = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto chunks = *rc::gen::inRange<std::int64_t>(1, 6);
  const auto layers = *rc::gen::inRange<std::int64_t>(stages * chunks, 10 * stages * chunks);
  Plan plan;
  plan.pp = stages;
  plan.vpp = chunks;
  const auto shares = layers_per_virtual_stage(test::gpt(layers, 256, 4, 1024), plan);
  RC_ASSERT(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == layers);
  for (const auto share : shares) { RC_ASSERT(share == layers / (stages * chunks) || share == 1 + shares.back()); }
  RC_ASSERT(shares.back() == layers / (stages * chunks));
  for (std::size_t q = 2; q + 1 < shares.size(); ++q) { RC_ASSERT(shares[q] >= shares[q - 1]); }
}

// Llama Team, "The Llama 3 Herd of Models" (arXiv:2407.21783), section 3.3.2: 126 layers over 16 stages, one layer
// fewer on the first and the last. 126 = 16 x 7 + 14.
TEST(Lower, llama_3_1_405b_over_16_stages_has_7_layers_on_the_first_and_the_last_and_8_between) {
  std::vector<std::int64_t> expected(16, 8);
  expected.front() = expected.back() = 7;
  Plan plan;
  plan.pp = 16;
  EXPECT_EQ(layers_per_virtual_stage(test::gpt(126, 256, 4, 1024), plan), expected);
  plan.embedding_as_layer = plan.head_as_layer = true;  // 128 = 16 x 8, one of them the embedding, one the head
  EXPECT_EQ(layers_per_virtual_stage(test::gpt(126, 256, 4, 1024), plan), expected);
}

// DeepSeek-V3's 61 layers over 16 stages: with 3 on the first and 2 on the last, 56 = 14 x 4 are left.
TEST(Lower, the_ends_take_what_they_are_told_and_the_others_share_the_rest) {
  std::vector<std::int64_t> expected(16, 4);
  expected.front() = 3;
  expected.back() = 2;
  Plan plan;
  plan.pp = 16;
  plan.first_stage_layers = 3;
  plan.last_stage_layers = 2;
  const auto model = test::gpt(61, 256, 4, 1024);
  EXPECT_EQ(layers_per_virtual_stage(model, plan), expected);
  plan.schedule = ScheduleKind::dualpipe;
  EXPECT_EQ(layers_per_virtual_stage(model, plan), expected);
  EXPECT_EQ(chunks_of(plan), 2);
  EXPECT_EQ(virtual_stage(plan, 3, 0), 3);
  EXPECT_EQ(virtual_stage(plan, 3, 1), 12);
}

RC_GTEST_PROP(Lower, every_layer_has_a_virtual_stage_however_they_are_shared_out, ()) {
  const Case c = drawn_case();
  const auto shares = layers_per_virtual_stage(c.model, c.plan);
  RC_ASSERT(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == c.model.depth());
  for (const auto share : shares) { RC_ASSERT(share >= 0); }
  const auto stages = c.plan.pp, chunks = c.plan.vpp;
  std::int64_t first = 0, last = 0;
  for (std::int64_t k = 0; k < chunks; ++k) {
    first += shares[static_cast<std::size_t>(k * stages)];
    last += shares[static_cast<std::size_t>(k * stages + stages - 1)];
  }
  if (c.plan.first_stage_layers > 0) { RC_ASSERT(first == c.plan.first_stage_layers); }
  if (c.plan.last_stage_layers > 0) { RC_ASSERT(last == c.plan.last_stage_layers); }
}

// What a chunk's pass runs, block by block, repeats written out; collectives of plans without overlap left out.
std::vector<std::int32_t> works_of(const Program& program, const Segment& segment) {
  std::vector<std::int32_t> list;
  for (const auto& use : segment) {
    const auto& items = program.blocks[static_cast<std::size_t>(use.work)].items;
    if (!items.empty() && items.front().purpose == Purpose::optimizer) { continue; }
    list.insert(list.end(), static_cast<std::size_t>(use.repeat), use.work);
  }
  return list;
}

// Which block stands for which part of the model; each for one only.
class Blocks {
 public:
  bool stands_for(std::int32_t block, const std::string& part) {
    const auto [known, is_new] = parts_.try_emplace(block, part);
    const auto [back, is_new_back] = blocks_.try_emplace(part, block);
    return known->second == part && back->second == block;
  }

 private:
  std::map<std::int32_t, std::string> parts_;
  std::map<std::string, std::int32_t> blocks_;
};

std::string text_of(const workload::LayerKind& kind) {
  return std::to_string(kind.experts) + std::to_string(kind.encoder) + std::to_string(kind.cross) + " " +
         std::to_string(kind.window);
}

// Parts of a virtual stage in the order of the forward pass, layer by layer, without classes or runs.
std::vector<std::string> parts_of(const Case& c, std::int64_t q) {
  const auto shares = layers_per_virtual_stage(c.model, c.plan);
  std::vector<std::string> list;
  if (q == 0) { list.emplace_back("embedding"); }
  const auto before = std::accumulate(shares.begin(), shares.begin() + q, std::int64_t{0});
  for (std::int64_t i = 0; i < shares[static_cast<std::size_t>(q)]; ++i) {
    list.push_back(text_of(workload::layer_kind(c.model, before + i)));
  }
  if (q + 1 == static_cast<std::int64_t>(shares.size())) {
    list.emplace_back("head");
    list.insert(list.end(), static_cast<std::size_t>(c.model.mtp_layers), "further");
  }
  return list;
}

// Every stage written out against what its class says. Each chunk's forward pass is its parts; its backward the same in
// reverse, and so is its weight pass, where there is one.
RC_GTEST_PROP(Lower, a_class_says_of_every_stage_what_that_stage_runs, ()) {
  const Case c = drawn_case();
  const Program program = lowered(c);
  RC_ASSERT(static_cast<std::int64_t>(program.class_of_stage.size()) == c.plan.pp);
  Blocks forward, backward, weight;
  std::vector<std::int64_t> members(program.classes.size(), 0);
  for (std::int64_t stage = 0; stage < c.plan.pp; ++stage) {
    const auto index = static_cast<std::size_t>(program.class_of_stage[static_cast<std::size_t>(stage)]);
    const RankClass& rank_class = program.classes[index];
    if (members[index]++ == 0) { RC_ASSERT(rank_class.first_stage == stage); }
    RC_ASSERT(static_cast<std::int64_t>(rank_class.chunks.size()) == chunks_of(c.plan));
    for (std::int64_t k = 0; k < chunks_of(c.plan); ++k) {
      const ChunkProgram& chunk = rank_class.chunks[static_cast<std::size_t>(k)];
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
  for (std::size_t i = 0; i < members.size(); ++i) { RC_ASSERT(members[i] == program.classes[i].stages); }
}

// Bytes that a rank of every stage puts into calls of one kind in a step.
double bytes_of(const Program& program, GroupKind group, Collective collective) {
  double sum = 0.0;
  const auto add = [&](std::int32_t block, double count) {
    if (block < 0) { return; }
    for (const auto& item : program.blocks[static_cast<std::size_t>(block)].items) {
      const bool counts = item.is_collective && item.call.group == group && item.call.collective == collective;
      if (counts) { sum += count * item.call.bytes.value(); }
    }
  };
  const auto add_segment = [&](const Segment& segment, double count) {
    for (const auto& use : segment) {
      for (const auto block : {use.gather, use.work, use.reduce}) { add(block, count * real(use.repeat)); }
    }
  };
  const double m = micro_batches_of_chunk(program);
  for (const auto& rank_class : program.classes) {
    const double stages = real(rank_class.stages);
    for (const auto& chunk : rank_class.chunks) {
      const bool splits = !chunk.weight.empty();
      add_segment(chunk.first_forward, stages);
      add_segment(chunk.forward, stages * (m - 1.0));
      add_segment(splits ? chunk.weight : chunk.backward, stages * (m - 1.0));
      add_segment(chunk.last_backward, stages);
      if (splits) { add_segment(chunk.backward, stages * m); }
    }
    add_segment(rank_class.finish_reduce, stages);
    add_segment(rank_class.finish, stages);
  }
  return sum;
}

// Trained and all weights of all stages, one rank of each, before sharding.
struct PerRank {
  double dense = 0, expert = 0, all_dense = 0, all_expert = 0;
};

PerRank per_rank(const Program& program) {
  PerRank sum;
  for (const auto& rank_class : program.classes) {
    const double stages = real(rank_class.stages);
    sum.dense += stages * rank_class.parameters;
    sum.expert += stages * rank_class.expert_parameters;
    sum.all_dense += stages * (rank_class.parameters + rank_class.frozen);
    sum.all_expert += stages * (rank_class.expert_parameters + rank_class.frozen_expert);
  }
  return sum;
}

// Rajbhandari et al., "ZeRO" (arXiv:1910.02054), section 7, with m micro-batches: gradients are reduced once a step
// until they are sharded, then in every backward; weights are gathered once a step when the optimizer is sharded, and
// in every forward and backward when they are themselves; frozen ones as well then. Overlap and buckets move
// collectives, they do not change them. Hybrid: each copy reduces within itself, then its shards over the copies.
RC_GTEST_PROP(Lower, data_parallel_traffic_is_that_of_the_zero_stage_whether_overlapped_or_not, ()) {
  const Case c = drawn_case();
  const Program program = lowered(c);
  const Plan& plan = c.plan;
  const PerRank weights = per_rank(program);
  const double m = micro_batches_of_chunk(program), g = c.stack.gradient_reduce_element.value();
  const double reductions = plan.zero >= 2 ? m : 1.0;
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

// DualPipe's two holders of a layer add up what their replicas have reduced, each its own shard, once a step.
RC_GTEST_PROP(Lower, mirrored_stages_sum_the_gradients_they_own, ()) {
  const Case c = drawn_case();
  const Program program = lowered(c);
  const PerRank weights = per_rank(program);
  const double dense = c.plan.zero > 0 ? real(c.plan.shards()) : 1.0;
  const double expert = c.plan.zero > 0 ? real(c.plan.expert_replicas()) : 1.0;
  const double owned =
      c.plan.schedule == ScheduleKind::dualpipe ? weights.dense / dense + weights.expert / expert : 0.0;
  RC_ASSERT(near(bytes_of(program, GroupKind::mirror, Collective::all_reduce),
                 owned * c.stack.gradient_reduce_element.value()));
}

// Per step and rank: stored weights come in for every forward and every backward and go out once, those that are
// trained; activations go out and come in for every micro-batch; the optimizer's state once.
RC_GTEST_PROP(Lower, what_lives_in_the_second_tier_is_fetched_whenever_it_is_needed, ()) {
  Case c = drawn_case();
  c.job.adapter.rank = 0;
  const Program program = lowered(c);
  const double m = micro_batches_of_chunk(program);
  const PerRank weights = per_rank(program);
  const auto owned = [&](int zero) {
    if (c.plan.zero < zero) { return weights.dense + weights.expert; }
    return weights.dense / real(c.plan.shards()) + weights.expert / real(c.plan.expert_replicas());
  };
  double expected = 0.0;
  if (c.plan.offload.weights) { expected += (2.0 * m + 1.0) * 2.0 * owned(3); }
  if (c.plan.offload.optimizer) { expected += 12.0 * owned(1); }
  const double before = bytes_of(program, GroupKind::host, Collective::broadcast);
  if (!c.plan.offload.activations) {
    RC_ASSERT(near(before, expected));
    return;
  }
  // A chunk's activations in flight are known from memory where one micro-batch is alive at a time.
  c.plan.offload.activations = false;
  const double without = bytes_of(lowered(c), GroupKind::host, Collective::broadcast);
  RC_ASSERT(near(without, expected));
  RC_ASSERT(before > without);
}

// Reductions wait until a bucket is full; the last one takes what there is.
TEST(Lower, reductions_of_layers_are_joined_until_their_bucket_is_full) {
  Case c;
  c.model = test::llama(10, 512, 8, 8, 2048, 1024);
  c.job = {8, 128, hardware::Precision::bf16, Task::pretrain};
  c.plan.dp = 4;
  c.plan.zero = 1;
  c.cluster = test::cluster_of({4});
  const double layer = real(workload::layer_parameters(c.model, {}));
  const double table = 1024.0 * 512, head = table + 512;
  c.stack.bucket_parameters = head + 3.5 * layer;  // head and 4 layers fill one, 4 layers the next; head = layer / 8
  const Program program = lowered(c);
  std::vector<double> reduced;
  std::int64_t executions = 0;
  for (const auto& use : program.classes.front().chunks.front().last_backward) {
    executions += use.repeat;
    if (use.reduce < 0) { continue; }
    EXPECT_EQ(use.repeat, 1);
    reduced.push_back(program.blocks[static_cast<std::size_t>(use.reduce)].items.front().call.bytes.value() / 4.0);
  }
  EXPECT_EQ(executions, 12);
  EXPECT_EQ(reduced, (std::vector<double>{head + 4 * layer, 4 * layer, 2 * layer + table}));
}

// Mixtral 8x7B over 8 ranks, two to an expert group of 4: a rank holds 2 of 8 experts of every layer, three products of
// 4096 x 14336 each, and its dense half: qkv 4096 x 6144, output 4096 x 4096, router 4096 x 8, two norms of 4096.
TEST(Lower, mixtral_8x7b_by_hand) {
  Case c;
  c.model = test::llama(32, 4096, 32, 8, 14336, 32000);
  c.model.experts = {8, 2, 14336, 0, false, 0, 1, 0.0};
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
  // Optimizer state: dense weights over 8 ranks, experts over the 2 that hold the same ones.
  EXPECT_EQ(program.memory.front().optimizer, Bytes(12.0 * (only.parameters / 8 + only.expert_parameters / 2)));
  const auto& reduce = program.blocks[static_cast<std::size_t>(only.chunks.front().last_backward[1].reduce)].items;
  ASSERT_EQ(reduce.size(), 2U);
  EXPECT_EQ(reduce[0].call.group, GroupKind::dp);
  EXPECT_EQ(reduce[0].call.bytes, Bytes(4.0 * kDense));
  EXPECT_EQ(reduce[1].call.group, GroupKind::expert_dp);
  EXPECT_EQ(reduce[1].call.bytes, Bytes(4.0 * kExperts));
}

RC_GTEST_PROP(Lower, a_batch_of_requests_goes_forward_only_and_computes_what_the_model_does, ()) {
  Case c = drawn(test::any_inference_case(kDraw));
  RC_ASSERT(is_valid(c.model, c.job, c.plan, c.cluster.devices));
  c.model.mtp_layers = 0;  // of no use here, and left out
  const Program program = lowered(c);
  const double m = micro_batches_of_chunk(program), ranks = real(c.plan.stage_ranks());
  double prefill = 0.0, decode = 0.0;
  for (const auto& rank_class : program.classes) {
    RC_ASSERT(rank_class.finish.empty());
    RC_ASSERT(rank_class.finish_reduce.empty());
    RC_ASSERT(rank_class.chunks.size() == 1U);
    const auto& chunk = rank_class.chunks.front();
    RC_ASSERT(chunk.backward.empty() && chunk.last_backward.empty() && chunk.weight.empty());
    prefill += m * ranks * real(rank_class.stages) * flops_of(program, chunk.forward);
    decode += m * ranks * real(rank_class.stages) * flops_of(program, chunk.decode);
  }
  const Plan one;
  const auto expected = [&](workload::Pass pass) {
    return real(c.job.global_batch) * whole_model(c, slice_of(c.job, one, pass)).flops;
  };
  RC_ASSERT(std::abs(prefill - expected(workload::Pass::prefill)) <= 1e-11 * prefill);
  if (c.job.generate == 1 || c.model.encoder_layers > 0) { return; }
  RC_ASSERT(std::abs(decode - expected(workload::Pass::decode)) <= 1e-11 * decode);
}

// A decoder behind an encoder goes on alone: the encoder's layers see the prompt once.
TEST(Lower, only_the_decoder_generates) {
  Case c;
  c.model = test::gpt(4, 256, 4, 1024);
  c.model.encoder_layers = 4;
  c.job = {4, 128, hardware::Precision::bf16, Task::inference, {}, 96, 32};
  c.plan.dp = 2;
  c.cluster = test::cluster_of({2});
  const Program program = lowered(c);
  const auto& chunk = program.classes.front().chunks.front();
  EXPECT_EQ(works_of(program, chunk.forward).size(), 10U);
  EXPECT_EQ(works_of(program, chunk.decode).size(), 6U);
}

TEST(Lower, a_plan_that_is_not_valid_breaks_the_contract) {
  Case c;
  c.model = test::gpt(4, 256, 4, 1024);
  c.job = {4, 128, hardware::Precision::bf16, Task::pretrain};
  c.cluster = test::cluster_of({2});
  EXPECT_THROW((void)lowered(c), InternalError);  // one device of two
}

}  // namespace
}  // namespace orrery::parallel
