// The scalar type of a ValueType, independent of its wire format. Private to the room.
#pragma once

#include <array>
#include <cstdint>

#include "orrery/graph/value.hpp"

namespace orrery::trace {

enum class ElementKind : std::uint8_t {
  none,
  real64,
  real32,
  integer32,
  integer64,
  natural32,
  natural64,
  boolean,
  string,
  bytes
};

// A value and a list of them have numbers in a row, from 3.
[[nodiscard]] constexpr ElementKind element_kind(graph::ValueType type) {
  using enum ElementKind;
  constexpr std::array kKinds = {none,      real64,    real32,    integer32, integer64, natural32, natural64, integer32,
                                 integer64, natural32, natural64, integer32, integer64, boolean,   string,    bytes};
  const auto pair = (static_cast<std::size_t>(type) - 1) / 2;
  return type == graph::ValueType::none || pair >= kKinds.size() ? none : kKinds[pair];
}

static_assert(element_kind(graph::ValueType::double_val) == ElementKind::real64);
static_assert(element_kind(graph::ValueType::sint32_list) == ElementKind::integer32);
static_assert(element_kind(graph::ValueType::fixed64_val) == ElementKind::natural64);
static_assert(element_kind(graph::ValueType::bool_list) == ElementKind::boolean);
static_assert(element_kind(graph::ValueType::bytes_list) == ElementKind::bytes);

}  // namespace orrery::trace
