// JSON documents made by the program: values to trees, and the one printer of JSON.
//
//   Node node = json_object({{"step_time_s", estimate.step_time}, {"tp", plan.tp}, {"cost_usd", cost /* optional */}});
//   add_fields(node, {{"notes", notes}});
//   text = json_document(node);
//
// Numbers: a double has the fewest digits that read back as the same double, and always a point or an exponent; one
// that is not finite is null. Quantities are in SI base units. Text that is not UTF-8 has U+FFFD where it is not.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/units.hpp"

namespace orrery::config {

// ---- values to trees -----------------------------------------------------------------------------------------------

[[nodiscard]] Node json_number(double value);
[[nodiscard]] Node json_count(std::uint64_t value);
[[nodiscard]] Node json_texts(std::span<const std::string> texts);

// A value of a document, made from what results hold.
class JsonValue {
 public:
  // NOLINTBEGIN(google-explicit-constructor): so that fields can be listed as {"name", value}
  JsonValue(std::nullptr_t) : node_(null_node()) {}
  JsonValue(std::same_as<bool> auto value) : node_(boolean_node(value)) {}
  JsonValue(double value) : node_(json_number(value)) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  JsonValue(I value)
      : node_(std::signed_integral<I> ? integer_node(static_cast<std::int64_t>(value))
                                      : json_count(static_cast<std::uint64_t>(value))) {}
  template <int B, int S, int F>
  JsonValue(Quantity<B, S, F> value) : node_(json_number(value.value())) {}
  JsonValue(const char* text) : node_(text_node(text)) {}
  JsonValue(std::string_view text) : node_(text_node(std::string(text))) {}
  JsonValue(std::string text) : node_(text_node(std::move(text))) {}
  JsonValue(std::span<const std::string> texts) : node_(json_texts(texts)) {}
  JsonValue(const std::vector<std::string>& texts) : node_(json_texts(texts)) {}
  JsonValue(Node node) : node_(std::move(node)) {}
  template <class T>
  JsonValue(const std::optional<T>& value) : node_(value ? JsonValue(*value).node_ : null_node()) {}
  // NOLINTEND(google-explicit-constructor)

 private:
  friend Node& add_fields(Node& object, std::initializer_list<struct JsonField> fields);
  friend void set_field(Node& object, std::string_view key, JsonValue value);
  friend void add_item(Node& list, JsonValue value);
  mutable Node node_;  // moved out of the list of fields, whose elements are const
};

struct JsonField {
  std::string_view key;
  JsonValue value;
};

// The keys must be new; returns `object`.
Node& add_fields(Node& object, std::initializer_list<JsonField> fields);
[[nodiscard]] Node json_object(std::initializer_list<JsonField> fields);

// For keys that come from data: replaces the value of a key that is there.
void set_field(Node& object, std::string_view key, JsonValue value);
void add_item(Node& list, JsonValue value);

// Null if the text is empty.
[[nodiscard]] JsonValue text_or_null(const std::string& text);

// A list with what `node_of` makes of each item.
template <class Items, class NodeOf>
[[nodiscard]] Node json_list(const Items& items, NodeOf&& node_of) {
  Node list = sequence_node();
  for (const auto& item : items) { append(list, node_of(item)); }
  return list;
}

// ---- printing ------------------------------------------------------------------------------------------------------

// Writes a document value by value, for lists that are too long to be held as a tree.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out, int indent = 2) : out_(out), indent_(indent) {}

  void open_object() { open('{'); }
  void open_list() { open('['); }
  void key(std::string_view name);  // of the next value, in an object
  void null() { scalar("null"); }
  void value(std::uint64_t number);
  void value(double number);
  void value(std::string_view text);
  void value(const Node& node);
  void close();

 private:
  void open(char bracket);
  void scalar(std::string_view text);
  void start_value();
  void start_line();

  struct Level {
    bool is_list = false;
    bool is_empty = true;
  };
  std::string& out_;
  int indent_;
  bool after_key_ = false;
  std::vector<Level> levels_;
};

// The whole document, with a line break at its end.
[[nodiscard]] std::string json_document(const Node& root, int indent = 2);

// A JSON string with its quotes.
[[nodiscard]] std::string json_text(std::string_view text);

}  // namespace orrery::config
