// One descriptor per field (name, type, unit, default, bounds, doc) gives parsing, validation, help, JSON Schema,
// printing and command-line flags.
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

#include <cstddef>
#include <functional>
#include <memory>
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
  std::optional<std::string> default_text;  // optional fields: the default, as it would be written
  std::string bounds;                       // "at least 1"; empty without limits
  std::string unit;                         // quantities: the unit to propose
  std::string doc;
};

// ---- type-independent parts (record.cpp) ---------------------------------------------------------------------------

// An error between fields and its place: a JSON pointer from the record's own node ("/vocab", "/dimensions/1/name").
// The place is the deepest part of it that the file has; without a pointer, the whole record.
struct Objection {
  Objection() = default;
  Objection(const char* what) : message(what) {}             // NOLINT(google-explicit-constructor): rules return text
  Objection(std::string what) : message(std::move(what)) {}  // NOLINT(google-explicit-constructor)
  Objection(std::string pointer, std::string what) : at(std::move(pointer)), message(std::move(what)) {}

  std::string at;
  std::string message;  // empty: no error
};

[[nodiscard]] std::string with_article(std::string_view noun);  // "a cluster", "an accelerator"
[[nodiscard]] Place place_below(const Node& node, std::string_view pointer);

[[nodiscard]] Failure failure_of(std::vector<Diagnostic> complaints);    // long lists are cut, with a count of the rest
[[nodiscard]] std::string inline_text(const Node& node);                 // one line of YAML
[[nodiscard]] std::string schema_text(Node schema);                      // with "$schema" at the root
[[nodiscard]] std::string help_text(std::span<const FieldInfo> fields);  // one aligned line per field

// The fields of a struct and the rules between them as data: a field is an offset into the struct and the codec of its
// type, so code is instantiated per type of field and not per field. Every `object` is a struct of the type that the
// table was filled for; Record<T> guarantees it.
class FieldTable {
 public:
  using Rule = std::function<Objection(const void* object)>;

  FieldTable(std::string_view name, std::string_view doc);
  FieldTable(const FieldTable& other);  // the special members are in record.cpp: inline, every record would repeat them
  FieldTable(FieldTable&& other) noexcept;
  FieldTable& operator=(const FieldTable& other) = delete;
  ~FieldTable();

  struct Label {
    std::string_view name, doc;
    bool required;
  };
  // `member` points into `defaults`, a struct with default values.
  struct Location {
    const void* defaults;
    const void* member;
  };
  void add_field(const Label& label, Location location, const ValueCodec& codec, const Limits& limits);
  // The fields and rules of a member struct, as fields and rules of this one.
  void add_part(const FieldTable& part, Location location);
  // A field whose value is not a member: functions of the whole struct read and write it.
  struct Computed {
    std::function<void(const Node& node, void* object, const Reading& reading)> read;
    std::function<Node(const void* object)> write;
    std::function<Node()> schema;
  };
  void add_computed(FieldInfo info, const Limits& limits, Computed computed);
  void add_rule(Rule rule);
  void accept_unknown_keys() { foreign_ = true; }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& doc() const { return doc_; }
  [[nodiscard]] const std::vector<FieldInfo>& fields() const { return infos_; }

  // Reads the fields; checks the rules between them if every field is valid.
  void read(const Node& node, void* object, bool overlay, std::vector<Diagnostic>& complaints) const;
  // Reads the fields only; complains about unknown and missing keys.
  void read_fields(const Node& node, void* object, bool overlay, std::vector<Diagnostic>& complaints) const;
  // Checks the rules between fields. Without a node every complaint has the place `place`.
  void check(const void* object, const Node* node, const Place& place, std::vector<Diagnostic>& complaints) const;
  // A flag as a mapping with this one field, which may be dotted.
  [[nodiscard]] Result<Node> flag_node(std::string_view field, std::string_view text, const Place& place) const;
  [[nodiscard]] Node to_node(const void* object) const;
  [[nodiscard]] Node schema() const;

 private:
  struct Field {
    std::size_t offset;       // of a computed field: of the struct that it is computed from
    const ValueCodec* codec;  // nullptr: computed
    Limits limits;
    std::shared_ptr<const Computed> computed;

    void read(const Node& node, void* object, const Reading& reading) const;
    [[nodiscard]] Node write(const void* object) const;
    [[nodiscard]] Node schema() const;
  };

  [[nodiscard]] std::vector<std::string> field_names() const;

  std::string name_;
  std::string doc_;
  bool foreign_ = false;
  std::vector<FieldInfo> infos_;
  std::vector<Field> fields_;  // by the index of infos_
  std::vector<Rule> rules_;
};

// ---- Record --------------------------------------------------------------------------------------------------------

template <class T>
class Record {
 public:
  Record(std::string_view name, std::string_view doc) : table_(name, doc) {}

  template <class M>
  Record& required(std::string_view name, M T::* member, std::string_view doc, const Bounds<M>& bounds = {}) {
    return describe({name, doc, true}, member, limits_of(bounds));
  }

  // The default is the member's value in T{}.
  template <class M>
  Record& optional(std::string_view name, M T::* member, std::string_view doc, const Bounds<M>& bounds = {}) {
    return describe({name, doc, false}, member, limits_of(bounds));
  }

  // The fields of a member struct, under keys of this record: the file is flat where the struct is not.
  template <class P>
  Record& part(P T::* member, const Record<P>& record) {
    const T& object = defaults();
    table_.add_part(record.table_, {&object, &(object.*member)});
    return *this;
  }

  // An optional field that is not a member of T: the functions read and write its value in the whole object.
  Record& computed(FieldInfo info, const Limits& limits, std::function<void(const Node&, T&, const Reading&)> read,
                   std::function<Node(const T&)> write, std::function<Node()> schema) {
    table_.add_computed(
        std::move(info), limits,
        {[read = std::move(read)](const Node& node, void* object, const Reading& reading) {
           read(node, *static_cast<T*>(object), reading);
         },
         [write = std::move(write)](const void* object) { return write(*static_cast<const T*>(object)); },
         std::move(schema)});
    return *this;
  }

  // A rule between fields: returns the error, or "" if there is none. Called if every field by itself is valid.
  Record& check(std::function<Objection(const T&)> rule) {
    table_.add_rule([rule = std::move(rule)](const void* object) { return rule(*static_cast<const T*>(object)); });
    return *this;
  }

  // For files whose format belongs to others (a model's config.json): unknown keys are skipped.
  Record& foreign() {
    table_.accept_unknown_keys();
    return *this;
  }

  [[nodiscard]] const std::string& name() const { return table_.name(); }
  [[nodiscard]] const std::string& doc() const { return table_.doc(); }
  [[nodiscard]] const std::vector<FieldInfo>& fields() const { return table_.fields(); }

  // Collects all errors of the node: unknown keys (with the nearest valid name), missing required keys, wrong kinds,
  // units, bounds; then those between fields.
  [[nodiscard]] Result<T> read(const Node& node) const { return finished(T{}, node, false); }

  // Missing keys keep the values of `base`, in nested structs too; a list or map is replaced as a whole.
  [[nodiscard]] Result<T> read_over(T base, const Node& node) const { return finished(std::move(base), node, true); }

  // One field from command-line text, under the same rules; `field` may be dotted ("link.latency"). A list may be
  // written "1,2,4". On failure `object` is unchanged. validate() checks the rules between fields after the last flag,
  // so the order of flags does not matter.
  [[nodiscard]] tl::expected<void, Failure> set(T& object, std::string_view field, std::string_view text,
                                                const Place& place) const {
    const auto node = table_.flag_node(field, text, place);
    if (!node) { return tl::make_unexpected(node.error()); }
    T changed = object;
    std::vector<Diagnostic> complaints;
    table_.read_fields(*node, &changed, true, complaints);
    if (!complaints.empty()) { return tl::make_unexpected(failure_of(std::move(complaints))); }
    object = std::move(changed);
    return {};
  }

  // Checks the rules between fields.
  [[nodiscard]] tl::expected<void, Failure> validate(const T& object, const Place& place = {}) const {
    std::vector<Diagnostic> complaints;
    table_.check(&object, nullptr, place, complaints);
    if (!complaints.empty()) { return tl::make_unexpected(failure_of(std::move(complaints))); }
    return {};
  }

  [[nodiscard]] Node to_node(const T& object) const { return table_.to_node(&object); }

  // parse(print(x)) == x for every x without infinities, NaN and negative quantities.
  [[nodiscard]] std::string print_yaml(const T& object) const { return config::print_yaml(to_node(object)); }

  // How a codec reads a nested struct.
  void read_into(const Node& node, T& object, bool overlay, std::vector<Diagnostic>& complaints) const {
    table_.read(node, &object, overlay, complaints);
  }

  [[nodiscard]] Node schema() const { return table_.schema(); }

 private:
  template <class Whole>
  friend class Record;

  [[nodiscard]] static const T& defaults() {
    static const T value{};
    return value;
  }

  template <class M>
  Record& describe(const FieldTable::Label& label, M T::* member, const Limits& limits) {
    const T& object = defaults();
    table_.add_field(label, {&object, &(object.*member)}, kValueCodec<M>, limits);
    return *this;
  }

  [[nodiscard]] Result<T> finished(T object, const Node& node, bool overlay) const {
    std::vector<Diagnostic> complaints;
    read_into(node, object, overlay, complaints);
    if (!complaints.empty()) { return tl::make_unexpected(failure_of(std::move(complaints))); }
    return object;
  }

  FieldTable table_;
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
