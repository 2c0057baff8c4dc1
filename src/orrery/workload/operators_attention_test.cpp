// Kinds of attention: latent, windowed, of encoders, with context parallelism; kernels of tiny layers calculated by
// hand.
//
// Everywhere: b = 2, s = 4, so n = 8 tokens; h = 8, two heads; two-byte elements. A hidden tensor is 128 B.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::operators_attention_test {
namespace {

using hardware::Stack;

Model tiny_llama() {
  Model model = llama(8, 2, 1, 16);
  model.vocab = 128;
  return model;
}

Model tiny_latent() {
  Model model = tiny_llama();
  model.latent.query_rank = 4;
  model.latent.kv_rank = 6;
  model.latent.nope_dim = 4;
  model.latent.rope_dim = 2;
  model.latent.value_dim = 3;
  return model;
}

Stack plain_gradients() {
  Stack stack;
  stack.fusion.gradient_accumulation = false;
  return stack;
}

LayerKind windowed(std::int64_t window, bool encoder = false) { return {false, encoder, false, window}; }

double core_flops(const Stack& stack, const LayerKind& kind) {
  return find(layer_operators(tiny_llama(), stack, slice(2, 4), kind), "attention.flash").forward.flops.value();
}

// 16 rows x 4 keys x 4 dims x 4 FLOPs = 1024 of the whole square: 16 pairs. A window of 2 leaves 4 x 2 - 2 = 6, from
// both sides 12; one as long as the sequence leaves all.
TEST(Attention, window_leaves_s_w_less_half_w2_pairs) {
  const Stack stack;
  EXPECT_DOUBLE_EQ(core_flops(stack, windowed(0)), 512);
  EXPECT_DOUBLE_EQ(core_flops(stack, windowed(2)), 1024 * 6 / 16.0);
  EXPECT_DOUBLE_EQ(core_flops(stack, windowed(4)), 512);
  EXPECT_DOUBLE_EQ(core_flops(stack, windowed(400)), 512);
  EXPECT_DOUBLE_EQ(core_flops(stack, windowed(0, true)), 1024);
  EXPECT_DOUBLE_EQ(core_flops(stack, windowed(2, true)), 1024 * 12 / 16.0);
}

TEST(Attention, kernel_that_skips_nothing_computes_the_whole_square) {
  Stack stack;
  stack.attention.causal_skip = false;
  EXPECT_DOUBLE_EQ(core_flops(stack, windowed(2)), 1024);
  stack.attention.kernel = hardware::AttentionKernel::plain;
  const auto list = layer_operators(tiny_llama(), stack, slice(2, 4), windowed(2));
  EXPECT_DOUBLE_EQ(find(list, "attention.scores").forward.flops.value(), 512);
}

TEST(Attention, latent_runs_in_forward_order) {
  auto all = names(layer_operators(tiny_latent(), Stack{}, slice(2, 4)));
  all.erase(std::find(all.begin(), all.end(), "mlp.norm"), all.end());
  EXPECT_THAT(all, testing::ElementsAre("attention.norm", "attention.query_down", "attention.query_norm",
                                        "attention.kv_down", "attention.kv_norm", "attention.enter",
                                        "attention.query_up", "attention.kv_up", "attention.rotary", "attention.flash",
                                        "attention.output", "attention.leave", "attention.residual"));
}

TEST(Attention, latent_by_hand) {
  const auto list = layer_operators(tiny_latent(), plain_gradients(), slice(2, 4));
  expect_linear(list, "attention.query_down", {2 * 8 * 4 * 8, (64 + 32 + 32) * 2});
  expect_operator(list, "attention.query_norm", {0, 2 * 64}, {0, 3 * 64, 2});
  expect_linear(list, "attention.kv_down", {2 * 8 * 8 * 8, (64 + 64 + 64) * 2});  // 6 + 2 columns
  expect_operator(list, "attention.kv_norm", {0, 2 * 96}, {0, 3 * 96, 2});
  EXPECT_EQ(find(list, "attention.enter").boundary_bytes, Bytes(8 * (4 + 6 + 2) * 2));
  expect_linear(list, "attention.query_up", {2 * 8 * 12 * 4, (32 + 48 + 96) * 2});  // two heads of 4 + 2
  expect_linear(list, "attention.kv_up", {2 * 8 * 14 * 6, (48 + 84 + 112) * 2});    // two heads of 4 + 3
  // rotated in place: two heads and the shared key of 2, 96 B; key heads put together: 128 + 192 B
  expect_operator(list, "attention.rotary", {0, 2 * 96 + 128 + 192, 2}, {0, 512, 2});
  // 4 sequence-heads of 8 pairs; 6 + 3 deep, backward 3 x 6 + 2 x 3; q k 192 B, v o 96 B, log-sum-exp 64 B
  expect_operator(list, "attention.flash", {2 * 4 * 8 * 9, 2 * 192 + 2 * 96 + 64},
                  {2 * 4 * 8 * 24, 4 * 192 + 4 * 96 + 64, 3});
  expect_linear(list, "attention.output", {2 * 8 * 8 * 6, (48 + 48 + 64) * 2});
}

// Input of both projections down 128, of the norms 64 and 96, of the projections up 64 and 96; q k 192, v 96, log-sum-
// exp 64, the output's input 96.
TEST(Attention, latent_keeps_latents_before_and_after_their_norms) {
  const auto list = layer_operators(tiny_latent(), Stack{}, slice(2, 4));
  EXPECT_EQ(find(list, "attention.query_down").saved, Bytes(128));
  EXPECT_EQ(find(list, "attention.query_norm").saved, Bytes(64));
  EXPECT_EQ(find(list, "attention.kv_down").saved, Bytes(0));
  EXPECT_EQ(find(list, "attention.kv_norm").saved, Bytes(96));
  EXPECT_EQ(find(list, "attention.query_up").saved, Bytes(64 + 192));
  EXPECT_EQ(find(list, "attention.kv_up").saved, Bytes(96 + 192 + 96));
  EXPECT_EQ(find(list, "attention.flash").saved, Bytes(64));
  EXPECT_EQ(find(list, "attention.output").saved, Bytes(96));
}

// 48 elements of output: with products in fp8 in two bytes for attention and in one for the projection, or once for
// both.
TEST(Attention, the_output_is_kept_in_two_formats_or_in_one_for_both) {
  Slice narrow = slice(2, 4);
  narrow.precision = hardware::Precision::fp8;
  Stack stack;
  auto list = layer_operators(tiny_latent(), stack, narrow);
  EXPECT_EQ(find(list, "attention.flash").saved, Bytes(64 + 96));
  EXPECT_EQ(find(list, "attention.output").saved, Bytes(48));
  stack.storage.attention_output_element = Bytes(1.5);
  list = layer_operators(tiny_latent(), stack, narrow);
  EXPECT_EQ(find(list, "attention.flash").saved, Bytes(64));
  EXPECT_EQ(find(list, "attention.output").saved, Bytes(72));
  list = layer_operators(tiny_latent(), stack, slice(2, 4));  // one format: once anyway
  EXPECT_EQ(find(list, "attention.output").saved, Bytes(96));
}

// DeepSeek-V2-Lite: queries straight from the hidden vector, which is gathered with the latents.
TEST(Attention, latent_without_query_rank_projects_queries_directly) {
  Model model = tiny_latent();
  model.latent.query_rank = 0;
  const auto list = layer_operators(model, plain_gradients(), slice(2, 4));
  EXPECT_EQ(find(list, "attention.enter").boundary_bytes, Bytes(8 * (8 + 6 + 2) * 2));
  expect_linear(list, "attention.query", {2 * 8 * 12 * 8, (64 + 96 + 96) * 2});
  EXPECT_EQ(find(list, "attention.kv_down").saved, Bytes(128));
}

// t = 2: one head per rank. Without sequence parallelism both ranks compute all latents.
TEST(Attention, latent_slices_split_heads_and_replicate_latents) {
  Slice half = slice(2, 4, 2, true);
  const auto list = layer_operators(tiny_latent(), plain_gradients(), half);
  expect_linear(list, "attention.query_down", {2 * 4 * 4 * 8, (32 + 32 + 16) * 2});
  expect_linear(list, "attention.query_up", {2 * 8 * 6 * 4, (32 + 24 + 48) * 2});
  EXPECT_EQ(find(list, "attention.query_down").parameters, 32);
  EXPECT_EQ(find(list, "attention.query_up").parameters, 24);
  half.sequence_parallel = false;
  EXPECT_EQ(find(layer_operators(tiny_latent(), Stack{}, half), "attention.query_down").forward.flops,
            Flops(2 * 8 * 4 * 8));
}

// A decode step at 5 positions, n = 2 tokens: the query heads take on W_uk, the cache of 6 + 2 numbers a position is
// read once for both heads, W_uv follows.
TEST(Attention, latent_decodes_over_its_latents) {
  Slice step = slice(2, 1);
  step.pass = Pass::decode;
  step.context = 5;
  const auto list = layer_operators(tiny_latent(), Stack{}, step);
  expect_kernel(find(list, "attention.absorb").forward, {2 * 4 * 6 * 4, (16 + 2 * 24 + 24) * 2}, "absorb");
  expect_shape(find(list, "attention.absorb").forward, 2, 2, 6, 4);
  const Operator& core = find(list, "attention.decode");
  // 4 rows of 8 + 6 deep; cache 2 x 5 x 8, queries and results 4 x 14 elements
  expect_kernel(core.forward, {2 * 4 * 14 * 5, (80 + 56) * 2}, "decode");
  expect_shape(core.forward, 2, 2, 5, 7);
  EXPECT_EQ(core.growth, (Growth{1, Flops(2 * 4 * 14), Bytes(2 * 8 * 2), 0}));
  expect_kernel(find(list, "attention.value_up").forward, {2 * 4 * 3 * 6, (24 + 2 * 18 + 12) * 2}, "value_up");
  EXPECT_EQ(parameters(list), static_cast<double>(layer_parameters(tiny_latent(), {})));
}

// c = 2, 4 tokens per rank: keys and values of all 8 tokens pass the rank (8 x 2 x 4 elements); half of the work, in
// two rounds; q o 64 B, all keys and values 64 B each, log-sum-exp 8 x 4 B.
TEST(Attention, ring_passes_keys_and_values_of_all_ranks_by) {
  Slice part = slice(2, 4);
  part.cp = 2;
  const auto list = layer_operators(tiny_llama(), plain_gradients(), part);
  const Operator& exchange = find(list, "attention.exchange");
  EXPECT_EQ(exchange.boundary, Boundary::exchange);
  EXPECT_EQ(exchange.boundary_bytes, Bytes(8 * 2 * 4 * 2));
  EXPECT_EQ(exchange.tag, OperatorTag::attention_core);
  expect_operator(list, "attention.flash", {256, 4 * 64 + 32, 2}, {640, 8 * 64 + 32, 6});
  expect_shape(find(list, "attention.flash").forward, 4, 2, 2, 4);  // a query sees 2 keys on average
  expect_linear(list, "attention.qkv", {2 * 4 * 16 * 8, (32 + 128 + 64) * 2});
  EXPECT_EQ(find(list, "attention.qkv").saved, Bytes(64 + 128));  // of its own tokens only
}

// One query head per rank and a replica of the only key-value head: the all-to-all sends 64 B of queries and 2 x 64 B
// of replicas. Whole sequence: 2 sequences of 8 pairs. The output is kept before and after the second all-to-all.
TEST(Attention, ulysses_trades_positions_for_heads) {
  Slice part = slice(2, 4);
  part.cp = 2;
  part.cp_method = ContextMethod::ulysses;
  const auto list = layer_operators(tiny_llama(), Stack{}, part);
  EXPECT_EQ(find(list, "attention.to_heads").boundary, Boundary::to_heads);
  EXPECT_EQ(find(list, "attention.to_heads").boundary_bytes, Bytes(192));
  EXPECT_EQ(find(list, "attention.to_sequence").boundary_bytes, Bytes(64));
  expect_operator(list, "attention.flash", {256, 4 * 64 + 32}, {640, 8 * 64 + 32, 3});
  expect_shape(find(list, "attention.flash").forward, 2, 4, 2, 4);  // a query sees 2 keys on average
  EXPECT_EQ(find(list, "attention.flash").saved, Bytes(32 + 64));
  EXPECT_EQ(find(list, "attention.qkv").saved, Bytes(64 + 3 * 64));
}

TEST(Attention, projected_latents_are_sent_as_heads) {
  Slice part = slice(2, 4);
  part.cp = 2;
  const auto list = layer_operators(tiny_latent(), Stack{}, part);
  EXPECT_EQ(find(list, "attention.exchange").boundary_bytes, Bytes(8 * 2 * (6 + 3) * 2));
}

// Qwen3: one vector of 4 weights for the queries and one for the keys; 8 x 12 elements pass.
TEST(Attention, heads_are_normalised_one_by_one) {
  Model model = tiny_llama();
  model.qk_norm = true;
  const auto list = layer_operators(model, Stack{}, slice(2, 4));
  expect_operator(list, "attention.qk_norm", {0, 2 * 192, 2}, {0, 3 * 192, 4});
  EXPECT_EQ(find(list, "attention.qk_norm").parameters, 8);
  EXPECT_EQ(find(list, "attention.qk_norm").saved, Bytes(192));
}

TEST(Attention, post_norms_stand_between_leave_and_residual) {
  Model model = tiny_llama();
  model.post_norms = true;
  const auto all = names(layer_operators(model, Stack{}, slice(2, 4)));
  const std::vector<std::string_view> tail(all.end() - 3, all.end());
  EXPECT_THAT(tail, testing::ElementsAre("mlp.leave", "mlp.post_norm", "mlp.residual"));
  EXPECT_THAT(all, testing::Contains("attention.post_norm"));
}

// Falcon: one norm, one enter, one leave; the common input of both halves is kept once, and its two gradients are
// summed.
TEST(Attention, parallel_halves_may_share_a_norm) {
  Model model = tiny_llama();
  model.parallel_residual = model.shared_norm = true;
  const auto list = layer_operators(model, Stack{}, slice(2, 4));
  EXPECT_THAT(names(list),
              testing::ElementsAre("attention.norm", "attention.enter", "attention.qkv", "attention.rotary",
                                   "attention.flash", "attention.output", "mlp.in", "mlp.activation", "mlp.out",
                                   "mlp.join", "layer.leave", "layer.residual"));
  EXPECT_EQ(find(list, "mlp.in").saved, Bytes(0));
  expect_operator(list, "mlp.join", {0, 3 * 128}, {0, 3 * 128});
  expect_operator(list, "layer.residual", {0, 3 * 128}, {0, 3 * 128});
}

Model tiny_t5() {
  Model model = gpt(1, 8, 2, 128);
  model.encoder_layers = 1;
  model.norm = Normalisation::rmsnorm;
  model.position = Position::relative;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = false;
  model.dropout = 0.0;
  return model;
}

TEST(Attention, decoder_attends_to_the_encoder_in_a_half_of_its_own) {
  const auto list = layer_operators(tiny_t5(), plain_gradients(), slice(2, 4), {false, false, true, 0});
  auto all = names(list);
  all.erase(all.begin(), std::find(all.begin(), all.end(), "cross.norm"));
  all.erase(std::find(all.begin(), all.end(), "mlp.norm"), all.end());
  EXPECT_THAT(all, testing::ElementsAre("cross.norm", "cross.memory_enter", "cross.memory", "cross.enter",
                                        "cross.query", "cross.flash", "cross.output", "cross.leave", "cross.residual"));
  expect_linear(list, "cross.query", {2 * 8 * 8 * 8, 3 * 128});
  expect_linear(list, "cross.memory", {2 * 8 * 16 * 8, (64 + 128 + 128) * 2});
  // the whole square, without a bias: q k v o, log-sum-exp
  expect_operator(list, "cross.flash", {1024, 4 * 128 + 64}, {2560, 8 * 128 + 64, 3});
  // self attention reads a bias of 2 x 4 x 4 elements, and writes its gradient
  expect_operator(list, "attention.flash", {512, 4 * 128 + 64 + 64}, {1280, 8 * 128 + 64 + 128, 3});
  EXPECT_EQ(find(list, "cross.memory").saved, Bytes(256));
  EXPECT_EQ(find(list, "cross.query").saved, Bytes(128 + 128));
}

// Fused: the bias is read with the scores (2 x 2 x 4 x 4 = 64 elements, 128 B); its gradient needs a pass over theirs.
TEST(Attention, relative_bias_joins_plain_scores) {
  Stack stack;
  stack.attention.kernel = hardware::AttentionKernel::plain;
  const auto list = layer_operators(tiny_t5(), stack, slice(2, 4), {false, true, false, 0});
  expect_operator(list, "attention.softmax", {0, 2 * 128 + 64}, {0, 3 * 128 + 128 + 64, 2});
  stack.fusion.elementwise = false;
  const auto apart = layer_operators(tiny_t5(), stack, slice(2, 4), {false, true, false, 0});
  expect_operator(apart, "attention.softmax", {0, 8 * 128 + 64, 4}, {0, 8 * 128 + 64, 4});
}

}  // namespace
}  // namespace orrery::workload::test::operators_attention_test
