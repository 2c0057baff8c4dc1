// JSON Schema (draft 2020-12) from field descriptors.
#include <utility>

#include <fmt/format.h>

#include "orrery/config/codec.hpp"
#include "orrery/config/record.hpp"

namespace orrery::config {

namespace {

Node limit_node(double limit, std::string_view type) {
  return type == "integer" ? integer_node(static_cast<std::int64_t>(limit)) : real_node(limit);
}

Node text_list(std::span<const std::string_view> texts) {
  Node list = sequence_node();
  for (const auto text : texts) { list.items.push_back(text_node(std::string(text))); }
  return list;
}

}  // namespace

Node typed_schema(std::string_view type) {
  Node schema = mapping_node();
  add(schema, "type", text_node(std::string(type)));
  return schema;
}

Node number_schema(std::string_view type, const Limits& limits) {
  Node schema = typed_schema(type);
  if (limits.positive) { add(schema, "exclusiveMinimum", integer_node(0)); }
  if (limits.min) { add(schema, "minimum", limit_node(*limits.min, type)); }
  if (limits.max) { add(schema, "maximum", limit_node(*limits.max, type)); }
  return schema;
}

Node text_schema(const Limits& limits) {
  Node schema = typed_schema("string");
  if (limits.nonempty) { add(schema, "minLength", integer_node(1)); }
  return schema;
}

// Text with a unit, or 0. The unit is shown by an example: a pattern of all units would be unreadable.
Node quantity_schema(const Limits& limits, Dimension dimension) {
  const std::string unit(limits.unit.empty() ? usual_unit(dimension) : limits.unit);
  Node text = typed_schema("string");
  add(text, "pattern", text_node("^[+]?[0-9.]+([eE][-+]?[0-9]+)? *[A-Za-z\u00b5\u03bc/]+$"));
  Node zero = mapping_node();
  add(zero, "const", integer_node(0));
  Node schema = mapping_node();
  add(schema, "anyOf", sequence_node(limits.positive ? std::vector<Node>{text} : std::vector<Node>{text, zero}));
  add(schema, "examples", sequence_node({text_node("1 " + unit)}));
  return schema;
}

Node choice_schema(std::span<const std::string_view> names) {
  Node schema = mapping_node();
  add(schema, "enum", text_list(names));
  return schema;
}

Node list_schema(Node item, const Limits& limits) {
  Node schema = typed_schema("array");
  add(schema, "items", std::move(item));
  if (limits.nonempty) { add(schema, "minItems", integer_node(1)); }
  return schema;
}

Node map_schema(Node value, const Limits& limits) {
  Node schema = typed_schema("object");
  add(schema, "additionalProperties", std::move(value));
  if (limits.nonempty) { add(schema, "minProperties", integer_node(1)); }
  return schema;
}

Node nullable_schema(Node schema) {
  Node either = mapping_node();
  add(either, "anyOf", sequence_node({std::move(schema), typed_schema("null")}));
  return either;
}

Node FieldTable::schema() const {
  Node properties = mapping_node();
  Node required_keys = sequence_node();
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const FieldInfo& info = infos_[i];
    Node& property = add(properties, info.name, fields_[i].schema());
    if (Node* own = property.find("description")) {  // a nested struct; the field's doc describes its use here
      own->scalar = info.doc;
    } else {
      add(property, "description", text_node(info.doc));
    }
    if (info.default_text) {
      // A default was printed by this room, so it parses.
      auto value = parse_yaml(*info.default_text, {});
      ORRERY_ASSERT(value.has_value());
      add(property, "default", std::move(*value));
    } else {
      required_keys.items.push_back(text_node(info.name));
    }
  }
  Node schema = typed_schema("object");
  add(schema, "title", text_node(name_));
  add(schema, "description", text_node(doc_));
  add(schema, "properties", std::move(properties));
  if (!required_keys.items.empty()) { add(schema, "required", std::move(required_keys)); }
  add(schema, "additionalProperties", boolean_node(foreign_));
  return schema;
}

std::string schema_text(Node schema) {
  Node root = mapping_node();
  add(root, "$schema", text_node("https://json-schema.org/draft/2020-12/schema"));
  for (Member& member : schema.members) { root.members.push_back(std::move(member)); }
  return print_json(root) + "\n";
}

}  // namespace orrery::config
