#include "orrery/graph/value.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "orrery/core/error.hpp"

namespace orrery::graph {

namespace {

// How the bits of a number are read.
enum class ScalarKind : std::uint8_t { none, real64, real32, natural, integer, boolean, text };

struct TypeFacts {
  std::string_view name = "none";
  ScalarKind kind = ScalarKind::none;
  std::uint8_t bytes = 0;
};

constexpr std::size_t kTypes = 33;

constexpr std::array<TypeFacts, kTypes> kFacts = {{
    {},
    {},
    {},
    {"double_val", ScalarKind::real64, 8},
    {"double_list", ScalarKind::real64, 8},
    {"float_val", ScalarKind::real32, 4},
    {"float_list", ScalarKind::real32, 4},
    {"int32_val", ScalarKind::integer, 4},
    {"int32_list", ScalarKind::integer, 4},
    {"int64_val", ScalarKind::integer, 8},
    {"int64_list", ScalarKind::integer, 8},
    {"uint32_val", ScalarKind::natural, 4},
    {"uint32_list", ScalarKind::natural, 4},
    {"uint64_val", ScalarKind::natural, 8},
    {"uint64_list", ScalarKind::natural, 8},
    {"sint32_val", ScalarKind::integer, 4},
    {"sint32_list", ScalarKind::integer, 4},
    {"sint64_val", ScalarKind::integer, 8},
    {"sint64_list", ScalarKind::integer, 8},
    {"fixed32_val", ScalarKind::natural, 4},
    {"fixed32_list", ScalarKind::natural, 4},
    {"fixed64_val", ScalarKind::natural, 8},
    {"fixed64_list", ScalarKind::natural, 8},
    {"sfixed32_val", ScalarKind::integer, 4},
    {"sfixed32_list", ScalarKind::integer, 4},
    {"sfixed64_val", ScalarKind::integer, 8},
    {"sfixed64_list", ScalarKind::integer, 8},
    {"bool_val", ScalarKind::boolean, 1},
    {"bool_list", ScalarKind::boolean, 1},
    {"string_val", ScalarKind::text, 0},
    {"string_list", ScalarKind::text, 0},
    {"bytes_val", ScalarKind::text, 0},
    {"bytes_list", ScalarKind::text, 0},
}};

const TypeFacts& facts(ValueType type) {
  const auto number = static_cast<std::size_t>(type);
  return kFacts.at(number < kTypes ? number : 0);
}

// The bits of one element of a payload, widened as a scalar's are.
std::uint64_t loaded(const char* at, const TypeFacts& fact) {
  if (fact.bytes == 8) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return bits;
  }
  if (fact.bytes == 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at, sizeof bits);
    return fact.kind == ScalarKind::integer ? static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(bits)})
                                            : bits;
  }
  return *at == 0 ? 0 : 1;
}

}  // namespace

std::string_view name_of(ValueType type) { return facts(type).name; }

std::size_t element_bytes(ValueType type) { return facts(type).bytes; }

Value Value::real(double value) { return scalar(ValueType::double_val, std::bit_cast<std::uint64_t>(value)); }

Value Value::real32(float value) { return scalar(ValueType::float_val, std::bit_cast<std::uint32_t>(value)); }

std::size_t Value::size() const {
  if (type_ == ValueType::none) { return 0; }
  if (!is_list(type_)) { return 1; }
  return is_text(type_) ? texts().size() : payload_.size() / element_bytes(type_);
}

std::optional<std::uint64_t> Value::element(std::size_t i) const {
  const TypeFacts& fact = facts(type_);
  if (fact.bytes == 0) { return std::nullopt; }
  if (!is_list(type_)) { return i == 0 ? std::optional(bits_) : std::nullopt; }
  if (i >= payload_.size() / fact.bytes) { return std::nullopt; }
  return loaded(payload_.data() + i * fact.bytes, fact);
}

std::optional<std::int64_t> Value::as_int(std::size_t i) const {
  const auto bits = element(i);
  if (!bits) { return std::nullopt; }
  const ScalarKind kind = facts(type_).kind;
  if (kind == ScalarKind::integer) { return static_cast<std::int64_t>(*bits); }
  if (kind != ScalarKind::natural && kind != ScalarKind::boolean) { return std::nullopt; }
  if (*bits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) { return std::nullopt; }
  return static_cast<std::int64_t>(*bits);
}

std::optional<std::uint64_t> Value::as_uint(std::size_t i) const {
  const auto bits = element(i);
  if (!bits) { return std::nullopt; }
  const ScalarKind kind = facts(type_).kind;
  if (kind == ScalarKind::natural || kind == ScalarKind::boolean) { return bits; }
  if (kind != ScalarKind::integer || static_cast<std::int64_t>(*bits) < 0) { return std::nullopt; }
  return bits;
}

std::optional<bool> Value::as_bool(std::size_t i) const {
  const auto number = as_uint(i);
  if (!number || *number > 1) { return std::nullopt; }
  return *number == 1;
}

std::optional<double> Value::as_double(std::size_t i) const {
  const auto bits = element(i);
  if (!bits) { return std::nullopt; }
  switch (facts(type_).kind) {
    case ScalarKind::real64: return std::bit_cast<double>(*bits);
    case ScalarKind::real32: return double{std::bit_cast<float>(static_cast<std::uint32_t>(*bits))};
    case ScalarKind::integer: return static_cast<double>(static_cast<std::int64_t>(*bits));
    case ScalarKind::natural:
    case ScalarKind::boolean: return static_cast<double>(*bits);
    case ScalarKind::none:
    case ScalarKind::text: break;
  }
  return std::nullopt;
}

std::optional<std::string_view> Value::as_text() const {
  if (!is_text(type_) || is_list(type_)) { return std::nullopt; }
  return payload_;
}

std::vector<std::string_view> Value::texts() const {
  std::vector<std::string_view> found;
  if (!is_text(type_) || !is_list(type_)) { return found; }
  std::string_view rest = payload_;
  while (rest.size() >= sizeof(std::uint32_t)) {
    std::uint32_t size = 0;
    std::memcpy(&size, rest.data(), sizeof size);
    rest.remove_prefix(sizeof size);
    ORRERY_ASSERT(size <= rest.size());
    found.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return found;
}

void append_number(std::string& payload, ValueType type, std::uint64_t bits) {
  const std::size_t bytes = element_bytes(type);
  if (bytes == 8) {
    payload.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  } else if (bytes == 4) {
    const auto low = static_cast<std::uint32_t>(bits);
    payload.append(reinterpret_cast<const char*>(&low), sizeof low);
  } else if (bytes == 1) {
    payload += bits == 0 ? '\0' : '\1';
  }
}

void append_text(std::string& payload, std::string_view text) {
  ORRERY_ASSERT(text.size() <= std::numeric_limits<std::uint32_t>::max());
  const auto size = static_cast<std::uint32_t>(text.size());
  payload.append(reinterpret_cast<const char*>(&size), sizeof size);
  payload.append(text);
}

std::string packed_integers(ValueType type, std::span<const std::int64_t> values) {
  std::string payload;
  for (const std::int64_t value : values) { append_number(payload, type, static_cast<std::uint64_t>(value)); }
  return payload;
}

std::string packed_reals(ValueType type, std::span<const double> values) {
  std::string payload;
  for (const double value : values) {
    const std::uint64_t bits = element_bytes(type) == 4 ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                                                        : std::bit_cast<std::uint64_t>(value);
    append_number(payload, type, bits);
  }
  return payload;
}

std::string packed_texts(std::span<const std::string_view> values) {
  std::string payload;
  for (const std::string_view value : values) { append_text(payload, value); }
  return payload;
}

}  // namespace orrery::graph
