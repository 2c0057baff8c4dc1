// Weights of every kind of layer, calculated by hand on tiny models; weights per token and KV cache.
#include <string>

#include <gtest/gtest.h>

#include "orrery/workload/model.hpp"

namespace orrery::workload::model_parts_test {
namespace {

// Width 8, two heads of 4, MLP of 16, no biases, rmsnorm: attention 4 x 8^2 = 256, MLP 2 x 8 x 16 = 256, norms 2 x 8.
Model tiny() {
  Model model;
  model.layers = 4;
  model.hidden = 8;
  model.heads = 2;
  model.ffn = 16;
  model.vocab = 10;
  model.max_seq = 6;
  model.norm = Normalisation::rmsnorm;
  model.position = Position::rotary;
  return completed(model);
}

constexpr std::int64_t kTinyLayer = 256 + 256 + 16;
constexpr LayerKind kExperts{.experts = true};

Model mixture() {
  Model model = tiny();
  model.experts = {.count = 6, .active = 2, .ffn = 5};
  return model;
}

TEST(Layer, a_tiny_one_is_attention_mlp_and_two_norms) { EXPECT_EQ(layer_parameters(tiny(), {}), kTinyLayer); }

TEST(Layer, a_window_changes_no_weights) {
  EXPECT_EQ(layer_parameters(tiny(), {.window = 3}), kTinyLayer);
  EXPECT_EQ(layer_parameters(tiny(), {.encoder = true}), kTinyLayer);
}

TEST(Layer, normalised_queries_and_keys_have_a_norm_of_a_head_each) {
  Model model = tiny();
  model.qk_norm = true;
  EXPECT_EQ(layer_parameters(model, {}), kTinyLayer + 2 * 4);
  model.norm = Normalisation::layernorm;  // weights and biases: 4 more per norm of a head, 8 per norm of the stream
  EXPECT_EQ(layer_parameters(model, {}), kTinyLayer + 2 * 8 + 2 * 8);
}

TEST(Layer, norms_behind_are_two_more_and_a_shared_one_is_one_less) {
  Model model = tiny();
  model.post_norms = true;
  EXPECT_EQ(layer_parameters(model, {}), kTinyLayer + 2 * 8);
  model = tiny();
  model.parallel_residual = true;
  EXPECT_EQ(layer_parameters(model, {}), kTinyLayer);
  model.shared_norm = true;
  EXPECT_EQ(layer_parameters(model, {}), kTinyLayer - 8);
}

TEST(Layer, attention_to_an_encoder_is_a_second_attention_and_a_norm) {
  EXPECT_EQ(layer_parameters(tiny(), {.cross = true}), kTinyLayer + 256 + 8);
}

TEST(Experts, a_mixture_is_a_router_and_its_experts) {
  // 8 x 6 of the router, 6 x 2 x 8 x 5 of the experts in place of the MLP's 256.
  EXPECT_EQ(layer_parameters(mixture(), kExperts), kTinyLayer - 256 + 48 + 480);
  Model gated = mixture();
  gated.gated_mlp = true;  // 6 x 3 x 8 x 5
  EXPECT_EQ(layer_parameters(gated, kExperts), kTinyLayer - 256 + 48 + 720);
  EXPECT_EQ(layer_parameters(gated, {}), kTinyLayer + 128);  // a dense layer of the same model: 3 x 8 x 16
}

TEST(Experts, shared_ones_are_an_additional_mlp_with_a_gate_of_one_row) {
  Model model = mixture();
  model.experts.shared_ffn = 7;  // 2 x 8 x 7
  EXPECT_EQ(layer_parameters(model, kExperts), kTinyLayer - 256 + 48 + 480 + 112);
  model.experts.shared_gate = true;
  EXPECT_EQ(layer_parameters(model, kExperts), kTinyLayer - 256 + 48 + 480 + 112 + 8);
}

TEST(Experts, biases_are_of_each_expert_and_of_the_router) {
  Model model = mixture();
  model.mlp_bias = true;  // 6 x (5 + 8), and 6
  EXPECT_EQ(layer_parameters(model, kExperts), kTinyLayer - 256 + 48 + 480 + 78 + 6);
}

TEST(Experts, a_token_uses_the_active_ones_only) {
  const auto count = parameter_count(mixture());
  EXPECT_EQ(count.total - count.active, 4 * (6 - 2) * 80);  // 4 layers, 4 experts of 2 x 8 x 5 each
  EXPECT_EQ(parameter_count(tiny()).active, parameter_count(tiny()).total);
}

TEST(Experts, stand_behind_the_leading_dense_layers_in_every_nth) {
  Model model = mixture();
  model.layers = 8;
  model.experts.first_dense = 2;
  model.experts.every = 3;  // of layers 2 to 7: the third and the sixth
  std::string kinds;
  for (std::int64_t layer = 0; layer < 8; ++layer) { kinds += layer_kind(model, layer).experts ? 'e' : 'd'; }
  EXPECT_EQ(kinds, "ddddedde");
}

TEST(Experts, alone_need_no_width_of_a_dense_mlp) {
  Model model = mixture();
  model.ffn = 0;
  EXPECT_EQ(completed(model).ffn, 5);
  EXPECT_FALSE(inconsistency(model));
  model.experts.first_dense = 1;
  EXPECT_EQ(inconsistency(model)->message, "ffn is 0; it must be at least 1");
}

Model latent() {
  Model model = tiny();
  model.head_dim = 0;
  model.latent = {.query_rank = 0, .kv_rank = 5, .nope_dim = 3, .rope_dim = 2, .value_dim = 4};
  return completed(model);
}

TEST(Latent, projects_keys_and_values_over_a_narrow_waist) {
  // Queries 8 x 2 (3 + 2); keys and values 8 (5 + 2), a norm of 5, 5 x 2 (3 + 4); back 2 x 4 x 8. MLP and norms as
  // before.
  EXPECT_EQ(layer_parameters(latent(), {}), 80 + 56 + 5 + 70 + 64 + 256 + 16);
  EXPECT_EQ(latent().head_dim, 5);
  EXPECT_EQ(latent().query_width(), 10);
}

TEST(Latent, queries_may_have_a_waist_of_their_own) {
  Model model = latent();
  model.latent.query_rank = 6;  // 8 x 6, a norm of 6, 6 x 10 in place of 80
  EXPECT_EQ(layer_parameters(model, {}), layer_parameters(latent(), {}) - 80 + 48 + 6 + 60);
}

TEST(KeysAndValues, are_two_per_head_and_decoder_layer) {
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(tiny(), 2), 4 * 2 * 8 * 2);
  Model model = tiny();
  model.kv_heads = 1;
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(model, 1), 4 * 2 * 4);
  model.encoder_layers = 3;
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(model, 1), 4 * 2 * 4);
}

TEST(KeysAndValues, of_latent_attention_are_its_waist) {
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(latent(), 2), 4 * (5 + 2) * 2);
}

TEST(KeysAndValues, are_not_kept_where_nothing_is_generated) {
  Model model = tiny();
  model.causal = false;
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(model, 2), 0);
}

TEST(MtpModules, a_module_is_a_projection_a_layer_and_three_norms) {
  Model model = mixture();
  model.experts.first_dense = 1;
  const auto plain = parameter_count(model);
  model.mtp_layers = 2;
  const auto count = parameter_count(model);
  EXPECT_EQ(mtp_parameters(model), 2 * 8 * 8 + 3 * 8 + layer_parameters(model, kExperts));
  EXPECT_EQ(count.mtp, 2 * mtp_parameters(model));
  EXPECT_EQ(count.layers - plain.layers, count.mtp);
  EXPECT_EQ(count.total - plain.total, count.mtp);  // embedding and head are shared with the model
  EXPECT_EQ(count.active - plain.active, count.mtp - 2 * (6 - 2) * 80);
  EXPECT_EQ(plain.mtp, 0);
}

Model t5() {
  Model model = tiny();
  model.encoder_layers = 3;
  model.position = Position::relative;
  return model;
}

TEST(EncoderDecoder, both_stacks_have_a_final_norm_and_a_table_of_32_buckets) {
  const auto count = parameter_count(t5());
  EXPECT_EQ(count.embedding, 10 * 8 + 2 * 32 * 2);
  EXPECT_EQ(count.layers, 3 * kTinyLayer + 4 * (kTinyLayer + 256 + 8));
  EXPECT_EQ(count.head, 2 * 8 + 10 * 8);
}

TEST(EncoderDecoder, encoder_layers_come_first) {
  EXPECT_EQ(t5().depth(), 7);
  EXPECT_EQ(layer_kind(t5(), 2), (LayerKind{.encoder = true}));
  EXPECT_EQ(layer_kind(t5(), 3), (LayerKind{.cross = true}));
}

TEST(VisionModel, has_patches_a_class_token_positions_and_a_classifier) {
  Model model = tiny();
  model.vocab = 0;
  model.max_seq = 0;
  model.causal = false;
  model.position = Position::learned;
  model.vision = {.image = 6, .patch = 2, .channels = 3, .classes = 7};
  ASSERT_FALSE(inconsistency(model));
  model = completed(model);
  EXPECT_EQ(model.max_seq, 3 * 3 + 1);
  const auto count = parameter_count(model);
  EXPECT_EQ(count.embedding, (2 * 2 * 3 * 8 + 8) + 8 + 10 * 8);
  EXPECT_EQ(count.head, 8 + 7 * 8 + 7);
  EXPECT_TRUE(layer_kind(model, 0).encoder);
}

TEST(Windows, every_nth_layer_looks_over_everything) {
  Model model = tiny();
  model.sliding_window = 3;
  EXPECT_EQ(layer_kind(model, 3).window, 3);
  model.global_every = 2;
  EXPECT_EQ(layer_kind(model, 0).window, 3);
  EXPECT_EQ(layer_kind(model, 1).window, 0);
}

struct Unsound {
  void (*spoil)(Model&);
  const char* field;
  const char* message;
};

class InconsistencyOfPart : public ::testing::TestWithParam<Unsound> {};

TEST_P(InconsistencyOfPart, is_named) {
  Model model = tiny();
  GetParam().spoil(model);
  const auto wrong = inconsistency(model);
  ASSERT_TRUE(wrong) << GetParam().message;
  EXPECT_EQ(wrong->message, GetParam().message);
  EXPECT_EQ(wrong->field, GetParam().field);
}

INSTANTIATE_TEST_SUITE_P(
    Experts, InconsistencyOfPart,
    ::testing::Values(Unsound{[](Model& m) { m.experts = {.count = 4, .active = 5, .ffn = 8}; }, "experts.active",
                              "experts.active 5 is more than experts.count 4"},
                      Unsound{[](Model& m) { m.experts = {.count = 4, .ffn = 8}; }, "experts.active",
                              "experts.active is 0; it must be at least 1"},
                      Unsound{[](Model& m) { m.experts = {.count = 4, .active = 1}; }, "experts.ffn",
                              "experts.ffn is 0; it must be at least 1"},
                      Unsound{[](Model& m) { m.experts = {.active = 2}; }, "experts",
                              "experts has keys, but experts.count is 0; set it, or leave experts out"},
                      Unsound{[](Model& m) { m.experts = {.count = 4, .active = 1, .ffn = 8, .first_dense = 4}; },
                              "experts.first_dense",
                              "experts.first_dense 4 with experts.every 1 leaves none of 4 layers with experts"},
                      Unsound{[](Model& m) { m.experts = {.count = 4, .active = 1, .ffn = 8, .every = 5}; },
                              "experts.every",
                              "experts.first_dense 0 with experts.every 5 leaves none of 4 layers with experts"},
                      Unsound{[](Model& m) { m.experts = {.count = 4, .active = 1, .ffn = 8, .every = 0}; },
                              "experts.every", "experts.every is 0; it must be at least 1"},
                      Unsound{[](Model& m) { m.experts = {.count = 4, .active = 1, .ffn = 8, .shared_gate = true}; },
                              "experts.shared_gate", "experts.shared_gate needs shared experts (experts.shared_ffn)"},
                      Unsound{[](Model& m) { m.experts = {.count = 4, .active = 1, .ffn = 8, .capacity_factor = -1}; },
                              "experts.capacity_factor", "experts.capacity_factor is -1; 0 to 1e6 is accepted"},
                      Unsound{[](Model& m) {
                                m.experts = {.count = 65'536, .active = 1, .ffn = 10'000'000};
                                m.hidden = 1'000'000;
                              },
                              "experts", "the model has about 8e+18 weights; at most 4e+18 are accepted"}));

INSTANTIATE_TEST_SUITE_P(
    Latent, InconsistencyOfPart,
    ::testing::Values(
        Unsound{[](Model& m) { m.latent = {.nope_dim = 3}; }, "latent",
                "latent has keys, but latent.kv_rank is 0; set it, or leave latent out"},
        Unsound{[](Model& m) { m.latent = {.kv_rank = 5, .value_dim = 4}; }, "latent.nope_dim",
                "latent.nope_dim is 0; it must be at least 1"},
        Unsound{[](Model& m) { m.latent = {.kv_rank = 5, .nope_dim = 3, .value_dim = 4}; }, "head_dim",
                "head_dim 4 must be latent.nope_dim 3 + latent.rope_dim 0; it may be left out"},
        Unsound{[](Model& m) {
                  m.latent = {.kv_rank = 5, .nope_dim = 4, .value_dim = 4};
                  m.kv_heads = 1;
                },
                "kv_heads", "kv_heads 1 differs from heads 2; latent attention has one key-value head per query head"},
        Unsound{[](Model& m) {
                  m.latent = {.kv_rank = 5, .nope_dim = 4, .value_dim = 4};
                  m.qkv_bias = true;
                },
                "qkv_bias", "biases are not supported with latent attention"}));

INSTANTIATE_TEST_SUITE_P(
    Vision, InconsistencyOfPart,
    ::testing::Values(
        Unsound{[](Model& m) { m.vision = {.image = 15, .patch = 4}; }, "vision.patch",
                "vision.patch 4 does not divide vision.image 15"},
        Unsound{[](Model& m) { m.vision = {.image = 16}; }, "vision.patch", "vision.patch is 0; it must be at least 1"},
        Unsound{[](Model& m) { m.vision = {.image = 16, .patch = 4}; }, "max_seq",
                "max_seq is 6, but an image has 17 tokens (4 x 4 patches and a class token)"},
        Unsound{[](Model& m) {
                  m.vision = {.image = 16, .patch = 4};
                  m.max_seq = 17;
                },
                "vocab", "vocab is 10; a vision model has no vocabulary (its classes are vision.classes)"},
        Unsound{[](Model& m) {
                  m.vision = {.image = 16, .patch = 4};
                  m.max_seq = m.vocab = 0;
                },
                "causal", "causal must be false: in a vision model every patch attends to all others"},
        Unsound{[](Model& m) { m.vocab = 0; }, "vocab", "vocab is 0; it must be at least 1"}));

INSTANTIATE_TEST_SUITE_P(
    Layers, InconsistencyOfPart,
    ::testing::Values(Unsound{[](Model& m) { m.global_every = 2; }, "global_every",
                              "global_every is 2, but sliding_window is 0: the other layers need a window"},
                      Unsound{[](Model& m) { m.shared_norm = true; }, "shared_norm",
                              "shared_norm needs parallel_residual (attention and MLP in parallel)"},
                      Unsound{[](Model& m) { m.post_norms = m.parallel_residual = true; }, "post_norms",
                              "post_norms is not supported with parallel_residual"},
                      Unsound{[](Model& m) {
                                m.causal = false;
                                m.encoder_layers = 2;
                              },
                              "causal", "causal must be true: a decoder behind an encoder is causal"},
                      Unsound{[](Model& m) {
                                m.causal = false;
                                m.mtp_layers = 1;
                              },
                              "mtp_layers", "mtp_layers (multi-token prediction) needs a causal model"},
                      Unsound{[](Model& m) { m.encoder_layers = -1; }, "encoder_layers",
                              "encoder_layers is -1; 0 to 10000 is accepted"}));

}  // namespace
}  // namespace orrery::workload::model_parts_test
