#include "apps/cli/serve_flags.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "orrery/config/node.hpp"

namespace orrery::cli {

namespace of_serve_flags {
namespace {

// Settings of the engine that are not flags: they describe the profile.
constexpr std::array<std::string_view, 4> kProfileFields = {"name", "description", "stack", "sources"};
constexpr std::array<std::string_view, 16> kLoadFields = {
    "rate",  "concurrency", "trace",        "trace_speed", "trace_block_tokens", "cv",
    "isl",   "osl",         "length_range", "length_cv",   "prefix_groups",      "prefix_tokens",
    "turns", "turn_tokens", "branches",     "join"};
constexpr std::array<std::string_view, 6> kRunFields = {"requests", "think", "warm_up", "seed", "usd_per_device_hour",
                                                        "slo"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const std::vector<config::FieldInfo>& engine_fields() {
  return config::Described<serving::EngineSettings>::record().fields();
}

// Their defaults are those of a profile, not of the record.
std::vector<config::FieldInfo> engine_flags() {
  std::vector<config::FieldInfo> fields = engine_fields();
  for (config::FieldInfo& field : fields) { field.default_text.reset(); }
  return fields;
}

// Moves the fields of the engine out of a scenario.
config::Node take_engine_fields(config::Node& fields) {
  config::Node engine = config::mapping_node();
  for (const auto& field : engine_fields()) {
    const config::Node* value = fields.find(field.name);
    if (is_one_of(kProfileFields, field.name) || value == nullptr) { continue; }
    config::add(engine, field.name, *value);
    std::erase_if(fields.members, [&](const config::Member& member) { return member.key == field.name; });
  }
  return engine;
}

// Paths in a scenario are relative to its folder.
void resolve_serving_paths(config::Node& fields, const std::string& file) {
  const auto folder = std::filesystem::path(file).parent_path();
  for (const char* name : {"model", "cluster", "prefill_cluster", "engine", "stack", "trace"}) {
    config::Node* value = fields.find(name);
    if (value == nullptr || value->kind != config::Kind::text) { continue; }
    const std::filesystem::path path(value->scalar);
    const std::string end = path.extension().string();
    const bool is_path = end == ".yaml" || end == ".yml" || end == ".json" || end == ".csv";
    if (is_path && path.is_relative()) { value->scalar = (folder / path).string(); }
  }
}

}  // namespace
}  // namespace of_serve_flags

ServeFlags::ServeFlags()
    : scenario_(config::Described<serving::Scenario>::record().fields()), engine_(of_serve_flags::engine_flags()) {}

void ServeFlags::declare(Command& command, const std::function<bool(std::string_view)>& wants) {
  using namespace of_serve_flags;
  scenario_.declare(command, [&](const std::string& field) -> std::string {
    if (!wants(field)) { return ""; }
    if (is_one_of(kLoadFields, field)) { return "The load"; }
    return is_one_of(kRunFields, field) ? "The run" : "The deployment";
  });
  engine_.declare(command, [&](const std::string& field) -> std::string {
    return is_one_of(kProfileFields, field) || !wants(field) ? "" : "The engine (default: its profile's)";
  });
}

Result<api::ServeRequest> ServeFlags::read(const std::string& example) const {
  using namespace of_serve_flags;
  config::Node fields = config::mapping_node();
  if (!file_.empty()) {
    ORRERY_TRY(root, config::read_file(file_));
    if (root.kind != config::Kind::mapping) {
      return fail(root.place, "a scenario is a mapping of fields, such as \"rate: 8\"");
    }
    fields = std::move(root);
    resolve_serving_paths(fields, file_);
  }
  api::ServeRequest request;
  std::vector<serving::Stage> stages;
  std::vector<Diagnostic> found;  // of stages and fields
  if (const config::Node* node = fields.find("stages")) {
    auto read = serving::read_stages(*node);
    if (read) { stages = std::move(*read); }
    if (!read) { found = std::move(read.error().diagnostics); }
    std::erase_if(fields.members, [](const config::Member& member) { return member.key == "stages"; });
  }
  request.engine = take_engine_fields(fields);
  config::Node flags = config::mapping_node();
  scenario_.lay_over(flags);
  scenario_.lay_over(fields);
  for (const char* name : {"isl", "osl"}) {  // a file has them for other runs
    if (flags.find(name) == nullptr || fields.find("trace") == nullptr) { continue; }
    found.push_back({flag_place(flag_name(name)), "is not valid with --trace, which has lengths"});
  }
  engine_.lay_over(request.engine);
  for (const char* name : {"model", "cluster"}) {
    if (fields.find(name) == nullptr) {
      return fail(flag_place(flag_name(name)), fmt::format("is missing; for example: {}", example));
    }
  }
  auto scenario = config::Described<serving::Scenario>::record().read(fields);
  if (!scenario) {
    found.insert(found.begin(), scenario.error().diagnostics.begin(), scenario.error().diagnostics.end());
  }
  if (!found.empty()) { return tl::make_unexpected(config::failure_of(std::move(found))); }
  request.scenario = std::move(*scenario);
  request.names_engine = fields.find("engine") != nullptr;
  request.scenario.stages = std::move(stages);
  return request;
}

}  // namespace orrery::cli
