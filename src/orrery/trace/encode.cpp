#include "orrery/trace/encode.hpp"

#include <cstring>
#include <span>

#include <protozero/varint.hpp>

#include "orrery/trace/decode.hpp"
#include "orrery/trace/fields.hpp"

namespace orrery::trace {

using graph::Attribute;
using graph::IoInfo;
using graph::Metadata;
using graph::NodeRecord;
using graph::Value;
using graph::ValueType;
using protozero::pbf_wire_type;

namespace {

void put_varint(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out += static_cast<char>(static_cast<unsigned char>(value) | 0x80U);
    value >>= 7;
  }
  out += static_cast<char>(value);
}

void put_tag(std::string& out, std::uint32_t field, pbf_wire_type type) {
  put_varint(out, field << 3 | static_cast<std::uint32_t>(type));
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_tag(out, field, pbf_wire_type::length_delimited);
  put_varint(out, bytes.size());
  out += bytes;
}

// A message (or a packed list) inside another: its length is known after it is written, and is then inserted before it.
// Most are shorter than 128 bytes, so one byte is reserved.
template <class Write>
void put_message(std::string& out, const Write& write) {
  const std::size_t length_at = out.size();
  out += '\0';
  write();
  const std::size_t size = out.size() - length_at - 1;
  if (size < 0x80) {
    out[length_at] = static_cast<char>(size);
    return;
  }
  std::string length;
  put_varint(length, size);
  out.replace(length_at, 1, length);
}

template <class Write>
void put_message(std::string& out, std::uint32_t field, const Write& write) {
  put_tag(out, field, pbf_wire_type::length_delimited);
  put_message(out, write);
}

// One number in the wire format of its type, without a tag.
void put_number(std::string& out, ValueType type, std::uint64_t bits) {
  switch (wire_type_of(type)) {
    case pbf_wire_type::fixed64: out.append(reinterpret_cast<const char*>(&bits), 8); return;
    case pbf_wire_type::fixed32: out.append(reinterpret_cast<const char*>(&bits), 4); return;
    case pbf_wire_type::varint:
    case pbf_wire_type::length_delimited:
    case pbf_wire_type::unknown: break;
  }
  const bool zigzag = type == ValueType::sint32_val || type == ValueType::sint32_list ||
                      type == ValueType::sint64_val || type == ValueType::sint64_list;
  put_varint(out, zigzag ? protozero::encode_zigzag64(static_cast<std::int64_t>(bits)) : bits);
}

// The message of a list: one packed field, or a field per text; nothing when the list is empty.
void put_list(std::string& out, const Value& value) {
  if (graph::is_text(value.type())) {
    for (const std::string_view text : value.texts()) { put_bytes(out, 1, text); }
    return;
  }
  if (value.payload().empty()) { return; }
  const pbf_wire_type wire = wire_type_of(value.type());
  if (wire == pbf_wire_type::fixed64 || wire == pbf_wire_type::fixed32) {
    put_bytes(out, 1, value.payload());
    return;
  }
  put_message(out, 1, [&] {
    for (std::size_t i = 0; i < value.size(); ++i) { put_number(out, value.type(), value.bits_at(i)); }
  });
}

void put_attribute(std::string& out, std::uint32_t field, const Attribute& attribute) {
  put_message(out, field, [&] {
    if (!attribute.name.empty()) { put_bytes(out, 1, attribute.name); }
    if (!attribute.doc.empty()) { put_bytes(out, 2, attribute.doc); }
    const Value& value = attribute.value;
    const auto number = static_cast<std::uint32_t>(value.type());
    if (graph::is_list(value.type())) {
      put_message(out, number, [&] { put_list(out, value); });
    } else if (graph::is_text(value.type())) {
      put_bytes(out, number, value.payload());
    } else if (value.type() != ValueType::none) {
      put_tag(out, number, wire_type_of(value.type()));
      put_number(out, value.type(), value.bits());
    }
    out += attribute.unknown;
  });
}

void put_io(std::string& out, std::uint32_t field, const IoInfo& io) {
  put_message(out, field, [&] {
    if (!io.values.empty()) { put_bytes(out, 1, io.values); }
    if (!io.shapes.empty()) { put_bytes(out, 2, io.shapes); }
    if (!io.types.empty()) { put_bytes(out, 3, io.types); }
  });
}

void put_unsigned(std::string& out, std::uint32_t field, std::uint64_t value) {
  if (value == 0) { return; }
  put_tag(out, field, pbf_wire_type::varint);
  put_varint(out, value);
}

void put_deps(std::string& out, std::uint32_t field, std::span<const std::uint64_t> ids) {
  if (ids.empty()) { return; }
  put_message(out, field, [&] {
    for (const std::uint64_t id : ids) { put_varint(out, id); }
  });
}

}  // namespace

void append_record(std::string& out, const NodeRecord& node) {
  put_message(out, [&] {
    const std::size_t start = out.size();
    put_unsigned(out, 1, node.id);
    if (!node.name.empty()) { put_bytes(out, 2, node.name); }
    put_unsigned(out, 3, static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(node.type)}));
    put_deps(out, 4, node.ctrl_deps);
    put_deps(out, 5, node.data_deps);
    put_unsigned(out, 6, node.start_us);
    put_unsigned(out, 7, node.duration_us);
    if (node.inputs) { put_io(out, 8, *node.inputs); }
    if (node.outputs) { put_io(out, 9, *node.outputs); }
    for (const Attribute& attribute : node.attributes) { put_attribute(out, 10, attribute); }
    out += node.unknown;
    if (out.size() == start) { out += std::string_view("\x08\x00", 2); }  // id 0, so that the record is not empty
  });
}

void append_record(std::string& out, const Metadata& metadata) {
  std::string message;
  if (!metadata.version.empty()) { put_bytes(message, 1, metadata.version); }
  for (const Attribute& attribute : metadata.attributes) { put_attribute(message, 2, attribute); }
  message += metadata.unknown;
  // An empty version does not change the meaning of the record, but distinguishes it from a node, from early 0.0.4 and
  // from an empty record.
  if (message.empty() || !is_metadata(message) || is_early_metadata(message)) {
    message.insert(0, std::string_view("\x0a\x00", 2));
  }
  put_varint(out, message.size());
  out += message;
}

}  // namespace orrery::trace
