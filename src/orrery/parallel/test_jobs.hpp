// Small jobs with round numbers, and random valid ones, for tests.
//
// `range` is whatever draws a whole number from [low, high): a RapidCheck generator, which shrinks what it finds, or
// Dice, which are fast enough for thousands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::parallel::test {

// 256 TFLOP/s, 2 TB/s, 80 GiB; no kernel takes less than 2 us.
inline hardware::Accelerator plain_accelerator() {
  hardware::Accelerator accelerator;
  accelerator.name = "plain";
  for (const auto precision : hardware::kAllPrecisions) {
    accelerator.matrix_peak[std::string(hardware::name_of(precision))] = 256_TFLOPps;
  }
  accelerator.memory = 80_GiB;
  accelerator.memory_bandwidth = 2000_GBps;
  accelerator.cores = 64;
  accelerator.matrix_efficiency = 0.8;
  accelerator.attention_efficiency = 0.6;
  accelerator.memory_efficiency = 0.9;
  accelerator.kernel_latency = 2_us;
  return accelerator;
}

// Dimensions of these sizes, innermost first: 256 GB/s, then a quarter of that each time.
inline hardware::Cluster cluster_of(const std::vector<std::int64_t>& sizes) {
  hardware::Cluster cluster = network::test::plain_cluster(sizes);
  cluster.name = "plain";
  cluster.accelerator = plain_accelerator();
  double rate = 256e9;
  for (auto& dimension : cluster.dimensions) {
    dimension.bandwidth = BytesPerSecond(rate);
    dimension.link.latency = 4_us;
    rate /= 4.0;
  }
  return cluster;
}

inline workload::Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab) {
  workload::Model model;
  model.name = "gpt";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.ffn = 4 * hidden;
  model.vocab = vocab;
  model.max_seq = 4096;
  model.tied_embeddings = true;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  model.dropout = 0.1;
  return workload::completed(model);
}

inline workload::Model llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                             std::int64_t ffn, std::int64_t vocab) {
  workload::Model model;
  model.name = "llama";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.ffn = ffn;
  model.vocab = vocab;
  model.max_seq = 4096;
  model.gated_mlp = true;
  model.norm = workload::Normalisation::rmsnorm;
  model.activation = workload::Activation::silu;
  model.position = workload::Position::rotary;
  return workload::completed(model);
}

// The same numbers for the same seed, everywhere: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", 2014).
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed) {}

  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return low + static_cast<std::int64_t>((z ^ (z >> 31U)) % static_cast<std::uint64_t>(high - low));
  }

 private:
  std::uint64_t state_;
};

// A model, a job, a plan that is valid for them, and what they run on.
struct Case {
  workload::Model model;
  Job job;
  Plan plan;
  hardware::Cluster cluster;
  hardware::Stack stack;
};

template <class Range>
bool any_flag(Range&& range) {
  return range(0, 2) == 1;
}

template <class Range>
std::int64_t any_of(Range&& range, const std::vector<std::int64_t>& values) {
  return values[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(values.size())))];
}

template <class Range>
hardware::Stack any_stack(Range&& range) {
  hardware::Stack stack;
  stack.attention = any_flag(range) ? hardware::AttentionKernel::flash : hardware::AttentionKernel::plain;
  stack.causal_skip = any_flag(range);
  stack.fused_elementwise = any_flag(range);
  stack.fused_loss = any_flag(range);
  stack.fused_gradient_accumulation = any_flag(range);
  stack.overlap_tp_backward = any_flag(range);
  stack.overlap_parameter_gather = any_flag(range);
  stack.gradient_element = stack.gradient_reduce_element = any_flag(range) ? 2_B : 4_B;
  return stack;
}

// The devices as one to three dimensions, with links from fast to so slow that nothing hides them.
template <class Range>
hardware::Cluster any_cluster(Range&& range, std::int64_t devices) {
  std::vector<std::int64_t> sizes;
  while (devices > 1 && sizes.size() < 2) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= devices; ++d) {
      if (devices % d == 0) { divisors.push_back(d); }
    }
    sizes.push_back(any_of(range, divisors));
    devices /= sizes.back();
  }
  sizes.push_back(devices);
  hardware::Cluster cluster = cluster_of(sizes);
  const auto slower = static_cast<double>(any_of(range, {1, 10, 100}));
  for (auto& dimension : cluster.dimensions) {
    dimension.bandwidth /= slower;
    dimension.link.latency *= slower;
  }
  return cluster;
}

// tp that divides the key-value heads; pp, vpp, dp and micro-batches small; everything else free.
template <class Range>
Plan any_plan(Range&& range) {
  Plan plan;
  plan.tp = any_of(range, {1, 2, 4});
  plan.pp = range(1, 5);
  plan.dp = any_of(range, {1, 2, 3, 4});
  plan.schedule = any_flag(range) ? ScheduleKind::one_f_one_b : ScheduleKind::gpipe;
  if (plan.pp > 1 && any_flag(range)) {
    plan.schedule = ScheduleKind::interleaved;
    plan.vpp = range(2, 4);
  }
  plan.micro_batch = range(1, 4);
  plan.sequence_parallel = plan.tp > 1 && any_flag(range);
  plan.zero = static_cast<int>(range(0, 4));
  plan.dp_overlap = any_flag(range);
  return plan;
}

template <class Range>
workload::Model any_model(Range&& range, const Plan& plan) {
  const std::int64_t kv_heads = plan.tp * range(1, 3);
  const std::int64_t heads = kv_heads * range(1, 4);
  const std::int64_t layers = range(plan.pp * plan.vpp, 3 * plan.pp * plan.vpp + 1);
  const std::int64_t dim = any_of(range, {64, 128});
  const std::int64_t vocab = 128 * plan.tp * range(1, 200);
  workload::Model model = any_flag(range)
                              ? gpt(layers, heads * dim, heads, vocab)
                              : llama(layers, heads * dim, heads, kv_heads, plan.tp * range(1, 4000), vocab);
  model.tied_embeddings = any_flag(range);
  model.parallel_residual = any_flag(range);
  model.embedding_norm = any_flag(range);
  return model;
}

template <class Range>
Case any_case(Range&& range) {
  Case c;
  c.plan = any_plan(range);
  c.plan.recompute = static_cast<Recompute>(range(0, 3));
  c.model = any_model(range, c.plan);
  const std::int64_t groups = range(1, 4);
  const std::int64_t batches = c.plan.vpp > 1 ? c.plan.pp * groups : groups * range(1, 4);
  c.job.global_batch = c.plan.dp * c.plan.micro_batch * batches;
  c.job.seq = c.plan.tp * range(1, 512);
  c.cluster = any_cluster(range, c.plan.devices());
  c.stack = any_stack(range);
  return c;
}

}  // namespace orrery::parallel::test
