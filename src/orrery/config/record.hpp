// Say a thing once: one descriptor per field (name, type, unit, default, bounds, doc) yields parsing, validation, help,
// JSON Schema, printing and command-line flags.
//
//   const Record<Link>& Described<Link>::record() {
//     static const Record<Link> record = Record<Link>("link", "A class of links.")
//         .required("bandwidth", &Link::bandwidth, "per direction and device", {.positive = true, .unit = "Gb/s"})
//         .optional("latency", &Link::latency, "of one message, software included");
//     return record;
//   }
//
// Left out: structs that contain themselves; choices between structs (use one struct with optional parts and a check).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/codec.hpp"
#include "orrery/config/node.hpp"

namespace orrery::config {

struct FieldInfo {
  std::string name;
  TypeInfo type;
  bool required = false;
  std::optional<std::string> default_text;  // optional fields: what a missing key means, as it would be written
  std::string bounds;                       // "at least 1"; empty when anything goes
  std::string unit;                         // quantities: the unit to propose
  std::string doc;
};

// ---- type-independent parts (record.cpp) ---------------------------------------------------------------------------

// What a rule between fields finds wrong, and where: the member to blame as a JSON pointer from the record's own node
// ("/vocab", "/dimensions/1/name"). As much of it as the file has is the place; without one it is the whole record's.
struct Objection {
  Objection() = default;
  Objection(const char* what) : message(what) {}             // NOLINT(google-explicit-constructor): rules return text
  Objection(std::string what) : message(std::move(what)) {}  // NOLINT(google-explicit-constructor)
  Objection(std::string pointer, std::string what) : at(std::move(pointer)), message(std::move(what)) {}

  std::string at;
  std::string message;  // empty: all is well
};

[[nodiscard]] std::string with_article(std::string_view noun);  // "a cluster", "an accelerator"
[[nodiscard]] Place place_below(const Node& node, std::string_view pointer);

struct RecordShape {
  std::string_view name;
  std::span<const FieldInfo> fields;
  bool foreign = false;
};

// Calls read_field(field index, value) for each known key, and complains about the unknown and the missing ones.
void read_members(const Node& node, const RecordShape& shape, bool overlay, std::vector<Diagnostic>& complaints,
                  const std::function<void(std::size_t, const Node&)>& read_field);
[[nodiscard]] Failure failure_of(std::vector<Diagnostic> complaints);  // long lists are cut, with a count of the rest
[[nodiscard]] std::string inline_text(const Node& node);               // one line of YAML
[[nodiscard]] Result<Node> flag_node(const RecordShape& shape, std::string_view field, std::string_view text,
                                     const Place& place);
[[nodiscard]] Node object_schema(std::string_view name, std::string_view doc, const RecordShape& shape,
                                 std::vector<Node> field_schemas);
[[nodiscard]] std::string schema_text(Node schema);                      // with "$schema" at the root
[[nodiscard]] std::string help_text(std::span<const FieldInfo> fields);  // one aligned line per field

// ---- Record --------------------------------------------------------------------------------------------------------

template <class T>
class Record {
 public:
  Record(std::string name, std::string doc) : name_(std::move(name)), doc_(std::move(doc)) {}

  template <class M>
  Record& required(std::string name, M T::* member, std::string doc, Bounds<M> bounds = {}) {
    return describe(std::move(name), member, std::move(doc), bounds, true);
  }

  // The default is the member's value in T{}.
  template <class M>
  Record& optional(std::string name, M T::* member, std::string doc, Bounds<M> bounds = {}) {
    return describe(std::move(name), member, std::move(doc), bounds, false);
  }

  // An optional field that is no member of T: `read` and `write` say where its value is. `info` and `limits` describe
  // it.
  Record& computed(FieldInfo info, Limits limits, std::function<void(const Node&, T&, const Reading&)> read,
                   std::function<Node(const T&)> write, std::function<Node()> schema) {
    infos_.push_back(std::move(info));
    fields_.push_back(Field{std::move(limits), std::move(read), std::move(write), std::move(schema)});
    return *this;
  }

  // A rule between fields: returns what is wrong, or "" when all is well. Called when every field by itself is right.
  Record& check(std::function<Objection(const T&)> rule) {
    checks_.push_back(std::move(rule));
    return *this;
  }

  // For files whose format belongs to others (a model's config.json): unknown keys are skipped.
  Record& foreign() {
    foreign_ = true;
    return *this;
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& doc() const { return doc_; }
  [[nodiscard]] const std::vector<FieldInfo>& fields() const { return infos_; }

  // All mistakes of the node are collected: unknown keys (with the nearest valid name), missing required keys, wrong
  // kinds, units, bounds; then the checks.
  [[nodiscard]] Result<T> read(const Node& node) const { return finished(T{}, node, false); }

  // Missing keys keep the values of `base`, in nested structs too; a list or map that is given replaces the whole.
  [[nodiscard]] Result<T> read_over(T base, const Node& node) const { return finished(std::move(base), node, true); }

  // One field from command-line text, under the same rules; `field` may be dotted ("link.latency"). A list may be
  // written "1,2,4". On failure `object` is as before. The checks between fields wait for validate(), so that the order
  // of flags does not matter.
  [[nodiscard]] tl::expected<void, Failure> set(T& object, std::string_view field, std::string_view text,
                                                const Place& place) const {
    const auto node = flag_node(shape(), field, text, place);
    if (!node) { return tl::make_unexpected(node.error()); }
    T changed = object;
    std::vector<Diagnostic> complaints;
    read_fields(*node, changed, true, complaints);
    if (!complaints.empty()) { return tl::make_unexpected(failure_of(std::move(complaints))); }
    object = std::move(changed);
    return {};
  }

  // The checks between fields.
  [[nodiscard]] tl::expected<void, Failure> validate(const T& object, const Place& place = {}) const {
    std::vector<Diagnostic> complaints;
    run_checks(object, [&](std::string_view) { return place; }, complaints);
    if (!complaints.empty()) { return tl::make_unexpected(failure_of(std::move(complaints))); }
    return {};
  }

  [[nodiscard]] Node to_node(const T& object) const {
    Node node = mapping_node();
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      Node value = fields_[i].write(object);
      const bool says_nothing = value.kind == Kind::null && infos_[i].default_text == "null";
      if (!says_nothing) { add(node, infos_[i].name, std::move(value)); }
    }
    return node;
  }

  // parse(print(x)) == x for every x without infinities, NaN and negative quantities.
  [[nodiscard]] std::string print_yaml(const T& object) const { return config::print_yaml(to_node(object)); }

  // What a codec does with a nested struct: fields, then, when they are all right, checks.
  void read_into(const Node& node, T& object, bool overlay, std::vector<Diagnostic>& complaints) const {
    const std::size_t before = complaints.size();
    read_fields(node, object, overlay, complaints);
    if (complaints.size() != before) { return; }
    run_checks(object, [&](std::string_view pointer) { return place_below(node, pointer); }, complaints);
  }

  [[nodiscard]] Node schema() const {
    std::vector<Node> schemas;
    for (const auto& field : fields_) { schemas.push_back(field.schema()); }
    return object_schema(name_, doc_, shape(), std::move(schemas));
  }

 private:
  struct Field {
    Limits limits;
    std::function<void(const Node&, T&, const Reading&)> read;
    std::function<Node(const T&)> write;
    std::function<Node()> schema;
  };

  template <class M>
  Record& describe(std::string name, M T::* member, std::string doc, const Bounds<M>& bounds, bool required) {
    Limits limits = limits_of(bounds);
    const TypeInfo type = Codec<M>::type();
    FieldInfo info{std::move(name),           type,        required,      std::nullopt,
                   bounds_text(limits, type), limits.unit, std::move(doc)};
    if (!required) { info.default_text = inline_text(Codec<M>::write(T{}.*member)); }
    infos_.push_back(std::move(info));
    fields_.push_back(Field{limits,
                            [member](const Node& node, T& object, const Reading& reading) {
                              Codec<M>::read(node, object.*member, reading);
                            },
                            [member](const T& object) { return Codec<M>::write(object.*member); },
                            [limits] { return Codec<M>::schema(limits); }});
    return *this;
  }

  void read_fields(const Node& node, T& object, bool overlay, std::vector<Diagnostic>& complaints) const {
    read_members(node, shape(), overlay, complaints, [&](std::size_t i, const Node& value) {
      fields_[i].read(value, object, Reading{infos_[i].name, fields_[i].limits, overlay, complaints});
    });
  }

  template <class PlaceOf>
  void run_checks(const T& object, PlaceOf&& place_of, std::vector<Diagnostic>& complaints) const {
    for (const auto& rule : checks_) {
      Objection wrong = rule(object);
      if (!wrong.message.empty()) { complaints.push_back({place_of(wrong.at), std::move(wrong.message)}); }
    }
  }

  [[nodiscard]] RecordShape shape() const { return {name_, infos_, foreign_}; }

  [[nodiscard]] Result<T> finished(T object, const Node& node, bool overlay) const {
    std::vector<Diagnostic> complaints;
    read_into(node, object, overlay, complaints);
    if (!complaints.empty()) { return tl::make_unexpected(failure_of(std::move(complaints))); }
    return object;
  }

  std::string name_;
  std::string doc_;
  bool foreign_ = false;
  std::vector<FieldInfo> infos_;
  std::vector<Field> fields_;
  std::vector<std::function<Objection(const T&)>> checks_;
};

// JSON Schema, draft 2020-12, with defaults, bounds and docs.
template <class T>
[[nodiscard]] std::string json_schema(const Record<T>& record) {
  return schema_text(record.schema());
}

// `name  type  default  doc`, one aligned line per field.
template <class T>
[[nodiscard]] std::string help_text(const Record<T>& record) {
  return help_text(record.fields());
}

}  // namespace orrery::config
