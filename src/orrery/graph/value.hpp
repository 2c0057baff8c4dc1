// The value of an attribute: one of the thirty types of the Chakra schema. The type is kept as written (an int32 stays
// an int32); the value can be read as any type that represents it without loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::graph {

// The numbers are those of the fields of Chakra's AttributeProto: odd for one value, even for a list of them.
enum class ValueType : std::uint8_t {
  none = 0,  // the attribute has a name and no value
  double_val = 3,
  double_list,
  float_val,
  float_list,
  int32_val,
  int32_list,
  int64_val,
  int64_list,
  uint32_val,
  uint32_list,
  uint64_val,
  uint64_list,
  sint32_val,
  sint32_list,
  sint64_val,
  sint64_list,
  fixed32_val,
  fixed32_list,
  fixed64_val,
  fixed64_list,
  sfixed32_val,
  sfixed32_list,
  sfixed64_val,
  sfixed64_list,
  bool_val,
  bool_list,
  string_val,
  string_list,
  bytes_val,
  bytes_list,
};

// "int64_val"; "none" for anything that is not a ValueType.
[[nodiscard]] std::string_view name_of(ValueType type);

[[nodiscard]] constexpr bool is_list(ValueType type) {
  return type != ValueType::none && static_cast<unsigned>(type) % 2 == 0;
}

// string_val, string_list, bytes_val or bytes_list.
[[nodiscard]] constexpr bool is_text(ValueType type) { return type >= ValueType::string_val; }

// Bytes of one number in the payload of a list: 1 (bool), 4 or 8; 0 for texts and for none.
[[nodiscard]] std::size_t element_bytes(ValueType type);

// A value, or a view of one: texts and lists are views of storage that must outlive it (a graph, a record, a literal).
class Value {
 public:
  Value() = default;

  static Value integer(std::int64_t value) { return scalar(ValueType::int64_val, static_cast<std::uint64_t>(value)); }
  static Value natural(std::uint64_t value) { return scalar(ValueType::uint64_val, value); }
  static Value boolean(bool value) { return scalar(ValueType::bool_val, value ? 1 : 0); }
  static Value real(double value);
  static Value real32(float value);
  static Value text(std::string_view value) { return view(ValueType::string_val, value); }

  // One number of any type by its bits: signed integers extended to 64 bits with their sign, a float in the low half.
  static Value scalar(ValueType type, std::uint64_t bits) { return Value(type, bits, {}); }

  // A text, or a list by its payload, as packed_* below make it.
  static Value view(ValueType type, std::string_view payload) { return Value(type, 0, payload); }

  [[nodiscard]] ValueType type() const { return type_; }
  [[nodiscard]] std::uint64_t bits() const { return bits_; }
  [[nodiscard]] std::string_view payload() const { return payload_; }

  // Elements of a list; 1 for a single value, 0 for none.
  [[nodiscard]] std::size_t size() const;

  // Element `i` (0 for a single value) as the requested type. nullopt if there is no such element, or if the type
  // cannot represent it: as_int of 2^63, as_bool of 2, as_int of a text or of a real number.
  [[nodiscard]] std::optional<std::int64_t> as_int(std::size_t i = 0) const;
  [[nodiscard]] std::optional<std::uint64_t> as_uint(std::size_t i = 0) const;
  [[nodiscard]] std::optional<bool> as_bool(std::size_t i = 0) const;

  // Any number; integers beyond 2^53 are rounded.
  [[nodiscard]] std::optional<double> as_double(std::size_t i = 0) const;

  // A single string or bytes.
  [[nodiscard]] std::optional<std::string_view> as_text() const;

  // The bits of a number, widened as for scalar(); 0 if there is no such element.
  [[nodiscard]] std::uint64_t bits_at(std::size_t i) const { return element(i).value_or(0); }

  // All elements of a list of strings or bytes; empty for other types.
  [[nodiscard]] std::vector<std::string_view> texts() const;

  // Same type and same bits: 0.0 and -0.0 differ, a NaN equals itself.
  friend bool operator==(const Value&, const Value&) = default;

 private:
  Value(ValueType type, std::uint64_t bits, std::string_view payload) : type_(type), bits_(bits), payload_(payload) {}

  [[nodiscard]] std::optional<std::uint64_t> element(std::size_t i) const;

  ValueType type_ = ValueType::none;
  std::uint64_t bits_ = 0;
  std::string_view payload_;
};

// Payloads of lists with elements of `type`; numbers are truncated to its width.
[[nodiscard]] std::string packed_integers(ValueType type, std::span<const std::int64_t> values);
[[nodiscard]] std::string packed_reals(ValueType type, std::span<const double> values);
[[nodiscard]] std::string packed_texts(std::span<const std::string_view> values);

// Appends one element to a payload: a number by its bits, a text.
void append_number(std::string& payload, ValueType type, std::uint64_t bits);
void append_text(std::string& payload, std::string_view text);

}  // namespace orrery::graph
