// Laws of operators: saved activations, sums over slices, FLOPs of a step.
#include "orrery/workload/operators.hpp"

#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/error.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::operators_test {
namespace {

using hardware::AttentionKernel;
using hardware::Precision;
using hardware::Stack;

// Korthikanti et al., arXiv:2205.05198. s = 2048, b = 2, h = 6144, a = 64 (their 22B model).
struct Korthikanti {
  double s = 2048, b = 2, h = 6144, a = 64;
  Model model = gpt(48, 6144, 64, 51200);
  Stack stack = megatron_2021();
  [[nodiscard]] double layer(std::int64_t t, bool sp) const {
    return saved(layer_operators(model, stack, slice(2, 2048, t, sp)));
  }
};

TEST(Operators, korthikanti_equation_1_no_parallelism_keeps_sbh_times_34_plus_5as_over_h) {
  const Korthikanti k;
  EXPECT_DOUBLE_EQ(k.layer(1, false), k.s * k.b * k.h * (34 + 5 * k.a * k.s / k.h));
}

TEST(Operators, korthikanti_equation_2_tensor_parallel_keeps_sbh_times_10_plus_24_over_t_plus_5as_over_ht) {
  const Korthikanti k;
  for (const std::int64_t t : {2, 4, 8}) {
    const auto d = static_cast<double>(t);
    EXPECT_DOUBLE_EQ(k.layer(t, false), k.s * k.b * k.h * (10 + 24 / d + 5 * k.a * k.s / (k.h * d)));
  }
}

TEST(Operators, korthikanti_equation_4_sequence_parallel_keeps_sbh_over_t_times_34_plus_5as_over_h) {
  const Korthikanti k;
  for (const std::int64_t t : {2, 4, 8}) {
    EXPECT_DOUBLE_EQ(k.layer(t, true), k.s * k.b * k.h / static_cast<double>(t) * (34 + 5 * k.a * k.s / k.h));
  }
}

TEST(Operators, selective_recompute_drops_5as2b_over_t) {
  const Korthikanti k;
  for (const std::int64_t t : {1, 2, 8}) {
    const auto list = layer_operators(k.model, k.stack, slice(2, 2048, t, true));
    EXPECT_DOUBLE_EQ(core_saved(list), 5 * k.a * k.s * k.s * k.b / static_cast<double>(t));
  }
}

// Section 4.3 of the same paper: 4 s b h / t (1 + v / h) for final norm, projection and fp32 logits.
TEST(Operators, head_keeps_4sbh_over_t_times_1_plus_v_over_h) {
  const Korthikanti k;
  const double v = 51200;
  EXPECT_DOUBLE_EQ(saved(head_operators(k.model, k.stack, slice(2, 2048, 8, true))),
                   4 * k.s * k.b * k.h / 8 * (1 + v / k.h));
}

// s b h / t of dropout mask, and the token ids the scatter needs, which the paper leaves out.
TEST(Operators, embedding_keeps_its_dropout_mask_and_the_token_ids) {
  const Korthikanti k;
  EXPECT_DOUBLE_EQ(saved(embedding_operators(k.model, k.stack, slice(2, 2048, 8, true))),
                   k.s * k.b * k.h / 8 + 8 * k.s * k.b);
}

// Per token, two bytes an element, q = a d, k = kv d:
//   norms 2 x 2h; qkv input 2h; q, k, v 2 (q + 2k); log-sum-exp 4a; output projection's input 2q; mlp.in's input 2h;
//   both halves of the gate's input 2 x 2f; mlp.out's input 2f.
TEST(Operators, gated_layer_with_flash_keeps_8h_4q_4k_4a_6f_bytes_per_token) {
  const Model model = llama(8192, 64, 8, 28672);
  const double h = 8192, a = 64, q = 8192, k = 1024, f = 28672, tokens = 4096;
  const auto list = layer_operators(model, Stack{}, slice(1, 4096));
  EXPECT_DOUBLE_EQ(saved(list), tokens * (8 * h + 4 * q + 4 * k + 4 * a + 6 * f));
  EXPECT_DOUBLE_EQ(core_saved(list), tokens * 4 * a);
}

// In fp8 the GEMMs keep one-byte inputs (h + q + h + f) and the core keeps its own two-byte output.
TEST(Operators, fp8_products_keep_one_byte_inputs) {
  const Model model = llama(8192, 64, 8, 28672);
  const double h = 8192, a = 64, q = 8192, k = 1024, f = 28672, tokens = 4096;
  Slice s = slice(1, 4096);
  s.precision = Precision::fp8;
  const double expected = 4 * h + h + 2 * (q + 2 * k) + 4 * a + 2 * q + q + h + 4 * f + f;
  EXPECT_DOUBLE_EQ(saved(layer_operators(model, Stack{}, s)), tokens * expected);
}

// relu's gradient needs its output only, which mlp.out keeps anyway.
TEST(Operators, relu_keeps_nothing_of_its_own) {
  Model model = gpt(2, 1024, 16, 50272);
  const double gelu = saved(layer_operators(model, megatron_2021(), slice(1, 512)));
  model.activation = Activation::relu;
  EXPECT_DOUBLE_EQ(gelu - saved(layer_operators(model, megatron_2021(), slice(1, 512))), 512 * 2 * 4 * 1024);
}

TEST(Operators, layer_runs_in_forward_order) {
  EXPECT_THAT(names(layer_operators(gpt(1, 1024, 16, 51200), megatron_2021(), slice(1, 128))),
              testing::ElementsAre("attention.norm", "attention.enter", "attention.qkv", "attention.scores",
                                   "attention.softmax", "attention.dropout", "attention.context", "attention.output",
                                   "attention.leave", "attention.residual", "mlp.norm", "mlp.enter", "mlp.in",
                                   "mlp.activation", "mlp.out", "mlp.leave", "mlp.residual"));
}

TEST(Operators, parallel_residual_has_two_enters_and_one_leave) {
  Model model = gpt(1, 1024, 16, 51200);
  model.parallel_residual = true;
  model.position = Position::rotary;
  EXPECT_THAT(names(layer_operators(model, Stack{}, slice(1, 128))),
              testing::ElementsAre("attention.norm", "attention.enter", "attention.qkv", "attention.rotary",
                                   "attention.flash", "attention.output", "attention.join", "mlp.norm", "mlp.enter",
                                   "mlp.in", "mlp.activation", "mlp.out", "mlp.join", "layer.leave", "layer.residual"));
}

TEST(Operators, embedding_and_head_run_in_forward_order) {
  Model model = gpt(1, 1024, 16, 51200);
  model.embedding_norm = true;
  EXPECT_THAT(names(embedding_operators(model, Stack{}, slice(1, 128))),
              testing::ElementsAre("embedding.lookup", "embedding.leave", "embedding.position", "embedding.norm",
                                   "embedding.dropout"));
  EXPECT_THAT(names(head_operators(model, Stack{}, slice(1, 128))),
              testing::ElementsAre("head.norm", "head.enter", "head.logits", "loss", "loss.reduce"));
}

TEST(Operators, boundaries_carry_whole_tensors_whatever_the_slice) {
  const auto list = layer_operators(gpt(1, 1024, 16, 51200), Stack{}, slice(2, 128, 8, true));
  for (const auto* name : {"attention.enter", "attention.leave", "mlp.enter", "mlp.leave"}) {
    EXPECT_DOUBLE_EQ(find(list, name).boundary_bytes.value(), 2 * 128 * 1024 * 2);
    EXPECT_EQ(find(list, name).forward, Kernel{});
  }
  EXPECT_EQ(find(list, "attention.enter").boundary, Boundary::enter);
  EXPECT_EQ(find(list, "mlp.leave").boundary, Boundary::leave);
}

TEST(Operators, alibi_adds_no_operator) {
  Model model = gpt(1, 1024, 16, 51200);
  const auto learned = names(layer_operators(model, Stack{}, slice(1, 128)));
  model.position = Position::alibi;
  EXPECT_EQ(names(layer_operators(model, Stack{}, slice(1, 128))), learned);
  EXPECT_THAT(names(embedding_operators(model, Stack{}, slice(1, 128))),
              testing::Not(testing::Contains("embedding.position")));
}

TEST(Operators, slices_that_do_not_divide_heads_or_ffn_are_broken_contracts) {
  EXPECT_THROW((void)layer_operators(gpt(1, 1024, 16, 51200), Stack{}, slice(1, 128, 3)), InternalError);
}

// 12 h^2 in matrices; 4 h of norm, 3 h + 4 h of sharded and h + h of whole biases.
TEST(Operators, gpt_layer_has_12h2_plus_13h_parameters) {
  const double h = 1024;
  EXPECT_DOUBLE_EQ(parameters(layer_operators(gpt(1, 1024, 16, 51200), Stack{}, slice(1, 128))), 12 * h * h + 13 * h);
}

// GPT-2's 50257 rows on 8 ranks: padded to 50 x 1024 = 51200, 6400 each.
TEST(Operators, vocabulary_is_padded_to_a_multiple_of_128_t) {
  const auto list = head_operators(gpt(1, 1024, 16, 50257), Stack{}, slice(1, 128, 8));
  EXPECT_EQ(find(list, "head.logits").forward.n, 6400);
}

TEST(Operators, tied_head_has_no_weight_of_its_own) {
  Model model = gpt(1, 1024, 16, 51200);
  EXPECT_EQ(find(head_operators(model, Stack{}, slice(1, 128)), "head.logits").parameters, 0);
  model.tied_embeddings = false;
  EXPECT_EQ(find(head_operators(model, Stack{}, slice(1, 128, 4)), "head.logits").parameters, 51200 / 4 * 1024);
}

// Fewer key-value heads than ranks: each rank holds a replica of one. (4 + 2) heads of 128 on 16 ranks of 64 heads, 8
// kv.
TEST(Operators, key_value_heads_are_replicated_when_ranks_outnumber_them) {
  const auto list = layer_operators(llama(8192, 64, 8, 28672), Stack{}, slice(1, 128, 16));
  EXPECT_EQ(find(list, "attention.qkv").forward.n, (4 + 2) * 128);
}

// A model, a stack and a slice of it whose key-value heads divide by t.
struct Sliced {
  Model model;
  Stack stack;
  Slice one, part;
};

Sliced any_sliced() {
  Sliced c;
  const std::int64_t t = *rc::gen::element<std::int64_t>(1, 2, 4, 8);
  const std::int64_t kv = t * *rc::gen::inRange<std::int64_t>(1, 4);
  const std::int64_t heads = kv * *rc::gen::inRange<std::int64_t>(1, 5);
  const std::int64_t dim = *rc::gen::element<std::int64_t>(64, 80, 128);
  const bool gated = *rc::gen::arbitrary<bool>();
  c.model = gated ? llama(heads * dim, heads, kv, t * *rc::gen::inRange<std::int64_t>(1, 3000))
                  : gpt(*rc::gen::inRange<std::int64_t>(1, 90), heads * dim, heads,
                        1024 * *rc::gen::inRange<std::int64_t>(1, 60));
  c.model.vocab = 1024 * *rc::gen::inRange<std::int64_t>(1, 60);
  c.model.parallel_residual = *rc::gen::arbitrary<bool>();
  c.stack.attention.kernel = *rc::gen::element(AttentionKernel::plain, AttentionKernel::flash);
  c.stack.attention.causal_skip = *rc::gen::arbitrary<bool>();
  c.stack.fusion.elementwise = *rc::gen::arbitrary<bool>();
  c.one = slice(*rc::gen::inRange<std::int64_t>(1, 9), *rc::gen::inRange<std::int64_t>(1, 4096));
  c.part = c.one;
  c.part.tp = t;
  c.part.sequence_parallel = *rc::gen::arbitrary<bool>();
  return c;
}

RC_GTEST_PROP(OperatorsLaw, matrix_flops_of_all_slices_sum_to_the_whole, ()) {
  const Sliced c = any_sliced();
  const auto t = static_cast<double>(c.part.tp);
  RC_ASSERT(t * flops(layer_operators(c.model, c.stack, c.part)) == flops(layer_operators(c.model, c.stack, c.one)));
  RC_ASSERT(t * flops(head_operators(c.model, c.stack, c.part)) == flops(head_operators(c.model, c.stack, c.one)));
}

RC_GTEST_PROP(OperatorsLaw, weights_of_products_sum_to_the_whole_and_vectors_of_h_are_held_by_everybody, ()) {
  const Sliced c = any_sliced();
  const auto t = static_cast<double>(c.part.tp);
  const auto whole = layer_operators(c.model, c.stack, c.one);
  const auto part = layer_operators(c.model, c.stack, c.part);
  RC_ASSERT(whole.size() == part.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool sharded = whole[i].backward_weight.kind == KernelKind::gemm;
    RC_ASSERT(whole[i].parameters == part[i].parameters * (sharded ? t : 1.0));
  }
}

// Operators and parameter_count count the same weights independently; vocabularies here need no padding.
RC_GTEST_PROP(OperatorsLaw, operators_of_the_whole_hold_the_parameters_of_the_model, ()) {
  Sliced c = any_sliced();
  c.model.tied_embeddings = *rc::gen::arbitrary<bool>();
  c.model.embedding_norm = *rc::gen::arbitrary<bool>();
  const ParameterCount count = parameter_count(c.model);
  RC_ASSERT(parameters(embedding_operators(c.model, c.stack, c.one)) == static_cast<double>(count.embedding));
  RC_ASSERT(parameters(layer_operators(c.model, c.stack, c.one)) ==
            static_cast<double>(count.layers) / static_cast<double>(c.model.layers));
  RC_ASSERT(parameters(head_operators(c.model, c.stack, c.one)) == static_cast<double>(count.head));
}

RC_GTEST_PROP(OperatorsLaw, sequence_parallel_slices_keep_together_what_the_whole_keeps, ()) {
  Sliced c = any_sliced();
  c.model.parallel_residual = false;
  c.part.sequence_parallel = true;
  const double parts = static_cast<double>(c.part.tp) * saved(layer_operators(c.model, c.stack, c.part));
  const double whole = saved(layer_operators(c.model, c.stack, c.one));
  RC_ASSERT(std::abs(parts - whole) <= 1e-12 * whole);
}

RC_GTEST_PROP(OperatorsLaw, backward_of_a_product_computes_twice_its_forward, ()) {
  const Sliced c = any_sliced();
  for (const auto& op : layer_operators(c.model, c.stack, c.part)) {
    const double backward = op.backward_input.flops.value() + op.backward_weight.flops.value();
    const double ratio = op.forward.kind == KernelKind::attention ? 2.5 : 2.0;
    RC_ASSERT(backward == ratio * op.forward.flops.value());
  }
}

RC_GTEST_PROP(OperatorsLaw, model_flops_are_three_times_the_forward_of_all_operators, ()) {
  const Sliced c = any_sliced();
  const double layers = static_cast<double>(c.model.layers) * forward_flops(layer_operators(c.model, c.stack, c.one));
  const double expected = 3.0 * (layers + forward_flops(head_operators(c.model, c.stack, c.one)));
  const double got = model_flops(c.model, c.stack, c.one.micro_batch, c.one.seq).value();
  RC_ASSERT(std::abs(got - expected) <= 1e-12 * expected);
}

}  // namespace
}  // namespace orrery::workload::test::operators_test
