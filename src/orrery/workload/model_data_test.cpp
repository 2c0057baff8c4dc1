// The shipped models against the sizes that their publishers state; every figure has a source.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/hardware/citations.hpp"
#include "orrery/hardware/entry.hpp"
#include "orrery/workload/catalogue.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::workload::model_data_test {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

struct Published {
  const char* name;
  double parameters;               // in 1e9
  double active = 0.0;             // in 1e9, rounded by the publisher; 0: none stated
  bool without_embedding = false;  // the active ones leave out the embedding
  double kv = 0.0;                 // bytes per token with two-byte elements; 0: none found
};

// Published sizes. If the name is rounded by more than 0.5 %, the count of the released checkpoint; for models that
// were never released the publisher's own formula: megatron-1.7b and -3.6b by equation (2) of arXiv 2104.04473, P = 12
// l h^2 (1 + 13/(12 h) + (V + s)/(12 l h)). docs/models/models.md has the sources.
const std::vector<Published> kPublished = {
    {.name = "gpt2", .parameters = 0.12444},
    {.name = "gpt2-medium", .parameters = 0.35482},
    {.name = "gpt2-large", .parameters = 0.77403},
    {.name = "gpt2-xl", .parameters = 1.5576, .kv = 307200},
    {.name = "gpt3-175b", .parameters = 175, .kv = 4718592},
    {.name = "mt-nlg-530b", .parameters = 530},
    {.name = "megatron-22b", .parameters = 22},
    {.name = "megatron-1.7b", .parameters = 1.652},
    {.name = "megatron-3.6b", .parameters = 3.562},
    {.name = "megatron-7.5b", .parameters = 7.5},
    {.name = "megatron-18.4b", .parameters = 18.4},
    {.name = "megatron-39.1b", .parameters = 39.1},
    {.name = "megatron-76.1b", .parameters = 76.1},
    {.name = "megatron-145.6b", .parameters = 145.6},
    {.name = "megatron-310.1b", .parameters = 310.1},
    {.name = "megatron-529.6b", .parameters = 529.6},
    {.name = "megatron-1t", .parameters = 1008},
    {.name = "llama-1-7b", .parameters = 6.738},
    {.name = "llama-1-13b", .parameters = 13.016},
    {.name = "llama-1-33b", .parameters = 32.529},
    {.name = "llama-1-65b", .parameters = 65.286},
    {.name = "llama-2-7b", .parameters = 6.738, .kv = 524288},
    {.name = "llama-2-13b", .parameters = 13.016},
    {.name = "llama-2-70b", .parameters = 68.977},
    {.name = "llama-3-8b", .parameters = 8.03, .kv = 131072},
    {.name = "llama-3-70b", .parameters = 70.554, .kv = 327680},
    {.name = "llama-3.1-8b", .parameters = 8.03},
    {.name = "llama-3.1-70b", .parameters = 70.554, .kv = 327680},
    {.name = "llama-3.1-405b", .parameters = 405.853, .kv = 516096},
    {.name = "mistral-7b", .parameters = 7.242},
    {.name = "bloom-176b", .parameters = 176.247},
    {.name = "gpt-neox-20b", .parameters = 20.555},
    {.name = "opt-125m", .parameters = 0.125},
    {.name = "opt-1.3b", .parameters = 1.3158},
    {.name = "opt-2.7b", .parameters = 2.6516},
    {.name = "opt-6.7b", .parameters = 6.6585},
    {.name = "opt-13b", .parameters = 12.853, .kv = 819200},
    {.name = "opt-30b", .parameters = 30},
    {.name = "opt-66b", .parameters = 66},
    {.name = "opt-175b", .parameters = 175},
    {.name = "qwen2-0.5b", .parameters = 0.494},
    {.name = "qwen2-1.5b", .parameters = 1.544},
    {.name = "qwen2-7b", .parameters = 7.616},
    {.name = "qwen2-72b", .parameters = 72.706},
    {.name = "qwen2.5-0.5b", .parameters = 0.494},
    {.name = "qwen2.5-1.5b", .parameters = 1.544},
    {.name = "qwen2.5-3b", .parameters = 3.086},
    {.name = "qwen2.5-7b", .parameters = 7.616},
    {.name = "qwen2.5-14b", .parameters = 14.77},
    {.name = "qwen2.5-32b", .parameters = 32.764},
    {.name = "qwen2.5-72b", .parameters = 72.706, .kv = 327680},
    {.name = "llama-3.2-1b", .parameters = 1.2358},
    {.name = "llama-3.2-3b", .parameters = 3.2127},
    {.name = "llama-3.3-70b", .parameters = 70.554},
    {.name = "llama-4-scout", .parameters = 109, .active = 17},
    {.name = "llama-4-maverick", .parameters = 400, .active = 17},
    {.name = "codellama-34b", .parameters = 33.744},
    {.name = "mistral-nemo-12b", .parameters = 12.248},
    {.name = "mistral-small-24b", .parameters = 23.572},
    {.name = "mistral-large-2", .parameters = 122.61},
    {.name = "mixtral-8x7b", .parameters = 46.703, .active = 12.9},
    {.name = "mixtral-8x22b", .parameters = 140.62, .active = 39.1},
    {.name = "yi-34b", .parameters = 34.389},
    {.name = "glm-4-9b", .parameters = 9.4},
    {.name = "qwen1.5-moe-a2.7b", .parameters = 14.316, .active = 2.7},
    {.name = "qwen2-57b-a14b", .parameters = 57.409, .active = 14},
    {.name = "qwen3-0.6b", .parameters = 0.59605},
    {.name = "qwen3-1.7b", .parameters = 1.7206},
    {.name = "qwen3-4b", .parameters = 4.0225},
    {.name = "qwen3-8b", .parameters = 8.1907},
    {.name = "qwen3-14b", .parameters = 14.768},
    {.name = "qwen3-32b", .parameters = 32.762},
    {.name = "qwen3-30b-a3b", .parameters = 30.532, .active = 3.3},
    {.name = "qwen3-235b-a22b", .parameters = 235.09, .active = 22},
    {.name = "qwen3-coder-480b-a35b", .parameters = 480.15, .active = 35},
    {.name = "deepseek-v2", .parameters = 236, .active = 21, .kv = 69120},
    {.name = "deepseek-v2-lite", .parameters = 15.706, .active = 2.4, .without_embedding = true},
    {.name = "deepseek-v3", .parameters = 671, .active = 37, .kv = 70272},
    {.name = "deepseek-r1", .parameters = 671, .active = 37},
    {.name = "deepseek-v3-mtp", .parameters = 682.5},
    {.name = "kimi-k2", .parameters = 1026.4, .active = 32},
    {.name = "gemma-2b", .parameters = 2.5062},
    {.name = "gemma-7b", .parameters = 8.5377},
    {.name = "gemma-2-2b", .parameters = 2.6143},
    {.name = "gemma-2-9b", .parameters = 9.2417},
    {.name = "gemma-2-27b", .parameters = 27.227},
    {.name = "gemma-3-1b", .parameters = 0.99989},
    {.name = "gemma-3-4b", .parameters = 4.300},
    {.name = "gemma-3-12b", .parameters = 12.187},
    {.name = "gemma-3-27b", .parameters = 27.432},
    {.name = "phi-1.5", .parameters = 1.4183},
    {.name = "phi-2", .parameters = 2.7797},
    {.name = "phi-3-mini", .parameters = 3.8211},
    {.name = "phi-3-medium", .parameters = 13.96},
    {.name = "phi-3.5-moe", .parameters = 41.873, .active = 6.6},
    {.name = "phi-4", .parameters = 14.66},
    {.name = "phi-4-mini", .parameters = 3.836},
    {.name = "falcon-7b", .parameters = 6.9217},
    {.name = "falcon-40b", .parameters = 41.303},
    {.name = "falcon-180b", .parameters = 179.52},
    {.name = "falcon3-7b", .parameters = 7.4556},
    {.name = "falcon3-10b", .parameters = 10.306},
    {.name = "starcoder", .parameters = 15.517},
    {.name = "starcoder2-3b", .parameters = 3.0304},
    {.name = "starcoder2-7b", .parameters = 7.1739},
    {.name = "starcoder2-15b", .parameters = 15.958},
    {.name = "t5-small", .parameters = 0.060507},
    {.name = "t5-base", .parameters = 0.2229},
    {.name = "t5-large", .parameters = 0.73767},
    {.name = "t5-3b", .parameters = 2.8516},
    {.name = "t5-11b", .parameters = 11.307},
    {.name = "t5-v1.1-small", .parameters = 0.076961},
    {.name = "t5-v1.1-base", .parameters = 0.24758},
    {.name = "t5-v1.1-large", .parameters = 0.78315},
    {.name = "t5-v1.1-xl", .parameters = 2.8498},
    {.name = "t5-v1.1-xxl", .parameters = 11.135},
    {.name = "vit-b16", .parameters = 0.086568},
    {.name = "vit-l16", .parameters = 0.30433},
    {.name = "vit-h14", .parameters = 0.63205},
    {.name = "vit-22b", .parameters = 21.743},
    {.name = "grok-1", .parameters = 314},
    {.name = "dbrx", .parameters = 132, .active = 36},
    {.name = "gpt-oss-20b", .parameters = 20.91, .active = 3.61, .without_embedding = true},
    {.name = "gpt-oss-120b", .parameters = 116.83, .active = 5.13, .without_embedding = true},
    {.name = "nemotron-4-15b", .parameters = 15.7},
    {.name = "nemotron-4-340b", .parameters = 341},
    {.name = "mpt-7b", .parameters = 6.6493},
    {.name = "mpt-30b", .parameters = 29.958},
    {.name = "smollm3-3b", .parameters = 3.075},
    {.name = "pythia-70m", .parameters = 0.0704},
    {.name = "pythia-410m", .parameters = 0.4053},
    {.name = "pythia-1.4b", .parameters = 1.4147},
    {.name = "pythia-2.8b", .parameters = 2.7752},
    {.name = "pythia-6.9b", .parameters = 6.8573},
    {.name = "pythia-12b", .parameters = 11.846},
    {.name = "gpt-j-6b", .parameters = 6.0509},
    {.name = "palm-8b", .parameters = 8.63},
    {.name = "palm-62b", .parameters = 62.5},
    {.name = "palm-540b", .parameters = 540.35},
    {.name = "bert-large", .parameters = 0.33514},
    {.name = "mamba-2.8b", .parameters = 2.768},
    {.name = "codestral-mamba-7b", .parameters = 7.285403648},
    {.name = "jamba-v0.1", .parameters = 51.57, .active = 12},
    {.name = "nemotron-h-56b", .parameters = 56.3},
    {.name = "nemotron-3-nano-30b-a3b", .parameters = 31.6, .active = 3.6},
    {.name = "qwen3-next-80b-a3b", .parameters = 80},
    {.name = "olmo-2-7b", .parameters = 7.2987},
    {.name = "qwen2.5-vl-7b", .parameters = 8.292},
    {.name = "olmo-2-13b", .parameters = 13.716},
    {.name = "glm-4.5", .parameters = 352.57, .active = 32, .without_embedding = true},
    {.name = "glm-4.5-air", .parameters = 106.85},
    {.name = "glm-4.6", .parameters = 352.57, .active = 32, .without_embedding = true},
};

// Published figures that count something else; docs/models/models.md says what.
const std::vector<std::string> kApart = {"grok-1"};

double in_billions(std::int64_t count) { return static_cast<double>(count) * 1e-9; }

double active_as_published(const Published& row, const ParameterCount& count) {
  return in_billions(count.active - (row.without_embedding ? count.embedding : 0));
}

TEST(ModelData, parameter_counts_agree_with_published_ones_within_half_a_percent) {
  for (const auto& row : kPublished) {
    const auto model = load_model(ORRERY_DATA_DIR, row.name);
    ASSERT_TRUE(model) << model.error().text();
    const bool apart = std::find(kApart.begin(), kApart.end(), row.name) != kApart.end();
    const double ratio = in_billions(parameter_count(*model).total) / row.parameters;
    EXPECT_NEAR(ratio, 1.0, apart ? 0.012 : 0.005) << row.name;
    EXPECT_TRUE(!apart || std::abs(ratio - 1.0) > 0.005) << row.name << " need not be apart";
  }
}

// Publishers round to two digits ("37 B" for 37.55 B).
TEST(ModelData, active_parameters_agree_with_published_ones_within_3_percent) {
  int compared = 0;
  for (const auto& row : kPublished) {
    if (row.active == 0.0) { continue; }
    const auto count = parameter_count(load_model(ORRERY_DATA_DIR, row.name).value());
    EXPECT_LT(count.active, count.total) << row.name;
    EXPECT_NEAR(active_as_published(row, count) / row.active, 1.0, 0.03) << row.name;
    ++compared;
  }
  EXPECT_GE(compared, 15);
}

TEST(ModelData, bytes_of_keys_and_values_per_token_equal_published_ones) {
  int compared = 0;
  for (const auto& row : kPublished) {
    if (row.kv == 0.0) { continue; }
    EXPECT_DOUBLE_EQ(kv_bytes_per_token(load_model(ORRERY_DATA_DIR, row.name).value(), 2), row.kv) << row.name;
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

double weights(const std::vector<Operator>& operators) {
  double sum = 0.0;
  for (const auto& op : operators) { sum += op.parameters; }
  return sum;
}

// Two independent counts of the same weights. The vocabulary of operators is padded; sums stay below 2^53 and are
// exact.
TEST(ModelData, operators_of_every_shipped_model_hold_its_parameters) {
  const hardware::Stack stack;
  for (const auto& row : kPublished) {
    Model model = load_model(ORRERY_DATA_DIR, row.name).value();
    Slice slice;
    slice.seq = model.is_vision() ? model.max_seq : 64;
    double sum = weights(embedding_operators(model, stack, slice)) + weights(head_operators(model, stack, slice));
    if (model.has_tower()) {
      constexpr std::int64_t kSide = 448;
      const auto side = model.tower.image > 0 ? std::nullopt : std::optional(kSide);
      model = with_images(std::move(model), 1, side, 4096).value();
      sum += weights(tower_patches(model, stack, slice)) + weights(tower_projector(model, stack, slice));
      sum += static_cast<double>(model.tower.layers) * weights(tower_layer(model, stack, slice, false));
    }
    for (std::int64_t i = 0; i < model.depth(); ++i) {
      sum += weights(layer_operators(model, stack, slice, layer_kind(model, i)));
    }
    for (std::int64_t i = 0; i < model.mtp_layers; ++i) { sum += weights(mtp_operators(model, stack, slice)); }
    const std::int64_t padding = model.vocab > 0 ? vocabulary_rows(model, 1) - model.vocab : 0;
    const std::int64_t padded = parameter_count(model).total + padding * model.hidden * (model.tied_embeddings ? 1 : 2);
    EXPECT_EQ(sum, static_cast<double>(padded)) << row.name;
  }
}

// For recommenders nobody publishes a count: rows and widths are published and give the count.
TEST(ModelData, every_shipped_model_but_recommenders_is_compared) {
  std::vector<std::string> compared, shipped;
  for (const auto& row : kPublished) { compared.emplace_back(row.name); }
  for (const auto& name : hardware::entry_names(ORRERY_DATA_DIR, hardware::kModelEntries)) {
    if (!load_model(ORRERY_DATA_DIR, name).value().is_recommender()) { shipped.push_back(name); }
  }
  EXPECT_THAT(compared, UnorderedElementsAreArray(shipped));
  EXPECT_GE(compared.size(), 90U);
}

std::string row_of_table(const Published& row) {
  const Model model = load_model(ORRERY_DATA_DIR, row.name).value();
  const ParameterCount count = parameter_count(model);
  const double ours = in_billions(count.total);
  const auto or_nothing = [](double value, const std::string& text) { return value == 0.0 ? std::string() : text; };
  const bool sparse = count.active != count.total - count.tower;
  const double kv = kv_bytes_per_token(model, 2);
  return fmt::format("| {} | {} | {:.5g} | {:+.2f} % | {} | {} | {} | {} |\n", row.name, count.total, row.parameters,
                     100.0 * (ours / row.parameters - 1.0),
                     sparse ? fmt::format("{:.2f}", active_as_published(row, count)) : "",
                     or_nothing(row.active, fmt::format("{:.3g}", row.active)),
                     or_nothing(kv, fmt::format("{:.0f}", kv)), or_nothing(row.kv, fmt::format("{:.0f}", row.kv)));
}

// The table in docs/models/models.md is generated from the rows above. If it differs, the right one is written to a
// file.
TEST(ModelData, the_documented_table_is_the_one_that_is_checked) {
  std::string table =
      "| model | parameters | published, 10^9 | difference | active, 10^9 | published | KV, B/token | published |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const auto& row : kPublished) { table += row_of_table(row); }
  std::ifstream file(std::string(ORRERY_SOURCE_DATA_DIR) + "/../docs/models/models.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string expected = ::testing::TempDir() + "models_table.md";
  std::ofstream(expected) << table;
  EXPECT_TRUE(text.find(table) != std::string::npos) << "the table should read as in " << expected;
}

TEST(ModelData, every_figure_of_every_model_is_cited_and_every_citation_has_a_figure) {
  for (const auto& name : hardware::entry_names(ORRERY_DATA_DIR, hardware::kModelEntries)) {
    const auto node = hardware::entry_node(ORRERY_DATA_DIR, hardware::kModelEntries, name);
    ASSERT_TRUE(node) << node.error().text();
    EXPECT_THAT(hardware::uncited_figures(*node), IsEmpty()) << name;
    EXPECT_THAT(hardware::citations_of_nothing(*node), IsEmpty()) << name;
    EXPECT_EQ(node->find("name")->scalar, name);
    for (const auto& cited : node->find("sources")->members) {
      const std::string& citation = cited.value.scalar;
      EXPECT_TRUE(hardware::is_unverified(citation) || citation.find("read 20") != std::string::npos)
          << name << ": " << cited.key << ": " << citation;
    }
  }
}

TEST(ModelData, the_listing_has_every_model_once) {
  const auto models = list_models(ORRERY_DATA_DIR);
  ASSERT_TRUE(models) << models.error().text();
  EXPECT_EQ(models->size(), hardware::entry_names(ORRERY_DATA_DIR, hardware::kModelEntries).size());
  for (const auto& model : *models) {
    EXPECT_GT(model.figures, 0) << model.name;
    EXPECT_LE(model.unverified, model.figures) << model.name;
    EXPECT_FALSE(model.description.empty()) << model.name;
  }
}

}  // namespace
}  // namespace orrery::workload::model_data_test
