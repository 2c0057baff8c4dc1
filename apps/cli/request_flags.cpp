#include "apps/cli/request_flags.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::cli {

namespace {

constexpr std::array<std::string_view, 23> kJobFields = {
    "model",     "as",           "cluster",      "devices",       "stack",     "semantics",
    "task",      "global_batch", "seq",          "precision",     "prompt",    "generate",
    "batch",     "lora",         "lora_targets", "weight_format", "kv_format", "attention_precision",
    "quantized", "fp8_recipe",   "optimizer",    "images",        "image_size"};

constexpr std::string_view kInferenceExample =
    "--model llama-3.1-70b --cluster dgx-h100 --devices 8 --task inference --prompt 2048 --generate 256 --batch 64";

bool is_path(const std::string& text) {
  return text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json");
}

// Paths in a scenario are relative to the scenario's folder.
void resolve_paths(config::Node& fields, const std::string& scenario) {
  const auto folder = std::filesystem::path(scenario).parent_path();
  for (const char* name : {"model", "cluster", "stack"}) {
    config::Node* value = fields.find(name);
    if (value == nullptr || value->kind != config::Kind::text || !is_path(value->scalar)) { continue; }
    const std::filesystem::path path(value->scalar);
    if (path.is_relative()) { value->scalar = (folder / path).string(); }
  }
}

// One line with all missing required fields.
std::vector<Diagnostic> missing_fields(const config::Node& fields, const std::string& example,
                                       const std::vector<std::string>& optional) {
  std::vector<std::string> missing;
  for (const auto& field : estimate::request_record().fields()) {
    if (field.required && fields.find(field.name) == nullptr) { missing.push_back(flag_name(field.name)); }
  }
  const config::Node* task = fields.find("task");
  const bool serves = task != nullptr && task->scalar == config::enum_name(parallel::Task::inference);
  const config::Node* semantics = fields.find("semantics");
  const bool is_mad_max = semantics != nullptr && semantics->scalar == config::enum_name(estimate::Semantics::mad_max);
  for (const auto& field :
       estimate::needed_fields(serves ? parallel::Task::inference : parallel::Task::pretrain,
                               is_mad_max ? estimate::Semantics::mad_max : estimate::Semantics::physical)) {
    const bool may_be_missing = std::find(optional.begin(), optional.end(), field) != optional.end();
    if (fields.find(field) == nullptr && !may_be_missing) { missing.push_back(flag_name(field)); }
  }
  if (missing.empty()) { return {}; }
  const std::string command = example.substr(0, example.find(" --"));  // "orrery estimate"
  const std::string shown = serves && !is_mad_max ? fmt::format("{} {}", command, kInferenceExample) : example;
  const std::string verb = missing.size() == 1 ? "is" : "are";
  return {{{}, fmt::format("{} {} missing; for example: {}", join(missing, ", "), verb, shown)}};
}

// Whether a choice has several values: a sequence, or text such as 4,8 or 1..16.
bool has_values(const config::Node& value) {
  return value.kind == config::Kind::sequence || (value.is_scalar() && (value.scalar.find(',') != std::string::npos ||
                                                                        value.scalar.find("..") != std::string::npos));
}

// 4,8..16 as a sequence of its parts.
config::Node sequence_of(config::Node value) {
  if (value.kind == config::Kind::sequence) { return value; }
  config::Node sequence = value;
  sequence.kind = config::Kind::sequence;
  sequence.scalar.clear();
  for (std::string_view rest = value.scalar;;) {
    const std::size_t end = rest.find(',');
    sequence.items.push_back(config::plain_node(std::string(rest.substr(0, end)), value.place));
    if (end == std::string_view::npos) { return sequence; }
    rest.remove_prefix(end + 1);
  }
}

// Moves choices of a plan that have several values out of `fields`.
config::Node take_values(config::Node& fields) {
  config::Node values = config::mapping_node();
  for (const parallel::PlanChoice& choice : parallel::plan_choices()) {
    const bool is_axis = choice.kind == parallel::ChoiceKind::number || choice.kind == parallel::ChoiceKind::name;
    const config::Node* value = fields.find(choice.name);
    if (!is_axis || value == nullptr || !has_values(*value)) { continue; }
    config::add(values, std::string(choice.name), sequence_of(*value));
    std::erase_if(fields.members, [&](const config::Member& member) { return member.key == choice.name; });
  }
  return values;
}

// Moves the section `name` out of `fields`.
config::Node take_section(config::Node& fields, const std::string& name) {
  config::Node section = config::mapping_node();
  if (config::Node* found = name.empty() ? nullptr : fields.find(name)) {
    section = std::move(*found);
    std::erase_if(fields.members, [&](const config::Member& member) { return member.key == name; });
  }
  return section;
}

// Adds the fields that `fields` does not have.
void lay_under(config::Node& fields, const config::Node& base) {
  for (const auto& member : base.members) {
    if (fields.find(member.key) == nullptr) { config::add(fields, member.key, member.value); }
  }
}

constexpr const char* kAgainst = "--against";

// What may differ between two plans of one job.
std::vector<std::string> plan_fields() {
  std::vector<std::string> names;
  for (const auto& field : estimate::request_record().fields()) {
    if (std::find(kJobFields.begin(), kJobFields.end(), field.name) == kJobFields.end()) {
      names.push_back(field.name);
    }
  }
  names.emplace_back("devices");
  return names;
}

// One "tp=4" or "micro-batch=auto" of --against; returns what is wrong with it.
std::optional<Diagnostic> change_field(config::Node& fields, std::string_view assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals + 1 == assignment.size()) {
    return Diagnostic{flag_place(kAgainst),
                      fmt::format("{} is not FIELD=VALUE, such as tp=4", quote(std::string(assignment)))};
  }
  std::string name(assignment.substr(0, equals));
  std::replace(name.begin(), name.end(), '-', '_');
  const auto known = plan_fields();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const bool of_job = std::find(kJobFields.begin(), kJobFields.end(), name) != kJobFields.end();
    const auto near = nearest(name, known);
    return Diagnostic{flag_place(kAgainst),
                      of_job ? fmt::format("{} belongs to the job, which both plans have in common", quote(name))
                             : fmt::format("{} is not a field of a plan{}", quote(name),
                                           near ? fmt::format("; did you mean {}?", *near) : "")};
  }
  std::erase_if(fields.members, [&](const config::Member& member) { return member.key == name; });
  const std::string value(assignment.substr(equals + 1));
  const auto place = flag_place(fmt::format("{} {}", kAgainst, assignment.substr(0, equals)));
  if (value != "auto") { config::add(fields, name, config::plain_node(value, place)); }
  return std::nullopt;
}

std::vector<Diagnostic> change_plan(config::Node& fields, std::string_view changes) {
  std::vector<Diagnostic> wrong;
  while (!changes.empty()) {
    const std::size_t end = std::min(changes.find(' '), changes.size());
    if (end > 0) {
      if (auto found = change_field(fields, changes.substr(0, end))) { wrong.push_back(std::move(*found)); }
    }
    changes.remove_prefix(std::min(end + 1, changes.size()));
  }
  return wrong;
}

}  // namespace

Failure TypedRequest::placed(Failure failure) const {
  for (auto& diagnostic : failure.diagnostics) {
    for (const auto& member : fields.members) {
      if (diagnostic.place == flag_place(flag_name(member.key))) {
        diagnostic.place = member.value.place;
        break;
      }
    }
  }
  return failure;
}

RequestFlags::RequestFlags() : flags_(estimate::request_record().fields()) {}

void RequestFlags::declare(Command& command, const std::string& plan_heading, const std::string& job_heading,
                           const std::vector<std::string>& omitted) {
  flags_.declare(command, [&](const std::string& field) {
    if (std::find(omitted.begin(), omitted.end(), field) != omitted.end()) { return std::string(); }
    const bool of_job = std::find(kJobFields.begin(), kJobFields.end(), field) != kJobFields.end();
    return of_job ? job_heading : plan_heading;
  });
  const std::string group = "From a file";
  command.option({"--scenario", "FILE", "YAML with the same fields (global_batch: 512); flags override it", group},
                 [source = source_](const std::string& text) { source->scenario = text; });
  command.repeated({"--set", "FIELD=VALUE", "one field, over the scenario's and below the flags'", group},
                   [source = source_](const std::string& text) { source->settings.push_back(text); });
}

Result<config::Node> RequestFlags::scenario_fields(const config::Node& base) const {
  config::Node fields = config::mapping_node();
  if (!source_->scenario.empty()) {
    ORRERY_TRY(root, config::read_file(source_->scenario));
    if (root.kind != config::Kind::mapping) {
      return fail(root.place, "a scenario is a mapping of fields, such as \"tp: 8\"");
    }
    fields = std::move(root);
    resolve_paths(fields, source_->scenario);
  }
  lay_under(fields, base);
  std::vector<Diagnostic> complaints;
  for (const auto& setting : source_->settings) {
    const auto done = config::set_assignment(fields, setting);
    if (!done) {
      complaints.insert(complaints.end(), done.error().diagnostics.begin(), done.error().diagnostics.end());
    }
  }
  if (!complaints.empty()) { return tl::make_unexpected(Failure{std::move(complaints)}); }
  return fields;
}

Result<TypedRequest> RequestFlags::read(const std::string& example, const Base& base) const {
  ORRERY_TRY(fields, scenario_fields(base.fields));
  config::Node section = take_section(fields, base.section);
  flags_.lay_over(fields);
  ORRERY_TRY(typed, typed_from(std::move(fields), example, base));
  typed.section = std::move(section);
  return typed;
}

Result<TypedRequest> RequestFlags::typed_from(config::Node fields, const std::string& example, const Base& base) {
  config::Node values = base.values ? take_values(fields) : config::mapping_node();
  auto request = estimate::request_record().read_over(estimate::Request{}, fields);
  auto complaints = request ? std::vector<Diagnostic>{} : request.error().diagnostics;
  for (auto& missing : missing_fields(fields, example, base.optional)) { complaints.push_back(std::move(missing)); }
  if (!complaints.empty()) { return tl::make_unexpected(Failure{std::move(complaints)}); }
  return TypedRequest{std::move(*request), std::move(fields), std::move(values)};
}

Result<TypedRequest> RequestFlags::read_against(const std::string& example, const std::string& changes) const {
  ORRERY_TRY(fields, scenario_fields(config::mapping_node()));
  flags_.lay_over(fields);
  if (auto wrong = change_plan(fields, changes); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  return typed_from(std::move(fields), example, Base{});
}

}  // namespace orrery::cli
