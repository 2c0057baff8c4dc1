// The schemas before 0.0.4, converted to the current one.
//
// All of them are proto2: lists are not packed, `parent` is the only kind of dependency (it becomes a data dependency).
// 0.0.1 has a field for everything; 0.0.2 brought attributes and the tensors as texts; 0.0.3 the node type METADATA and
// bool attributes; what we call 0.0.3+ unsigned attributes, metadata and the collective BROADCAST. Each
// of the last three numbered the values of attributes anew, in the order bool, float, uint, int, string, then their
// lists, of those that it had.
#include <array>
#include <cstdint>
#include <limits>

#include "orrery/trace/decode.hpp"
#include "orrery/trace/fields.hpp"
#include "orrery/trace/old_attributes.hpp"

namespace orrery::trace {

using graph::Attribute;
using graph::CollectiveType;
using graph::Metadata;
using graph::NodeRecord;
using graph::NodeType;
using graph::Value;
using graph::ValueType;
using protozero::pbf_wire_type;

namespace {

// Collectives of 0.0.2 and later, in their order; 0.0.1 has them one higher, without the last.
constexpr std::array kOldCollectives = {CollectiveType::all_reduce, CollectiveType::all_to_all,
                                        CollectiveType::all_gather, CollectiveType::reduce_scatter,
                                        CollectiveType::broadcast};

// Before METADATA came in as number 1, every type but INVALID was one lower.
NodeType shifted_type(std::uint64_t raw) {
  const auto number = static_cast<std::int32_t>(static_cast<std::uint32_t>(raw));
  return static_cast<NodeType>(number >= 1 && number <= 6 ? number + 1 : number);
}

// An attribute with the number of an old collective; an invalid number is kept under another name, so that it is not
// taken for a current one.
Attribute collective(std::int64_t old) {
  if (old < 0 || old >= static_cast<std::int64_t>(kOldCollectives.size())) {
    return {"comm_type_of_old_schema", Value::integer(old), {}, {}};
  }
  return {graph::keys::comm_type,
          Value::integer(static_cast<std::int64_t>(kOldCollectives.at(static_cast<std::size_t>(old)))),
          {},
          {}};
}

// Fields of 32 bits ignore the higher bits of a varint.
Value natural32(std::uint64_t raw) { return Value::scalar(ValueType::uint32_val, static_cast<std::uint32_t>(raw)); }

// Ranks, tags and priorities are int32 today.
Value small(std::uint64_t raw) {
  const bool fits = raw <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  return fits ? Value::scalar(ValueType::int32_val, raw) : natural32(raw);
}

// Sizes and counts are int64 today.
Value large(std::uint64_t raw) {
  const bool fits = raw <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return Value::scalar(fits ? ValueType::int64_val : ValueType::uint64_val, raw);
}

// A field that is not in an old schema cannot be kept: its number may have another meaning today.
void drop_unknown(FieldReader& field, const DecodeContext& context) {
  context.anomalies.push_back({AnomalyKind::dropped_field, Anomaly::Where::node, field.field()});
  field.skip();
}

// A field of 0.0.1 that is an attribute today.
void first_attribute(std::uint32_t field, std::uint64_t raw, NodeRecord& into) {
  auto& attributes = into.attributes;
  switch (field) {
    case 5: attributes.push_back({"tensor_loc", natural32(raw), {}, {}}); break;
    case 6: attributes.push_back({graph::keys::tensor_size, Value::natural(raw), {}, {}}); break;
    case 8: attributes.push_back({"input_tensor_loc", natural32(raw), {}, {}}); break;
    case 9: attributes.push_back({"input_tensor_size", Value::natural(raw), {}, {}}); break;
    case 10: attributes.push_back({"output_tensor_loc", natural32(raw), {}, {}}); break;
    case 11: attributes.push_back({"output_tensor_size", Value::natural(raw), {}, {}}); break;
    case 12: attributes.push_back({graph::keys::num_ops, large(raw), {}, {}}); break;
    case 13:
      if (raw != 0) { attributes.push_back(collective(static_cast<std::int64_t>(raw) - 1)); }
      break;
    case 15: attributes.push_back({"communicator_id", natural32(raw), {}, {}}); break;
    case 16: attributes.push_back({graph::keys::comm_src, small(raw), {}, {}}); break;
    case 17: attributes.push_back({graph::keys::comm_dst, small(raw), {}, {}}); break;
    case 18: attributes.push_back({graph::keys::comm_size, large(raw), {}, {}}); break;
    case 19: attributes.push_back({graph::keys::comm_tag, small(raw), {}, {}}); break;
    case 20: attributes.push_back({graph::keys::comm_priority, small(raw), {}, {}}); break;
    default: break;
  }
}

// Attributes of 0.0.2 and later that are fields today: the time of a node, the type of a collective.
void modernise(NodeRecord& node) {
  std::erase_if(node.attributes, [&](Attribute& attribute) {
    const auto number = attribute.value.as_int();
    if (!number) { return false; }
    if (attribute.name == graph::keys::comm_type) { attribute = collective(*number); }
    if (attribute.name != "runtime" && attribute.name != "simulated_run_time") { return false; }
    if (*number < 0 || node.duration_us != 0) { return false; }
    node.duration_us = static_cast<std::uint64_t>(*number);
    return true;
  });
}

Attribute decode_old_attribute(std::string_view bytes, ChakraVersion version, const DecodeContext& context) {
  const OldAttributes& schema = old_attributes(version);
  Attribute attribute;
  std::uint64_t type = 0;
  std::uint32_t value_field = 0;
  OpenList list;
  FieldReader field(bytes);
  while (field.next()) {
    const std::uint32_t tag = field.field();
    const ValueType value = schema.type_of_field(tag);
    const bool has_bytes = field.type() == pbf_wire_type::length_delimited;
    if (field.is(1, pbf_wire_type::length_delimited)) {
      attribute.name = field.bytes();
    } else if (field.is(2, pbf_wire_type::varint)) {
      type = field.varint();
    } else if (field.is(3, pbf_wire_type::length_delimited)) {
      attribute.doc = field.bytes();
    } else if (value != ValueType::none && (field.type() == wire_type_of(value) || has_bytes)) {
      value_field = tag;
      attribute.value = old_value(field, value, list, context.scratch);
    } else {
      context.anomalies.push_back({AnomalyKind::dropped_field, Anomaly::Where::attribute, tag});
      field.skip();
    }
  }
  // An empty list has no field; its type is the one that the attribute states.
  if (value_field == 0) { attribute.value = Value::view(schema.type_of_enum(type), {}); }
  if (value_field != 0 && schema.type_of_enum(type) != schema.type_of_field(value_field)) {
    context.anomalies.push_back({AnomalyKind::unknown_attribute, Anomaly::Where::attribute, value_field});
  }
  if (!graph::is_list(attribute.value.type()) && !graph::is_text(attribute.value.type()) && value_field == 0) {
    attribute.value = {};
  }
  return attribute;
}

}  // namespace

void decode_first_node(std::string_view bytes, NodeRecord& into, const DecodeContext& context) {
  std::string* dims = nullptr;
  FieldReader field(bytes);
  while (field.next()) {
    const std::uint32_t tag = field.field();
    const bool has_bytes = field.type() == pbf_wire_type::length_delimited;
    if (tag == 2 && has_bytes) {
      into.name = field.bytes();
    } else if ((tag == 4 || tag == 14) && has_bytes) {
      FieldReader packed(field.bytes());
      if (tag == 14 && dims == nullptr) { dims = &context.scratch.fresh(); }
      while (!packed.at_end()) {
        const std::uint64_t raw = packed.varint();
        if (tag == 4) {
          into.data_deps.push_back(raw);
        } else {
          graph::append_number(*dims, ValueType::bool_list, raw);
        }
      }
    } else if (tag > 20 || field.type() != pbf_wire_type::varint) {
      drop_unknown(field, context);
    } else {
      const std::uint64_t raw = field.varint();
      if (tag == 1) { into.id = raw; }
      if (tag == 3) { into.type = shifted_type(raw); }
      if (tag == 4) { into.data_deps.push_back(raw); }
      if (tag == 7) { into.duration_us = raw; }
      if (tag == 14) {
        if (dims == nullptr) { dims = &context.scratch.fresh(); }
        graph::append_number(*dims, ValueType::bool_list, raw);
      }
      first_attribute(tag, raw, into);
    }
  }
  if (dims != nullptr) {
    into.attributes.push_back({graph::keys::involved_dim, Value::view(ValueType::bool_list, *dims), {}, {}});
  }
}

void decode_middle_node(std::string_view bytes, NodeRecord& into, const DecodeContext& context, ChakraVersion version) {
  FieldReader field(bytes);
  const auto io = [&](std::uint32_t tag) -> std::string_view& {
    auto& info = tag <= 7 ? into.inputs : into.outputs;
    if (!info) { info.emplace(); }
    const std::uint32_t which = (tag - 5) % 3;
    return which == 0 ? info->values : which == 1 ? info->shapes : info->types;
  };
  while (field.next()) {
    const std::uint32_t tag = field.field();
    switch (field.tag_and_type()) {
      case varint_field(1): into.id = field.varint(); break;
      case bytes_field(2): into.name = field.bytes(); break;
      case varint_field(3): {
        const std::uint64_t raw = field.varint();
        into.type = version == ChakraVersion::v0_0_2
                        ? shifted_type(raw)
                        : static_cast<NodeType>(static_cast<std::int32_t>(static_cast<std::uint32_t>(raw)));
        break;
      }
      case varint_field(4): into.data_deps.push_back(field.varint()); break;
      case bytes_field(4): {
        FieldReader packed(field.bytes());
        while (!packed.at_end()) { into.data_deps.push_back(packed.varint()); }
        break;
      }
      case bytes_field(5):
      case bytes_field(6):
      case bytes_field(7):
      case bytes_field(8):
      case bytes_field(9):
      case bytes_field(10): io(tag) = field.bytes(); break;
      case bytes_field(11): into.attributes.push_back(decode_old_attribute(field.bytes(), version, context)); break;
      default: drop_unknown(field, context);
    }
  }
  modernise(into);
}

void decode_middle_metadata(std::string_view bytes, Metadata& into, const DecodeContext& context) {
  FieldReader field(bytes);
  while (field.next()) {
    if (field.is(1, pbf_wire_type::length_delimited)) {
      into.attributes.push_back(decode_old_attribute(field.bytes(), ChakraVersion::v0_0_3_plus, context));
    } else {
      context.anomalies.push_back({AnomalyKind::dropped_field, Anomaly::Where::metadata, field.field()});
      field.skip();
    }
  }
}

}  // namespace orrery::trace
