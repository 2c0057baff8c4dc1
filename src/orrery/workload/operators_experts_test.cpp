// Mixtures of experts: kernels of a tiny layer calculated by hand, and sums over ranks.
//
// Everywhere: n = 8 tokens, h = 8, E = 4 experts of f = 16, k = 2 active, gated; two-byte elements. A hidden tensor is
// 8 x 8 x 2 = 128 B; 16 copies of tokens are 256 B.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/operators_halves.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::operators_experts_test {
namespace {

using hardware::Precision;
using hardware::Stack;

constexpr LayerKind kExperts{true, false, false, 0};

Model tiny_mixture() {
  Model model = llama(8, 2, 1, 16);
  model.vocab = 128;
  model.experts.count = 4;
  model.experts.active = 2;
  model.experts.ffn = 16;
  return model;
}

Stack plain_gradients() {
  Stack stack;
  stack.fusion.gradient_accumulation = false;
  return stack;
}

std::vector<Operator> layer(const Model& model, const Slice& part, const Stack& stack = plain_gradients()) {
  return layer_operators(model, stack, part, kExperts);
}

TEST(Experts, half_layer_runs_in_forward_order) {
  Model model = tiny_mixture();
  model.experts.shared_ffn = 16;
  model.experts.shared_gate = true;
  Slice part = slice(2, 4);
  part.ep = 2;
  auto all = names(layer(model, part));
  all.erase(all.begin(), std::find(all.begin(), all.end(), "mlp.norm"));
  EXPECT_THAT(
      all, testing::ElementsAre("mlp.norm", "experts.router", "experts.route", "shared.enter", "shared.in",
                                "shared.activation", "shared.out", "shared.leave", "shared.gate", "experts.permute",
                                "experts.dispatch", "experts.enter", "experts.sort", "experts.in", "experts.activation",
                                "experts.out", "experts.unsort", "experts.leave", "experts.combine",
                                "experts.unpermute", "shared.add", "mlp.residual"));
}

TEST(Experts, one_rank_by_hand) {
  const auto list = layer(tiny_mixture(), slice(2, 4));
  // X 64, W 32 elements of 2 B, 32 logits of 4 B; their gradients of 4 B
  expect_linear(list, "experts.router", {2 * 8 * 4 * 8, 128 + 64 + 128});
  // 32 fp32 probabilities three times, 16 choices of 8 + 4 B; backward three times
  expect_operator(list, "experts.route", {0, 3 * 128 + 192, 2}, {0, 3 * 128, 2});
  // tokens in, copies out; backward the same, and a sum with the router's gradient
  expect_operator(list, "experts.permute", {0, 128 + 256}, {0, 128 + 256 + 3 * 128, 2});
  // 16 rows, 4 experts of 8 x 32 and 16 x 8 weights
  expect_linear(list, "experts.in", {2 * 16 * 32 * 8, (128 + 4 * 256 + 512) * 2});
  expect_operator(list, "experts.activation", {0, 3 * 512}, {0, 5 * 512});
  expect_linear(list, "experts.out", {2 * 16 * 16 * 8, (256 + 4 * 128 + 128) * 2});
  expect_operator(list, "experts.unpermute", {0, 128 + 256}, {0, 128 + 256});
  expect_shape(find(list, "experts.in").forward, 4, 4, 32, 8);
  expect_shape(find(list, "experts.in").backward_input, 4, 4, 8, 32);
  expect_shape(find(list, "experts.in").backward_weight, 4, 32, 8, 4);
}

// Router: norm's output 128, probabilities 128 and choices 192; rows of 16 copies 64; permuted input 256; gate and up
// 1024; activation 512.
TEST(Experts, keep_permuted_inputs_and_both_sides_of_the_activation) {
  const auto list = layer(tiny_mixture(), slice(2, 4));
  EXPECT_EQ(find(list, "experts.router").saved, Bytes(128));
  EXPECT_EQ(find(list, "experts.route").saved, Bytes(128 + 192));
  EXPECT_EQ(find(list, "experts.permute").saved, Bytes(64));
  EXPECT_EQ(find(list, "experts.in").saved, Bytes(256));
  EXPECT_EQ(find(list, "experts.activation").saved, Bytes(1024));
  EXPECT_EQ(find(list, "experts.out").saved, Bytes(512));
  EXPECT_EQ(find(list, "experts.unpermute").saved, Bytes(0));
}

// Per token of Mixtral 8x7B, two bytes an element, q = a d, v = kv d: both norms 4h; qkv's input 2h, q, k, v 2q + 4v,
// log-sum-exp 4a, output's input 2q; router 2h, probabilities 4E, choices 12k, rows 4k; per copy 2h in, 4f gate and up,
// 2f activated.
TEST(Experts, mixtral_keeps_8h_4q_4v_4a_4E_and_16_2h_6f_per_copy) {
  Model model = llama(4096, 32, 8, 14336);
  model.experts.count = 8;
  model.experts.active = 2;
  model.experts.ffn = 14336;
  const double h = 4096, q = 4096, v = 1024, a = 32, f = 14336, tokens = 2048;
  EXPECT_DOUBLE_EQ(saved(layer(model, slice(1, 2048))),
                   tokens * (8 * h + 4 * q + 4 * v + 4 * a + 4 * 8 + 2 * (16 + 2 * h + 6 * f)));
}

// The gradients of the weights in the sum need the experts' outputs.
TEST(Experts, outputs_are_kept_when_the_sum_is_weighted_apart) {
  Stack stack = plain_gradients();
  stack.fusion.elementwise = false;
  const auto list = layer(tiny_mixture(), slice(2, 4), stack);
  EXPECT_EQ(find(list, "experts.unpermute").saved, Bytes(256));
  expect_operator(list, "experts.unpermute", {0, 384}, {0, 384 + 256});
  // two more kernels: 16 identities of 8 B, four passes
  expect_operator(list, "experts.route", {0, 576 + 512, 4}, {0, 384, 2});
}

// Of k = 2 copies that go to N places, N (1 - (1 - 1/N)^2): 1, 3/2, 7/4; never more than there are copies, nor places.
TEST(Experts, copies_meet_no_more_places_than_there_are) {
  const NodeDispatch dispatch{2.0};
  EXPECT_DOUBLE_EQ(dispatch.places_reached(1), 1.0);
  EXPECT_DOUBLE_EQ(dispatch.places_reached(2), 1.5);
  EXPECT_DOUBLE_EQ(dispatch.places_reached(4), 1.75);
  EXPECT_DOUBLE_EQ((NodeDispatch{2.0, 4.0, 2.0}.places_reached(4)), 1.5);
  for (double places = 1; places < 1e6; places *= 2) {
    EXPECT_LE(dispatch.places_reached(places), std::min(places, 2.0));
    EXPECT_LE(dispatch.places_reached(places), dispatch.places_reached(2 * places));
  }
}

// Places of several groups: two of four groups are both in one of two places with probability 1/3, else one in each, so
// that three copies miss a place with probability 1/6 + 2/3 (1/2)^3. DeepSeek-V3 on four nodes, 4 of 8 groups: nodes
// have none of them in 15 of 70 choices, one in 40, two in 15.
TEST(Experts, copies_of_active_groups_meet_places_of_several_groups) {
  EXPECT_NEAR((NodeDispatch{3.0, 4.0, 2.0}.places_reached(2)), 2.0 * (1.0 - 1.0 / 6.0 - 2.0 / 3.0 / 8.0), 1e-12);
  const double missed = (15.0 + 40.0 * std::pow(0.75, 8) + 15.0 * std::pow(0.5, 8)) / 70.0;
  const NodeDispatch deepseek{8.0, 8.0, 4.0};
  EXPECT_NEAR(deepseek.places_reached(4), 4.0 * (1.0 - missed), 1e-12);
  EXPECT_NEAR(deepseek.places_reached(1), 1.0, 1e-12);
  EXPECT_NEAR(deepseek.places_reached(8), 4.0 * (1.0 - std::pow(0.75, 8)), 1e-12);
  for (double places = 1; places < 64; places += 1) {
    EXPECT_LE(deepseek.places_reached(places), std::min(places, 8.0));
    EXPECT_LE(deepseek.places_reached(places), NodeDispatch{8.0}.places_reached(places) + 1e-12);
  }
}

// The rank whose experts get most receives, computes and returns so many copies more; the others wait for it.
TEST(Experts, the_busiest_rank_has_more_copies) {
  Slice even = slice(1, 4);
  even.pass = Pass::prefill;
  even.ep = 2;
  Slice busy = even;
  busy.expert_imbalance = 1.5;
  const auto mean = layer(tiny_mixture(), even), most = layer(tiny_mixture(), busy);
  for (const char* name : {"experts.dispatch", "experts.combine"}) {
    EXPECT_EQ(find(most, name).boundary_bytes, 1.5 * find(mean, name).boundary_bytes);
  }
  EXPECT_EQ(find(most, "experts.in").forward.flops, 1.5 * find(mean, "experts.in").forward.flops);
  EXPECT_EQ(find(most, "experts.router").forward.flops, find(mean, "experts.router").forward.flops);
  even.ep = busy.ep = 1;
  EXPECT_EQ(find(layer(tiny_mixture(), busy), "experts.in").forward.flops,
            find(layer(tiny_mixture(), even), "experts.in").forward.flops);
}

// Engines run experts where the tokens of a tensor-parallel group are: all 16 copies, of 16 / 2 columns on each of two
// ranks or of all columns of half of the experts. With sequence parallelism a rank has half of the tokens, and gets the
// others' copies before it computes the same FLOPs.
TEST(Experts, ranks_of_an_engine_compute_every_copy_whether_tokens_are_split_or_not) {
  Stack engine;
  engine.dispatch.replicated_tokens = true;
  Slice one = slice(2, 4);
  one.pass = Pass::prefill;
  const Flops all = find(layer(tiny_mixture(), one, engine), "experts.in").forward.flops;
  for (const auto& [ep, etp] : {std::pair<std::int64_t, std::int64_t>{1, 2}, {2, 1}}) {
    Slice part = slice(2, 4, 2);
    part.pass = Pass::prefill;
    part.ep = ep;
    part.etp = etp;
    for (const bool split : {false, true}) {
      part.sequence_parallel = split;
      const auto list = layer(tiny_mixture(), part, engine);
      EXPECT_EQ(find(list, "experts.in").forward.flops * 2.0, all) << ep << split;
      const auto has = names(list);
      EXPECT_EQ(std::count(has.begin(), has.end(), "experts.sum"), split ? 0 : 1);
      EXPECT_EQ(std::count(has.begin(), has.end(), "experts.enter"), split ? 1 : 0);
    }
  }
}

// Two tensor-parallel ranks with the same tokens, experts on both and two others: each sends the copies of half of its
// tokens, and gets the outputs of the others. Four ranks with two such groups compute every copy once.
TEST(Experts, ranks_of_an_engine_divide_tokens_whose_experts_are_elsewhere_too) {
  Stack engine;
  engine.dispatch.replicated_tokens = true;
  Slice one = slice(2, 4);
  one.pass = Pass::prefill;
  const Flops all = find(layer(tiny_mixture(), one, engine), "experts.in").forward.flops;
  for (const auto& [ep, etp] : {std::pair<std::int64_t, std::int64_t>{1, 4}, {2, 2}, {4, 1}}) {
    Slice part = slice(2, 4, 2);
    part.pass = Pass::prefill;
    part.ep = ep;
    part.etp = etp;
    const auto list = layer(tiny_mixture(), part, engine);
    EXPECT_EQ(find(list, "experts.in").forward.flops * 2.0, all) << ep;  // of two groups' tokens on four ranks
    const Operator gather = find(list, "experts.gather");
    EXPECT_EQ(gather.boundary, Boundary::gather);
    EXPECT_EQ(gather.boundary_bytes, Bytes(128));  // 8 tokens of 16 B
  }
}

// Tokens are sent once to each of two ranks: 8 x 3/2 = 12 tokens of 16 B arrive for 16 copies. No copies before the
// dispatch, no reordering of chunks.
TEST(Experts, tokens_sent_once_are_copied_at_the_destination) {
  Stack stack = plain_gradients();
  stack.dispatch.copies = hardware::TokenCopies::per_node;
  Slice part = slice(2, 4);
  part.ep = 2;
  const auto list = layer(tiny_mixture(), part, stack);
  auto all = names(list);
  all.erase(all.begin(), std::find(all.begin(), all.end(), "experts.route"));
  EXPECT_THAT(all, testing::ElementsAre("experts.route", "experts.dispatch", "experts.permute", "experts.enter",
                                        "experts.in", "experts.activation", "experts.out", "experts.leave",
                                        "experts.unpermute", "experts.combine", "mlp.residual"));
  EXPECT_EQ(find(list, "experts.dispatch").node_dispatch, (NodeDispatch{2.0}));
  expect_operator(list, "experts.permute", {0, 12 * 16 + 256}, {0, 12 * 16 + 256 + 3 * 128, 2});
  expect_operator(list, "experts.unpermute", {0, 12 * 16 + 256}, {0, 12 * 16 + 256});
  part.ep = 1;  // no dispatch
  EXPECT_EQ(find(layer(tiny_mixture(), part, stack), "experts.permute").forward.bytes, Bytes(128 + 256));
}

// Generated tokens: the same copies and experts, by kernels that also sort and add. Prompts go once to a rank.
TEST(Experts, generated_tokens_go_by_low_latency_kernels) {
  Stack stack = plain_gradients(), low = plain_gradients();
  low.dispatch.low_latency = true;
  low.dispatch.copies = hardware::TokenCopies::per_node;
  Slice part = slice(2, 1);
  part.ep = 2;
  part.pass = Pass::prefill;
  EXPECT_EQ(find(layer(tiny_mixture(), part, low), "experts.dispatch").node_dispatch, (NodeDispatch{2.0}));
  part.pass = Pass::decode;
  part.context = 8;
  const auto list = layer(tiny_mixture(), part, stack), other = layer(tiny_mixture(), part, low);
  for (const char* name : {"experts.dispatch", "experts.combine"}) {
    EXPECT_EQ(find(list, name).node_dispatch, NodeDispatch());
    EXPECT_EQ(find(other, name).node_dispatch, (NodeDispatch{2.0, 1.0, 1.0, true}));
    EXPECT_EQ(find(list, name).boundary_bytes, find(other, name).boundary_bytes);
  }
  EXPECT_EQ(find(list, "experts.in").forward.flops, find(other, "experts.in").forward.flops);
  EXPECT_THAT(names(list),
              testing::IsSupersetOf({"experts.permute", "experts.sort", "experts.unsort", "experts.unpermute"}));
  auto all = names(other);
  all.erase(all.begin(), std::find(all.begin(), all.end(), "experts.route"));
  EXPECT_THAT(all, testing::ElementsAre("experts.route", "experts.dispatch", "experts.enter", "experts.in",
                                        "experts.activation", "experts.out", "experts.leave", "experts.combine",
                                        "mlp.residual"));
}

// Between the two fp8 GEMMs: no activation kernel, no cast of its output or gradient. The first GEMM writes 16 x 16
// activated elements more; the second one's input gradient reads their 32 inputs and writes as many.
TEST(Experts, fused_with_their_activation_cast_only_what_comes_in) {
  Slice part = slice(2, 4);
  part.precision = Precision::fp8;
  Stack stack = plain_gradients();
  const auto apart = layer(tiny_mixture(), part, stack);
  stack.fusion.experts = true;
  const auto fused = layer(tiny_mixture(), part, stack);
  const double inner = 16 * 16 * 2;
  EXPECT_EQ(find(fused, "experts.activation").forward, Kernel{});
  EXPECT_EQ(find(fused, "experts.activation").backward_input, Kernel{});
  EXPECT_EQ(find(fused, "experts.activation").saved, find(apart, "experts.activation").saved);
  const auto &in = find(fused, "experts.in"), &out = find(fused, "experts.out");
  EXPECT_EQ(in.forward.casts, find(apart, "experts.in").forward.casts);
  EXPECT_EQ(in.backward_input.casts, Bytes(0));
  EXPECT_EQ(out.forward.casts, Bytes(0));
  EXPECT_EQ(out.forward.launches, 1);
  EXPECT_EQ(out.backward_input.casts, find(apart, "experts.out").backward_input.casts);
  EXPECT_EQ(in.forward.bytes, find(apart, "experts.in").forward.bytes + Bytes(inner));
  EXPECT_EQ(out.backward_input.bytes, find(apart, "experts.out").backward_input.bytes + Bytes(3 * inner));
}

// 16 rows of 8: forward 4, 2 + 4 + 4, 4 + 4, 4 + 2 bytes an element in four kernels, of which two are one for each of 4
// experts; backward 2 + 4, 4 + 2, and twice 4 + 4 + 4 in six, of which five are.
TEST(Experts, that_go_one_by_one_add_their_biases_so) {
  Model model = tiny_mixture();
  model.mlp_bias = true;
  Stack stack = plain_gradients();
  const auto together = names(layer(model, slice(2, 4), stack));
  EXPECT_EQ(std::count(together.begin(), together.end(), "experts.bias"), 0);
  stack.host.kernel_launch_time = Seconds(1e-5);
  const auto list = layer(model, slice(2, 4), stack);
  expect_operator(list, "experts.bias", {0, 16 * 8 * 28, 4}, {0, 16 * 8 * 36, 6});
  EXPECT_EQ(find(list, "experts.bias").forward.extra_kernels, 2 * 3);
  EXPECT_EQ(find(list, "experts.bias").backward_input.extra_kernels, 5 * 3);
}

TEST(Experts, products_of_several_are_grouped) {
  const auto list = layer(tiny_mixture(), slice(2, 4));
  for (const auto* kernel : {&find(list, "experts.in").forward, &find(list, "experts.out").backward_weight}) {
    EXPECT_TRUE(kernel->grouped);
  }
  EXPECT_FALSE(find(list, "experts.router").forward.grouped);
  Slice part = slice(2, 4);
  part.ep = 4;  // one expert per rank
  EXPECT_FALSE(find(layer(tiny_mixture(), part), "experts.in").forward.grouped);
}

// 2 x 2: a rank has 2 experts, half of each; it gets the copies of two ranks' worth of tokens from each of its two.
TEST(Experts, of_expert_and_tensor_slices_by_hand) {
  Slice part = slice(2, 4);
  part.ep = part.etp = 2;
  const auto list = layer(tiny_mixture(), part);
  EXPECT_EQ(find(list, "experts.dispatch").boundary, Boundary::dispatch);
  EXPECT_EQ(find(list, "experts.dispatch").boundary_bytes, Bytes(256));
  EXPECT_EQ(find(list, "experts.enter").boundary, Boundary::expert_enter);
  EXPECT_EQ(find(list, "experts.enter").boundary_bytes, Bytes(512));
  EXPECT_EQ(find(list, "experts.leave").boundary_bytes, Bytes(512));
  EXPECT_EQ(find(list, "experts.combine").boundary_bytes, Bytes(256));
  expect_operator(list, "experts.sort", {0, 1024}, {0, 1024});
  // 32 rows, 2 experts of 8 x 16 weights
  expect_linear(list, "experts.in", {2 * 32 * 16 * 8, (256 + 2 * 128 + 512) * 2});
  EXPECT_EQ(find(list, "experts.in").parameters, 2 * 128);
  EXPECT_EQ(find(list, "experts.in").saved, Bytes(512));
  EXPECT_TRUE(find(list, "experts.in").expert);
  EXPECT_TRUE(find(list, "experts.out").expert);
  EXPECT_FALSE(find(list, "experts.router").expert);
}

// 16 copies are 4 to an expert; 1.4 times that is 5.6: room for 6, 24 copies in all. A prompt drops and pads nothing.
TEST(Experts, with_a_capacity_compute_and_send_their_padding) {
  Model model = tiny_mixture();
  model.experts.capacity_factor = 1.4;
  Slice part = slice(2, 4);
  EXPECT_EQ(find(layer(model, part), "experts.dispatch").boundary_bytes, Bytes(24 * 16));
  EXPECT_EQ(find(layer(model, part), "experts.in").forward.flops, Flops(2 * 24 * 32 * 8));
  EXPECT_EQ(find(layer(model, part), "experts.in").forward.m, 6);
  part.pass = Pass::prefill;
  EXPECT_EQ(find(layer(model, part), "experts.in").forward.flops, Flops(2 * 16 * 32 * 8));
}

// One token uses k = 2 of 4 experts. Two tokens use 4 (1 - (1/2)^2) = 3 on average, three 3.5; many use all.
TEST(Experts, a_pass_over_few_tokens_reads_only_the_experts_in_use) {
  const auto weights_read = [](std::int64_t tokens) {
    Slice part = slice(tokens, 1);
    part.pass = Pass::decode;
    part.context = 8;
    const auto list = layer(tiny_mixture(), part);
    const double rows = 2.0 * static_cast<double>(tokens);
    return (find(list, "experts.in").forward.bytes.value() / 2 - rows * (8 + 32)) / 256;
  };
  EXPECT_DOUBLE_EQ(weights_read(1), 2);
  EXPECT_DOUBLE_EQ(weights_read(2), 3);
  EXPECT_DOUBLE_EQ(weights_read(3), 3.5);
  EXPECT_DOUBLE_EQ(weights_read(200), 4);
  Slice part = slice(3, 1);
  part.pass = Pass::decode;
  part.context = 8;
  expect_shape(find(layer(tiny_mixture(), part), "experts.in").forward, 4, 2, 32, 8);  // 6 rows over 3.5, up
  // Two ranks of three tokens each: each rank's 2 experts may be used by 6 tokens, each with p = 1 - (1/2)^6. The rank
  // that uses most has at least one unless all four are unused, and both unless neither rank has both.
  part.ep = 2;
  const auto list = layer(tiny_mixture(), part);
  const double unused = 1.0 / 64, both = (1 - unused) * (1 - unused);
  const double most = (1 - std::pow(unused, 4)) + (1 - std::pow(1 - both, 2));
  EXPECT_DOUBLE_EQ(find(list, "experts.in").forward.bytes.value(), 2 * (6 * (8 + 32) + 256 * most));
}

// An ordinary MLP of 16 over all 8 tokens; its gate is one GEMM with 8 weights.
TEST(Experts, shared_ones_are_an_ordinary_mlp) {
  Model model = tiny_mixture();
  model.experts.shared_ffn = 16;
  const auto list = layer(model, slice(2, 4));
  expect_linear(list, "shared.in", {2 * 8 * 32 * 8, (64 + 256 + 256) * 2});
  expect_linear(list, "shared.out", {2 * 8 * 16 * 8, (128 + 128 + 64) * 2});
  expect_operator(list, "shared.add", {0, 3 * 128}, {0, 0});
  expect_operator(list, "experts.permute", {0, 384}, {0, 384 + 2 * 384, 3});
  EXPECT_EQ(find(list, "shared.in").saved, Bytes(0));  // the router keeps it
  EXPECT_EQ(find(list, "shared.add").saved, Bytes(0));
  model.experts.shared_gate = true;
  const auto gated = layer(model, slice(2, 4));
  expect_linear(gated, "shared.gate", {2 * 8 * 8, (64 + 8 + 8) * 2});
  expect_operator(gated, "shared.add", {0, 3 * 128}, {0, 3 * 128});
  EXPECT_EQ(find(gated, "shared.add").saved, Bytes(128));
  EXPECT_EQ(parameters(gated) - parameters(list), 8);
}

// In fp8, inputs of GEMMs have one byte; the shared experts' input is a different tensor than the router's.
TEST(Experts, in_fp8_keep_one_byte_inputs_and_route_in_two) {
  Model model = tiny_mixture();
  model.experts.shared_ffn = 16;
  Slice part = slice(2, 4);
  part.precision = Precision::fp8;
  const auto list = layer(model, part);
  EXPECT_EQ(find(list, "experts.router").saved, Bytes(128));
  EXPECT_EQ(find(list, "experts.router").forward.precision, Precision::bf16);
  EXPECT_EQ(find(list, "experts.in").saved, Bytes(128));
  EXPECT_EQ(find(list, "experts.in").forward.precision, Precision::fp8);
  EXPECT_EQ(find(list, "shared.in").saved, Bytes(64));
  EXPECT_EQ(find(list, "experts.dispatch").boundary_bytes, Bytes(256));
}

// Experts that `tokens` tokens use, of each rank; the most of any rank, on average over many draws.
double simulated_most(int tokens, int active, int count, int ranks) {
  constexpr int kDraws = 2000;
  std::mt19937 random(7);
  std::vector<int> experts(static_cast<std::size_t>(count));
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::vector<bool> used(static_cast<std::size_t>(count), false);
    for (int t = 0; t < tokens; ++t) {
      std::iota(experts.begin(), experts.end(), 0);
      std::shuffle(experts.begin(), experts.end(), random);
      for (int k = 0; k < active; ++k) { used[static_cast<std::size_t>(experts[static_cast<std::size_t>(k)])] = true; }
    }
    const auto local = count / ranks;
    std::ptrdiff_t most = 0;
    for (int r = 0; r < ranks; ++r) {
      most = std::max(most, std::count(used.begin() + r * local, used.begin() + (r + 1) * local, true));
    }
    sum += static_cast<double>(most);
  }
  return sum / kDraws;
}

// bf16 numbers out and back; where GEMMs are in fp4 4.5 bits out (a scale for 16 numbers), whatever other tokens have.
TEST(Experts, are_sent_tokens_in_the_format_that_the_stack_states) {
  Stack stack = plain_gradients();
  const auto ratio = [&](Precision precision) {
    Slice part = slice(2, 4);
    part.ep = 2;
    part.pass = Pass::prefill;
    part.precision = precision;
    const auto list = layer(tiny_mixture(), part, stack);
    return find(list, "experts.dispatch").boundary_bytes / find(list, "experts.combine").boundary_bytes;
  };
  EXPECT_DOUBLE_EQ(ratio(Precision::fp4), 1.0);
  stack.dispatch.fp4_element = Bytes(0.5625);
  EXPECT_DOUBLE_EQ(ratio(Precision::fp4), 0.5625 / 2.0);
  EXPECT_DOUBLE_EQ(ratio(Precision::fp8), 1.0);
  stack.dispatch.element = Bytes(1.0);
  EXPECT_DOUBLE_EQ(ratio(Precision::fp4), 0.5625 / 2.0);
  EXPECT_DOUBLE_EQ(ratio(Precision::fp8), 0.5);
}

TEST(Experts, of_the_rank_that_reads_most_agree_with_draws) {
  for (const int tokens : {1, 4, 16}) {
    const double used = 1.0 - std::pow(1.0 - 4.0 / 64.0, tokens);
    EXPECT_NEAR(expected_most(8, used, 8), simulated_most(tokens, 4, 64, 8), 0.12) << tokens;
  }
}

TEST(Experts, most_of_places_has_its_limits) {
  EXPECT_NEAR(expected_most(32, 0.3, 1), 32 * 0.3, 1e-9);  // one place: the mean
  EXPECT_EQ(expected_most(32, 1.0, 8), 32.0);
  EXPECT_EQ(expected_most(32, 0.0, 8), 0.0);
  EXPECT_NEAR(expected_most(1, 0.5, 2), 0.75, 1e-12);
  for (const double used : {0.01, 0.5, 0.99}) {
    double before = 32 * used;
    for (const std::int64_t places : {2, 8, 64}) {
      const double most = expected_most(32, used, places);
      EXPECT_GT(most, before) << used << ' ' << places;
      EXPECT_LE(most, 32.0);
      before = most;
    }
  }
}

TEST(Experts, that_do_not_divide_are_broken_contracts) {
  Slice part = slice(2, 4);
  part.ep = 3;
  EXPECT_THROW((void)layer(tiny_mixture(), part), InternalError);
}

}  // namespace
}  // namespace orrery::workload::test::operators_experts_test
