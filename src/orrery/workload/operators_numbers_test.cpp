// FLOPs, bytes and launches of every operator of a tiny model, calculated by hand.
//
// Everywhere: b = 2, s = 4, so n = 8 tokens; h = 8, a = 2, d = 4, f = 16, V = 128; two-byte elements. A hidden tensor
// is 8 x 8 x 2 = 128 B, an inner one 8 x 16 x 2 = 256 B, scores are 2 x 2 x 4 x 4 = 64 elements = 128 B.
#include <gtest/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::operators_numbers_test {
namespace {

using hardware::AttentionKernel;
using hardware::Precision;
using hardware::Stack;

Model tiny_gpt() {
  Model model;
  model.layers = 1;
  model.hidden = 8;
  model.heads = model.kv_heads = 2;
  model.head_dim = 4;
  model.ffn = 16;
  model.vocab = 128;
  model.max_seq = 4;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  model.dropout = 0.1;
  return model;
}

Model tiny_llama() {
  Model model = tiny_gpt();
  model.kv_heads = 1;
  model.gated_mlp = true;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = false;
  model.dropout = 0.0;
  model.norm = Normalisation::rmsnorm;
  model.activation = Activation::silu;
  model.position = Position::rotary;
  return model;
}

Stack plain(bool fused) {
  Stack stack;
  stack.attention.kernel = AttentionKernel::plain;
  stack.fusion.elementwise = fused;
  stack.fusion.loss = fused;
  stack.fusion.gradient_accumulation = false;
  return stack;
}

Stack flash(bool fused) {
  Stack stack = plain(fused);
  stack.attention.kernel = AttentionKernel::flash;
  return stack;
}

Slice tiny_slice(Precision precision = Precision::bf16) { return {2, 4, 1, false, precision}; }

TEST(OperatorNumbers, gpt_layer_with_fused_kernels) {
  const auto list = layer_operators(tiny_gpt(), plain(true), tiny_slice());
  expect_operator(list, "attention.norm", {0, 2 * 128}, {0, 3 * 128, 2});
  // X 64, W 8 x 24 = 192, Y 8 x 24 = 192 elements
  expect_linear(list, "attention.qkv", {2 * 8 * 24 * 8, (64 + 192 + 192) * 2});
  // batch 4 of [4, 4] x [4, 4]; Q, K, S in or out; backward twice: dS K Q, dQ dK, dS again
  expect_operator(list, "attention.scores", {2 * 4 * 64, 3 * 128}, {4 * 4 * 64, 6 * 128, 2});
  expect_operator(list, "attention.softmax", {0, 2 * 128}, {0, 3 * 128});
  expect_operator(list, "attention.dropout", {0, 2 * 128 + 64}, {0, 2 * 128 + 64});
  expect_operator(list, "attention.context", {2 * 4 * 64, 3 * 128}, {4 * 4 * 64, 6 * 128, 2});
  expect_linear(list, "attention.output", {2 * 8 * 8 * 8, 3 * 128});
  // x, residual in, sum out, mask of 64 B; backward: dropout, and the sum of the fork's two gradients
  for (const auto* name : {"attention.residual", "mlp.residual"}) {
    expect_operator(list, name, {0, 3 * 128 + 64}, {0, (2 * 128 + 64) + 3 * 128, 2});
  }
  expect_linear(list, "mlp.in", {2 * 8 * 16 * 8, (64 + 128 + 128) * 2});
  expect_operator(list, "mlp.activation", {0, 2 * 256}, {0, 3 * 256});
  expect_linear(list, "mlp.out", {2 * 8 * 16 * 8, (128 + 128 + 64) * 2});
}

TEST(OperatorNumbers, gpt_layer_with_every_kernel_apart) {
  const auto list = layer_operators(tiny_gpt(), plain(false), tiny_slice());
  expect_operator(list, "attention.softmax", {0, 6 * 128, 3}, {0, 7 * 128, 3});
  // bias 2, dropout 2 and mask, sum 3; backward: dropout, bias gradient 1, sum 3
  expect_operator(list, "mlp.residual", {0, 7 * 128 + 64, 3}, {0, 6 * 128 + 64, 3});
  expect_operator(list, "mlp.activation", {0, 4 * 256, 2}, {0, 4 * 256, 2});
}

TEST(OperatorNumbers, llama_layer_with_flash_and_one_key_value_head) {
  const auto list = layer_operators(tiny_llama(), flash(true), tiny_slice());
  // width (2 + 2) x 4 = 16
  expect_linear(list, "attention.qkv", {2 * 8 * 16 * 8, (64 + 128 + 128) * 2});
  // queries 128 B and keys 64 B, in and out
  expect_operator(list, "attention.rotary", {0, 2 * 192, 2}, {0, 2 * 192, 2});
  // 16 rows x 4 keys x 4 dims x 4 FLOPs / 2; q o 128, k v 64, log-sum-exp 16 x 4 B; backward q o do dq, k v dk dv
  expect_operator(list, "attention.flash", {512, 2 * 128 + 2 * 64 + 64}, {1280, 4 * 128 + 4 * 64 + 64, 3});
  expect_operator(list, "attention.residual", {0, 3 * 128}, {0, 3 * 128});
  expect_linear(list, "mlp.in", {2 * 8 * 32 * 8, (64 + 256 + 256) * 2});
  expect_operator(list, "mlp.activation", {0, 3 * 256}, {0, 5 * 256});
}

TEST(OperatorNumbers, llama_layer_with_every_kernel_apart) {
  const auto list = layer_operators(tiny_llama(), flash(false), tiny_slice());
  expect_operator(list, "attention.rotary", {0, 9 * 192, 8}, {0, 9 * 192, 8});
  expect_operator(list, "mlp.activation", {0, 5 * 256, 2}, {0, 9 * 256, 3});
}

TEST(OperatorNumbers, flash_without_causal_skip_computes_the_whole_square) {
  Stack stack = flash(true);
  stack.attention.causal_skip = false;
  const auto list = layer_operators(tiny_llama(), stack, tiny_slice());
  expect_operator(list, "attention.flash", {1024, 448}, {2560, 832, 3});
}

TEST(OperatorNumbers, parallel_residual_adds_partial_sums_before_the_leave) {
  Model model = tiny_gpt();
  model.parallel_residual = true;
  const auto list = layer_operators(model, plain(true), tiny_slice());
  expect_operator(list, "attention.join", {0, 2 * 128 + 64}, {0, 2 * 128 + 64});
  expect_operator(list, "mlp.join", {0, 3 * 128 + 64}, {0, 2 * 128 + 64});
  // the input fed the residual and two norms: two sums of gradients
  expect_operator(list, "layer.residual", {0, 3 * 128}, {0, 6 * 128, 2});
}

TEST(OperatorNumbers, embedding) {
  const auto list = embedding_operators(tiny_gpt(), plain(true), tiny_slice());
  expect_operator(list, "embedding.lookup", {0, 2 * 128 + 64}, {0, 3 * 128 + 64});  // ids 8 x 8 B
  expect_operator(list, "embedding.position", {0, 2 * 128 + 64}, {0, 128 + 64});    // 4 rows of 16 B
  expect_operator(list, "embedding.dropout", {0, 2 * 128 + 64}, {0, 2 * 128 + 64});
}

TEST(OperatorNumbers, head_with_fused_loss) {
  const auto list = head_operators(tiny_gpt(), plain(true), tiny_slice());
  expect_linear(list, "head.logits", {2 * 8 * 128 * 8, (64 + 1024 + 1024) * 2});
  expect_operator(list, "loss", {0, 2 * 2048}, {0, 2 * 2048});
  EXPECT_EQ(list.back().boundary, Boundary::reduce);
  EXPECT_EQ(list.back().boundary_bytes.value(), 8 * 3 * 4);
}

// 1024 logits: 2 + 36 bytes each forward; 12 + 2 backward.
TEST(OperatorNumbers, head_with_fp32_loss) {
  const auto list = head_operators(tiny_gpt(), plain(false), tiny_slice());
  expect_operator(list, "loss", {0, 38 * 1024, 6}, {0, 14 * 1024, 3});
}

TEST(OperatorNumbers, fp8_products_read_one_byte_and_write_two) {
  const auto list = layer_operators(tiny_gpt(), plain(true), tiny_slice(Precision::fp8));
  const auto& qkv = list[2];
  ASSERT_EQ(qkv.name, "attention.qkv");
  expect_kernel(qkv.forward, {3072, 64 + 192 + 192 * 2, 2}, "forward");
  expect_kernel(qkv.backward_input, {3072, 192 + 192 + 64 * 2, 2}, "dX");
  expect_kernel(qkv.backward_weight, {3072, 192 + 64 + 192 * 2}, "dW");
  // Narrow copies in front: two bytes read, one written twice.
  EXPECT_EQ(qkv.forward.casts, Bytes(64 * 4));
  EXPECT_EQ(qkv.backward_input.casts, Bytes(192 * 4));
  EXPECT_EQ(qkv.backward_weight.casts, Bytes(0));
  EXPECT_EQ(qkv.forward.precision, Precision::fp8);
  EXPECT_EQ(list[3].forward.precision, Precision::bf16);  // attention.scores
  expect_operator(list, "attention.scores", {512, 3 * 128}, {1024, 6 * 128, 2});
}

// A GEMM that accumulates into an fp32 buffer reads and writes it: 192 weights x 8 B.
TEST(OperatorNumbers, fused_accumulation_reads_and_writes_the_gradient_buffer) {
  Stack stack = plain(true);
  stack.fusion.gradient_accumulation = true;
  const auto list = layer_operators(tiny_gpt(), stack, tiny_slice());
  expect_kernel(list[2].backward_weight, {3072, (192 + 64) * 2 + 192 * 8}, "dW");
  expect_kernel(list[2].forward, {3072, 896}, "forward");
}

// t = 2 with sequence parallelism: GEMMs halve one dimension; norms and residuals have half the tokens.
TEST(OperatorNumbers, slice_of_a_tensor_and_sequence_parallel_layer) {
  Slice half = tiny_slice();
  half.tp = 2;
  half.sequence_parallel = true;
  const auto list = layer_operators(tiny_gpt(), plain(true), half);
  expect_operator(list, "attention.norm", {0, 128}, {0, 192, 2});
  expect_linear(list, "attention.qkv", {1536, (64 + 96 + 96) * 2});
  expect_operator(list, "attention.scores", {256, 3 * 64}, {512, 6 * 64, 2});
  expect_linear(list, "attention.output", {512, (32 + 32 + 64) * 2});
  expect_operator(list, "mlp.residual", {0, 192 + 32}, {0, (128 + 32) + 192, 2});
}

}  // namespace
}  // namespace orrery::workload::test::operators_numbers_test
