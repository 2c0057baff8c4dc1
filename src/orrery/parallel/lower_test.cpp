// What lowering keeps: FLOPs, weights, layers, bytes of data-parallel collectives.
#include <cmath>
#include <cstdint>
#include <numeric>
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

// Matrix FLOPs of all ranks in one step.
double flops_of(const Program& program) {
  const double m = real(program.pipeline.micro_batches);
  double per_slice = 0.0;
  for (const auto& rank_class : program.classes) {
    double rank = flops_of(program, rank_class.finish_reduce) + flops_of(program, rank_class.finish);
    for (const auto& chunk : rank_class.chunks) {
      rank += flops_of(program, chunk.first_forward) + (m - 1.0) * flops_of(program, chunk.forward);
      rank += flops_of(program, chunk.last_backward) + (m - 1.0) * flops_of(program, chunk.backward);
    }
    per_slice += real(rank_class.stages) * rank;
  }
  return real(program.plan.tp * program.plan.dp) * per_slice;
}

// Scores and context of every layer and sequence, forward: 4 s^2 a d, or half of it.
double core_forward_flops(const Case& c) {
  const bool half = c.stack.attention == hardware::AttentionKernel::flash && c.stack.causal_skip;
  return (half ? 2.0 : 4.0) * real(c.model.layers * c.job.global_batch) * real(c.job.seq * c.job.seq) *
         real(c.model.query_width());
}

// What a step computes besides the forward and twice-the-forward of every product: a fused attention kernel makes the
// scores again in its backward (5 products instead of 4, half a forward more), and recompute its part of the forward.
double extra_flops(const Case& c, double model_flops) {
  const double logits = 2.0 * real(c.model.hidden * c.model.vocab) * real(c.job.global_batch * c.job.seq);
  double extra = c.stack.attention == hardware::AttentionKernel::flash ? 0.5 * core_forward_flops(c) : 0.0;
  if (c.plan.recompute == Recompute::selective) { extra += core_forward_flops(c); }
  if (c.plan.recompute == Recompute::full) { extra += model_flops / 3.0 - logits; }
  return extra;
}

RC_GTEST_PROP(Lower, all_ranks_and_micro_batches_together_compute_the_model_s_flops, ()) {
  const Case c = any_case(kDraw);
  RC_ASSERT(is_valid(c.model, c.job, c.plan, c.cluster.devices));
  const double model = workload::model_flops(c.model, c.stack, c.job.global_batch, c.job.seq).value();
  RC_ASSERT(near(flops_of(lowered(c)), model + extra_flops(c, model)));
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

// Weights that every tensor-parallel rank holds whole: norms, biases of h elements, learned positions.
double replicated_weights(const workload::Model& model) {
  const double norm = real(model.hidden) * (model.norm == workload::Normalisation::layernorm ? 2.0 : 1.0);
  double layer = 2.0 * norm;
  if (model.attention_output_bias) { layer += real(model.hidden); }
  if (model.mlp_bias) { layer += real(model.hidden); }
  double rest = model.final_norm ? norm : 0.0;
  if (model.embedding_norm) { rest += norm; }
  if (model.position == workload::Position::learned) { rest += real(model.position_rows * model.hidden); }
  return real(model.layers) * layer + rest;
}

// Weights of one replica, all stages and slices together.
double replica_weights(const Case& c) {
  double weights = real(workload::parameter_count(c.model).total) + real(c.plan.tp - 1) * replicated_weights(c.model);
  if (c.model.tied_embeddings && c.plan.pp > 1) { weights += real(c.model.vocab * c.model.hidden); }
  return weights;
}

RC_GTEST_PROP(Lower, stages_and_slices_hold_every_weight_once_but_for_norms_biases_positions_and_the_tied_table, ()) {
  const Case c = any_case(kDraw);
  double weights = 0.0;
  for (const auto& rank_class : lowered(c).classes) { weights += real(rank_class.stages) * rank_class.parameters; }
  RC_ASSERT(near(real(c.plan.tp) * weights, replica_weights(c)));
}

// zero 3 leaves one copy of the weights in the whole job, zero 2 one of the gradients, zero 1 one of the optimizer's
// state; below that each replica has its own.
RC_GTEST_PROP(Lower, what_zero_shards_exists_once_and_the_rest_dp_times, ()) {
  const Case c = any_case(kDraw);
  MemoryNeed sum;
  for (const auto& need : lowered(c).memory) {
    sum.weights += real(c.plan.tp * c.plan.dp) * need.weights;
    sum.gradients += real(c.plan.tp * c.plan.dp) * need.gradients;
    sum.optimizer += real(c.plan.tp * c.plan.dp) * need.optimizer;
  }
  const auto copies = [&](int from) { return c.plan.zero >= from ? 1.0 : real(c.plan.dp); };
  const double weights = replica_weights(c);
  RC_ASSERT(near(sum.weights.value(), copies(3) * 2.0 * weights));
  RC_ASSERT(near(sum.gradients.value(), copies(2) * weights * c.stack.gradient_element.value()));
  RC_ASSERT(near(sum.optimizer.value(), copies(1) * 12.0 * weights));
}

RC_GTEST_PROP(Lower, layers_are_shared_out_evenly_and_the_ends_come_short_first, ()) {
  const auto stages = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto chunks = *rc::gen::inRange<std::int64_t>(1, 6);
  const auto layers = *rc::gen::inRange<std::int64_t>(stages * chunks, 10 * stages * chunks);
  const auto shares = layers_per_virtual_stage(layers, stages, chunks);
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
  EXPECT_EQ(layers_per_virtual_stage(126, 16, 1), expected);
}

RC_GTEST_PROP(Lower, every_layer_is_on_one_stage_and_classes_are_runs_of_equal_stages, ()) {
  const Case c = any_case(kDraw);
  const Program program = lowered(c);
  std::int64_t layers = 0, stages = 0, embeddings = 0, heads = 0;
  for (std::size_t i = 0; i < program.classes.size(); ++i) {
    const auto& rank_class = program.classes[i];
    RC_ASSERT(rank_class.first_stage == stages);
    stages += rank_class.stages;
    for (std::int64_t s = rank_class.first_stage; s < stages; ++s) {
      RC_ASSERT(program.class_of_stage[static_cast<std::size_t>(s)] == static_cast<std::int32_t>(i));
    }
    for (const auto& chunk : rank_class.chunks) {
      layers += rank_class.stages * chunk.layers;
      embeddings += rank_class.stages * (chunk.has_embedding ? 1 : 0);
      heads += rank_class.stages * (chunk.has_head ? 1 : 0);
    }
  }
  RC_ASSERT(layers == c.model.layers);
  RC_ASSERT(stages == c.plan.pp);
  RC_ASSERT(embeddings == 1);
  RC_ASSERT(heads == 1);
}

// Bytes that a rank of every stage puts into collectives of one kind over dp in a step.
double dp_bytes(const Program& program, Collective collective) {
  double sum = 0.0;
  const auto add = [&](std::int32_t block, double count) {
    if (block < 0) { return; }
    for (const auto& item : program.blocks[static_cast<std::size_t>(block)].items) {
      const bool counts = item.is_collective && item.call.group == GroupKind::dp && item.call.collective == collective;
      if (counts) { sum += count * item.call.bytes.value(); }
    }
  };
  const auto add_segment = [&](const Segment& segment, double count) {
    for (const auto& use : segment) {
      for (const auto block : {use.gather, use.work, use.reduce}) { add(block, count * real(use.repeat)); }
    }
  };
  const double m = real(program.pipeline.micro_batches);
  for (const auto& rank_class : program.classes) {
    const double stages = real(rank_class.stages);
    for (const auto& chunk : rank_class.chunks) {
      add_segment(chunk.first_forward, stages);
      add_segment(chunk.forward, stages * (m - 1.0));
      add_segment(chunk.backward, stages * (m - 1.0));
      add_segment(chunk.last_backward, stages);
    }
    add_segment(rank_class.finish_reduce, stages);
    add_segment(rank_class.finish, stages);
  }
  return real(program.plan.tp) * sum;
}

// Rajbhandari et al., "ZeRO" (arXiv:1910.02054), section 7, with m micro-batches: gradients are reduced once a step
// until they are sharded, then in every backward; weights are gathered once a step when the optimizer is sharded, and
// in every forward and backward when they are themselves. Overlap moves collectives, it does not change them.
RC_GTEST_PROP(Lower, data_parallel_traffic_is_that_of_the_zero_stage_whether_overlapped_or_not, ()) {
  const Case c = any_case(kDraw);
  const Program program = lowered(c);
  const double m = real(program.pipeline.micro_batches);
  const double weights = c.plan.dp > 1 ? replica_weights(c) : 0.0;
  const double gradients = weights * c.stack.gradient_reduce_element.value();
  const double gathers = c.plan.zero == 0 ? 0.0 : c.plan.zero == 3 ? 2.0 * m : 1.0;
  RC_ASSERT(near(dp_bytes(program, Collective::all_reduce), c.plan.zero == 0 ? gradients : 0.0));
  RC_ASSERT(near(dp_bytes(program, Collective::reduce_scatter), c.plan.zero == 0   ? 0.0
                                                                : c.plan.zero >= 2 ? m * gradients
                                                                                   : gradients));
  RC_ASSERT(near(dp_bytes(program, Collective::all_gather), gathers * 2.0 * weights));
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
