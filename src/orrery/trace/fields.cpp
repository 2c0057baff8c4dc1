#include "orrery/trace/fields.hpp"

namespace orrery::trace {

using graph::ValueType;
using protozero::pbf_wire_type;

pbf_wire_type wire_type_of(ValueType type) {
  switch (type) {
    case ValueType::double_val:
    case ValueType::double_list:
    case ValueType::fixed64_val:
    case ValueType::fixed64_list:
    case ValueType::sfixed64_val:
    case ValueType::sfixed64_list: return pbf_wire_type::fixed64;
    case ValueType::float_val:
    case ValueType::float_list:
    case ValueType::fixed32_val:
    case ValueType::fixed32_list:
    case ValueType::sfixed32_val:
    case ValueType::sfixed32_list: return pbf_wire_type::fixed32;
    case ValueType::string_val:
    case ValueType::string_list:
    case ValueType::bytes_val:
    case ValueType::bytes_list: return pbf_wire_type::length_delimited;
    case ValueType::int32_val:
    case ValueType::int32_list:
    case ValueType::int64_val:
    case ValueType::int64_list:
    case ValueType::uint32_val:
    case ValueType::uint32_list:
    case ValueType::uint64_val:
    case ValueType::uint64_list:
    case ValueType::sint32_val:
    case ValueType::sint32_list:
    case ValueType::sint64_val:
    case ValueType::sint64_list:
    case ValueType::bool_val:
    case ValueType::bool_list: return pbf_wire_type::varint;
    case ValueType::none: break;
  }
  return pbf_wire_type::unknown;
}

}  // namespace orrery::trace
