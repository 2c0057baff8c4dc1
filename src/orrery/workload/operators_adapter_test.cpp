// Low-rank adapters: the remaining cost of frozen weights, and the cost of the factors.
//
// Everywhere: n = 8 tokens, h = 8, two query heads and one key-value head of 4, f = 16, r = 2; two-byte elements.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::operators_adapter_test {
namespace {

using hardware::Stack;

Model tiny_llama() {
  Model model = llama(8, 2, 1, 16);
  model.vocab = 128;
  return model;
}

Slice adapted(Adapter::Targets targets, std::int64_t t = 1, bool sp = false) {
  Slice part = slice(2, 4, t, sp);
  part.adapter = {2, targets};
  return part;
}

Stack plain_gradients() {
  Stack stack;
  stack.fusion.gradient_accumulation = false;
  return stack;
}

constexpr auto kAttention = Adapter::Targets::attention;
constexpr auto kAll = Adapter::Targets::all;

double frozen(const std::vector<Operator>& list) {
  return std::accumulate(list.begin(), list.end(), 0.0, [](double sum, const Operator& op) { return sum + op.frozen; });
}

TEST(Adapters, are_written_around_their_base_gemm) {
  const auto list = layer_operators(tiny_llama(), Stack{}, adapted(kAttention));
  EXPECT_THAT(names(list),
              testing::ElementsAre("attention.norm", "attention.enter", "attention.qkv.adapter_in", "attention.qkv",
                                   "attention.qkv.adapter_out", "attention.rotary", "attention.flash",
                                   "attention.output.adapter_in", "attention.output", "attention.output.adapter_out",
                                   "attention.leave", "attention.residual", "mlp.norm", "mlp.enter", "mlp.in",
                                   "mlp.activation", "mlp.out", "mlp.leave", "mlp.residual"));
}

TEST(Adapters, factors_by_hand) {
  const auto list = layer_operators(tiny_llama(), plain_gradients(), adapted(kAttention));
  // X 64, A 8 x 2, X A 16 elements; its dX is added to the 64 elements of the base GEMM's
  const Operator& in = find(list, "attention.qkv.adapter_in");
  expect_kernel(in.forward, {2 * 8 * 2 * 8, (64 + 16 + 16) * 2}, "X A");
  expect_kernel(in.backward_input, {256, (16 + 16 + 64 + 64) * 2}, "dX");
  expect_kernel(in.backward_weight, {256, (16 + 64 + 16) * 2}, "dA");
  EXPECT_EQ(in.parameters, 16);
  EXPECT_EQ(in.saved, Bytes(128));
  // X A 16, B 2 x 16, Y 128 elements, to which it adds
  const Operator& out = find(list, "attention.qkv.adapter_out");
  expect_kernel(out.forward, {2 * 8 * 16 * 2, (16 + 32 + 128 + 128) * 2}, "(X A) B");
  expect_kernel(out.backward_input, {512, (128 + 32 + 16) * 2}, "d(X A)");
  expect_kernel(out.backward_weight, {512, (128 + 16 + 32) * 2}, "dB");
  EXPECT_EQ(out.parameters, 32);
  EXPECT_EQ(out.saved, Bytes(32));
  // base: frozen, without dW; keeps q, k, v
  const Operator& base = find(list, "attention.qkv");
  EXPECT_EQ(base.backward_weight, Kernel{});
  EXPECT_EQ(base.frozen, 128);
  EXPECT_EQ(base.parameters, 0);
  EXPECT_EQ(base.saved, Bytes(256));
}

// NF4: a kernel before the GEMM, forward and backward, reads 128 weights of 4.127 bits and writes 16 bits each. The
// GEMM, its shape and bytes, and the factors are the same.
TEST(Adapters, frozen_weights_in_another_format_are_converted_before_each_gemm) {
  Slice part = adapted(kAttention);
  const auto usual = layer_operators(tiny_llama(), Stack{}, part);
  part.formats.weights = hardware::StorageFormat::nf4;
  const auto list = layer_operators(tiny_llama(), Stack{}, part);
  const double read = 128 * (4.0 + 1.0 / 8 + 1.0 / 512) / 8, written = 128 * 2;
  const Operator &base = find(list, "attention.qkv"), &before = find(usual, "attention.qkv");
  EXPECT_EQ(base.converted, Bytes(written));
  for (const auto kernel : {&Operator::forward, &Operator::backward_input}) {
    EXPECT_DOUBLE_EQ((base.*kernel).casts.value(), read + written);
    EXPECT_EQ((base.*kernel).launches, (before.*kernel).launches + 1);
    EXPECT_EQ((base.*kernel).bytes, (before.*kernel).bytes);
    EXPECT_FALSE((base.*kernel).weight_only);
  }
  EXPECT_EQ(find(list, "attention.qkv.adapter_in").forward, find(usual, "attention.qkv.adapter_in").forward);
  part.formats.weights = hardware::StorageFormat::fp16;  // as they are stored anyway
  EXPECT_EQ(find(layer_operators(tiny_llama(), Stack{}, part), "attention.qkv").forward, before.forward);
}

// Inference: 128 weights of 4.125 bits instead of 16, in the same kernel; the head keeps its 16 bits.
TEST(Adapters, inference_reads_narrow_weights_as_they_are_stored) {
  Slice part = slice(2, 4);
  part.pass = Pass::prefill;
  const auto usual = layer_operators(tiny_llama(), Stack{}, part);
  const auto head = head_operators(tiny_llama(), Stack{}, part);
  part.formats.weights = hardware::StorageFormat::int4;
  const Kernel narrow = find(layer_operators(tiny_llama(), Stack{}, part), "attention.qkv").forward;
  const Kernel wide = find(usual, "attention.qkv").forward;
  EXPECT_DOUBLE_EQ((wide.bytes - narrow.bytes).value(), 128 * (16 - 4.125) / 8);
  EXPECT_EQ(narrow.casts, Bytes(0));
  EXPECT_EQ(narrow.launches, wide.launches);
  EXPECT_TRUE(narrow.weight_only);
  EXPECT_EQ(find(head_operators(tiny_llama(), Stack{}, part), "head.logits").forward,
            find(head, "head.logits").forward);
  part.formats.weights = hardware::StorageFormat::fp32;  // read, converted, read again
  const Kernel cast = find(layer_operators(tiny_llama(), Stack{}, part), "attention.qkv").forward;
  EXPECT_EQ(cast.bytes, wide.bytes);
  EXPECT_EQ(cast.casts, Bytes(128 * (4 + 2)));
}

// W8A8: 128 weights of 1 byte, and one copy of the 64 inputs: 2 bytes read, 1 written. The cache keeps its 16 bits also
// in stacks that keep it in the format of fp8 inputs.
TEST(Adapters, int8_products_read_one_byte_a_weight_and_cast_their_inputs_once) {
  Slice part = slice(2, 4);
  part.pass = Pass::prefill;
  const Kernel wide = find(layer_operators(tiny_llama(), Stack{}, part), "attention.qkv").forward;
  part.precision = hardware::Precision::int8;
  const Kernel narrow = find(layer_operators(tiny_llama(), Stack{}, part), "attention.qkv").forward;
  EXPECT_EQ(narrow.precision, hardware::Precision::int8);
  EXPECT_EQ(narrow.bytes, wide.bytes - Bytes(128 + 64));
  EXPECT_EQ(narrow.casts, Bytes(64 * (2 + 1)));
  EXPECT_EQ(narrow.launches, wide.launches + 1);
  EXPECT_EQ(cache_element(hardware::Precision::int8, {}, true), 2.0);
  EXPECT_EQ(cache_element(hardware::Precision::fp8, {}, true), 1.0);
}

// 64 inputs and 128 gradients of qkv (n = 8, h = 8; 16 outputs per token). Delayed: 2 bytes read, two copies of 1 byte
// written. Current: read once more. Block: 4 bytes more per 128 elements of a copy.
TEST(Fp8Recipes, casts_by_hand) {
  Slice part = slice(2, 4);
  part.precision = hardware::Precision::fp8;
  const auto qkv = [&](hardware::Fp8Recipe recipe) {
    Stack stack;
    stack.fp8_recipe = recipe;
    return find(layer_operators(tiny_llama(), stack, part), "attention.qkv");
  };
  const Operator delayed = qkv(hardware::Fp8Recipe::delayed), current = qkv(hardware::Fp8Recipe::current);
  const Operator block = qkv(hardware::Fp8Recipe::block);
  EXPECT_EQ(delayed.forward.casts, Bytes(64 * 4));
  EXPECT_EQ(current.forward.casts, Bytes(64 * 6));
  EXPECT_EQ(block.forward.casts, Bytes(64 * (4 + 2 * 4.0 / 128)));
  EXPECT_EQ(delayed.backward_input.casts, Bytes(128 * 4));
  EXPECT_EQ(current.backward_input.casts, Bytes(128 * 6));
  EXPECT_EQ(current.forward.launches, delayed.forward.launches + 1);
  EXPECT_EQ(block.forward.launches, delayed.forward.launches);
  EXPECT_EQ(current.forward.bytes, delayed.forward.bytes);
  EXPECT_FALSE(delayed.forward.block_scaled || current.forward.block_scaled);
  EXPECT_TRUE(block.forward.block_scaled && block.backward_input.block_scaled && block.backward_weight.block_scaled);
}

// Sums of the forward GEMM stay in the matrix units; gradients need more bits.
TEST(Fp8Recipes, gradients_are_summed_in_fp32) {
  Slice part = slice(2, 4);
  for (const auto precision : {hardware::Precision::bf16, hardware::Precision::fp8}) {
    part.precision = precision;
    const Operator qkv = find(layer_operators(tiny_llama(), Stack{}, part), "attention.qkv");
    const bool is_fp8 = precision == hardware::Precision::fp8;
    EXPECT_FALSE(qkv.forward.split_accumulation);
    EXPECT_EQ(qkv.backward_input.split_accumulation, is_fp8);
    EXPECT_EQ(qkv.backward_weight.split_accumulation, is_fp8);
  }
}

TEST(Fp8Recipes, have_no_effect_on_other_formats_and_on_the_head) {
  Slice part = slice(2, 4);
  Stack current, block;
  current.fp8_recipe = hardware::Fp8Recipe::current;
  block.fp8_recipe = hardware::Fp8Recipe::block;
  for (const Stack& stack : {current, block}) {
    part.precision = hardware::Precision::bf16;
    EXPECT_EQ(find(layer_operators(tiny_llama(), stack, part), "attention.qkv").forward,
              find(layer_operators(tiny_llama(), Stack{}, part), "attention.qkv").forward);
    part.precision = hardware::Precision::fp8;
    EXPECT_EQ(find(head_operators(tiny_llama(), stack, part), "head.logits").forward,
              find(head_operators(tiny_llama(), Stack{}, part), "head.logits").forward);
  }
}

// The GEMMs of the MLP need their inputs for weight gradients only: 128 + 256 B. Norms and the activation keep theirs.
// A norm without a weight gradient is one kernel backward.
TEST(Adapters, frozen_products_without_one_keep_no_input) {
  const auto list = layer_operators(tiny_llama(), Stack{}, adapted(kAttention));
  EXPECT_EQ(find(list, "mlp.in").saved, Bytes(0));
  EXPECT_EQ(find(list, "mlp.out").saved, Bytes(0));
  EXPECT_EQ(find(list, "mlp.activation").saved, Bytes(512));
  EXPECT_EQ(find(list, "mlp.norm").saved, Bytes(128));
  EXPECT_EQ(find(list, "mlp.norm").backward_input.launches, 1);
  const auto all = layer_operators(tiny_llama(), Stack{}, adapted(kAll));
  EXPECT_EQ(find(all, "mlp.in.adapter_in").saved, Bytes(128));
  EXPECT_EQ(find(all, "mlp.out.adapter_in").saved, Bytes(256));
}

// relu's gradient needs its output, which only a trained or adapted GEMM after it keeps.
TEST(Adapters, relu_keeps_its_output_if_no_other_operator_does) {
  Model model = gpt(1, 8, 2, 128);
  model.activation = Activation::relu;
  EXPECT_EQ(find(layer_operators(model, Stack{}, slice(2, 4)), "mlp.activation").saved, Bytes(0));
  EXPECT_EQ(find(layer_operators(model, Stack{}, adapted(kAll)), "mlp.activation").saved, Bytes(0));
  EXPECT_EQ(find(layer_operators(model, Stack{}, adapted(kAttention)), "mlp.activation").saved, Bytes(8 * 32 * 2));
}

TEST(Adapters, freeze_every_weight_of_the_model) {
  Model model = tiny_llama();
  const Slice part = adapted(kAll);
  const auto layer = layer_operators(model, Stack{}, part);
  EXPECT_EQ(frozen(layer), static_cast<double>(layer_parameters(model, {})));
  // r (k + n): qkv 8 + 16, output 8 + 8, mlp.in 8 + 32, mlp.out 16 + 8
  EXPECT_EQ(parameters(layer), 2 * (24 + 16 + 40 + 24));
  const auto embedding = embedding_operators(model, Stack{}, part);
  const auto head = head_operators(model, Stack{}, part);
  EXPECT_EQ(parameters(embedding) + parameters(head), 0);
  EXPECT_EQ(frozen(embedding) + frozen(head),
            static_cast<double>(parameter_count(model).embedding + parameter_count(model).head));
  for (const auto& op : embedding) { EXPECT_EQ(op.backward_input, Kernel{}) << op.name; }
  EXPECT_EQ(saved(embedding), 0);
  EXPECT_EQ(find(head, "head.logits").backward_weight, Kernel{});
  EXPECT_EQ(find(head, "head.logits").saved, Bytes(0));
}

// For a GEMM split by columns, A is whole and B split; for one split by rows, A is split and B whole.
TEST(Adapters, factors_are_split_along_the_side_their_product_is) {
  const auto list = layer_operators(tiny_llama(), Stack{}, adapted(kAll, 2, true));
  EXPECT_EQ(find(list, "mlp.in.adapter_in").parameters, 2 * 8);
  EXPECT_EQ(find(list, "mlp.in.adapter_out").parameters, 2 * 16);
  EXPECT_EQ(find(list, "mlp.out.adapter_in").parameters, 2 * 8);
  EXPECT_EQ(find(list, "mlp.out.adapter_out").parameters, 2 * 8);
  EXPECT_EQ(find(list, "mlp.in.adapter_in").saved, Bytes(64));  // its own split tokens only
}

// Four experts have four pairs of factors each; router and, with target attention, experts have none.
TEST(Adapters, of_experts_are_one_pair_each) {
  Model model = tiny_llama();
  model.experts.count = 4;
  model.experts.active = 2;
  model.experts.ffn = 16;
  constexpr LayerKind kExperts{true, false, false, 0};
  const auto list = layer_operators(model, Stack{}, adapted(kAll), kExperts);
  EXPECT_EQ(find(list, "experts.in.adapter_in").parameters, 4 * 2 * 8);
  EXPECT_EQ(find(list, "experts.in.adapter_out").parameters, 4 * 2 * 32);
  EXPECT_TRUE(find(list, "experts.in.adapter_in").expert);
  EXPECT_EQ(find(list, "experts.in.adapter_in").forward.flops, Flops(2 * 16 * 2 * 8));
  EXPECT_EQ(find(list, "experts.router").backward_weight, Kernel{});
  EXPECT_THAT(names(layer_operators(model, Stack{}, adapted(kAttention), kExperts)),
              testing::Not(testing::Contains("experts.in.adapter_in")));
}

TEST(Adapters, of_inference_are_merged) {
  Slice part = adapted(kAll);
  part.pass = Pass::prefill;
  EXPECT_THAT(names(layer_operators(tiny_llama(), Stack{}, part)),
              testing::Not(testing::Contains("mlp.in.adapter_in")));
}

// A plain core's backward is twice its forward, so that every kernel counts.
TEST(Adapters, model_flops_are_those_of_all_kernels) {
  Model latent = tiny_llama();
  latent.latent = {4, 6, 4, 2, 3};
  Model mixture = tiny_llama();
  mixture.experts = {.count = 4, .active = 2, .ffn = 16, .shared_ffn = 32, .shared_gate = true};
  for (const Model& model : {tiny_llama(), latent, mixture}) {
    for (const auto targets : {kAttention, kAll}) {
      const Slice part = adapted(targets);
      const double layer = flops(layer_operators(model, megatron_2021(), part, layer_kind(model, 0)));
      const double expected =
          static_cast<double>(model.layers) * layer + flops(head_operators(model, megatron_2021(), part));
      EXPECT_DOUBLE_EQ(model_flops(model, megatron_2021(), 2, 4, part.adapter).value(), expected);
    }
  }
}

}  // namespace
}  // namespace orrery::workload::test::operators_adapter_test
