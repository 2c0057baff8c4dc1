#include "orrery/api/study_inputs.hpp"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "orrery/api/expanded_search.hpp"
#include "orrery/api/study_tree.hpp"
#include "orrery/config/record.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::api {

using config::Kind;
using config::Node;
using study::Setting;

namespace {

constexpr std::array<const char*, 3> kParts{"model", "cluster", "stack"};
constexpr std::size_t kMostKept = 256;

// The rest of a path into a part: "second_tier.bandwidth" of "cluster.second_tier.bandwidth"; empty: another path.
std::string_view path_below(std::string_view path, std::string_view part) {
  const bool below = path.size() > part.size() + 1 && path.starts_with(part) && path[part.size()] == '.';
  return below ? path.substr(part.size() + 1) : std::string_view();
}

bool is_of_part(std::string_view path) {
  return std::any_of(kParts.begin(), kParts.end(), [&](const char* part) { return !path_below(path, part).empty(); });
}

// The last value that settings or the base give to a field.
const Node* given(const study::Study& study, const Settings& settings, std::string_view field) {
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting) {
    if (setting->path == field) { return &setting->value; }
  }
  return study.base.find(field);
}

std::string text_of_part(const study::Study& study, const Settings& settings, std::string_view part) {
  std::string text;
  if (const Node* name = given(study, settings, part)) { text += config::inline_text(*name); }
  for (const Setting& setting : settings) {
    if (path_below(setting.path, part).empty()) { continue; }
    text += '\n' + setting.path + '=' + config::inline_text(setting.value);
  }
  return text;
}

template <class T, class Make>
const Result<T>& kept(std::unordered_map<std::string, Result<T>>& cache, const std::string& key, Make&& make) {
  if (const auto found = cache.find(key); found != cache.end()) { return found->second; }
  if (cache.size() >= kMostKept) { cache.clear(); }
  return cache.emplace(key, make()).first->second;
}

}  // namespace

StudyInputs::StudyInputs(std::string data_directory, const study::Study& study)
    : data_directory_(std::move(data_directory)), study_(study), catalogue_(data_directory_) {}

std::string StudyInputs::path_of(const Node& name) const {
  const bool is_file =
      name.scalar.ends_with(".yaml") || name.scalar.ends_with(".yml") || name.scalar.ends_with(".json");
  if (!is_file || std::filesystem::path(name.scalar).is_absolute()) { return name.scalar; }
  const auto beside = std::filesystem::path(study_.file).parent_path() / name.scalar;
  std::error_code error;
  return std::filesystem::exists(beside, error) ? beside.string() : name.scalar;
}

bool StudyInputs::is_mad_max(const Node& name) const {
  const Node* semantics = study_.base.find("semantics");
  return semantics != nullptr && semantics->scalar == "mad-max" && name.is_scalar();
}

namespace {

Failure placed_at(Failure failure, const Place& place) {
  for (auto& diagnostic : failure.diagnostics) {
    if (diagnostic.place.file.empty()) { diagnostic.place = place; }
  }
  return failure;
}

Result<Node> tree_of_text(const std::string& text, const Place& place) {
  auto tree = config::parse_yaml(text, {});
  if (!tree) { return tl::make_unexpected(placed_at(tree.error(), place)); }
  return tree;
}

}  // namespace

Result<Node> StudyInputs::named_tree(const std::string& part, const Node& name) {
  const std::string path = path_of(name);
  return kept(trees_, part + ' ' + path, [&]() -> Result<Node> {
    if (part == "cluster" && is_mad_max(name)) {
      const auto system = madmax::load_system(data_directory_, path, 0);
      if (!system) { return tl::make_unexpected(placed_at(system.error(), name.place)); }
      return tree_of_text(madmax::describe(*system), name.place);
    }
    if (part == "cluster") { return catalogue_.cluster_tree(path, name.place); }
    if (part == "model") {
      const auto model = workload::load_model(data_directory_, path);
      if (!model) { return tl::make_unexpected(placed_at(model.error(), name.place)); }
      return tree_of_text(workload::describe(*model), name.place);
    }
    const auto stack = catalogue_.stack(path);
    if (!stack) { return tl::make_unexpected(placed_at(stack.error(), name.place)); }
    return config::Described<hardware::Stack>::record().to_node(*stack);
  });
}

Result<Node> StudyInputs::whole_tree(const std::string& part, const Node& value) {
  if (value.kind != Kind::mapping) { return named_tree(part, value); }
  const Node* use = value.find("use");
  if (use == nullptr) {
    Node tree = value;
    if (tree.find("name") == nullptr) { config::add(tree, "name", config::text_node("study")); }
    return tree;
  }
  ORRERY_TRY(tree, named_tree(part, *use));
  for (const auto& member : value.members) {
    if (member.key == "use") { continue; }
    if (auto done = assign(tree, member.key, member.value); !done) { return tl::make_unexpected(done.error()); }
  }
  return tree;
}

Result<Node> StudyInputs::part_tree(const std::string& part, const Settings& settings, const std::string& stack_name) {
  const Node* value = given(study_, settings, part);
  const Node by_default = config::plain_node(stack_name, {});
  if (value == nullptr && part == "stack") { value = &by_default; }
  if (value == nullptr) { return fail(study_.base.place, fmt::format("{} is missing", quote(part))); }
  ORRERY_TRY(tree, whole_tree(part, *value));
  for (const Setting& setting : settings) {
    const auto path = path_below(setting.path, part);
    if (path.empty()) { continue; }
    if (auto done = assign(tree, path, setting.value); !done) { return tl::make_unexpected(done.error()); }
  }
  return tree;
}

bool StudyInputs::changes(const Settings& settings, const std::string& part) {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& setting) { return !path_below(setting.path, part).empty(); });
}

Result<Node> StudyInputs::fields(const Settings& settings) const {
  Node fields = study_.base;
  for (const Setting& setting : settings) {
    if (is_of_part(setting.path)) { continue; }
    if (auto done = assign(fields, setting.path, setting.value); !done) { return tl::make_unexpected(done.error()); }
  }
  for (const char* part : kParts) {
    Node* value = fields.find(part);
    if (value == nullptr || value->kind != Kind::mapping) { continue; }
    const Node* name = value->find("use") != nullptr ? value->find("use") : value->find("name");
    Node text = config::text_node(name != nullptr ? name->scalar : "study");
    text.place = value->place;
    *value = std::move(text);
  }
  return fields;
}

Result<estimate::Request> StudyInputs::request(const Settings& settings) {
  ORRERY_TRY(node, fields(settings));
  ORRERY_TRY(request, estimate::request_record().read(node));
  Failure failure;
  for (const auto& field : estimate::needed_fields(request.task, request.semantics)) {
    if (node.find(field) != nullptr) { continue; }
    failure.diagnostics.push_back({study_.base.place, fmt::format("base: {} is missing", quote(field))});
  }
  for (const char* part : {"model", "cluster"}) {
    if (node.find(part) == nullptr) {
      failure.diagnostics.push_back({study_.base.place, fmt::format("base: {} is missing", quote(part))});
    }
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return request;
}

Result<Inputs> StudyInputs::inputs(const Settings& settings, const estimate::Request& request, Length length) {
  InputSources parts;
  parts.model = [&](const estimate::Request&) {
    return kept(models_, text_of_part(study_, settings, "model"), [&]() -> Result<workload::Model> {
      const Node* name = given(study_, settings, "model");
      if (name->is_scalar() && !changes(settings, "model")) {
        return workload::load_model(data_directory_, path_of(*name), request.as);
      }
      ORRERY_TRY(tree, part_tree("model", settings));
      return workload::model_of_tree(std::move(tree));
    });
  };
  parts.cluster = [&](const estimate::Request&) {
    const std::int64_t devices = request.devices.value_or(0);
    const auto key = fmt::format("{}\n{}", devices, text_of_part(study_, settings, "cluster"));
    return kept(clusters_, key, [&]() -> Result<hardware::Cluster> {
      ORRERY_TRY(tree, part_tree("cluster", settings));
      // Also where the devices of the point are all of the first kind: axes would not change the others, nor these.
      if (tree.find("nodes") != nullptr) {
        return fail(Place{"", 0, 0, "cluster"}, "a study needs nodes of one kind; the cluster lists several (nodes)");
      }
      return catalogue_.cluster_of_tree(std::move(tree), devices);
    });
  };
  parts.stack = [&](const std::string& name, const hardware::Accelerator* on) {
    const auto key =
        fmt::format("{}\n{}\n{}", name, on != nullptr ? on->name : "", text_of_part(study_, settings, "stack"));
    return kept(stacks_, key, [&]() -> Result<hardware::Stack> {
      const Node* value = given(study_, settings, "stack");
      if (on != nullptr && !changes(settings, "stack") && (value == nullptr || value->is_scalar())) {
        return catalogue_.stack_on(value == nullptr ? name : path_of(*value), *on);
      }
      ORRERY_TRY(tree, part_tree("stack", settings, name));
      return config::Described<hardware::Stack>::record().read(tree);
    });
  };
  parts.spreads = [&] {
    if (!spreads_) { spreads_ = estimate::load_spreads(data_directory_); }
    return *spreads_;
  };
  return read_inputs(parts, request, length);
}

Result<MadMaxInputs> StudyInputs::mad_max_inputs(const Settings& settings, const estimate::Request& request) {
  Failure failure{estimate::problems(request)};
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  const auto& model = kept(models_, text_of_part(study_, settings, "model"), [&]() -> Result<workload::Model> {
    ORRERY_TRY(tree, part_tree("model", settings));
    return workload::model_of_tree(std::move(tree));
  });
  if (!model) { return tl::make_unexpected(model.error()); }
  ORRERY_TRY(work, madmax::work_of(*model, request.precision, request.seq.value_or(0)));
  ORRERY_TRY(tree, part_tree("cluster", settings));
  ORRERY_TRY(system, config::Described<madmax::System>::record().read(tree));
  if (!request.devices) { return MadMaxInputs{std::move(work), std::move(system)}; }
  ORRERY_TRY(whole, madmax::scaled(std::move(system), *request.devices));
  return MadMaxInputs{std::move(work), std::move(whole)};
}

std::string StudyInputs::job_text(const Settings& settings) {
  std::string text;
  for (const Setting& setting : settings) {
    if (parallel::find_choice(setting.path) != nullptr) { continue; }
    text += setting.path + '=' + config::inline_text(setting.value) + '\n';
  }
  return text;
}

Result<Node> StudyInputs::value(const Settings& settings, const std::string& path) {
  for (const char* part : kParts) {
    const auto below = path_below(path, part);
    if (below.empty()) { continue; }
    std::string stack;
    if (part == std::string_view("stack") && given(study_, settings, part) == nullptr) {
      ORRERY_TRY(asked, request(settings));
      ORRERY_TRY(read, inputs(settings, without_expansion(asked), Length::longest));
      stack = read.stack.name;
    }
    ORRERY_TRY(tree, part_tree(part, settings, stack));
    const Node* found = value_at(tree, below);
    if (found == nullptr) { return fail(fmt::format("{} has no {}", part, quote(below))); }
    return *found;
  }
  ORRERY_TRY(all, fields(settings));
  const Node* found = value_at(all, path);
  if (found == nullptr) { return fail(fmt::format("the scenario has no {}", quote(path))); }
  return *found;
}

study::Facts StudyInputs::facts() {
  return [this](const std::string& path, const Settings& settings) -> std::optional<study::StudyCell> {
    const auto found = value(settings, path);
    if (!found || !found->is_scalar()) { return std::nullopt; }
    return study::cell_of(*found);
  };
}

std::vector<std::pair<std::string, std::string>> StudyInputs::named_descriptions(const std::vector<study::Axis>& axes) {
  std::vector<std::pair<std::string, std::string>> found;
  const auto add = [&](const std::string& part, const Node& value) {
    const Node* name = value.kind == Kind::mapping ? value.find("use") : &value;
    if (name == nullptr || !name->is_scalar()) { return; }
    const std::string key = part + ' ' + name->scalar;
    const auto is_same = [&](const auto& one) { return one.first == key; };
    if (std::any_of(found.begin(), found.end(), is_same)) { return; }
    const auto tree = named_tree(part, *name);
    if (tree) { found.emplace_back(key, config::print_json(*tree)); }
  };
  for (const std::string part : kParts) {
    if (const Node* value = study_.base.find(part)) { add(part, *value); }
    for (const auto& axis : axes) {
      for (const auto& value : axis.values) {
        for (const Setting& setting : value.settings) {
          if (setting.path == part) { add(part, setting.value); }
        }
      }
    }
  }
  return found;
}

}  // namespace orrery::api
