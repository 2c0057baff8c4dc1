#include "apps/server/arguments.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/core/text.hpp"

namespace orrery::server {

namespace {

using nlohmann::json;

constexpr int kDeepest = 64;

Place place_of(const std::string& name) { return Place{"", 0, 0, "--" + name}; }

bool takes_documents(const ServedFlag& flag) { return flag.value.find("NAME|FILE") != std::string::npos; }

bool takes_files_only(const ServedFlag& flag) {
  constexpr std::string_view kKinds[] = {"FILE", "PREFIX", "PATH", "DIR"};
  return !takes_documents(flag) && std::any_of(std::begin(kKinds), std::end(kKinds), [&](std::string_view kind) {
    return flag.value.find(kind) != std::string::npos;
  });
}

// Of a flag that takes a number or a file.
bool is_number_of(const ServedFlag& flag, std::string_view text) {
  const bool has_digits_only = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  return flag.value.starts_with("N|") && has_digits_only;
}

// Whether text could name a file: the catalogue's own names have no such parts.
bool could_be_path(std::string_view text) {
  const bool has_suffix = text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json");
  const bool leaves = text.starts_with('/') || text.starts_with('.') || text.starts_with('~') ||
                      text.find("..") != std::string_view::npos || text.find('\0') != std::string_view::npos;
  const bool is_nested = text.find('/') != std::string_view::npos && !text.starts_with("madmax/");
  return has_suffix || leaves || is_nested;
}

// A document must not name files either: a cluster whose accelerator is a path.
std::optional<std::string> path_inside(const json& document, int depth) {
  if (depth > kDeepest) { return "(nested deeper than 64 levels)"; }
  if (document.is_string()) {
    const auto& text = document.get_ref<const std::string&>();
    const bool names_file = text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json");
    return names_file && text.find(' ') == std::string::npos ? std::optional(text) : std::nullopt;
  }
  if (!document.is_structured()) { return std::nullopt; }
  for (const auto& item : document) {
    if (auto found = path_inside(item, depth + 1)) { return found; }
  }
  return std::nullopt;
}

std::string scalar_text(const json& value) {
  if (value.is_string()) { return value.get<std::string>(); }
  if (value.is_boolean()) { return value.get<bool>() ? "true" : "false"; }
  return value.dump();
}

class Reader {
 public:
  explicit Reader(const ServedCommand& command) : command_(command) {}

  Result<Arguments> read(const json& object) {
    for (const auto& [key, value] : object.items()) { take(key, value); }
    for (const std::string& positional : command_.positionals) {
      if (const auto found = object.find(positional); found != object.end()) { take_positional(positional, *found); }
    }
    if (!complaints_.empty()) { return tl::make_unexpected(Failure{std::move(complaints_)}); }
    return std::move(arguments_);
  }

 private:
  void take(const std::string& key, const json& value) {
    const auto& positionals = command_.positionals;
    if (std::find(positionals.begin(), positionals.end(), key) != positionals.end() || value.is_null()) { return; }
    const auto flag = std::find_if(command_.flags.begin(), command_.flags.end(),
                                   [&](const ServedFlag& other) { return other.name == key; });
    if (flag == command_.flags.end()) { return unknown(key); }
    if (flag->kind == FlagKind::toggle) { return take_toggle(*flag, value); }
    if (flag->name == "timeline" && value.is_boolean()) { return take_timeline(*flag, value.get<bool>()); }
    if (value.is_object()) { return take_document(*flag, value); }
    if (value.is_array() && flag->kind == FlagKind::many) {
      for (const json& item : value) { take_value(*flag, item); }
    } else if (value.is_array()) {
      take_list(*flag, value);
    } else {
      take_value(*flag, value);
    }
  }

  void unknown(const std::string& key) {
    std::vector<std::string> names;
    for (const ServedFlag& flag : command_.flags) { names.push_back(flag.name); }
    const auto near = nearest(key, names);
    complain(key, near ? fmt::format("unknown flag; did you mean --{}?", *near)
                       : fmt::format("unknown flag; \"orrery {} --help\" lists them", command_.name));
  }

  void take_toggle(const ServedFlag& flag, const json& value) {
    if (!value.is_boolean()) { return complain(flag.name, "must be true or false"); }
    if (value.get<bool>()) {
      arguments_.values.push_back("--" + flag.name);
    } else if (!flag.negation.empty()) {
      arguments_.values.push_back("--" + flag.negation);
    }
  }

  void take_timeline(const ServedFlag& flag, bool is_wanted) {
    arguments_.wants_timeline = is_wanted;
    if (is_wanted) { add(flag, kTimelineFile); }
  }

  void take_document(const ServedFlag& flag, const json& value) {
    if (!takes_documents(flag)) { return complain(flag.name, "must be a text or a number, not an object"); }
    if (const auto path = path_inside(value, 0)) {
      return complain(flag.name,
                      fmt::format("the document names the file {}; files of the server are not read", quote(*path)));
    }
    const std::string name = flag.name + (flag.name == "model" ? ".json" : ".yaml");
    arguments_.documents[name] = value.dump();  // JSON is YAML, too
    add(flag, name);
  }

  void take_list(const ServedFlag& flag, const json& value) {
    std::vector<std::string> parts;
    for (const json& item : value) {
      if (item.is_structured()) { return complain(flag.name, "must be a list of texts or numbers"); }
      parts.push_back(scalar_text(item));
    }
    take_value(flag, join(parts, ","));
  }

  void take_value(const ServedFlag& flag, const json& value) {
    if (value.is_structured()) { return complain(flag.name, "must be a text or a number"); }
    const std::string text = scalar_text(value);
    const bool is_choice = std::find(flag.choices.begin(), flag.choices.end(), text) != flag.choices.end();
    if (flag.name == "set") { return complain(flag.name, "is not taken; give the field itself"); }
    if (takes_files_only(flag) && !is_choice && !is_number_of(flag, text)) {
      return complain(flag.name, "files of the server are neither read nor written");
    }
    if (takes_documents(flag) && could_be_path(text)) {
      return complain(
          flag.name,
          fmt::format("{} names a file; give a name of the catalogue, or the file's content as a JSON object",
                      quote(text)));
    }
    add(flag, text);
  }

  void take_positional(const std::string& name, const json& value) {
    if (!value.is_string()) { return complain(name, "must be a text"); }
    const auto& text = value.get_ref<const std::string&>();
    if (could_be_path(text) || text.starts_with('-')) {
      return complain(name, fmt::format("{} is not a name of the catalogue", quote(text)));
    }
    arguments_.values.push_back(text);
  }

  // As one argument, so that a value that begins with a dash stays a value.
  void add(const ServedFlag& flag, const std::string& text) {
    arguments_.values.push_back(fmt::format("--{}={}", flag.name, text));
  }

  void complain(const std::string& name, std::string what) { complaints_.push_back({place_of(name), std::move(what)}); }

  const ServedCommand& command_;
  Arguments arguments_;
  std::vector<Diagnostic> complaints_;
};

}  // namespace

const ServedCommand& form_of(const std::vector<const ServedCommand*>& forms, const std::string& body) {
  const ServedCommand* usual = forms.front();
  for (const ServedCommand* form : forms) {
    if (form->task.empty()) { usual = form; }
  }
  if (forms.size() == 1) { return *usual; }
  const auto shallow = [](int level, json::parse_event_t, json&) { return level <= kDeepest; };
  const json object = json::parse(body, shallow, false);
  const auto task = object.is_object() ? object.find("task") : object.end();
  if (task == object.end() || !task->is_string()) { return *usual; }
  for (const ServedCommand* form : forms) {
    if (!form->task.empty() && form->task == task->get_ref<const std::string&>()) { return *form; }
  }
  return *usual;
}

Result<Arguments> arguments_of(const ServedCommand& command, const std::string& body) {
  int depth = 0;
  std::vector<std::set<std::string>> keys;  // of the objects around the place that is read
  std::string repeated;
  const auto look_at = [&](int level, json::parse_event_t event, json& part) {
    depth = std::max(depth, level);
    if (event == json::parse_event_t::object_start) { keys.emplace_back(); }
    if (event == json::parse_event_t::object_end) { keys.pop_back(); }
    if (event == json::parse_event_t::key && !keys.back().insert(part.get<std::string>()).second) {
      repeated = part.get<std::string>();
    }
    return level <= kDeepest;
  };
  json object;
  try {
    object = json::parse(body.empty() ? "{}" : body, look_at);
  } catch (const json::parse_error& error) {
    return fail(fmt::format("the request is not JSON: byte {} is unexpected", error.byte));
  }
  if (depth > kDeepest) { return fail("the request is nested deeper than 64 levels"); }
  if (!repeated.empty()) { return fail(fmt::format("the request has {} twice in one object", quote(repeated))); }
  if (!object.is_object()) {
    return fail("the request must be a JSON object of flags, such as {\"model\": \"llama-3.1-8b\"}");
  }
  return Reader(command).read(object);
}

}  // namespace orrery::server
