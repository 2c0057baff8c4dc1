// Batches of requests: forward passes of a prompt, then token by token.
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_totals.hpp"

namespace orrery::parallel::lower_inference_test {
namespace {

using test::Case;
using test::flops_of;

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

Case drawn_case() {
  const Case c = test::any_inference_case(kDraw);
  RC_LOG(test::to_text(c) + "\n");
  return c;
}

Program lowered(const Case& c) { return lower(c.model, c.job, c.plan, c.cluster, c.stack); }

RC_GTEST_PROP(LowerInference, a_batch_of_requests_goes_forward_only_and_computes_what_the_model_does, ()) {
  Case c = drawn_case();
  RC_ASSERT(is_valid(c.model, c.job, c.plan, c.cluster.devices));
  c.model.mtp_layers = 0;  // unused in inference, and not stored
  const Program program = lowered(c);
  const double m = test::micro_batches_of_chunk(program), ranks = real(c.plan.stage_ranks());
  const double passes = real(decode_passes(c.job, c.plan));
  double prefill = 0.0, decode = 0.0;
  for (const auto& rank_class : program.classes) {
    RC_ASSERT(rank_class.finish.empty());
    RC_ASSERT(rank_class.finish_reduce.empty());
    RC_ASSERT(rank_class.chunks.size() == 1U);
    const auto& chunk = program.program_of(rank_class.chunks.front());
    RC_ASSERT(chunk.backward.empty() && chunk.last_backward.empty() && chunk.weight.empty());
    prefill += m * ranks * real(rank_class.stages) * flops_of(program, chunk.forward);
    decode += passes * ranks * real(rank_class.stages) * flops_of(program, chunk.decode);
  }
  const Plan one;
  const auto expected = [&](workload::Pass pass) {
    workload::Slice slice = slice_of(c.job, one, pass);
    slice.micro_batch = 1;
    return real(c.job.global_batch) * test::whole_model(c, slice).flops;
  };
  RC_ASSERT(std::abs(prefill - expected(workload::Pass::prefill)) <= 1e-11 * prefill);
  if (c.job.generate == 1) { return; }
  RC_ASSERT(std::abs(decode - expected(workload::Pass::decode)) <= 1e-11 * decode);
}

// Keys and values, or the state, of every sequence are stored once per layer, for any slices; those of latent
// attention, which heads share, on every tensor-parallel rank.
RC_GTEST_PROP(LowerInference, the_cache_holds_every_position_of_every_sequence, ()) {
  const Case c = drawn_case();
  double held = 0.0, expected = 0.0;
  for (const auto& need : lowered(c).memory) { held += real(c.plan.stage_ranks()) * need.kv_cache.value(); }
  workload::Slice one = test::undivided(c);
  for (std::int64_t i = 0; i < c.model.depth(); ++i) {
    const auto kind = workload::layer_kind(c.model, i);
    const bool shared = c.model.is_latent() && kind.mixer == workload::MixerKind::attention;
    expected += workload::kv_cache(c.model, kind, one, c.job.seq).value() * (shared ? real(c.plan.tp) : 1.0);
  }
  expected *= real(c.job.global_batch);
  RC_ASSERT(std::abs(held - expected) <= 1e-11 * expected);
}

// Llama of 2 layers, 8-bit weights in them, two-byte tables: 2 x (4 x 512^2 + 3 x 512 x 2048 + 2 x 512) and
// 2 x (1024 x 512) + 512.
TEST(LowerInference, weights_of_layers_are_stored_in_the_precision_and_the_rest_in_two_bytes) {
  Case c;
  c.model = test::llama(2, 512, 8, 8, 2048, 1024);
  c.job = {4, 128, hardware::Precision::fp8, Task::inference, {}, 96, 32};
  c.cluster = test::cluster_of({1});
  const MemoryNeed need = lowered(c).memory.front();
  constexpr double kLayers = 2 * (4.0 * 512 * 512 + 3.0 * 512 * 2048 + 2 * 512), kRest = 2 * 1024.0 * 512 + 512;
  EXPECT_EQ(need.weights, Bytes(kLayers + 2 * kRest));
  EXPECT_EQ(need.gradients + need.optimizer + need.buffers, Bytes(0.0));
  EXPECT_EQ(need.kv_cache, Bytes(2.0 * 4 * 128 * 2 * 512 * 2));  // layers, sequences, positions, keys and values
  // The widest kernel: the activation between the GEMMs of the MLP, 96 tokens, 3 x 2048 of 2 bytes.
  EXPECT_EQ(need.activations, Bytes(96.0 * 3 * 2048 * 2));
}

}  // namespace
}  // namespace orrery::parallel::lower_inference_test
