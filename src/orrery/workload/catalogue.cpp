#include "orrery/workload/catalogue.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/entry.hpp"
#include "orrery/hardware/reference.hpp"
#include "orrery/workload/huggingface.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::workload {
namespace {

namespace fs = std::filesystem;
using config::Described;
using config::Node;

// A folder in Hugging Face's layout is read through its config.json.
Result<std::string> file_meant(const std::string& path) {
  std::error_code error;
  const fs::path inside = fs::path(path) / "config.json";
  if (fs::exists(fs::symlink_status(inside, error))) { return inside.string(); }
  if (fs::is_directory(path, error)) {
    return fail(Place{}, fmt::format("the folder {} has no config.json", quote(path)));
  }
  return path;
}

// Hugging Face files are all named config.json, so the model is named after the folder.
std::string name_of_file(const std::string& path) {
  const fs::path file(path);
  if (file.filename() != "config.json") { return file.stem().string(); }
  const std::string folder = file.parent_path().filename().string();
  return folder.empty() || folder == "." || folder == ".." ? file.stem().string() : folder;
}

bool is_json(const std::string& path) { return fs::path(path).extension() == ".json"; }

// Some sizes are required unless others make them unnecessary; records have no such conditions. The missing ones are
// reported here, and placeholders let the rest be read, so that all errors are reported together.
std::vector<Diagnostic> with_stand_ins(Node& node) {
  struct Size {
    const char* key;
    const char* unless;
    const char* doc;
  };
  constexpr std::array kSizes = {Size{"ffn", "experts", "inner width of the MLP"},
                                 Size{"vocab", "vision", "rows of the stored embedding table"},
                                 Size{"max_seq", "vision", "longest sequence"}};
  std::vector<Diagnostic> missing;
  for (const auto& size : kSizes) {
    const bool one_half = size.key == std::string_view("ffn") && node.find("pattern") != nullptr;
    if (node.find(size.key) != nullptr || node.find(size.unless) != nullptr || one_half) { continue; }
    missing.push_back({node.place, fmt::format("required key \"{}\" is missing (integer: {})", size.key, size.doc)});
    config::add(node, size.key, config::integer_node(1));
  }
  return missing;
}

// Fields that recommenders share with other models.
constexpr std::array<std::string_view, 4> kCommonKeys = {"name", "description", "recommender", "sources"};

// A recommender is described by its own mapping; keys of transformers would have no effect.
std::vector<Diagnostic> without_transformer(Node& node) {
  const auto& fields = Described<Model>::record().fields();
  std::vector<Diagnostic> idle;
  for (const auto& member : node.members) {
    const bool is_common = std::find(kCommonKeys.begin(), kCommonKeys.end(), member.key) != kCommonKeys.end();
    const bool is_known =
        std::any_of(fields.begin(), fields.end(), [&](const auto& field) { return field.name == member.key; });
    if (is_common || !is_known) { continue; }
    idle.push_back({member.place(), fmt::format("{} is a key of transformers; the sizes of a recommender are under "
                                                "\"recommender\"",
                                                quote(member.key))});
  }
  for (const char* const key : {"layers", "hidden", "heads"}) {
    if (node.find(key) == nullptr) { config::add(node, key, config::integer_node(1)); }
  }
  return idle;
}

Result<Model> read_description(Node node) {
  auto complaints = node.find("recommender") != nullptr ? without_transformer(node) : with_stand_ins(node);
  auto model = Described<Model>::record().read(node);
  if (complaints.empty()) { return std::move(model).map(completed); }
  if (!model) {
    const auto& more = model.error().diagnostics;
    complaints.insert(complaints.end(), more.begin(), more.end());
  }
  return tl::make_unexpected(config::failure_of(std::move(complaints)));
}

Result<Model> read_file_of_model(const std::string& path, const std::string& as) {
  ORRERY_TRY(node, config::read_file(path));
  if (node.kind != config::Kind::mapping) {
    return fail(node.place, "a model description must be a mapping of keys to values");
  }
  const bool described = node.find("layers") != nullptr || node.find("recommender") != nullptr;
  const bool is_orrerys = described && node.find("architectures") == nullptr && node.find("model_type") == nullptr;
  if (is_json(path) && !is_orrerys) { return model_from_huggingface(node, name_of_file(path), as); }
  if (!as.empty()) {
    return fail(Place{"", 0, 0, "--as"},
                fmt::format("{} is for a Hugging Face config.json; {} is a description of Orrery", quote(as), path));
  }
  hardware::name_node(node, name_of_file(path));
  return read_description(std::move(node));
}

Result<std::string> file_of_model(const std::string& data_directory, const std::string& name_or_path) {
  std::error_code error;
  const bool is_mad_max = name_or_path.starts_with(hardware::kMadMaxPrefix);
  const auto& kind = is_mad_max && !fs::exists(name_or_path, error) ? hardware::kMadMaxModels : hardware::kModelEntries;
  const bool listed = hardware::has_entry(data_directory, kind, name_or_path);
  ORRERY_TRY(meant, listed ? Result<std::string>(name_or_path) : file_meant(name_or_path));
  return hardware::entry_file(data_directory, kind, meant);
}

Result<std::vector<hardware::EntrySummary>> listing(const std::string& data_directory,
                                                    const hardware::EntryKind& kind) {
  std::vector<hardware::EntrySummary> summaries;
  for (const auto& name : hardware::entry_names(data_directory, kind)) {
    ORRERY_TRY(model, load_model(data_directory, name));
    summaries.push_back({model.name, model.description, 0, 0});
    hardware::count_sources(model.sources, summaries.back());
  }
  return summaries;
}

}  // namespace

Result<Model> model_of_tree(Node tree) { return read_description(std::move(tree)); }

Result<Model> load_model(const std::string& data_directory, const std::string& name_or_path, const std::string& as) {
  ORRERY_TRY(file, file_of_model(data_directory, name_or_path));
  return read_file_of_model(file, as);
}

bool is_model_file(const std::string& path) {
  const auto file = file_meant(path);
  if (!file) { return false; }
  const bool is_path = file->find('/') != std::string::npos || fs::path(*file).has_extension();
  std::error_code error;
  if (!is_path || !fs::is_regular_file(*file, error)) { return false; }
  const auto node = config::read_file(*file);
  // Keys of Orrery's models, then of Hugging Face's configurations, which may lack their model_type.
  constexpr std::array<std::string_view, 14> kKeys{"layers",
                                                   "hidden",
                                                   "vocab",
                                                   "recommender",
                                                   "model_type",
                                                   "architectures",
                                                   "transformers_version",
                                                   "vocab_size",
                                                   "hidden_size",
                                                   "num_hidden_layers",
                                                   "n_layer",
                                                   "n_embd",
                                                   "d_model",
                                                   "num_layers"};
  return node &&
         std::any_of(kKeys.begin(), kKeys.end(), [&](std::string_view key) { return node->find(key) != nullptr; });
}

std::vector<std::string> model_names(const std::string& data_directory) {
  return hardware::entry_names(data_directory, hardware::kModelEntries);
}

Result<std::vector<hardware::EntrySummary>> list_models(const std::string& data_directory) {
  return listing(data_directory, hardware::kModelEntries);
}

Result<std::vector<hardware::EntrySummary>> list_mad_max_models(const std::string& data_directory) {
  return listing(data_directory, hardware::kMadMaxModels);
}

namespace {

std::string rounded(std::int64_t count) { return config::format_count(static_cast<double>(count), 4); }

std::string counts_as_comments(const Model& model) {
  const ParameterCount count = parameter_count(model);
  std::string text = fmt::format("# parameters: {} ({})\n#   embedding {}, {} layers {}, head {}\n", count.total,
                                 rounded(count.total), count.embedding, model.depth(), count.layers, count.head);
  if (count.active != count.total - count.tower) {
    text += fmt::format("#   active per token: {} ({})\n", count.active, rounded(count.active));
  }
  if (count.tower > 0) { text += fmt::format("#   vision tower {} ({})\n", count.tower, rounded(count.tower)); }
  if (count.mtp > 0) {
    text += fmt::format("#   of the layers, in MTP modules: {} ({})\n", count.mtp, rounded(count.mtp));
  }
  return text;
}

}  // namespace

// Fields that a description has where they differ from the default.
constexpr std::array<std::string_view, 6> kDetails = {
    "norm_eps", "attention_soft_cap", "logit_soft_cap", "attention_sinks", "rope", "quantized_4_bit"};

std::string describe(const Model& model) {
  Node node = Described<Model>::record().to_node(model);
  const Node defaults = Described<Model>::record().to_node(Model{});
  std::erase_if(node.members, [&](const config::Member& member) {
    if (model.is_recommender()) {
      return std::find(kCommonKeys.begin(), kCommonKeys.end(), member.key) == kCommonKeys.end();
    }
    return member.key == "recommender" || (member.key == "experts" && !model.has_experts()) ||
           (member.key == "latent" && !model.is_latent()) || (member.key == "vision" && !model.is_vision()) ||
           (member.key == "tower" && !model.has_tower()) || (member.key == "mixer" && !model.has_mixers()) ||
           (member.key == "pattern" && model.pattern.empty()) ||
           (std::find(kDetails.begin(), kDetails.end(), member.key) != kDetails.end() &&
            member.value == *defaults.find(member.key));
  });
  std::string warnings;
  for (const auto& warning : model.warnings) { warnings += "# warning: " + warning + "\n"; }
  return config::print_yaml(node) + warnings + counts_as_comments(model);
}

}  // namespace orrery::workload
