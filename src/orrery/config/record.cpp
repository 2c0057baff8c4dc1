#include "orrery/config/record.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

std::vector<std::string> names_of(std::span<const FieldInfo> fields) {
  std::vector<std::string> names;
  for (const FieldInfo& field : fields) { names.push_back(field.name); }
  return names;
}

std::string unknown_key_message(const std::string& key, std::span<const std::string> names) {
  if (const auto near = nearest(key, names)) { return fmt::format("unknown key; did you mean \"{}\"?", *near); }
  return fmt::format("unknown key; the keys here are {}", join(names, ", "));
}

std::string missing_key_message(const FieldInfo& field) {
  const std::string doc = field.doc.empty() ? "" : ": " + field.doc;
  return fmt::format("required key \"{}\" is missing ({}{})", field.name, field.type.text, doc);
}

std::string not_a_mapping_message(const Node& node, const RecordShape& shape) {
  const std::string found = node.kind == Kind::null       ? "has no value"
                            : node.kind == Kind::sequence ? "is a list"
                                                          : quoted(node.scalar) + " is not valid";
  return fmt::format("{}; {} is a mapping with the keys {}", found, with_article(shape.name),
                     join(names_of(shape.fields), ", "));
}

std::string inline_list(const Node& node);

std::string inline_scalar(const Node& node) {
  std::string text = print_yaml(node);
  while (text.ends_with('\n')) { text.pop_back(); }
  return text;
}

std::string inline_list(const Node& node) {
  std::vector<std::string> parts;
  for (const Node& item : node.items) { parts.push_back(inline_text(item)); }
  for (const Member& member : node.members) {
    parts.push_back(fmt::format("{}: {}", inline_scalar(text_node(member.key)), inline_text(member.value)));
  }
  return join(parts, ", ");
}

}  // namespace

std::string inline_text(const Node& node) {
  if (node.is_scalar()) { return inline_scalar(node); }
  return fmt::format("{}{}{}", node.kind == Kind::sequence ? '[' : '{', inline_list(node),
                     node.kind == Kind::sequence ? ']' : '}');
}

std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiou").find(noun.front()) != std::string_view::npos;
  return fmt::format("{} {}", vowel ? "an" : "a", noun);
}

Place place_below(const Node& node, std::string_view pointer) {
  const Node* reached = &node;
  while (pointer.starts_with('/')) {
    pointer.remove_prefix(1);
    const std::string_view step = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(step.size());
    const Node* next = nullptr;
    std::size_t index = 0;
    const auto read = std::from_chars(step.data(), step.data() + step.size(), index);
    if (reached->kind == Kind::mapping) {
      next = reached->find(step);
    } else if (read.ec == std::errc() && index < reached->items.size()) {
      next = &reached->items[index];
    }
    if (next == nullptr) { break; }
    reached = next;
  }
  return reached->place;
}

void read_members(const Node& node, const RecordShape& shape, bool overlay, std::vector<Diagnostic>& complaints,
                  const std::function<void(std::size_t, const Node&)>& read_field) {
  const auto complain = [&](const Place& place, std::string message) {
    if (complaints.size() < kMaxComplaints) { complaints.push_back({place, std::move(message)}); }
  };
  if (node.kind != Kind::mapping) { return complain(node.place, not_a_mapping_message(node, shape)); }
  const auto names = names_of(shape.fields);
  std::vector<bool> given(names.size(), false);
  for (const Member& member : node.members) {
    const auto found = std::find(names.begin(), names.end(), member.key);
    if (found != names.end()) {
      const auto i = static_cast<std::size_t>(found - names.begin());
      given[i] = true;
      read_field(i, member.value);
    } else if (!shape.foreign && complaints.size() < kMaxComplaints) {
      complain(member.place(), unknown_key_message(member.key, names));
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (shape.fields[i].required && !given[i] && !overlay) {
      complain(node.place, missing_key_message(shape.fields[i]));
    }
  }
}

Failure failure_of(std::vector<Diagnostic> complaints) {
  constexpr std::size_t kMostShown = 50;
  if (complaints.size() > kMostShown) {
    const bool cut_before = complaints.size() >= kMaxComplaints;
    const std::size_t rest = complaints.size() - kMostShown;
    complaints.resize(kMostShown);
    complaints.push_back({{}, fmt::format("and {}{} more problems", cut_before ? "at least " : "", rest)});
  }
  return Failure{std::move(complaints)};
}

Result<Node> flag_node(const RecordShape& shape, std::string_view field, std::string_view text, const Place& place) {
  Node root = mapping_node();
  root.place = place;
  const auto found =
      std::find_if(shape.fields.begin(), shape.fields.end(), [&](const FieldInfo& f) { return f.name == field; });
  const bool scalar = found != shape.fields.end() && found->type.shape == Shape::scalar;
  if (scalar) {  // taken as it stands: a name may hold ": " or "#"
    add(root, std::string(field), plain_node(std::string(text), place));
    return root;
  }
  const bool bare_list = found != shape.fields.end() && found->type.shape == Shape::list && !text.starts_with('[');
  const std::string value = bare_list ? fmt::format("[{}]", text) : std::string(text);
  const auto done = set(root, field, value, place);
  if (!done) { return tl::make_unexpected(done.error()); }
  return root;
}

std::string help_text(std::span<const FieldInfo> fields) {
  std::size_t name_width = 0;
  std::size_t type_width = 0;
  std::size_t default_width = 0;
  const auto default_of = [](const FieldInfo& f) { return f.default_text ? "default " + *f.default_text : "required"; };
  for (const FieldInfo& f : fields) {
    name_width = std::max(name_width, f.name.size());
    type_width = std::max(type_width, f.type.text.size());
    default_width = std::max(default_width, default_of(f).size());
  }
  std::string text;
  for (const FieldInfo& f : fields) {
    const std::string bounds = f.bounds.empty() ? "" : fmt::format(" ({})", f.bounds);
    std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {}{}", f.name, name_width, f.type.text, type_width,
                                   default_of(f), default_width, f.doc, bounds);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace orrery::config
