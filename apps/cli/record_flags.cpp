#include "apps/cli/record_flags.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace {

constexpr std::string_view kOneOf = "one of ";

std::vector<std::string> choices_of(const config::FieldInfo& field) {
  std::vector<std::string> choices;
  if (!field.type.text.starts_with(kOneOf)) { return choices; }
  std::string_view rest = std::string_view(field.type.text).substr(kOneOf.size());
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    choices.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return choices;
}

std::string value_name(const config::FieldInfo& field) {
  if (field.type.text == "integer" || field.type.text == "number") { return "N"; }
  if (field.type.text.starts_with(kOneOf)) { return "NAME"; }
  const auto is = [&](std::string_view name) { return field.name == name; };
  if (is("trace")) { return "FILE"; }
  if (field.type.shape == config::Shape::mapping) { return "NAME=N,..."; }
  const bool is_entry = is("model") || is("cluster") || is("prefill_cluster") || is("stack") || is("engine");
  return is_entry ? "NAME|FILE" : "TEXT";
}

// Limits that only prevent overflow are not shown in the help.
std::string bounds_worth_reading(const std::string& bounds) {
  constexpr std::size_t kDigitsNobodyTypes = 9;
  const std::size_t upper = bounds.find(" and ");
  if (!bounds.starts_with("between ") || upper == std::string::npos) { return bounds; }
  if (bounds.size() - upper - 5 < kDigitsNobodyTypes) { return bounds; }
  return "at least " + bounds.substr(8, upper - 8);
}

std::string doc_of(const config::FieldInfo& field, const std::vector<std::string>& choices) {
  std::string doc = field.doc;
  if (!choices.empty()) { doc += " (" + join(choices, ", ") + ")"; }
  std::vector<std::string> facts;
  if (field.required) { facts.emplace_back("required"); }
  const bool is_open = !field.default_text || *field.default_text == "null" || *field.default_text == "\"\"";
  if (!is_open && field.type.text != "true or false") { facts.push_back("default " + *field.default_text); }
  const std::string bounds = bounds_worth_reading(field.bounds);
  const bool says_nothing = bounds.empty() || bounds == "not empty" || bounds == "at least 0" || bounds == "at least 1";
  if (!says_nothing) { facts.push_back(bounds); }
  return facts.empty() ? doc : fmt::format("{} [{}]", doc, join(facts, "; "));
}

std::string entries_of(const std::string& field) {
  constexpr std::array<std::string_view, 3> kCatalogued = {"model", "cluster", "stack"};
  const bool catalogued = std::find(kCatalogued.begin(), kCatalogued.end(), field) != kCatalogued.end();
  return catalogued ? field + "s" : std::string();
}

}  // namespace

std::string flag_name(const std::string& field) {
  std::string name = "--" + field;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string file_fields_help(std::span<const config::FieldInfo> fields) {
  std::string text;
  for (config::FieldInfo field : fields) {
    if (field.doc.find("default:") != std::string::npos) { field.default_text.reset(); }
    text += help_line(field.name, doc_of(field, {}));
  }
  return text;
}

void RecordFlags::declare(Command& command, const std::function<std::string(const std::string&)>& group) {
  for (const auto& field : fields_) {
    const std::string heading = group(field.name);
    if (heading.empty()) { continue; }
    const auto choices = choices_of(field);
    Flag flag{flag_name(field.name), "", doc_of(field, choices), heading, choices, entries_of(field.name)};
    const auto take = [typed = typed_, name = field.name](const std::string& text) { typed->emplace_back(name, text); };
    if (field.type.text == "true or false") {
      flag.negation = "--no-" + flag.name.substr(2);
      command.toggle(std::move(flag), [take](bool on) { take(on ? "true" : "false"); });
    } else {
      flag.value = value_name(field);
      command.option(std::move(flag), take);
    }
  }
}

bool RecordFlags::has(const std::string& field) const {
  return std::any_of(typed_->begin(), typed_->end(), [&](const auto& typed) { return typed.first == field; });
}

namespace {

// "fp8=0.3,bf16=0.8" as a mapping; text that has no such pairs stays text, and its reader complains.
config::Node value_of(const config::FieldInfo* field, const std::string& text, const Place& place) {
  const bool is_mapping = field != nullptr && field->type.shape == config::Shape::mapping;
  if (!is_mapping || text.find('=') == std::string::npos || text.ends_with(',')) {
    return config::plain_node(text, place);
  }
  config::Node mapping = config::mapping_node();
  mapping.place = place;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size()), equals = rest.find('=');
    if (equals >= end || mapping.find(std::string(rest.substr(0, equals))) != nullptr) {
      return config::plain_node(text, place);
    }
    config::add(mapping, std::string(rest.substr(0, equals)),
                config::plain_node(std::string(rest.substr(equals + 1, end - equals - 1)), place));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return mapping;
}

}  // namespace

void RecordFlags::lay_over(config::Node& fields) const {
  for (const auto& [name, text] : *typed_) {
    const auto field = std::find_if(fields_.begin(), fields_.end(), [&](const auto& one) { return one.name == name; });
    config::Node value = value_of(field == fields_.end() ? nullptr : &*field, text, flag_place(flag_name(name)));
    if (config::Node* before = fields.find(name)) {
      *before = std::move(value);
    } else {
      config::add(fields, name, std::move(value));
    }
  }
}

}  // namespace orrery::cli
