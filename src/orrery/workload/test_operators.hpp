// Models, stacks and sums over lists of operators that several tests share.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::workload::test {

// GPT as Megatron-LM trains it: learned positions, gelu, biases, dropout.
inline Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab) {
  Model model;
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn = 4 * hidden;
  model.vocab = vocab;
  model.max_seq = 2048;
  model.tied_embeddings = true;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  model.dropout = 0.1;
  return model;
}

inline Model llama(std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads, std::int64_t ffn) {
  Model model = gpt(2, hidden, heads, 32000);
  model.kv_heads = kv_heads;
  model.ffn = ffn;
  model.gated_mlp = true;
  model.tied_embeddings = false;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = false;
  model.dropout = 0.0;
  model.norm = Normalisation::rmsnorm;
  model.activation = Activation::silu;
  model.position = Position::rotary;
  return model;
}

// The software of Megatron-LM in 2021: scores in memory, fused element-wise kernels, fp32 loss.
inline hardware::Stack megatron_2021() {
  hardware::Stack stack;
  stack.attention.kernel = hardware::AttentionKernel::plain;
  stack.attention.causal_skip = false;
  stack.fusion.loss = false;
  return stack;
}

inline Slice slice(std::int64_t b, std::int64_t s, std::int64_t t = 1, bool sp = false) {
  return {b, s, t, sp, hardware::Precision::fp16};
}

inline double saved(const std::vector<Operator>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0,
                         [](double sum, const Operator& op) { return sum + op.saved.value(); });
}

inline double core_saved(const std::vector<Operator>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0, [](double sum, const Operator& op) {
    return sum + (op.tag == OperatorTag::attention_core ? op.saved.value() : 0.0);
  });
}

inline double flops(const std::vector<Operator>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0, [](double sum, const Operator& op) {
    return sum + op.forward.flops.value() + op.backward_input.flops.value() + op.backward_weight.flops.value();
  });
}

inline double forward_flops(const std::vector<Operator>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0,
                         [](double sum, const Operator& op) { return sum + op.forward.flops.value(); });
}

inline double parameters(const std::vector<Operator>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0,
                         [](double sum, const Operator& op) { return sum + op.parameters; });
}

inline const Operator& find(const std::vector<Operator>& list, std::string_view name) {
  for (const auto& op : list) {
    if (op.name == name) { return op; }
  }
  throw InternalError("no operator " + std::string(name));
}

inline std::vector<std::string_view> names(const std::vector<Operator>& list) {
  std::vector<std::string_view> out;
  out.reserve(list.size());
  for (const auto& op : list) { out.push_back(op.name); }
  return out;
}

// Expected numbers of a kernel.
struct Work {
  double flops = 0, bytes = 0;
  int launches = 1;
};

inline void expect_kernel(const Kernel& kernel, const Work& expected, std::string_view what) {
  EXPECT_DOUBLE_EQ(kernel.flops.value(), expected.flops) << what;
  EXPECT_DOUBLE_EQ(kernel.bytes.value(), expected.bytes) << what;
  EXPECT_EQ(kernel.launches, expected.launches) << what;
}

inline void expect_shape(const Kernel& kernel, std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k) {
  EXPECT_EQ(kernel.batch, batch);
  EXPECT_EQ(kernel.m, m);
  EXPECT_EQ(kernel.n, n);
  EXPECT_EQ(kernel.k, k);
}

// `backward` is expected of the gradient of the weight as well, where there is one.
inline void expect_operator(const std::vector<Operator>& list, std::string_view name, const Work& forward,
                            const Work& backward) {
  const Operator& op = find(list, name);
  expect_kernel(op.forward, forward, name);
  expect_kernel(op.backward_input, backward, name);
  if (op.backward_weight.kind != KernelKind::none) { expect_kernel(op.backward_weight, backward, name); }
}

// The three GEMMs of a linear layer read or write the same three tensors and have the same FLOPs.
inline void expect_linear(const std::vector<Operator>& list, std::string_view name, const Work& work) {
  expect_operator(list, name, work, work);
}

}  // namespace orrery::workload::test
