#include <bit>
#include <span>

#include "orrery/trace/json_lines.hpp"
#include "orrery/trace/json_text.hpp"
#include "orrery/trace/value_kind.hpp"

namespace orrery::trace {

using graph::Attribute;
using graph::IoInfo;
using graph::Metadata;
using graph::NodeRecord;
using graph::Value;
using graph::ValueType;

namespace {

// One number by its bits.
void append_number(std::string& out, ElementKind kind, std::uint64_t bits) {
  switch (kind) {
    case ElementKind::real64: return append_double(out, std::bit_cast<double>(bits));
    case ElementKind::real32: return append_float(out, std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case ElementKind::boolean: out += bits == 0 ? "false" : "true"; return;
    case ElementKind::natural32:
    case ElementKind::natural64: return append_unsigned(out, bits);
    case ElementKind::integer32:
    case ElementKind::integer64: return append_signed(out, static_cast<std::int64_t>(bits));
    case ElementKind::none:
    case ElementKind::string:
    case ElementKind::bytes: break;
  }
}

void append_list(std::string& out, const Value& value) {
  out += '[';
  const char* separator = "";
  if (graph::is_text(value.type())) {
    for (const std::string_view text : value.texts()) {
      out += separator;
      value.type() == ValueType::bytes_list ? append_base64(out, text) : append_text_or_bytes(out, text);
      separator = ",";
    }
  } else {
    for (std::size_t i = 0, end = value.size(); i < end; ++i) {
      out += separator;
      append_number(out, element_kind(value.type()), value.bits_at(i));
      separator = ",";
    }
  }
  out += ']';
}

void append_value(std::string& out, const Value& value) {
  if (graph::is_list(value.type())) { return append_list(out, value); }
  if (value.type() == ValueType::bytes_val) { return append_base64(out, value.payload()); }
  if (value.type() == ValueType::string_val) { return append_text_or_bytes(out, value.payload()); }
  append_number(out, element_kind(value.type()), value.bits());
}

void append_attribute(std::string& out, const Attribute& attribute) {
  out += R"({"name":)";
  append_text_or_bytes(out, attribute.name);
  if (!attribute.doc.empty()) {
    out += R"(,"doc_string":)";
    append_text_or_bytes(out, attribute.doc);
  }
  if (attribute.value.type() != ValueType::none) {
    out += ",\"";
    out += graph::name_of(attribute.value.type());
    out += "\":";
    append_value(out, attribute.value);
  }
  if (!attribute.unknown.empty()) {
    out += R"(,"unknown":)";
    append_base64(out, attribute.unknown);
  }
  out += '}';
}

void append_attributes(std::string& out, std::span<const Attribute> attributes) {
  if (attributes.empty()) { return; }
  out += R"(,"attr":[)";
  append_attribute(out, attributes.front());
  for (const Attribute& attribute : attributes.subspan(1)) {
    out += ',';
    append_attribute(out, attribute);
  }
  out += ']';
}

void append_deps(std::string& out, std::string_view key, std::span<const std::uint64_t> ids) {
  if (ids.empty()) { return; }
  out += key;
  append_unsigned(out, ids.front());
  for (const std::uint64_t id : ids.subspan(1)) {
    out += ',';
    append_unsigned(out, id);
  }
  out += ']';
}

void append_io(std::string& out, std::string_view key, const std::optional<IoInfo>& io) {
  if (!io) { return; }
  out += key;
  const char* separator = "";
  for (const auto& [name, text] :
       {std::pair("\"values\":", io->values), {"\"shapes\":", io->shapes}, {"\"types\":", io->types}}) {
    if (text.empty()) { continue; }
    out += separator;
    out += name;
    append_text_or_bytes(out, text);
    separator = ",";
  }
  out += '}';
}

void append_unknown(std::string& out, std::string_view bytes) {
  if (bytes.empty()) { return; }
  out += R"(,"unknown":)";
  append_base64(out, bytes);
}

}  // namespace

void append_json_line(std::string& out, const NodeRecord& node) {
  out += R"({"id":)";
  append_unsigned(out, node.id);
  out += R"(,"name":)";
  append_text_or_bytes(out, node.name);
  out += R"(,"type":)";
  if (is_known(node.type)) {
    out += '"';
    out += name_of(node.type);
    out += '"';
  } else {
    append_signed(out, static_cast<std::int32_t>(node.type));
  }
  append_deps(out, R"(,"ctrl_deps":[)", node.ctrl_deps);
  append_deps(out, R"(,"data_deps":[)", node.data_deps);
  if (node.start_us != 0) {
    out += R"(,"start_time_micros":)";
    append_unsigned(out, node.start_us);
  }
  if (node.duration_us != 0) {
    out += R"(,"duration_micros":)";
    append_unsigned(out, node.duration_us);
  }
  append_io(out, R"(,"inputs":{)", node.inputs);
  append_io(out, R"(,"outputs":{)", node.outputs);
  append_attributes(out, node.attributes);
  append_unknown(out, node.unknown);
  out += "}\n";
}

void append_json_line(std::string& out, const Metadata& metadata) {
  out += R"({"schema":")";
  out += kJsonLinesSchema;
  out += '"';
  if (!metadata.version.empty()) {
    out += R"(,"version":)";
    append_text_or_bytes(out, metadata.version);
  }
  append_attributes(out, metadata.attributes);
  append_unknown(out, metadata.unknown);
  out += "}\n";
}

}  // namespace orrery::trace
