// Attention heads padded to a multiple of tp.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::padding_test {
namespace {

Heads heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t tp) {
  return padded_heads(llama(128 * heads, heads, kv_heads, 128), tp);
}

double weights_of(const std::vector<Operator>& list) {
  double sum = 0.0;
  for (const auto& op : list) { sum += op.parameters; }
  return sum;
}

double matrix_flops(const std::vector<Operator>& list) {
  double sum = 0.0;
  for (const auto& op : list) {
    sum += (op.forward.flops + op.backward_input.flops + op.backward_weight.flops).value();
  }
  return sum;
}

// 40 = 2.5 x 16 -> 3 x 16. 56 on 32 ranks with 8 key-value heads: the example of
// neuronx-distributed-inference (REPLICATE_TO_TP_DEGREE: 64 and 32). 10 do not divide 16: one per query head
// (CONVERT_TO_MHA).
TEST(Padding, heads_are_those_of_neuronx_distributed) {
  EXPECT_EQ(heads_of(40, 40, 16), (Heads{48, 48}));
  EXPECT_EQ(heads_of(40, 8, 16), (Heads{48, 16}));
  EXPECT_EQ(heads_of(56, 8, 32), (Heads{64, 32}));
  EXPECT_EQ(heads_of(40, 10, 16), (Heads{48, 48}));
  EXPECT_EQ(heads_of(40, 8, 8), (Heads{40, 8}));
  EXPECT_EQ(heads_of(64, 8, 32), (Heads{64, 32}));
}

RC_GTEST_PROP(Padding, shares_heads_evenly_and_adds_less_than_one_per_rank, ()) {
  const std::int64_t kv = *rc::gen::inRange(1, 40), heads = kv * *rc::gen::inRange(1, 10);
  const std::int64_t tp = *rc::gen::inRange(1, 70);
  const Heads padded = heads_of(heads, kv, tp);
  RC_ASSERT(padded.query % tp == 0);
  RC_ASSERT(padded.kv % tp == 0);
  RC_ASSERT(padded.query % padded.kv == 0);
  RC_ASSERT(padded.query >= heads && padded.query - heads < tp);
  RC_ASSERT(padded.kv >= kv);
  if (kv % tp == 0) { RC_ASSERT(padded == (Heads{heads, kv})); }
}

// Where tp divides the heads, and the key-value heads or the other way round, software that pads does nothing else.
RC_GTEST_PROP(Padding, changes_nothing_where_tp_divides_the_heads, ()) {
  const std::int64_t tp = *rc::gen::element(1, 2, 4, 8);
  const std::int64_t kv = *rc::gen::element(1, 2, 4, 8, 16), heads = kv * tp * *rc::gen::inRange(1, 4);
  const Model model = llama(64 * heads, heads, kv, 64 * tp);
  for (const Pass pass : {Pass::train, Pass::prefill, Pass::decode}) {
    Slice slice = test::slice(2, pass == Pass::decode ? 1 : 256, tp);
    slice.pass = pass;
    slice.context = 300;
    const auto usual = layer_operators(model, {}, slice);
    const Bytes cache = kv_cache(model, {}, slice, 300);
    slice.pads_heads = true;
    const auto padding = layer_operators(model, {}, slice);
    RC_ASSERT(matrix_flops(padding) == matrix_flops(usual));
    RC_ASSERT(weights_of(padding) == weights_of(usual));
    RC_ASSERT(saved(padding) == saved(usual));
    RC_ASSERT(kv_cache(model, {}, slice, 300) == cache);
  }
}

// h 5120, 40 query and 8 key-value heads of 128 on 16 ranks: 3 and 1 on each. Query and output projections have 2 x
// 5120 x 48 x 128 weights, key and value 2 x 5120 x 16 x 128, the MLP 3 x 5120 x 13824; norms are on every rank.
TEST(Padding, ranks_hold_the_weights_of_the_padded_model) {
  const Model model = llama(5120, 40, 8, 13824);
  Slice slice = test::slice(1, 64, 16);
  slice.pads_heads = true;
  const double norms = 2.0 * 5120, matrices = 62'914'560.0 + 20'971'520.0 + 212'336'640.0;
  EXPECT_EQ(16.0 * weights_of(layer_operators(model, {}, slice)), matrices + 16.0 * norms);
  EXPECT_EQ(static_cast<double>(layer_parameters(padded(model, 16), {})), matrices + norms);
}

// A position: 2 (key and value) x 1 head x 128 x 2 bytes on each rank.
TEST(Padding, every_rank_caches_a_replicated_head) {
  const Model model = llama(5120, 40, 8, 13824);
  Slice slice = test::slice(1, 64, 16);
  slice.pads_heads = true;
  EXPECT_EQ(kv_cache(model, {}, slice, 1000), Bytes(1000.0 * 2 * 128 * 2));
}

// Without key-value heads of their own, everything in attention is 48 / 40 of the work, whatever the pass.
TEST(Padding, forty_heads_on_16_ranks_take_the_flops_of_forty_eight) {
  const Model model = llama(5120, 40, 40, 13824);
  Model wide = model;
  wide.heads = wide.kv_heads = 48;
  Slice slice = test::slice(1, 4096, 16);
  const double expected = matrix_flops(layer_operators(wide, {}, slice));
  slice.pads_heads = true;
  EXPECT_EQ(matrix_flops(layer_operators(model, {}, slice)), expected);
  Slice whole = test::slice(1, 4096);
  EXPECT_GT(16.0 * expected, matrix_flops(layer_operators(model, {}, whole)));
}

}  // namespace
}  // namespace orrery::workload::test::padding_test
