// Infers the schema version of a file from its records.
//
// A record matches a version if every field has the wire type of that version. It scores higher if it is written as the
// libraries of that version write: proto2 (before 0.0.4) never packs lists and always has id and name, proto3 always
// packs and omits zeros. The version with the highest score is chosen; of versions with equal scores, the
// newest.
#include <algorithm>
#include <array>

#include "orrery/trace/decode.hpp"
#include "orrery/trace/fields.hpp"
#include "orrery/trace/old_attributes.hpp"
#include "orrery/trace/utf8.hpp"

namespace orrery::trace {

using protozero::pbf_wire_type;

namespace {

constexpr std::array kVersions = {ChakraVersion::v0_0_1, ChakraVersion::v0_0_2, ChakraVersion::v0_0_3,
                                  ChakraVersion::v0_0_3_plus, ChakraVersion::v0_0_4};

enum class Fit : std::uint8_t { none, lenient, canonical };

Fit worse(Fit a, Fit b) { return std::min(a, b); }

bool has_bytes(const FieldReader& field) { return field.type() == pbf_wire_type::length_delimited; }

// A field of a 0.0.4 node.
Fit current_field(FieldReader& field) {
  const std::uint32_t tag = field.field();
  const bool number = tag == 1 || tag == 3 || tag == 6 || tag == 7;
  if (number && field.type() == pbf_wire_type::varint) {
    const std::uint64_t value = field.varint();
    if (tag == 3 && value > 7) { return Fit::lenient; }
    return value == 0 ? Fit::lenient : Fit::canonical;
  }
  if ((tag == 4 || tag == 5) && field.type() == pbf_wire_type::varint) {
    field.skip();
    return Fit::lenient;
  }
  if (number || tag > 10 || !has_bytes(field)) {
    field.skip();
    return tag > 10 ? Fit::lenient : Fit::none;
  }
  const std::string_view content = field.bytes();
  if (tag == 10) {
    const AttributeShape shape = attribute_shape(content);
    return !shape.fits ? Fit::none : shape.has_name ? Fit::canonical : Fit::lenient;
  }
  if (tag == 4 || tag == 5) {
    FieldReader packed(content);
    while (!packed.at_end()) { packed.varint(); }
    return content.empty() ? Fit::lenient : Fit::canonical;
  }
  if (tag != 8 && tag != 9) { return Fit::canonical; }
  FieldReader io(content);
  while (io.next()) {
    if (io.field() > 3 || !has_bytes(io)) { return Fit::none; }
    io.skip();
  }
  return Fit::canonical;
}

// A field of a 0.0.1 node: numbers but for the name.
Fit first_field(FieldReader& field) {
  const std::uint32_t tag = field.field();
  const pbf_wire_type right = tag == 2 ? pbf_wire_type::length_delimited : pbf_wire_type::varint;
  const bool packed = (tag == 4 || tag == 14) && has_bytes(field);
  if (tag > 20 || (field.type() != right && !packed)) { return Fit::none; }
  if (tag == 3) { return field.varint() <= 6 ? Fit::canonical : Fit::lenient; }
  field.skip();
  return packed ? Fit::lenient : Fit::canonical;
}

// A field of a node of 0.0.2 to 0.0.3+.
Fit middle_field(FieldReader& field, ChakraVersion version) {
  const std::uint32_t tag = field.field();
  const bool number = tag == 1 || tag == 3 || tag == 4;
  const bool packed = tag == 4 && has_bytes(field);
  if (tag > 11 || (field.type() != (number ? pbf_wire_type::varint : pbf_wire_type::length_delimited) && !packed)) {
    return Fit::none;
  }
  if (tag == 3) {
    return field.varint() <= (version == ChakraVersion::v0_0_2 ? 6U : 7U) ? Fit::canonical : Fit::lenient;
  }
  if (tag == 11) { return fits_old_attribute(field.bytes(), version) ? Fit::canonical : Fit::none; }
  field.skip();
  return packed ? Fit::lenient : Fit::canonical;
}

Fit fit(std::string_view record, ChakraVersion version) {
  Fit fit = Fit::canonical;
  bool has_id = false;
  bool has_name = false;
  try {
    FieldReader field(record);
    while (fit != Fit::none && field.next()) {
      has_id = has_id || field.field() == 1;
      has_name = has_name || field.field() == 2;
      fit = worse(fit, version == ChakraVersion::v0_0_4   ? current_field(field)
                       : version == ChakraVersion::v0_0_1 ? first_field(field)
                                                          : middle_field(field, version));
    }
  } catch (const protozero::exception&) { return Fit::none; }
  if (version != ChakraVersion::v0_0_4 && !(has_id && has_name)) { fit = worse(fit, Fit::lenient); }
  return fit;
}

// Whether files of a version begin with metadata.
bool may_have_metadata(ChakraVersion version) {
  return version == ChakraVersion::v0_0_3_plus || version == ChakraVersion::v0_0_4;
}

// Whether metadata are those of 0.0.3+: old attributes only.
bool is_old_metadata(std::string_view bytes) {
  try {
    FieldReader field(bytes);
    while (field.next()) {
      if (!field.is(1, pbf_wire_type::length_delimited)) { return false; }
      if (!fits_old_attribute(field.bytes(), ChakraVersion::v0_0_3_plus)) { return false; }
    }
  } catch (const protozero::exception&) { return false; }
  return true;
}

}  // namespace

AttributeShape attribute_shape(std::string_view bytes) {
  AttributeShape shape{true, false, false};
  try {
    FieldReader field(bytes);
    while (field.next()) {
      const std::uint32_t tag = field.field();
      const bool known = tag >= 3 && tag <= 32;
      const auto type = known ? static_cast<graph::ValueType>(tag) : graph::ValueType::none;
      const bool is_bytes = tag <= 2 || graph::is_list(type);
      if ((is_bytes && !has_bytes(field)) || (known && !is_bytes && field.type() != wire_type_of(type)) || tag > 40) {
        return {};
      }
      shape.has_name = shape.has_name || tag == 1;
      shape.has_value = shape.has_value || known;
      field.skip();
    }
  } catch (const protozero::exception&) { return {}; }
  return shape;
}

bool is_metadata(std::string_view bytes) {
  bool has_version = false;
  bool all_attributes = true;
  try {
    FieldReader field(bytes);
    while (field.next()) {
      const std::uint32_t tag = field.field();
      if (tag == 1 && !has_bytes(field)) { return false; }
      has_version = has_version || tag == 1;
      if (tag == 2 && has_bytes(field)) {
        all_attributes = attribute_shape(field.bytes()).fits && all_attributes;
      } else {
        all_attributes = all_attributes && (tag == 1 || tag > 10);
        field.skip();
      }
    }
  } catch (const protozero::exception&) { return false; }
  // Without a version, field 2 may also be the name of a node whose id is 0, which is not written.
  return has_version || all_attributes;
}

bool is_early_metadata(std::string_view bytes) {
  FieldReader field(bytes);
  bool all = true;
  while (all && field.next()) {
    all = field.is(1, pbf_wire_type::length_delimited);
    if (!all) { break; }
    const AttributeShape shape = attribute_shape(field.bytes());
    all = shape.fits && shape.has_name && shape.has_value;
  }
  return all;
}

ChakraVersion sniffed_version(const std::vector<std::string_view>& records, bool has_metadata) {
  ChakraVersion best = ChakraVersion::v0_0_4;
  long best_score = -1;
  for (const ChakraVersion version : kVersions) {
    long score = 0;
    for (std::size_t i = has_metadata ? 1 : 0; i < records.size(); ++i) {
      const Fit found = fit(records[i], version);
      score += found == Fit::canonical ? 4 : found == Fit::lenient ? 1 : 0;
    }
    if (has_metadata && !may_have_metadata(version)) { score = 0; }
    if (has_metadata && version == ChakraVersion::v0_0_3_plus && !is_old_metadata(records[0])) { score = 0; }
    if (score >= best_score) {
      best = version;
      best_score = score;
    }
  }
  return best;
}

}  // namespace orrery::trace
