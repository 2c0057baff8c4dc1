// The families after the first seven: shapes of published checkpoints, defaults, errors.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/workload/catalogue.hpp"
#include "orrery/workload/huggingface.hpp"

namespace orrery::workload::huggingface_families_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

Model fixture(const std::string& name) {
  return load_model("", std::string(ORRERY_SOURCE_DATA_DIR) + "/../tests/fixtures/hf/" + name).value();
}

Result<Model> read(const std::string& json) {
  return model_from_huggingface(config::parse_json(json, "config.json").value(), "test");
}

// A configuration of a Llama's sizes and `more` keys.
Result<Model> with(const std::string& model_type, const std::string& more = "") {
  return read(R"({"model_type": ")" + model_type + R"(", "hidden_size": 4096, "intermediate_size": 11008,
    "max_position_embeddings": 4096, "num_attention_heads": 32, "num_hidden_layers": 12, "vocab_size": 32000)" +
              (more.empty() ? "" : ", " + more) + "}");
}

std::string error_of(const Result<Model>& model) { return model ? "no error" : model.error().text(); }

struct Counted {
  const char* fixture;
  std::int64_t parameters;
};

class HuggingFaceFamily : public ::testing::TestWithParam<Counted> {};

// Totals of the released checkpoints, each reproduced from its shape, except for what cannot be described:
//   deepseek-v3, kimi-k2  the checkpoints' routers have a bias of one number per expert that no gradient trains: 58 x
//   256
//                         more (671,026,419,200), 60 x 384 more
//   deepseek-v2-lite      exact: its routers have none
//   phi-2, phi-3.5-moe    a bias of the output projection: 51,200 more (2,779,683,840), 32,064 more (41,873,153,344)
//   gpt-oss-20b           attention sinks, one number per head: 24 x 64 more (20,914,757,184)
//   gemma-3-4b            exact, with its vision tower: 3,880,263,168 of text, 419,816,304 of SigLIP and projector
TEST_P(HuggingFaceFamily, has_the_parameters_of_the_released_checkpoint) {
  EXPECT_EQ(parameter_count(fixture(GetParam().fixture)).total, GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(
    Models, HuggingFaceFamily,
    ::testing::Values(Counted{"mixtral-8x7b", 46'702'792'704}, Counted{"qwen1.5-moe-a2.7b", 14'315'784'192},
                      Counted{"qwen3-0.6b", 596'049'920}, Counted{"qwen3-30b-a3b", 30'532'122'624},
                      Counted{"deepseek-v2-lite", 15'706'484'224}, Counted{"deepseek-v3", 671'026'419'200 - 58 * 256},
                      Counted{"kimi-k2", 1'026'408'232'448 - 60 * 384}, Counted{"gemma-2b", 2'506'172'416},
                      Counted{"gemma-2-2b", 2'614'341'888}, Counted{"gemma-3-1b", 999'885'952},
                      Counted{"gemma-3-4b", 4'300'079'472}, Counted{"phi-2", 2'779'683'840 - 51'200},
                      Counted{"phi-3-mini-4k", 3'821'079'552}, Counted{"phi-3.5-moe", 41'873'153'344 - 32'064},
                      Counted{"falcon-7b", 6'921'720'704}, Counted{"falcon-40b", 41'303'293'952},
                      Counted{"starcoder", 15'517'456'384}, Counted{"starcoder2-3b", 3'030'371'328},
                      Counted{"t5-small", 60'506'624}, Counted{"t5-v1.1-small", 76'961'152},
                      Counted{"vit-b16", 86'567'656}, Counted{"gpt-oss-20b", 20'914'757'184 - 24 * 64}));

TEST(HuggingFaceExperts, mixtral_has_eight_of_the_width_of_its_mlp) {
  const Model model = fixture("mixtral-8x7b");
  EXPECT_EQ(model.experts, (Experts{.count = 8, .active = 2, .ffn = 14336}));
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.sliding_window, 0);
  EXPECT_EQ(with("mixtral")->experts, (Experts{.count = 8, .active = 2, .ffn = 11008}));  // the library's defaults
}

TEST(HuggingFaceExperts, qwen2_moe_has_a_gated_shared_expert_and_biases) {
  const Model model = fixture("qwen1.5-moe-a2.7b");
  EXPECT_EQ(model.experts, (Experts{.count = 60, .active = 4, .ffn = 1408, .shared_ffn = 5632, .shared_gate = true}));
  EXPECT_TRUE(model.qkv_bias);
  EXPECT_FALSE(model.attention_output_bias);
}

TEST(HuggingFaceExperts, qwen3_moe_normalises_queries_and_keys) {
  const Model model = fixture("qwen3-30b-a3b");
  EXPECT_TRUE(model.qk_norm);
  EXPECT_FALSE(model.qkv_bias);
  EXPECT_EQ(model.experts, (Experts{.count = 128, .active = 8, .ffn = 768}));
  EXPECT_EQ(with("qwen3_moe", R"("num_local_experts": 16)")->experts.count, 16);
}

TEST(HuggingFaceExperts, layers_without_experts_must_come_first_or_in_a_rhythm) {
  EXPECT_EQ(with("qwen3_moe", R"("mlp_only_layers": [1, 0])")->experts.first_dense, 2);
  EXPECT_EQ(with("qwen3_moe", R"("decoder_sparse_step": 2)")->experts.every, 2);
  EXPECT_THAT(error_of(with("qwen3_moe", R"("mlp_only_layers": [3])")),
              HasSubstr("\"mlp_only_layers\" must list the first layers"));
  EXPECT_THAT(error_of(with("qwen3_moe", R"("mlp_only_layers": [0], "decoder_sparse_step": 2)")),
              HasSubstr("\"mlp_only_layers\""));
}

TEST(HuggingFaceExperts, more_active_than_there_are_points_at_the_files_key) {
  EXPECT_EQ(error_of(with("mixtral", R"("num_experts_per_tok": 9)")),
            "config.json:2:134 /num_experts_per_tok: experts.active 9 is more than experts.count 8");
}

TEST(HuggingFaceExperts, deepseek_v3_squeezes_queries_keys_and_values) {
  const Model model = fixture("deepseek-v3");
  EXPECT_EQ(model.latent, (LatentAttention{1536, 512, 128, 64, 128}));
  EXPECT_EQ(model.experts, (Experts{.count = 256,
                                    .active = 8,
                                    .ffn = 2048,
                                    .shared_ffn = 2048,
                                    .first_dense = 3,
                                    .groups = 8,
                                    .active_groups = 4,
                                    .score = RouterScore::sigmoid,
                                    .balance_bias = true}));
  EXPECT_EQ(model.head_dim, 192);
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(model, 2), 61 * (512 + 64) * 2);
}

TEST(HuggingFaceExperts, deepseek_v2_lite_projects_queries_directly) {
  const Model model = fixture("deepseek-v2-lite");
  EXPECT_EQ(model.latent.query_rank, 0);
  EXPECT_EQ(model.experts.shared_ffn, 2 * 1408);
}

TEST(HuggingFaceExperts, mtp_modules_are_left_out_and_the_description_says_so) {
  EXPECT_EQ(fixture("deepseek-v3").mtp_layers, 0);
  EXPECT_THAT(fixture("deepseek-v3").description, HasSubstr("without its 1 MTP module"));
  EXPECT_EQ(fixture("kimi-k2").description, "Hugging Face configuration of type kimi_k2");
  EXPECT_EQ(fixture("kimi-k2").quantized_4_bit, Quantized::experts);
}

TEST(HuggingFaceExperts, deepseek_without_routed_experts_is_dense) {
  EXPECT_FALSE(with("deepseek_v2", R"("n_routed_experts": null)")->has_experts());
  EXPECT_THAT(error_of(with("deepseek_v2")), HasSubstr("\"num_experts_per_tok\" is missing"));
}

TEST(HuggingFaceExperts, deepseek_with_biases_or_gaps_is_refused) {
  EXPECT_THAT(error_of(with("deepseek_v3", R"("attention_bias": true)")), HasSubstr("\"attention_bias\": true"));
  EXPECT_THAT(error_of(with("deepseek_v3", R"("moe_layer_freq": 2)")), HasSubstr("\"moe_layer_freq\": 2"));
}

TEST(HuggingFaceExperts, gpt_oss_has_biases_everywhere_and_a_window_in_every_other_layer) {
  const Model model = fixture("gpt-oss-20b");
  EXPECT_TRUE(model.qkv_bias && model.attention_output_bias && model.mlp_bias);
  EXPECT_EQ(layer_kind(model, 0).window, 128);
  EXPECT_EQ(layer_kind(model, 1).window, 0);
  EXPECT_EQ(model.quantized_4_bit, Quantized::experts);
}

TEST(HuggingFaceDense, gemma_is_tied_and_has_heads_of_256) {
  const Model model = fixture("gemma-2b");
  EXPECT_TRUE(model.tied_embeddings && model.gated_mlp);
  EXPECT_EQ(model.activation, Activation::gelu);
  EXPECT_EQ(model.query_width(), 8 * 256);
  EXPECT_EQ(model.kv_heads, 1);
}

TEST(HuggingFaceDense, gemma2_has_norms_behind_and_a_window_in_every_other_layer) {
  const Model model = fixture("gemma-2-2b");
  EXPECT_TRUE(model.post_norms);
  EXPECT_FALSE(model.qk_norm);
  EXPECT_EQ(layer_kind(model, 0).window, 4096);
  EXPECT_EQ(layer_kind(model, 1).window, 0);
}

TEST(HuggingFaceDense, gemma3_looks_everywhere_in_every_sixth_layer) {
  const Model model = fixture("gemma-3-1b");
  EXPECT_TRUE(model.post_norms && model.qk_norm);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    EXPECT_EQ(layer_kind(model, layer).window, layer % 6 == 5 ? 0 : 512) << layer;
  }
}

TEST(HuggingFaceDense, gemma3_s_published_file_leaves_out_heads_and_vocabulary) {
  const Model model = fixture("gemma-3-4b");
  EXPECT_EQ(model.heads, 8);
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.vocab, 262'208);
}

TEST(HuggingFaceDense, layer_types_must_follow_a_rule) {
  const std::string full = "\"full_attention\"";
  const std::string part = "\"sliding_attention\"";
  const auto types = [&](const std::string& a, const std::string& b, const std::string& c) {
    std::string text = R"("use_sliding_window": true, "sliding_window": 64, "layer_types": [)";
    for (int i = 0; i < 4; ++i) { text += (i == 0 ? "" : ", ") + a + ", " + b + ", " + c; }
    return with("qwen3", text + "]");
  };
  EXPECT_EQ(types(part, part, full)->global_every, 3);
  EXPECT_EQ(types(part, part, full)->sliding_window, 64);
  EXPECT_EQ(types(part, part, part)->global_every, 0);
  EXPECT_EQ(types(full, full, full)->sliding_window, 0);
  EXPECT_THAT(error_of(types(full, part, part)), HasSubstr("\"layer_types\" other than every n-th layer"));
  EXPECT_THAT(error_of(types(part, part, "\"chunked_attention\"")), HasSubstr("\"chunked_attention\" is not built"));
  EXPECT_THAT(error_of(with("qwen3", R"("use_sliding_window": true, "layer_types": ["full_attention"])")),
              HasSubstr("\"layer_types\" names 1 layers of 12"));
}

TEST(HuggingFaceDense, a_window_in_the_last_layers_only_is_refused) {
  EXPECT_THAT(error_of(with("qwen2", R"("use_sliding_window": true, "max_window_layers": 6)")),
              HasSubstr("\"max_window_layers\": 6 of 12 layers"));
  EXPECT_EQ(with("qwen2", R"("use_sliding_window": true, "max_window_layers": 0)")->sliding_window, 4096);
  EXPECT_EQ(with("qwen2", R"("use_sliding_window": true)")->sliding_window, 0);  // 28 leading layers are without
}

TEST(HuggingFaceDense, phi_shares_one_norm_between_its_halves) {
  const Model model = fixture("phi-2");
  EXPECT_TRUE(model.parallel_residual && model.shared_norm && model.mlp_bias);
  EXPECT_DOUBLE_EQ(model.dropout, 0.1);
  EXPECT_TRUE(with("phi", R"("qk_layernorm": true)")->qk_norm);
}

TEST(HuggingFaceDense, phi3_is_a_llama_with_a_window) {
  EXPECT_EQ(fixture("phi-3-mini-4k").sliding_window, 2047);
  EXPECT_EQ(with("phi3")->kv_heads, 32);
}

TEST(HuggingFaceDense, falcon_has_one_key_head_or_groups) {
  const Model small = fixture("falcon-7b");
  EXPECT_EQ(small.kv_heads, 1);
  EXPECT_EQ(small.ffn, 4 * 4544);
  EXPECT_EQ(small.max_seq, 2048);
  EXPECT_TRUE(small.parallel_residual && small.shared_norm);
  const Model large = fixture("falcon-40b");
  EXPECT_EQ(large.kv_heads, 8);
  EXPECT_TRUE(large.parallel_residual);
  EXPECT_FALSE(large.shared_norm);
}

TEST(HuggingFaceDense, falcon_one_after_the_other_has_two_norms_and_alibi) {
  const auto model =
      with("falcon", R"("parallel_attn": false, "multi_query": false, "alibi": true, "bias": true, "n_head_kv": 8)");
  EXPECT_FALSE(model->parallel_residual || model->shared_norm);
  EXPECT_EQ(model->kv_heads, 32);  // n_head_kv counts in the new architecture only
  EXPECT_EQ(model->position, Position::alibi);
  EXPECT_TRUE(model->mlp_bias);
}

TEST(HuggingFaceDense, starcoder_has_one_key_head_starcoder2_a_few) {
  EXPECT_EQ(fixture("starcoder").kv_heads, 1);
  EXPECT_EQ(fixture("starcoder").position, Position::learned);
  EXPECT_EQ(fixture("starcoder2-3b").kv_heads, 2);
  EXPECT_EQ(fixture("starcoder2-3b").sliding_window, 4096);
}

TEST(HuggingFaceEncoders, t5_has_two_stacks_and_relative_positions) {
  const Model model = fixture("t5-small");
  EXPECT_EQ(model.encoder_layers, 6);
  EXPECT_EQ(model.layers, 6);
  EXPECT_EQ(model.position, Position::relative);
  EXPECT_EQ(model.activation, Activation::relu);
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_TRUE(layer_kind(model, 0).encoder);
  EXPECT_TRUE(layer_kind(model, 6).cross);
}

TEST(HuggingFaceEncoders, t5_v1_1_gates_its_mlp_and_has_no_key_for_its_length) {
  const Model model = fixture("t5-v1.1-small");
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_EQ(model.activation, Activation::gelu);
  EXPECT_EQ(model.max_seq, 512);
  EXPECT_EQ(model.query_width(), 6 * 64);
}

TEST(HuggingFaceEncoders, t5_of_another_kind_is_refused) {
  const std::string sizes = R"({"model_type": "t5", "d_model": 64, "d_ff": 128, "num_heads": 2, "num_layers": 2,
    "vocab_size": 100, )";
  EXPECT_TRUE(read(sizes + R"("d_kv": 32})"));
  EXPECT_THAT(error_of(read(sizes + R"("relative_attention_num_buckets": 64})")), HasSubstr("num_buckets\": 64"));
  EXPECT_THAT(error_of(read(sizes + R"("architectures": ["T5EncoderModel"]})")), HasSubstr("without its decoder"));
}

TEST(HuggingFaceEncoders, vit_counts_its_patches_and_labels) {
  const Model model = fixture("vit-b16");
  EXPECT_EQ(model.max_seq, 14 * 14 + 1);
  EXPECT_EQ(model.vision, (Vision{.image = 224, .patch = 16, .channels = 3, .classes = 1000}));
  EXPECT_FALSE(model.causal);
  const std::string sizes = R"({"model_type": "vit", "hidden_size": 64, "intermediate_size": 128,
    "num_attention_heads": 2, "num_hidden_layers": 2, )";
  EXPECT_EQ(read(sizes + R"("id2label": {"0": "cat", "1": "dog", "2": "eel"}})")->vision.classes, 3);
  EXPECT_EQ(read(sizes + R"("architectures": ["ViTModel"]})")->vision.classes, 0);
  EXPECT_EQ(read(sizes + R"("architectures": ["ViTForImageClassification"]})")->vision.classes, 2);
  EXPECT_THAT(error_of(read(sizes + R"("patch_size": 15})")), HasSubstr("vision.patch 15 does not divide"));
}

TEST(HuggingFaceEncoders, an_activation_that_is_not_known_is_named_with_its_key) {
  EXPECT_THAT(error_of(read(R"({"model_type": "t5", "d_model": 64, "d_ff": 128, "num_heads": 2, "num_layers": 2,
    "vocab_size": 100, "feed_forward_proj": "gated-tanh"})")),
              HasSubstr("/feed_forward_proj: unknown activation \"gated-tanh\""));
}

}  // namespace
}  // namespace orrery::workload::huggingface_families_test
