#include "orrery/trace/decode.hpp"

#include <fmt/format.h>
#include <protozero/exception.hpp>

#include "orrery/trace/fields.hpp"
#include "orrery/trace/utf8.hpp"

namespace orrery::trace {

using graph::Attribute;
using graph::IoInfo;
using graph::Metadata;
using graph::NodeRecord;
using graph::NodeType;
using graph::Value;
using graph::ValueType;
using protozero::pbf_wire_type;

namespace {

std::string_view name_of(Anomaly::Where where) {
  switch (where) {
    case Anomaly::Where::node: return "a node";
    case Anomaly::Where::metadata: return "the metadata";
    case Anomaly::Where::attribute: return "an attribute";
    case Anomaly::Where::list: return "a list";
    case Anomaly::Where::io: return "inputs or outputs";
  }
  return "a record";
}

bool is_one_of(ValueType type, ValueType value, ValueType list) { return type == value || type == list; }

std::uint64_t widened(std::int32_t value) { return static_cast<std::uint64_t>(std::int64_t{value}); }

// The bits of one number as a ValueType has them, from a varint.
std::uint64_t from_varint(ValueType type, std::uint64_t raw) {
  const auto low = static_cast<std::uint32_t>(raw);
  if (is_one_of(type, ValueType::bool_val, ValueType::bool_list)) { return raw == 0 ? 0 : 1; }
  if (is_one_of(type, ValueType::int32_val, ValueType::int32_list)) { return widened(static_cast<std::int32_t>(low)); }
  if (is_one_of(type, ValueType::uint32_val, ValueType::uint32_list)) { return low; }
  if (is_one_of(type, ValueType::sint32_val, ValueType::sint32_list)) {
    return widened(protozero::decode_zigzag32(low));
  }
  if (is_one_of(type, ValueType::sint64_val, ValueType::sint64_list)) {
    return static_cast<std::uint64_t>(protozero::decode_zigzag64(raw));
  }
  return raw;
}

// One number of the wire type that its ValueType has.
std::uint64_t number(FieldReader& field, ValueType type) {
  switch (wire_type_of(type)) {
    case pbf_wire_type::fixed64: return field.fixed64();
    case pbf_wire_type::fixed32: {
      const std::uint32_t raw = field.fixed32();
      const bool is_signed = type == ValueType::sfixed32_val || type == ValueType::sfixed32_list;
      return is_signed ? static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(raw)}) : raw;
    }
    case pbf_wire_type::varint:
    case pbf_wire_type::length_delimited:
    case pbf_wire_type::unknown: break;
  }
  return from_varint(type, field.varint());
}

// Appends the elements of a list message to the payload of a list.
void decode_list(std::string_view bytes, ValueType type, std::string& payload, const DecodeContext& context) {
  const pbf_wire_type element = wire_type_of(type);
  FieldReader list(bytes);
  while (list.next()) {
    if (list.is(1, element)) {
      if (graph::is_text(type)) {
        const std::string_view text = list.bytes();
        if (type == ValueType::string_list && !is_utf8(text)) {
          context.anomalies.push_back({AnomalyKind::not_text, Anomaly::Where::list, 1});
        }
        graph::append_text(payload, text);
      } else {
        graph::append_number(payload, type, number(list, type));
      }
    } else if (list.is(1, pbf_wire_type::length_delimited)) {
      FieldReader packed(list.bytes());
      while (!packed.at_end()) { graph::append_number(payload, type, number(packed, type)); }
    } else {
      context.anomalies.push_back({AnomalyKind::dropped_field, Anomaly::Where::list, list.field()});
      list.skip();
    }
  }
}

// A list; a second message for the same list is appended, as protobuf merges them.
Value list_value(std::string_view bytes, ValueType type, OpenList& open, const DecodeContext& context) {
  std::string& payload = open.payload(type, context.scratch);
  decode_list(bytes, type, payload, context);
  return Value::view(type, payload);
}

// Keeps the bytes of the current field, which is not in the schema.
void keep_unknown(FieldReader& field, std::string*& kept, bool known_number, Anomaly::Where where,
                  const DecodeContext& context) {
  context.anomalies.push_back(
      {known_number ? AnomalyKind::other_wire_type : AnomalyKind::unknown_field, where, field.field()});
  if (kept == nullptr) { kept = &context.scratch.fresh(); }
  kept->append(field.skip());
}

void note_text(std::string_view text, std::uint32_t field, Anomaly::Where where, const DecodeContext& context) {
  if (!is_utf8(text)) { context.anomalies.push_back({AnomalyKind::not_text, where, field}); }
}

void decode_io(std::string_view bytes, std::optional<IoInfo>& into, const DecodeContext& context) {
  if (!into) { into.emplace(); }
  FieldReader field(bytes);
  while (field.next()) {
    if (field.type() != pbf_wire_type::length_delimited || field.field() > 3) {
      context.anomalies.push_back({AnomalyKind::dropped_field, Anomaly::Where::io, field.field()});
      field.skip();
      continue;
    }
    const std::string_view text = field.bytes();
    note_text(text, field.field(), Anomaly::Where::io, context);
    (field.field() == 1 ? into->values : field.field() == 2 ? into->shapes : into->types) = text;
  }
}

void decode_deps(FieldReader& field, std::vector<std::uint64_t>& into) {
  FieldReader packed(field.bytes());
  while (!packed.at_end()) { into.push_back(packed.varint()); }
}

void clear(NodeRecord& node) {
  node.id = 0;
  node.name = {};
  node.type = NodeType::invalid;
  node.start_us = 0;
  node.duration_us = 0;
  node.ctrl_deps.clear();
  node.data_deps.clear();
  node.inputs.reset();
  node.outputs.reset();
  node.attributes.clear();
  node.unknown = {};
}

// Replaces protozero's exceptions by messages about the file.
template <class Decode>
void with_wire_errors(const Decode& decode) {
  try {
    decode();
  } catch (const protozero::end_of_buffer_exception&) {
    throw WireError("a field extends beyond the end of its record");
  } catch (const protozero::varint_too_long_exception&) {
    throw WireError("a varint has more than ten bytes");
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    throw WireError("a field has a wire type that protobuf 3 does not define");
  } catch (const protozero::invalid_tag_exception&) {
    throw WireError("a field has an invalid number");
  } catch (const protozero::exception&) { throw WireError("a field has an invalid length"); }
}

}  // namespace

std::string Anomaly::text() const {
  switch (kind) {
    case AnomalyKind::unknown_field:
      return fmt::format("field {} of {} is not in the schema; it is kept unchanged", field, name_of(where));
    case AnomalyKind::other_wire_type:
      return fmt::format("field {} of {} has the wrong wire type; it is kept unchanged and not interpreted", field,
                         name_of(where));
    case AnomalyKind::dropped_field:
      return fmt::format("field {} of {} is not in the schema; it is dropped", field, name_of(where));
    case AnomalyKind::not_text:
      return fmt::format("field {} of {} is not UTF-8; other readers reject the file", field, name_of(where));
    case AnomalyKind::unknown_attribute:
      return fmt::format("the value of an attribute (field {}) contradicts its type", field);
  }
  return "is odd";
}

Attribute decode_attribute(std::string_view bytes, const DecodeContext& context) {
  Attribute attribute;
  std::string* unknown = nullptr;
  OpenList list;
  FieldReader field(bytes);
  while (field.next()) {
    const std::uint32_t tag = field.field();
    const bool has_bytes = field.type() == pbf_wire_type::length_delimited;
    if (tag <= 2 && has_bytes) {
      const std::string_view text = field.bytes();
      note_text(text, tag, Anomaly::Where::attribute, context);
      (tag == 1 ? attribute.name : attribute.doc) = text;
      continue;
    }
    const ValueType type = tag >= 3 && tag <= 32 ? static_cast<ValueType>(tag) : ValueType::none;
    if (type != ValueType::none && graph::is_list(type) && has_bytes) {
      attribute.value = list_value(field.bytes(), type, list, context);
    } else if (type == ValueType::none || graph::is_list(type) || field.type() != wire_type_of(type)) {
      keep_unknown(field, unknown, tag <= 32, Anomaly::Where::attribute, context);
    } else if (has_bytes) {
      attribute.value = Value::view(type, field.bytes());
      if (type == ValueType::string_val) {
        note_text(attribute.value.payload(), tag, Anomaly::Where::attribute, context);
      }
    } else {
      attribute.value = Value::scalar(type, number(field, type));
    }
  }
  if (unknown != nullptr) { attribute.unknown = *unknown; }
  return attribute;
}

void decode_current_node(std::string_view bytes, NodeRecord& into, const DecodeContext& context) {
  std::string* unknown = nullptr;
  FieldReader field(bytes);
  while (field.next()) {
    switch (field.tag_and_type()) {
      case varint_field(1): into.id = field.varint(); break;
      case bytes_field(2):
        into.name = field.bytes();
        note_text(into.name, 2, Anomaly::Where::node, context);
        break;
      case varint_field(3):
        into.type = static_cast<NodeType>(static_cast<std::int32_t>(static_cast<std::uint32_t>(field.varint())));
        break;
      case varint_field(4): into.ctrl_deps.push_back(field.varint()); break;
      case bytes_field(4): decode_deps(field, into.ctrl_deps); break;
      case varint_field(5): into.data_deps.push_back(field.varint()); break;
      case bytes_field(5): decode_deps(field, into.data_deps); break;
      case varint_field(6): into.start_us = field.varint(); break;
      case varint_field(7): into.duration_us = field.varint(); break;
      case bytes_field(8): decode_io(field.bytes(), into.inputs, context); break;
      case bytes_field(9): decode_io(field.bytes(), into.outputs, context); break;
      case bytes_field(10): into.attributes.push_back(decode_attribute(field.bytes(), context)); break;
      default: keep_unknown(field, unknown, field.field() <= 10, Anomaly::Where::node, context);
    }
  }
  if (unknown != nullptr) { into.unknown = *unknown; }
}

void decode_current_metadata(std::string_view bytes, Metadata& into, const DecodeContext& context) {
  const std::uint32_t attributes = is_early_metadata(bytes) ? 1 : 2;
  std::string* unknown = nullptr;
  FieldReader field(bytes);
  while (field.next()) {
    if (field.is(attributes, pbf_wire_type::length_delimited)) {
      into.attributes.push_back(decode_attribute(field.bytes(), context));
    } else if (field.is(1, pbf_wire_type::length_delimited)) {
      into.version = field.bytes();
      note_text(into.version, 1, Anomaly::Where::metadata, context);
    } else {
      keep_unknown(field, unknown, field.field() <= 2, Anomaly::Where::metadata, context);
    }
  }
  if (unknown != nullptr) { into.unknown = *unknown; }
}

void Decoder::decode_node(std::string_view bytes, NodeRecord& into) {
  scratch_.clear();
  anomalies_.clear();
  clear(into);
  const DecodeContext context{scratch_, anomalies_};
  with_wire_errors([&] {
    switch (version_) {
      case ChakraVersion::v0_0_1: decode_first_node(bytes, into, context); break;
      case ChakraVersion::v0_0_2:
      case ChakraVersion::v0_0_3:
      case ChakraVersion::v0_0_3_plus: decode_middle_node(bytes, into, context, version_); break;
      case ChakraVersion::v0_0_4: decode_current_node(bytes, into, context); break;
    }
  });
}

void Decoder::decode_metadata(std::string_view bytes, Metadata& into) {
  scratch_.clear();
  anomalies_.clear();
  into = {};
  const DecodeContext context{scratch_, anomalies_};
  with_wire_errors([&] {
    if (version_ == ChakraVersion::v0_0_4) {
      decode_current_metadata(bytes, into, context);
    } else {
      decode_middle_metadata(bytes, into, context);
    }
  });
}

}  // namespace orrery::trace
