#include "orrery/config/record.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

std::string unknown_key_message(const std::string& key, std::span<const std::string> names) {
  if (const auto near = nearest(key, names)) { return fmt::format("unknown key; did you mean \"{}\"?", *near); }
  return fmt::format("unknown key; valid keys: {}", join(names, ", "));
}

std::string missing_key_message(const FieldInfo& field) {
  const std::string doc = field.doc.empty() ? "" : ": " + field.doc;
  return fmt::format("required key \"{}\" is missing ({}{})", field.name, field.type.text, doc);
}

std::string not_a_mapping_message(const Node& node, std::string_view record, std::span<const std::string> keys) {
  const std::string found = node.kind == Kind::null       ? "has no value"
                            : node.kind == Kind::sequence ? "is a list"
                                                          : quote(node.scalar) + " is not valid";
  return fmt::format("{}; {} is a mapping with the keys {}", found, with_article(record), join(keys, ", "));
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

Failure failure_of(std::vector<Diagnostic> complaints) {
  constexpr std::size_t kMostShown = 50;
  if (complaints.size() > kMostShown) {
    const bool cut_before = complaints.size() >= kMaxComplaints;
    const std::size_t rest = complaints.size() - kMostShown;
    complaints.resize(kMostShown);
    complaints.push_back({{}, fmt::format("and {}{} more errors", cut_before ? "at least " : "", rest)});
  }
  return Failure{std::move(complaints)};
}

FieldTable::FieldTable(std::string_view name, std::string_view doc) : name_(name), doc_(doc) {}
FieldTable::FieldTable(const FieldTable& other) = default;
FieldTable::FieldTable(FieldTable&& other) noexcept = default;
FieldTable::~FieldTable() = default;

void FieldTable::add_field(const Label& label, Location location, const ValueCodec& codec, const Limits& limits) {
  const auto offset = static_cast<const std::byte*>(location.member) - static_cast<const std::byte*>(location.defaults);
  const TypeInfo type = codec.type();
  FieldInfo info{
      std::string(label.name), type, label.required, std::nullopt, bounds_text(limits, type), std::string(limits.unit),
      std::string(label.doc)};
  if (!label.required) { info.default_text = inline_text(codec.write(location.member)); }
  infos_.push_back(std::move(info));
  fields_.push_back({static_cast<std::size_t>(offset), &codec, limits, nullptr});
}

void FieldTable::add_part(const FieldTable& part, Location location) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(location.member) -
                                               static_cast<const std::byte*>(location.defaults));
  for (std::size_t i = 0; i < part.fields_.size(); ++i) {
    FieldInfo info = part.infos_[i];
    if (!info.required) { info.default_text = inline_text(part.fields_[i].write(location.member)); }
    infos_.push_back(std::move(info));
    fields_.push_back(part.fields_[i]);
    fields_.back().offset += offset;
  }
  for (const Rule& rule : part.rules_) {
    rules_.push_back(
        [offset, rule](const void* object) { return rule(static_cast<const std::byte*>(object) + offset); });
  }
}

void FieldTable::add_computed(FieldInfo info, const Limits& limits, Computed computed) {
  infos_.push_back(std::move(info));
  fields_.push_back({0, nullptr, limits, std::make_shared<const Computed>(std::move(computed))});
}

void FieldTable::Field::read(const Node& node, void* object, const Reading& reading) const {
  void* value = static_cast<std::byte*>(object) + offset;
  if (codec != nullptr) { return codec->read(node, value, reading); }
  computed->read(node, value, reading);
}

Node FieldTable::Field::write(const void* object) const {
  const void* value = static_cast<const std::byte*>(object) + offset;
  return codec != nullptr ? codec->write(value) : computed->write(value);
}

Node FieldTable::Field::schema() const { return codec != nullptr ? codec->schema(limits) : computed->schema(); }

void FieldTable::add_rule(Rule rule) { rules_.push_back(std::move(rule)); }

std::vector<std::string> FieldTable::field_names() const {
  std::vector<std::string> names;
  names.reserve(infos_.size());
  for (const FieldInfo& info : infos_) { names.push_back(info.name); }
  return names;
}

void FieldTable::read_fields(const Node& node, void* object, bool overlay, std::vector<Diagnostic>& complaints) const {
  const auto complain = [&](const Place& place, std::string message) {
    if (complaints.size() < kMaxComplaints) { complaints.push_back({place, std::move(message)}); }
  };
  const auto names = field_names();
  if (node.kind != Kind::mapping) { return complain(node.place, not_a_mapping_message(node, name_, names)); }
  std::vector<bool> given(names.size(), false);
  for (const Member& member : node.members) {
    const auto found = std::find(names.begin(), names.end(), member.key);
    if (found != names.end()) {
      const auto i = static_cast<std::size_t>(found - names.begin());
      const Field& field = fields_[i];
      given[i] = true;
      field.read(member.value, object, Reading{infos_[i].name, field.limits, overlay, complaints});
    } else if (!foreign_ && complaints.size() < kMaxComplaints) {
      complain(member.place(), unknown_key_message(member.key, names));
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (infos_[i].required && !given[i] && !overlay) { complain(node.place, missing_key_message(infos_[i])); }
  }
}

void FieldTable::check(const void* object, const Node* node, const Place& place,
                       std::vector<Diagnostic>& complaints) const {
  for (const Rule& rule : rules_) {
    Objection wrong = rule(object);
    if (wrong.message.empty()) { continue; }
    complaints.push_back({node != nullptr ? place_below(*node, wrong.at) : place, std::move(wrong.message)});
  }
}

void FieldTable::read(const Node& node, void* object, bool overlay, std::vector<Diagnostic>& complaints) const {
  const std::size_t before = complaints.size();
  read_fields(node, object, overlay, complaints);
  if (complaints.size() == before) { check(object, &node, {}, complaints); }
}

Node FieldTable::to_node(const void* object) const {
  Node node = mapping_node();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    Node value = fields_[i].write(object);
    const bool is_default_null = value.kind == Kind::null && infos_[i].default_text == "null";
    if (!is_default_null) { add(node, infos_[i].name, std::move(value)); }
  }
  return node;
}

Result<Node> FieldTable::flag_node(std::string_view field, std::string_view text, const Place& place) const {
  Node root = mapping_node();
  root.place = place;
  const auto found = std::find_if(infos_.begin(), infos_.end(), [&](const FieldInfo& f) { return f.name == field; });
  const bool scalar = found != infos_.end() && found->type.shape == Shape::scalar;
  if (scalar) {  // not parsed as YAML: a name may contain ": " or "#"
    add(root, std::string(field), plain_node(std::string(text), place));
    return root;
  }
  const bool bare_list = found != infos_.end() && found->type.shape == Shape::list && !text.starts_with('[');
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
