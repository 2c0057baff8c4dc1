#include "orrery/workload/model.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace orrery::workload::model_test {
namespace {

// GPT-2 small.
Model gpt2() {
  Model model;
  model.layers = 12;
  model.hidden = 768;
  model.heads = 12;
  model.ffn = 3072;
  model.vocab = 50257;
  model.max_seq = 1024;
  model.tied_embeddings = true;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  return completed(model);
}

// Llama 3.1 8B.
Model llama() {
  Model model;
  model.layers = 32;
  model.hidden = 4096;
  model.heads = 32;
  model.kv_heads = 8;
  model.ffn = 14336;
  model.vocab = 128256;
  model.max_seq = 8192;
  model.gated_mlp = true;
  model.norm = Normalisation::rmsnorm;
  model.position = Position::rotary;
  return completed(model);
}

TEST(ParameterCount, gpt2_layer_is_12_h_squared_plus_13_h) {
  // Attention 4 h^2 + 4 h, MLP 8 h^2 + 5 h, two layernorms 4 h.
  EXPECT_EQ(layer_parameters(gpt2(), {}), 12 * 768 * 768 + 13 * 768);
}

TEST(ParameterCount, gpt2_small_has_124439808) {
  const auto count = parameter_count(gpt2());
  EXPECT_EQ(count.embedding, (50257 + 1024) * 768);
  EXPECT_EQ(count.head, 2 * 768);  // the final norm; the projection is tied
  EXPECT_EQ(count.total, 124'439'808);
}

TEST(ParameterCount, grouped_queries_shrink_keys_and_values_only) {
  // Per layer: q and o 2 x 4096^2, k and v 2 x 4096 x 1024, gated MLP 3 x 4096 x 14336, two rmsnorms 2 x 4096.
  const auto count = parameter_count(llama());
  EXPECT_EQ(layer_parameters(llama(), {}), 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096);
  EXPECT_EQ(count.total, 8'030'261'248);
}

TEST(ParameterCount, untying_adds_one_vocabulary_table) {
  Model model = gpt2();
  const auto tied = parameter_count(model);
  model.tied_embeddings = false;
  EXPECT_EQ(parameter_count(model).total - tied.total, 50257 * 768);
}

TEST(ParameterCount, each_bias_adds_the_width_of_what_it_is_added_to) {
  const Model plain = llama();
  const auto layer = layer_parameters(plain, {});
  Model model = plain;
  model.qkv_bias = true;
  EXPECT_EQ(layer_parameters(model, {}) - layer, 4096 + 2 * 1024);
  model = plain;
  model.attention_output_bias = true;
  EXPECT_EQ(layer_parameters(model, {}) - layer, 4096);
  model = plain;
  model.mlp_bias = true;
  EXPECT_EQ(layer_parameters(model, {}) - layer, 2 * 14336 + 4096);
}

TEST(ParameterCount, only_learned_positions_have_a_table) {
  Model model = gpt2();
  const auto learned = parameter_count(model).embedding;
  for (const auto position : {Position::rotary, Position::alibi}) {
    model.position = position;
    EXPECT_EQ(learned - parameter_count(model).embedding, 1024 * 768);
  }
}

TEST(ParameterCount, a_position_table_may_have_rows_of_its_own) {
  Model model = gpt2();
  const auto count = parameter_count(model).embedding;
  model.position_rows = 1026;
  EXPECT_EQ(parameter_count(model).embedding - count, 2 * 768);
}

TEST(ParameterCount, heads_need_not_fill_the_hidden_width) {
  Model model = llama();
  model.head_dim = 64;  // q 4096 x 2048, k and v 4096 x 512, o 2048 x 4096
  EXPECT_EQ(layer_parameters(model, {}), 2 * 4096 * 2048 + 2 * 4096 * 512 + 3 * 4096 * 14336 + 2 * 4096);
}

TEST(ParameterCount, the_largest_model_accepted_does_not_overflow) {
  Model model;
  model.layers = 10'000;
  model.hidden = 1'000'000;
  model.heads = model.kv_heads = 16'384;
  model.head_dim = 4'096;
  model.ffn = 10'000'000;
  model.vocab = 100'000'000;
  model.max_seq = 1'000'000'000;
  model.gated_mlp = model.qkv_bias = model.mlp_bias = model.attention_output_bias = true;
  ASSERT_FALSE(inconsistency(model));
  const auto count = parameter_count(completed(model));
  // 1e4 layers of 4 x 1e6 x 6.7e7 and 3 x 1e13: the whole is within 1 % of a double's answer.
  const double width = 16384.0 * 4096.0;
  const double expected = 1e4 * (4e6 * width + 3e13) + 2.0 * 1e14 + 1e15;
  EXPECT_NEAR(static_cast<double>(count.total) / expected, 1.0, 0.01);
  EXPECT_LT(expected, 0.5 * static_cast<double>(std::numeric_limits<std::int64_t>::max()));
}

TEST(Completed, fills_in_what_follows_from_the_rest) {
  EXPECT_EQ(gpt2().kv_heads, 12);
  EXPECT_EQ(gpt2().head_dim, 64);
  EXPECT_EQ(gpt2().position_rows, 1024);
  EXPECT_EQ(llama().kv_heads, 8);
  EXPECT_EQ(llama().position_rows, 0);
  EXPECT_EQ(llama().query_width(), 4096);
  EXPECT_EQ(llama().kv_width(), 1024);
}

TEST(Inconsistency, a_sound_model_has_none) {
  EXPECT_FALSE(inconsistency(gpt2()));
  EXPECT_FALSE(inconsistency(llama()));
}

struct Unsound {
  void (*spoil)(Model&);
  const char* field;
  const char* message;
};

class InconsistencyOf : public ::testing::TestWithParam<Unsound> {};

TEST_P(InconsistencyOf, is_named) {
  Model model = llama();
  model.head_dim = 0;
  GetParam().spoil(model);
  const auto wrong = inconsistency(model);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->field, GetParam().field);
  EXPECT_EQ(wrong->message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Models, InconsistencyOf,
    ::testing::Values(
        Unsound{[](Model& m) { m.hidden = 4097; }, "hidden",
                "heads 32 does not divide hidden 4097, and head_dim is not given"},
        Unsound{[](Model& m) { m.kv_heads = 5; }, "kv_heads", "kv_heads 5 does not divide heads 32"},
        Unsound{[](Model& m) { m.kv_heads = 64; }, "kv_heads", "kv_heads 64 does not divide heads 32"},
        Unsound{[](Model& m) { m.layers = 0; }, "layers", "layers is 0; it must be at least 1"},
        Unsound{[](Model& m) { m.heads = 0; }, "heads", "heads is 0; it must be at least 1"},
        Unsound{[](Model& m) { m.vocab = -1; }, "vocab", "vocab is -1; it must be at least 1"},
        Unsound{[](Model& m) { m.layers = 10'001; }, "layers", "layers is 10001; at most 10000 is accepted"},
        Unsound{[](Model& m) { m.ffn = 1'000'000'000'000; }, "ffn",
                "ffn is 1000000000000; at most 10000000 is accepted"},
        Unsound{[](Model& m) { m.position_rows = -2; }, "position_rows",
                "position_rows is -2; 0 to 1000000000 is accepted"},
        Unsound{[](Model& m) { m.quantized_4_bit = Quantized::experts; }, "quantized_4_bit",
                "experts needs routed experts"},
        Unsound{[](Model& m) { m.dropout = 1.0; }, "dropout", "dropout is 1; it must be at least 0 and below 1"}));

}  // namespace
}  // namespace orrery::workload::model_test
