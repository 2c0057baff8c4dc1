#include "orrery/workload/huggingface.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/core/text.hpp"
#include "orrery/workload/catalogue.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::workload::huggingface_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string fixture(const std::string& name) {
  return std::string(ORRERY_SOURCE_DATA_DIR) + "/../tests/fixtures/hf/" + name + "/config.json";
}

Result<Model> read(std::string_view json) {
  return model_from_huggingface(config::parse_json(json, "config.json").value(), "test");
}

std::string error_of(std::string_view json) {
  const auto model = read(json);
  return model ? "no error" : model.error().text();
}

constexpr std::string_view kLlama = R"({
  "model_type": "llama",
  "hidden_size": 4096,
  "intermediate_size": 11008,
  "max_position_embeddings": 4096,
  "num_attention_heads": 32,
  "num_hidden_layers": 32,
  "vocab_size": 32000
})";

std::string llama_with(std::string_view from, std::string_view to) {
  std::string text(kLlama);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string formats_of(std::string_view quantization) {
  const Model model = read(llama_with("\"vocab_size\": 32000",
                                      fmt::format("\"vocab_size\": 32000, \"quantization_config\": {}", quantization)))
                          .value();
  const Checkpoint& c = model.checkpoint;
  return fmt::format("{} {} {}", c.method, c.weights ? hardware::name_of(*c.weights) : "-",
                     c.inputs ? hardware::name_of(*c.inputs) : "-");
}

TEST(HuggingFace, number_formats_of_checkpoints_are_read) {
  EXPECT_EQ(formats_of(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})"), "fp8 fp8 fp8");
  EXPECT_EQ(formats_of(R"({"quant_method": "mxfp4"})"), "mxfp4 fp4 -");
  EXPECT_EQ(formats_of(R"({"quant_method": "awq", "bits": 4})"), "awq int4 -");
  EXPECT_EQ(formats_of(R"({"quant_method": "gptq", "bits": 8})"), "gptq int8 -");
  EXPECT_EQ(formats_of(R"({"quant_method": "gptq", "bits": 3})"), "gptq - -");
  EXPECT_EQ(formats_of(R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"})"),
            "bitsandbytes nf4 -");
  EXPECT_EQ(formats_of(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
              "weights": {"num_bits": 8, "type": "float"}, "input_activations": {"num_bits": 8, "type": "float"}}}})"),
            "compressed-tensors fp8 fp8");
  EXPECT_EQ(formats_of(R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {
              "weights": {"num_bits": 4, "type": "int"}, "input_activations": null}}})"),
            "compressed-tensors int4 -");
  EXPECT_EQ(formats_of(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})"), "modelopt fp4 fp4");
  EXPECT_EQ(formats_of(R"({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"})"), "modelopt int4 fp8");
  EXPECT_EQ(formats_of(R"({"quant_method": "quark", "global_quant_config": {
              "weight": {"dtype": "fp4"}, "input_tensors": {"dtype": "fp8_e4m3"}}})"),
            "quark fp4 fp8");
  EXPECT_EQ(formats_of(R"({"quant_method": "modelopt", "quant_algo": "W4A8_MXFP4_FP8"})"), "modelopt fp4 fp8");
  EXPECT_EQ(formats_of(R"({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"})"), "modelopt fp4 -");
  EXPECT_EQ(formats_of(R"({"quant_method": "quark", "global_quant_config": {"weight": {"dtype": "fp6_e3m2"}}})"),
            "quark - -");
  EXPECT_EQ(formats_of(R"({"quant_method": "hqq"})"), "hqq - -");
  EXPECT_EQ(formats_of(R"({"bits": 4})"), "no quant_method - -");
  EXPECT_TRUE(read(kLlama)->checkpoint.method.empty());
}

Formats stored_in(hardware::StorageFormat weights) {
  Formats formats;
  formats.weights = weights;
  return formats;
}

TEST(HuggingFace, a_checkpoint_that_is_priced_in_another_format_is_warned_of) {
  using hardware::Precision, hardware::StorageFormat;
  const auto warning = [](std::string_view quantization, Precision precision, Formats formats = {}) {
    const Model model =
        read(llama_with("\"vocab_size\": 32000",
                        fmt::format("\"vocab_size\": 32000, \"quantization_config\": {}", quantization)))
            .value();
    return checkpoint_warning(model, precision, formats);
  };
  constexpr std::string_view kFp8 = R"({"quant_method": "fp8"})", kAwq = R"({"quant_method": "awq", "bits": 4})";
  EXPECT_THAT(warning(kFp8, Precision::bf16),
              HasSubstr("weights in fp8 (quantization_config: fp8), and bf16 is priced"));
  EXPECT_EQ(warning(kFp8, Precision::fp8), "");
  EXPECT_EQ(warning(kFp8, Precision::bf16, stored_in(StorageFormat::fp8)), "");
  EXPECT_THAT(warning(kAwq, Precision::bf16), HasSubstr("give --weight-format int4"));
  EXPECT_EQ(warning(kAwq, Precision::bf16, stored_in(StorageFormat::int4)), "");
  EXPECT_THAT(warning(R"({"quant_method": "hqq"})", Precision::bf16), HasSubstr("in a format that is not known"));
}

struct Counted {
  const char* fixture;
  std::int64_t parameters;
};

class HuggingFaceFixture : public ::testing::TestWithParam<Counted> {};

// Totals of the released checkpoints; each follows from the shape by hand, for example
//   pythia-1.4b  24 (12 x 2048^2 + 13 x 2048) + 2 x 2048 + 2 x 50304 x 2048
//   bloom-560m   24 (12 x 1024^2 + 13 x 1024) + 4 x 1024 + 250880 x 1024
//   opt-1.3b     24 (12 x 2048^2 + 13 x 2048) + 2 x 2048 + (50272 + 2048 + 2) x 2048
//   qwen2.5-7b   28 (2 x 3584^2 + 2 x 3584 x 512 + 3584 + 2 x 512 + 3 x 3584 x 18944 + 2 x 3584) + 3584
//                + 2 x 152064 x 3584
TEST_P(HuggingFaceFixture, has_the_parameters_of_the_released_checkpoint) {
  const auto model = load_model("/nonexistent", fixture(GetParam().fixture));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->name, GetParam().fixture);
  EXPECT_EQ(parameter_count(*model).total, GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(Models, HuggingFaceFixture,
                         ::testing::Values(Counted{"gpt2", 124'439'808}, Counted{"pythia-1.4b", 1'414'647'808},
                                           Counted{"opt-1.3b", 1'315'758'080}, Counted{"bloom-560m", 559'214'592},
                                           Counted{"llama-2-70b", 68'976'648'192}, Counted{"mistral-7b", 7'241'732'096},
                                           Counted{"qwen2.5-7b", 7'615'616'512}, Counted{"qwen2.5-0.5b", 494'032'768},
                                           Counted{"codestral-mamba-7b", 7'285'403'648},
                                           Counted{"mamba-2.8b", 2'768'345'600}, Counted{"jamba-v0.1", 51'570'323'328},
                                           Counted{"olmo-2-13b", 13'716'198'400}));

TEST(HuggingFace, reads_these_types) {
  EXPECT_THAT(huggingface_model_types(),
              ElementsAre("gpt2", "gpt_neox", "opt", "bloom", "llama", "mistral", "qwen2", "qwen2_vl", "qwen2_5_vl",
                          "qwen3", "gemma", "gemma2", "gemma3", "gemma3_text", "phi", "phi3", "falcon", "gpt_bigcode",
                          "starcoder2", "granite", "olmo2", "mixtral", "phimoe", "gpt_oss", "qwen2_moe", "qwen3_moe",
                          "deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe", "llama4", "llama4_text", "mamba",
                          "mamba2", "jamba", "nemotron_h", "qwen3_next", "t5", "mt5", "vit"));
}

TEST(HuggingFace, a_folder_stands_for_its_config) {
  const std::string file = fixture("gpt2");
  const auto model = load_model("/nonexistent", file.substr(0, file.rfind('/')));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->name, "gpt2");
}

TEST(HuggingFace, gpt2_has_learned_positions_biases_and_a_tied_head_by_default) {
  const auto model = load_model("", fixture("gpt2")).value();
  EXPECT_EQ(model.position, Position::learned);
  EXPECT_EQ(model.position_rows, 1024);
  EXPECT_EQ(model.norm, Normalisation::layernorm);
  EXPECT_EQ(model.activation, Activation::gelu);
  EXPECT_EQ(model.ffn, 4 * 768);  // n_inner is absent
  EXPECT_TRUE(model.tied_embeddings && model.qkv_bias && model.attention_output_bias && model.mlp_bias);
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_DOUBLE_EQ(model.dropout, 0.1);
}

TEST(HuggingFace, gpt_neox_runs_attention_and_mlp_side_by_side) {
  const auto model = load_model("", fixture("pythia-1.4b")).value();
  EXPECT_TRUE(model.parallel_residual);
  EXPECT_EQ(model.position, Position::rotary);
  EXPECT_FALSE(model.tied_embeddings);
  EXPECT_DOUBLE_EQ(model.dropout, 0.0);
}

TEST(HuggingFace, opt_keeps_two_more_rows_of_positions) {
  const auto model = load_model("", fixture("opt-1.3b")).value();
  EXPECT_EQ(model.max_seq, 2048);
  EXPECT_EQ(model.position_rows, 2050);
  EXPECT_EQ(model.activation, Activation::relu);
  EXPECT_TRUE(model.tied_embeddings);
}

TEST(HuggingFace, opt_350m_is_refused_clearly) {
  EXPECT_THAT(load_model("", fixture("opt-350m")).error().text(),
              HasSubstr("\"word_embed_proj_dim\": 512 with \"hidden_size\": 1024 (an embedding narrower than the "
                        "layers, as in opt-350m) is not built yet"));
}

TEST(HuggingFace, bloom_has_alibi_and_a_norm_after_the_embedding) {
  const auto model = load_model("", fixture("bloom-560m")).value();
  EXPECT_EQ(model.position, Position::alibi);
  EXPECT_TRUE(model.embedding_norm && model.tied_embeddings);
  EXPECT_EQ(model.hidden, 1024);  // written n_embed
  EXPECT_EQ(model.heads, 16);     // written num_attention_heads
  EXPECT_EQ(model.max_seq, 2048);
}

TEST(HuggingFace, llama_gates_its_mlp_and_has_no_biases) {
  const auto model = load_model("", fixture("llama-2-70b")).value();
  EXPECT_TRUE(model.gated_mlp);
  EXPECT_EQ(model.norm, Normalisation::rmsnorm);
  EXPECT_EQ(model.kv_heads, 8);
  EXPECT_EQ(model.head_dim, 128);
  EXPECT_FALSE(model.qkv_bias || model.attention_output_bias || model.mlp_bias || model.tied_embeddings);
}

TEST(HuggingFace, qwen2_has_biases_on_queries_keys_and_values_only) {
  const auto model = load_model("", fixture("qwen2.5-7b")).value();
  EXPECT_TRUE(model.qkv_bias);
  EXPECT_FALSE(model.attention_output_bias || model.mlp_bias);
}

TEST(HuggingFace, a_sliding_window_is_kept_where_it_is_used) {
  EXPECT_EQ(load_model("", fixture("mistral-7b"))->sliding_window, 4096);
  EXPECT_EQ(load_model("", fixture("qwen2.5-7b"))->sliding_window, 0);  // "use_sliding_window": false
}

TEST(HuggingFace, missing_keys_take_the_defaults_of_the_library) {
  EXPECT_EQ(read(kLlama)->kv_heads, 32);  // Llama: as many as query heads
  EXPECT_EQ(read(llama_with("\"llama\"", "\"mistral\""))->kv_heads, 8);
  EXPECT_EQ(read(llama_with("\"llama\"", "\"qwen2\""))->kv_heads, 32);
  EXPECT_FALSE(read(kLlama)->tied_embeddings);
  EXPECT_TRUE(read(llama_with("\"vocab_size\": 32000", "\"vocab_size\": 32000, \"tie_word_embeddings\": true"))
                  ->tied_embeddings);
}

TEST(HuggingFace, null_means_the_default_where_the_library_says_so) {
  const auto model =
      read(llama_with("\"vocab_size\"", "\"num_key_value_heads\": null, \"head_dim\": null, \"vocab_size\""));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->kv_heads, 32);
  EXPECT_EQ(model->head_dim, 128);
}

TEST(HuggingFace, a_head_dimension_of_its_own_is_kept) {
  EXPECT_EQ(read(llama_with("\"vocab_size\"", "\"head_dim\": 256, \"vocab_size\""))->query_width(), 32 * 256);
}

TEST(HuggingFace, a_missing_size_is_an_error_not_a_default) {
  EXPECT_EQ(error_of(llama_with("\"num_hidden_layers\": 32,", "")),
            "config.json:1:1: required key \"num_hidden_layers\" is missing (integer: transformer layers)");
}

TEST(HuggingFace, a_size_of_the_wrong_type_is_an_error_with_its_place) {
  EXPECT_THAT(error_of(llama_with("\"hidden_size\": 4096", "\"hidden_size\": \"4096\"")),
              StartsWith("config.json:3:18 /hidden_size: "));
  EXPECT_THAT(error_of(llama_with("\"hidden_size\": 4096", "\"hidden_size\": -4096")),
              StartsWith("config.json:3:18 /hidden_size: "));
}

TEST(HuggingFace, sizes_that_do_not_fit_together_point_at_the_files_key) {
  EXPECT_EQ(error_of(llama_with("\"hidden_size\": 4096", "\"hidden_size\": 4097")),
            "config.json:3:18 /hidden_size: heads 32 does not divide hidden 4097, and head_dim is not given");
  EXPECT_EQ(error_of(llama_with("\"vocab_size\"", "\"num_key_value_heads\": 5, \"vocab_size\"")),
            "config.json:8:26 /num_key_value_heads: kv_heads 5 does not divide heads 32");
}

TEST(HuggingFace, absurd_sizes_are_refused) {
  EXPECT_EQ(error_of(llama_with("\"num_hidden_layers\": 32", "\"num_hidden_layers\": 1000000000")),
            "config.json:7:24 /num_hidden_layers: layers is 1000000000; at most 10000 is accepted");
}

TEST(HuggingFace, several_mistakes_come_at_once) {
  const auto text = error_of(R"({"model_type": "gpt2", "n_embd": "x", "n_head": 0, "n_layer": 2, "vocab_size": 10})");
  EXPECT_THAT(text, HasSubstr("/n_embd"));
  EXPECT_THAT(text, HasSubstr("/n_head"));
  EXPECT_THAT(text, HasSubstr("\"n_positions\""));
}

TEST(HuggingFace, an_unknown_type_gets_the_nearest_and_the_known_ones) {
  EXPECT_EQ(error_of(llama_with("\"llama\"", "\"lama\"")),
            "config.json:2:17 /model_type: unknown model_type \"lama\"; all its keys are those of llama: \"--as "
            "llama\" reads it as one; did you mean \"llama\"? "
            "valid: " +
                join(huggingface_model_types(), ", "));
  EXPECT_THAT(error_of(llama_with("\"llama\"", "\"wav2vec2\"")),
              HasSubstr("unknown model_type \"wav2vec2\"; all its keys are those of llama: \"--as llama\" reads it as "
                        "one; valid: gpt2"));
  EXPECT_THAT(error_of(llama_with("\"llama\"", "7")), HasSubstr("model_type must be a string"));
}

TEST(HuggingFace, a_planned_type_is_not_built_yet) {
  for (const std::string type : {"dbrx", "mpt", "cohere", "gptj"}) {
    EXPECT_THAT(error_of(llama_with("\"llama\"", "\"" + type + "\"")),
                HasSubstr("model_type \"" + type + "\" is not built yet; all its keys are those of llama"));
  }
}

TEST(HuggingFace, what_a_launch_states_is_read) {
  const auto model =
      read(llama_with("\"vocab_size\"",
                      R"("rope_theta": 500000.0, "rms_norm_eps": 1e-05, "rope_scaling": {"rope_type": "llama3",
      "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
      "vocab_size")"))
          .value();
  EXPECT_DOUBLE_EQ(model.norm_eps, 1e-5);
  EXPECT_EQ(model.rope, (Rope{.base = 500'000.0,
                              .scaling = RopeScaling::llama3,
                              .factor = 8.0,
                              .original_seq = 8'192,
                              .low_freq = 1.0,
                              .high_freq = 4.0}));
  EXPECT_EQ(read(kLlama)->rope, Rope{});  // not described
  const auto later = read(llama_with("\"vocab_size\"", R"("rope_parameters": {"rope_type": "default",
      "rope_theta": 10000000, "partial_rotary_factor": 0.25}, "vocab_size")"))
                         .value();
  EXPECT_EQ(later.rope, (Rope{.base = 1e7, .fraction = 0.25}));
}

TEST(HuggingFace, soft_caps_sinks_and_routers_are_read) {
  const auto gemma = load_model("", fixture("gemma-2-2b")).value();
  EXPECT_DOUBLE_EQ(gemma.attention_soft_cap, 50.0);
  EXPECT_DOUBLE_EQ(gemma.logit_soft_cap, 30.0);
  EXPECT_TRUE(load_model("", fixture("gpt-oss-20b"))->attention_sinks);
  std::string text = llama_with("\"llama\"", "\"deepseek_v3\"");
  text.replace(text.find("\"vocab_size\""), 0, R"("scoring_func": "sigmoid", "routed_scaling_factor": 2.5,
    "topk_method": "noaux_tc", "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0}, )");
  const auto deepseek = read(text);
  ASSERT_TRUE(deepseek) << deepseek.error().text();
  EXPECT_EQ(deepseek->experts.score, RouterScore::sigmoid);
  EXPECT_TRUE(deepseek->experts.balance_bias);
  EXPECT_DOUBLE_EQ(deepseek->experts.score_scale, 2.5);
  EXPECT_EQ(deepseek->rope, (Rope{.scaling = RopeScaling::yarn, .factor = 40.0, .mscale = 1.0}));
}

TEST(HuggingFace, a_key_that_is_not_known_is_named) {
  const auto model = read(llama_with("\"vocab_size\"", "\"num_hidden_layer\": 99, \"new_gate\": true, \"vocab_size\""));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->layers, 32);
  EXPECT_THAT(model->warnings,
              ElementsAre("config.json: keys are not known in a configuration of type llama and ignored: "
                          "\"num_hidden_layer\" (did you mean \"num_hidden_layers\"?), \"new_gate\""));
  EXPECT_THAT(read(llama_with("\"vocab_size\"", "\"bos_token_id\": 1, \"new_gate\": false, \"vocab_size\""))->warnings,
              ::testing::IsEmpty());
}

TEST(HuggingFace, absurd_sizes_of_hybrids_are_refused) {
  const auto mamba = [](const std::string& more) {
    return error_of(R"({"model_type": "mamba", "hidden_size": 1000000000, "vocab_size": 1000, )" + more + "}");
  };
  EXPECT_THAT(mamba("\"num_hidden_layers\": 1000000000"), HasSubstr("at most 10000 is accepted"));
  EXPECT_THAT(mamba("\"num_hidden_layers\": 2, \"expand\": 1e12"), HasSubstr("at most"));
  const std::string nemotron =
      R"({"model_type": "nemotron_h", "hidden_size": 64, "vocab_size": 1000, "num_hidden_layers": 3,
    "num_attention_heads": 4, "max_position_embeddings": 64, "intermediate_size": 64, "hybrid_override_pattern": ")";
  EXPECT_THAT(error_of(nemotron + "M-\"}"), HasSubstr("pattern has 2 letters for 3 layers"));
  EXPECT_THAT(error_of(nemotron + "M-X\"}"), HasSubstr("pattern has \"X\" for layer 2; valid: M, *, -, E"));
  EXPECT_THAT(error_of(nemotron + "M-E\"}"), HasSubstr("pattern has E for layers of experts"));
}

// Published configurations have no key that goes unread, but for two that a description has no field for.
TEST(HuggingFace, keys_of_published_configurations_are_known) {
  const std::vector<std::string> expected = {"gpt-oss-20b", "phi-3.5-moe"};
  std::vector<std::string> warned;
  for (const char* name : {"bloom-560m",
                           "codestral-mamba-7b",
                           "deepseek-v2-lite",
                           "deepseek-v3",
                           "falcon-40b",
                           "falcon-7b",
                           "gemma-2-2b",
                           "gemma-2b",
                           "gemma-3-1b",
                           "gemma-3-4b",
                           "glm-4.5",
                           "glm-4.5-air",
                           "gpt-oss-20b",
                           "gpt2",
                           "jamba-v0.1",
                           "kimi-k2",
                           "llama-2-70b",
                           "mamba-2.8b",
                           "mistral-7b",
                           "mixtral-8x7b",
                           "nemotron-3-nano-30b",
                           "nemotron-h-56b",
                           "olmo-2-13b",
                           "opt-1.3b",
                           "phi-2",
                           "phi-3-mini-4k",
                           "phi-3.5-moe",
                           "pythia-1.4b",
                           "qwen1.5-moe-a2.7b",
                           "qwen2.5-7b",
                           "qwen3-0.6b",
                           "qwen3-30b-a3b",
                           "qwen3-next-80b",
                           "starcoder",
                           "starcoder2-3b",
                           "t5-small",
                           "t5-v1.1-small",
                           "vit-b16"}) {
    const auto model = load_model("/nonexistent", fixture(name));
    ASSERT_TRUE(model) << model.error().text();
    if (!model->warnings.empty()) { warned.emplace_back(name); }
  }
  EXPECT_EQ(warned, expected);
}

TEST(HuggingFace, a_configuration_can_be_read_as_another_type) {
  const auto unknown = config::parse_json(llama_with("\"llama\"", "\"mystery\""), "config.json").value();
  const auto model = model_from_huggingface(unknown, "test", "llama");
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(parameter_count(*model).total, parameter_count(*read(kLlama)).total);
  EXPECT_THAT(model_from_huggingface(unknown, "test", "lama").error().text(),
              HasSubstr("--as: \"lama\" is not a known model_type; did you mean \"llama\"?"));
  const std::string without = std::string(kLlama).replace(kLlama.find("  \"model_type\": \"llama\",\n"), 25, "");
  EXPECT_THAT(error_of(without),
              HasSubstr("\"model_type\" of a Hugging Face configuration is missing; all its keys are "
                        "those of llama"));
}

TEST(HuggingFace, an_unknown_activation_is_named) {
  EXPECT_EQ(
      error_of(llama_with("\"vocab_size\"", "\"hidden_act\": \"tanh\", \"vocab_size\"")),
      "config.json:8:17 /hidden_act: unknown activation \"tanh\"; valid: gelu and its variants, relu, relu2, silu");
}

}  // namespace
}  // namespace orrery::workload::huggingface_test
