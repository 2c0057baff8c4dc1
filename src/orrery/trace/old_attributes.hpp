// The type and the value of attributes of 0.0.2, 0.0.3 and 0.0.3+. Private to the room.
#pragma once

#include <cstdint>
#include <span>

#include "orrery/graph/value.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/decode.hpp"
#include "orrery/trace/fields.hpp"

namespace orrery::trace {

// The n-th type of value has the number n in `type` (field 2) and its value in field 4 + n.
struct OldAttributes {
  std::span<const graph::ValueType> types;

  [[nodiscard]] graph::ValueType type_of_enum(std::uint64_t number) const {
    return number < types.size() ? types[static_cast<std::size_t>(number)] : graph::ValueType::none;
  }
  [[nodiscard]] graph::ValueType type_of_field(std::uint32_t field) const {
    return field >= 4 && field - 4 < types.size() ? types[field - 4] : graph::ValueType::none;
  }
};

// Of 0.0.2, 0.0.3 or 0.0.3+.
[[nodiscard]] const OldAttributes& old_attributes(ChakraVersion version);

// The value in the current field of the reader; `list`: the value of the attribute so far.
[[nodiscard]] graph::Value old_value(FieldReader& field, graph::ValueType type, OpenList& list, Scratch& scratch);

// Whether an attribute is one of that version: its fields have their wire types, and it names the type of its value.
[[nodiscard]] bool fits_old_attribute(std::string_view bytes, ChakraVersion version);

}  // namespace orrery::trace
