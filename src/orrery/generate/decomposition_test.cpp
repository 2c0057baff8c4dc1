// Volumes of generated graphs against the decomposition of COMET's authors (the workload tables of symbolic tensor
// graphs and of the library of ASTRA-sim 1): per transformer block, forward and backward.
//
// Table "MSFT-1T" of that library: TP 128, DP 32, hidden 24,576, 8 sequences of 2,048 tokens. Two all-reduces of the
// activations in the forward pass and two in the backward pass, 805,306,368 B each = 2 B x 16,384 tokens x 24,576; one
// all-reduce of the gradients over DP, 226,492,416 B = 4 B x 12 h^2 / 128. "GPT-3": TP 16, hidden 12,288, 16 sequences
// of 2,048: 805,306,368 B = 2 B x 32,768 x 12,288, and 452,984,832 B = 4 B x 12 h^2 / 16. The library also gathers the
// heads (6,291,456 B), which Megatron's attention has no need for.
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "orrery/generate/job_graphs.hpp"
#include "orrery/generate/test_sinks.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::generate::decomposition_test {
namespace {

using graph::CollectiveType;
using test::Totals;

struct Published {
  std::int64_t hidden = 0, heads = 0, tp = 0, dp = 0, sequences = 0;
  double activations = 0, gradients = 0;  // bytes of an all-reduce
};

parallel::test::Case case_of(const Published& job, std::int64_t layers) {
  parallel::test::Case c;
  c.model = parallel::test::gpt(layers, job.hidden, job.heads, 51200);
  c.job.global_batch = job.sequences * job.dp;
  c.job.seq = 2048;
  c.plan.tp = job.tp;
  c.plan.dp = job.dp;
  c.plan.micro_batch = job.sequences;
  c.plan.dp_overlap = false;
  c.cluster = parallel::test::cluster_of({job.tp, job.dp});
  c.stack.attention.kernel = hardware::AttentionKernel::plain;
  c.stack.attention.causal_skip = false;
  c.stack.gradients.element = c.stack.gradients.reduce_element = 4_B;
  c.stack.gradients.bucket_parameters = 0;
  return c;
}

// Of a rank in a step with one micro-batch.
void add_up(const parallel::test::Case& c, Totals& totals) {
  const auto program = parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack);
  const JobGraphs graphs(program, c.cluster, c.stack, {Granularity::operators, 1});
  if (!graphs.write(0, Naming::classes, totals)) { throw InternalError("not written"); }
}

struct Reduced {
  double bytes = 0, calls = 0;
};

Reduced all_reduces(const Totals& totals, const std::string& group) {
  Reduced sum;
  for (const auto& [key, bytes] : totals.collective_bytes) {
    if (!key.first.starts_with(group) || key.second != static_cast<std::int64_t>(CollectiveType::all_reduce)) {
      continue;
    }
    sum.bytes += bytes;
    sum.calls += static_cast<double>(totals.collectives.at(key));
  }
  return sum;
}

// What a layer adds, as the difference between models of 8 and of 4 layers.
void expect_volumes_of_a_layer(const Published& job) {
  constexpr double kLayers = 4;
  Totals few, many;
  add_up(case_of(job, 4), few);
  add_up(case_of(job, 8), many);
  const Reduced tp_few = all_reduces(few, "tp"), tp_many = all_reduces(many, "tp");
  EXPECT_EQ((tp_many.calls - tp_few.calls) / kLayers, 4);
  EXPECT_EQ((tp_many.bytes - tp_few.bytes) / kLayers, 4 * job.activations);
  // Biases and norms, which the table leaves out, are less than 0.1 % of the weights, if norms are not sharded over tp
  // 2 h + 6 h of 12 h^2 / tp.
  const double gradients = (all_reduces(many, "dp").bytes - all_reduces(few, "dp").bytes) / kLayers;
  EXPECT_GE(gradients, job.gradients);
  EXPECT_LE(gradients,
            job.gradients * (1 + 8.0 * static_cast<double>(job.tp) / (12.0 * static_cast<double>(job.hidden))));
  // Multiply-adds of the table, forward: Q, K, V and (Megatron) the output projection 4 h^2, the MLP 8 h^2, scores and
  // their product with V 2 S h, per token; twice as many backward; each is two FLOPs.
  const double h = static_cast<double>(job.hidden), seq = 2048;
  const double tokens = static_cast<double>(job.sequences) * seq;
  const double flops = 3 * 2 * tokens * (12 * h * h + 2 * seq * h) / static_cast<double>(job.tp);
  EXPECT_NEAR((many.flops - few.flops) / kLayers / flops, 1.0, 1e-9);
}

TEST(Decomposition, volumes_of_a_layer_are_the_published_ones) {
  expect_volumes_of_a_layer({24576, 128, 128, 32, 8, 805306368, 226492416});
  expect_volumes_of_a_layer({12288, 96, 16, 32, 16, 805306368, 452984832});
}

}  // namespace
}  // namespace orrery::generate::decomposition_test
