#include "orrery/trace/old_attributes.hpp"

#include <array>

#include "orrery/core/error.hpp"

namespace orrery::trace {

using graph::Value;
using graph::ValueType;
using protozero::pbf_wire_type;

namespace {

constexpr std::array kTypes2 = {ValueType::float_val,  ValueType::int64_val,  ValueType::string_val,
                                ValueType::float_list, ValueType::int64_list, ValueType::string_list};

constexpr std::array kTypes3 = {ValueType::bool_val,   ValueType::float_val,  ValueType::int64_val,
                                ValueType::string_val, ValueType::bool_list,  ValueType::float_list,
                                ValueType::int64_list, ValueType::string_list};

constexpr std::array kTypes3Plus = {
    ValueType::bool_val,  ValueType::float_val,  ValueType::uint64_val,  ValueType::int64_val,  ValueType::string_val,
    ValueType::bool_list, ValueType::float_list, ValueType::uint64_list, ValueType::int64_list, ValueType::string_list};

constexpr OldAttributes kSchema2{kTypes2};
constexpr OldAttributes kSchema3{kTypes3};
constexpr OldAttributes kSchema3Plus{kTypes3Plus};

std::uint64_t read_number(FieldReader& field, ValueType type) {
  if (wire_type_of(type) == pbf_wire_type::fixed32) { return field.fixed32(); }
  const std::uint64_t raw = field.varint();
  const bool is_bool = type == ValueType::bool_val || type == ValueType::bool_list;
  return is_bool && raw != 0 ? 1 : raw;
}

}  // namespace

const OldAttributes& old_attributes(ChakraVersion version) {
  switch (version) {
    case ChakraVersion::v0_0_2: return kSchema2;
    case ChakraVersion::v0_0_3: return kSchema3;
    case ChakraVersion::v0_0_3_plus: return kSchema3Plus;
    case ChakraVersion::v0_0_1:
    case ChakraVersion::v0_0_4: break;
  }
  throw InternalError("this version has no attributes of the old kind");
}

Value old_value(FieldReader& field, ValueType type, OpenList& list, Scratch& scratch) {
  const bool has_bytes = field.type() == pbf_wire_type::length_delimited;
  if (!graph::is_list(type)) {
    if (graph::is_text(type)) { return Value::view(type, field.bytes()); }
    if (has_bytes) { throw protozero::invalid_length_exception(); }
    return Value::scalar(type, read_number(field, type));
  }
  std::string& payload = list.payload(type, scratch);
  if (graph::is_text(type)) {
    graph::append_text(payload, field.bytes());
  } else if (has_bytes) {
    FieldReader packed(field.bytes());
    while (!packed.at_end()) { graph::append_number(payload, type, read_number(packed, type)); }
  } else {
    graph::append_number(payload, type, read_number(field, type));
  }
  return Value::view(type, payload);
}

bool fits_old_attribute(std::string_view bytes, ChakraVersion version) {
  const OldAttributes& schema = old_attributes(version);
  ValueType declared = ValueType::none;
  bool has_name = false;
  bool has_type = false;
  FieldReader field(bytes);
  while (field.next()) {
    const std::uint32_t tag = field.field();
    if (tag == 1 || tag == 3) {
      if (field.type() != pbf_wire_type::length_delimited) { return false; }
      has_name = has_name || tag == 1;
    } else if (tag == 2) {
      if (field.type() != pbf_wire_type::varint) { return false; }
      declared = schema.type_of_enum(field.varint());
      has_type = true;
      if (declared == ValueType::none) { return false; }
      continue;
    } else {
      const ValueType actual = schema.type_of_field(tag);
      if (actual == ValueType::none || actual != declared || field.type() != wire_type_of(actual)) { return false; }
    }
    field.skip();
  }
  return has_name && has_type;
}

}  // namespace orrery::trace
