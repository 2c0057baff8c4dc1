#include "orrery/workload/catalogue.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::workload::catalogue_test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

// A file of the test's own; its name is unique to the test.
std::string written(const std::string& suffix, const std::string& text) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const auto path = std::filesystem::path(::testing::TempDir()) / (std::string("model_") + test->name() + suffix);
  std::ofstream(path) << text;
  return path.string();
}

constexpr const char* kTiny = "layers: 2\nhidden: 64\nheads: 4\nffn: 256\nvocab: 1000\nmax_seq: 128\n";

TEST(ModelCatalogue, a_name_finds_the_shipped_model) {
  const auto model = load_model(ORRERY_DATA_DIR, "llama-3.1-405b");
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->layers, 126);
  EXPECT_EQ(model->hidden, 16384);
  EXPECT_EQ(model->kv_heads, 8);
  EXPECT_EQ(model->head_dim, 128);
}

TEST(ModelCatalogue, an_unknown_name_gets_the_nearest_one) {
  EXPECT_EQ(load_model(ORRERY_DATA_DIR, "gpt3-175").error().text(),
            "unknown model \"gpt3-175\"; did you mean \"gpt3-175b\"? (\"orrery list models\" shows all)");
  EXPECT_EQ(load_model(ORRERY_DATA_DIR, "llama-3.1-40b").error().text(),
            "unknown model \"llama-3.1-40b\"; did you mean \"llama-3.1-405b\"? (\"orrery list models\" shows all)");
}

TEST(ModelCatalogue, a_users_file_needs_six_sizes) {
  const auto model = load_model(ORRERY_DATA_DIR, written(".yaml", kTiny));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->name, "model_a_users_file_needs_six_sizes");
  EXPECT_EQ(model->head_dim, 16);
  EXPECT_EQ(model->kv_heads, 4);
}

TEST(ModelCatalogue, all_mistakes_of_a_file_come_at_once) {
  const auto path = written(".yaml", "layers: 2\nhiden: 64\nheads: four\nffn: 256\nvocab: 1000\n");
  const auto text = load_model(ORRERY_DATA_DIR, path).error().text();
  EXPECT_THAT(text, HasSubstr(":2:1 /hiden: unknown key; did you mean \"hidden\"?"));
  EXPECT_THAT(text, HasSubstr(":3:8 /heads: "));
  EXPECT_THAT(text, HasSubstr("required key \"hidden\" is missing"));
  EXPECT_THAT(text, HasSubstr("required key \"max_seq\" is missing"));
}

TEST(ModelCatalogue, sizes_must_fit_together) {
  std::string text = kTiny;
  text.replace(text.find("heads: 4"), 8, "heads: 7");
  EXPECT_THAT(load_model(ORRERY_DATA_DIR, written(".yaml", text)).error().text(),
              EndsWith("heads 7 does not divide hidden 64, and head_dim is not given"));
}

TEST(ModelCatalogue, json_without_a_model_type_is_orrerys_own) {
  const auto model = load_model(
      ORRERY_DATA_DIR,
      written(".json", R"({"layers": 2, "hidden": 64, "heads": 4, "ffn": 256, "vocab": 1000, "max_seq": 128})"));
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->ffn, 256);
}

TEST(ModelCatalogue, a_foreign_configuration_without_a_type_is_named_as_such) {
  EXPECT_THAT(
      load_model(ORRERY_DATA_DIR, written(".json", R"({"architectures": ["X"], "hidden_size": 64})")).error().text(),
      HasSubstr("required key \"model_type\" of a Hugging Face configuration is missing; valid: gpt2, "));
}

TEST(ModelCatalogue, what_describe_prints_reads_back) {
  for (const std::string name :
       {"llama-3.1-405b", "bloom-176b", "opt-13b", "deepseek-v3-mtp", "vit-22b", "t5-11b", "gemma-3-27b"}) {
    const auto model = load_model(ORRERY_DATA_DIR, name).value();
    const auto text = describe(model);
    const auto again = load_model(ORRERY_DATA_DIR, written(".yaml", text));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(describe(*again), text);
  }
}

TEST(ModelCatalogue, describe_states_the_parameters) {
  EXPECT_THAT(describe(load_model(ORRERY_DATA_DIR, "llama-3.1-405b").value()),
              HasSubstr("# parameters: 405853388800 (405.9 G)\n"));
  EXPECT_THAT(describe(load_model(ORRERY_DATA_DIR, "mixtral-8x7b").value()),
              HasSubstr("#   active per token: 12879925248 (12.88 G)\n"));
  EXPECT_THAT(describe(load_model(ORRERY_DATA_DIR, "deepseek-v3-mtp").value()),
              HasSubstr("in MTP modules: 11610067968 (11.61 G)\n"));
}

TEST(ModelCatalogue, describe_shows_experts_latent_attention_and_patches_where_they_are) {
  const auto dense = describe(load_model(ORRERY_DATA_DIR, "llama-3-8b").value());
  for (const char* part : {"experts:", "latent:", "vision:"}) { EXPECT_THAT(dense, Not(HasSubstr(part))); }
  EXPECT_THAT(describe(load_model(ORRERY_DATA_DIR, "deepseek-v3").value()),
              AllOf(HasSubstr("experts:\n  count: 256\n"), HasSubstr("latent:\n  query_rank: 1536\n")));
}

TEST(ModelCatalogue, mistakes_inside_experts_have_their_place) {
  const auto unknown = written(".yaml", std::string(kTiny) + "experts: {count: 4, active: 2, fn: 8}\n");
  EXPECT_THAT(load_model(ORRERY_DATA_DIR, unknown).error().text(),
              HasSubstr(":7:32 /experts/fn: unknown key; did you mean \"ffn\"?"));
  const auto many = written("2.yaml", std::string(kTiny) + "experts: {count: 4, active: 5, ffn: 8}\n");
  EXPECT_THAT(load_model(ORRERY_DATA_DIR, many).error().text(),
              HasSubstr(":7:29 /experts/active: experts.active 5 is more than experts.count 4"));
}

TEST(ModelCatalogue, experts_make_ffn_unnecessary_and_patches_vocab_and_max_seq) {
  const std::string sizes = "layers: 2\nhidden: 64\nheads: 4\n";
  const auto experts =
      load_model(ORRERY_DATA_DIR,
                 written(".yaml", sizes + "vocab: 1000\nmax_seq: 128\nexperts: {count: 4, active: 2, ffn: 96}\n"));
  ASSERT_TRUE(experts) << experts.error().text();
  EXPECT_EQ(experts->ffn, 96);
  const auto vision = load_model(ORRERY_DATA_DIR,
                                 written("2.yaml", sizes + "ffn: 256\ncausal: false\nvision: {image: 32, patch: 8}\n"));
  ASSERT_TRUE(vision) << vision.error().text();
  EXPECT_EQ(vision->max_seq, 17);
  EXPECT_EQ(load_model(ORRERY_DATA_DIR, written("3.yaml", sizes)).error().diagnostics.size(), 3U);
}

}  // namespace
}  // namespace orrery::workload::catalogue_test
