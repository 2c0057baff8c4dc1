// Reading, writing and describing one type of member. Record<T> picks the codec by the member's type; a new type is a
// new specialisation of Codec. What does not depend on the type is in codec.cpp.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/config/units_text.hpp"

namespace orrery::config {

// ---- customisation points ------------------------------------------------------------------------------------------

// Names of an enum, spelled as in config files:
//   template <> struct EnumNames<Precision> {
//     static constexpr std::array<std::pair<Precision, std::string_view>, 2> value{{{Precision::bf16, "bf16"}, ...}};
//   };
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires { EnumNames<E>::value.size(); };

// The record of a nested struct:
//   template <> struct Described<Link> { static const Record<Link>& record(); };
template <class T>
struct Described;

template <class T>
concept DescribedStruct = requires { Described<T>::record(); };

// ---- bounds --------------------------------------------------------------------------------------------------------

template <class M>
struct LeafOf {
  using type = M;
};
template <class M>
struct LeafOf<std::optional<M>> : LeafOf<M> {};
template <class M>
struct LeafOf<std::vector<M>> : LeafOf<M> {};
template <class M>
struct LeafOf<std::map<std::string, M>> : LeafOf<M> {};

struct NoLimit {
  NoLimit() = delete;
};

template <class M>
concept Bounded = TextQuantity<M> || (std::is_arithmetic_v<M> && !std::same_as<M, bool>);

// The valid values of a type; in lists, maps and optionals the limits apply to each value. Numbers are always finite,
// quantities never negative.
template <class M>
struct Bounds {
  using Limit = std::conditional_t<Bounded<typename LeafOf<M>::type>, typename LeafOf<M>::type, NoLimit>;
  std::optional<Limit> min{};  // inclusive
  std::optional<Limit> max{};  // inclusive
  bool positive = false;       // greater than zero
  bool nonempty = false;       // text, list, map
  std::string_view unit{};     // a literal: proposed when a quantity is written without one
};

// Bounds without the type; quantities in SI base units.
struct Limits {
  std::optional<double> min;
  std::optional<double> max;
  bool positive = false;
  bool nonempty = false;
  std::string_view unit{};
};

constexpr double base_value(Bounded auto value) {
  if constexpr (TextQuantity<decltype(value)>) {
    return value.value();
  } else {
    return static_cast<double>(value);
  }
}

template <class M>
[[nodiscard]] constexpr Limits limits_of(const Bounds<M>& bounds) {
  Limits limits{.min = {}, .max = {}, .positive = bounds.positive, .nonempty = bounds.nonempty, .unit = bounds.unit};
  if constexpr (!std::same_as<typename Bounds<M>::Limit, NoLimit>) {
    if (bounds.min) { limits.min = base_value(*bounds.min); }
    if (bounds.max) { limits.max = base_value(*bounds.max); }
  }
  return limits;
}

// ---- type-independent parts (codec.cpp) ----------------------------------------------------------------------------

enum class Shape { scalar, list, mapping };

struct TypeInfo {
  std::string text;                         // "integer", "data rate", "one of fp16, bf16", "list of integer"
  std::optional<Dimension> dimension = {};  // of the leaf, when it is a quantity
  Shape shape = Shape::scalar;
};

// "at least 1", "greater than 0", "between 1 and 512"; empty without limits.
[[nodiscard]] std::string bounds_text(const Limits& limits, const TypeInfo& type);

inline constexpr std::size_t kMaxComplaints = 200;

// The context of a value that a codec reads.
struct Reading {
  std::string_view field;  // for messages: "layers must be at least 1"
  const Limits& limits;
  bool overlay = false;  // nested structs keep their values where keys are missing
  std::vector<Diagnostic>& complaints;

  void complain(const Node& at, std::string message) const;  // at most kMaxComplaints are kept
};

[[nodiscard]] std::optional<bool> read_boolean(const Node& node, const Reading& reading);
[[nodiscard]] std::optional<std::int64_t> read_integer(const Node& node, const Reading& reading, std::int64_t lowest,
                                                       std::int64_t highest);
[[nodiscard]] std::optional<double> read_real(const Node& node, const Reading& reading);
[[nodiscard]] std::optional<std::string> read_text(const Node& node, const Reading& reading);
[[nodiscard]] std::optional<double> read_quantity(const Node& node, const Reading& reading, Dimension dimension);
[[nodiscard]] std::optional<std::size_t> read_choice(const Node& node, const Reading& reading,
                                                     std::span<const std::string_view> names);
// Whether the node is a list (or map) within the limits; complains if it is not.
[[nodiscard]] bool is_list(const Node& node, const Reading& reading);
[[nodiscard]] bool is_map(const Node& node, const Reading& reading);

[[nodiscard]] std::string choice_text(std::span<const std::string_view> names);  // "one of a, b, c"

[[nodiscard]] Node number_schema(std::string_view type, const Limits& limits);  // "integer" or "number"
[[nodiscard]] Node text_schema(const Limits& limits);
[[nodiscard]] Node quantity_schema(const Limits& limits, Dimension dimension);
[[nodiscard]] Node choice_schema(std::span<const std::string_view> names);
[[nodiscard]] Node list_schema(Node item, const Limits& limits);
[[nodiscard]] Node map_schema(Node value, const Limits& limits);
[[nodiscard]] Node nullable_schema(Node schema);
[[nodiscard]] Node typed_schema(std::string_view type);

// ---- enums ---------------------------------------------------------------------------------------------------------

template <NamedEnum E>
inline constexpr auto kEnumTexts = [] {
  std::array<std::string_view, EnumNames<E>::value.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) { names[i] = EnumNames<E>::value[i].second; }
  return names;
}();

// Whether V is an enumerator: compilers print other values as a cast, "(Precision)7".
template <auto V>
consteval bool is_enumerator() {
  return std::string_view(__PRETTY_FUNCTION__).find("V = (") == std::string_view::npos;
}

// Whether EnumNames<E> has every enumerator of an enum that counts from 0 without gaps.
template <NamedEnum E>
consteval bool all_are_named() {
  constexpr std::size_t count = EnumNames<E>::value.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t found = 0;
    for (const auto& [value, name] : EnumNames<E>::value) { found += value == static_cast<E>(i) ? 1U : 0U; }
    if (found != 1) { return false; }
  }
  return !is_enumerator<static_cast<E>(count)>();
}

template <NamedEnum E>
[[nodiscard]] constexpr std::string_view enum_name(E e) {
  static_assert(all_are_named<E>(), "an enumerator has no name in EnumNames, or has two");
  for (const auto& [value, name] : EnumNames<E>::value) {
    if (value == e) { return name; }
  }
  return "?";  // not an enumerator
}

template <NamedEnum E>
[[nodiscard]] constexpr std::optional<E> enum_value(std::string_view text) {
  for (const auto& [value, name] : EnumNames<E>::value) {
    if (name == text) { return value; }
  }
  return std::nullopt;
}

// ---- codecs --------------------------------------------------------------------------------------------------------

template <class M>
struct Codec;  // a type without a codec cannot be a member of a record

template <>
struct Codec<bool> {
  static TypeInfo type() { return {"true or false"}; }
  static void read(const Node& node, bool& out, const Reading& reading) {
    if (const auto value = read_boolean(node, reading)) { out = *value; }
  }
  static Node write(bool value) { return boolean_node(value); }
  static Node schema(const Limits&) { return typed_schema("boolean"); }
};

template <class M>
  requires std::same_as<M, std::int32_t> || std::same_as<M, std::int64_t>
struct Codec<M> {
  static TypeInfo type() { return {"integer"}; }
  static void read(const Node& node, M& out, const Reading& reading) {
    using Range = std::numeric_limits<M>;
    if (const auto value = read_integer(node, reading, Range::min(), Range::max())) { out = static_cast<M>(*value); }
  }
  static Node write(M value) { return integer_node(value); }
  static Node schema(const Limits& limits) { return number_schema("integer", limits); }
};

template <>
struct Codec<double> {
  static TypeInfo type() { return {"number"}; }
  static void read(const Node& node, double& out, const Reading& reading) {
    if (const auto value = read_real(node, reading)) { out = *value; }
  }
  static Node write(double value) { return real_node(value); }
  static Node schema(const Limits& limits) { return number_schema("number", limits); }
};

template <>
struct Codec<std::string> {
  static TypeInfo type() { return {"text"}; }
  static void read(const Node& node, std::string& out, const Reading& reading) {
    if (auto value = read_text(node, reading)) { out = std::move(*value); }
  }
  static Node write(const std::string& value) { return text_node(value); }
  static Node schema(const Limits& limits) { return text_schema(limits); }
};

template <TextQuantity M>
struct Codec<M> {
  static constexpr Dimension kDimension = DimensionOf<M>::value;
  static TypeInfo type() { return {std::string(dimension_name(kDimension)), kDimension}; }
  static void read(const Node& node, M& out, const Reading& reading) {
    if (const auto value = read_quantity(node, reading, kDimension)) { out = M(*value); }
  }
  static Node write(M value) { return text_node(print_quantity(value)); }
  static Node schema(const Limits& limits) { return quantity_schema(limits, kDimension); }
};

template <NamedEnum M>
struct Codec<M> {
  static TypeInfo type() { return {choice_text(kEnumTexts<M>)}; }
  static void read(const Node& node, M& out, const Reading& reading) {
    if (const auto index = read_choice(node, reading, kEnumTexts<M>)) { out = EnumNames<M>::value[*index].first; }
  }
  static Node write(M value) { return text_node(std::string(enum_name(value))); }
  static Node schema(const Limits&) { return choice_schema(kEnumTexts<M>); }
};

template <DescribedStruct M>
struct Codec<M> {
  static TypeInfo type() { return {Described<M>::record().name(), {}, Shape::mapping}; }
  static void read(const Node& node, M& out, const Reading& reading) {
    Described<M>::record().read_into(node, out, reading.overlay, reading.complaints);
  }
  static Node write(const M& value) { return Described<M>::record().to_node(value); }
  static Node schema(const Limits&) { return Described<M>::record().schema(); }
};

template <class M>
struct Codec<std::optional<M>> {
  static TypeInfo type() { return Codec<M>::type(); }
  static void read(const Node& node, std::optional<M>& out, const Reading& reading) {
    if (node.kind == Kind::null) {
      out.reset();
      return;
    }
    Reading inner{reading.field, reading.limits, reading.overlay && out.has_value(), reading.complaints};
    M value = out ? std::move(*out) : M{};
    Codec<M>::read(node, value, inner);
    out = std::move(value);
  }
  static Node write(const std::optional<M>& value) { return value ? Codec<M>::write(*value) : null_node(); }
  static Node schema(const Limits& limits) { return nullable_schema(Codec<M>::schema(limits)); }
};

// A list or map that is given replaces the previous one as a whole.
template <class M>
struct Codec<std::vector<M>> {
  static TypeInfo type() {
    const TypeInfo item = Codec<M>::type();
    return {"list of " + item.text, item.dimension, Shape::list};
  }
  static void read(const Node& node, std::vector<M>& out, const Reading& reading) {
    if (!is_list(node, reading)) { return; }
    const Reading inner{reading.field, reading.limits, false, reading.complaints};
    std::vector<M> values(node.items.size());
    for (std::size_t i = 0; i < values.size(); ++i) { Codec<M>::read(node.items[i], values[i], inner); }
    out = std::move(values);
  }
  static Node write(const std::vector<M>& values) {
    Node node = sequence_node();
    for (const M& value : values) { append(node, Codec<M>::write(value)); }
    return node;
  }
  static Node schema(const Limits& limits) { return list_schema(Codec<M>::schema(limits), limits); }
};

template <class M>
struct Codec<std::map<std::string, M>> {
  static TypeInfo type() {
    const TypeInfo item = Codec<M>::type();
    return {"map of name to " + item.text, item.dimension, Shape::mapping};
  }
  static void read(const Node& node, std::map<std::string, M>& out, const Reading& reading) {
    if (!is_map(node, reading)) { return; }
    const Reading inner{reading.field, reading.limits, false, reading.complaints};
    out.clear();
    for (const Member& member : node.members) { Codec<M>::read(member.value, out[member.key], inner); }
  }
  static Node write(const std::map<std::string, M>& values) {
    Node node = mapping_node();
    for (const auto& [key, value] : values) { add(node, key, Codec<M>::write(value)); }
    return node;
  }
  static Node schema(const Limits& limits) { return map_schema(Codec<M>::schema(limits), limits); }
};

// ---- codecs without the type
// -----------------------------------------------------------------------------------------

// Codec<M> without its type: `value` points to an M.
struct ValueCodec {
  TypeInfo (*type)();
  void (*read)(const Node& node, void* value, const Reading& reading);
  Node (*write)(const void* value);
  Node (*schema)(const Limits& limits);
};

// One table per type; all fields of that type share it.
template <class M>
inline constexpr ValueCodec kValueCodec{
    .type = &Codec<M>::type,
    .read = [](const Node& node, void* value,
               const Reading& reading) { Codec<M>::read(node, *static_cast<M*>(value), reading); },
    .write = [](const void* value) { return Codec<M>::write(*static_cast<const M*>(value)); },
    .schema = &Codec<M>::schema};

}  // namespace orrery::config
