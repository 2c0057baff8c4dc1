// The fields of a protobuf message one after another, on protozero's varints. Unlike protozero's reader, it returns
// whole fields, so that unknown ones can be kept. Errors are protozero's exceptions. Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <protozero/exception.hpp>
#include <protozero/types.hpp>
#include <protozero/varint.hpp>

#include "orrery/graph/value.hpp"

namespace orrery::trace {

class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] bool at_end() const { return at_ == end_; }

  // Moves to the next field; its value must be read or skipped before the next call.
  bool next() {
    if (at_ == end_) { return false; }
    start_ = at_;
    const std::uint64_t tag = varint();
    if (tag > 0xFFFFFFFFU || tag < 8) { throw protozero::invalid_tag_exception(); }
    tag_ = static_cast<std::uint32_t>(tag);
    return true;
  }

  [[nodiscard]] std::uint32_t field() const { return tag_ >> 3; }
  [[nodiscard]] protozero::pbf_wire_type type() const { return static_cast<protozero::pbf_wire_type>(tag_ & 7U); }
  [[nodiscard]] std::uint32_t tag_and_type() const { return tag_; }
  [[nodiscard]] bool is(std::uint32_t field_number, protozero::pbf_wire_type wire_type) const {
    return field() == field_number && type() == wire_type;
  }

  std::uint64_t varint() {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) { return static_cast<unsigned char>(*at_++); }
    return protozero::decode_varint(&at_, end_);
  }

  std::uint32_t fixed32() { return fixed<std::uint32_t>(); }
  std::uint64_t fixed64() { return fixed<std::uint64_t>(); }

  std::string_view bytes() {
    const std::uint64_t size = varint();
    if (size > static_cast<std::uint64_t>(end_ - at_)) { throw protozero::end_of_buffer_exception(); }
    const char* const begin = at_;
    at_ += size;
    return {begin, static_cast<std::size_t>(size)};
  }

  // Skips the value; returns the whole field with its tag.
  std::string_view skip() {
    switch (type()) {
      case protozero::pbf_wire_type::varint: varint(); break;
      case protozero::pbf_wire_type::fixed64: fixed64(); break;
      case protozero::pbf_wire_type::length_delimited: bytes(); break;
      case protozero::pbf_wire_type::fixed32: fixed32(); break;
      case protozero::pbf_wire_type::unknown:
      default: throw protozero::unknown_pbf_wire_type_exception();
    }
    return {start_, static_cast<std::size_t>(at_ - start_)};
  }

 private:
  template <class T>
  T fixed() {
    if (static_cast<std::size_t>(end_ - at_) < sizeof(T)) { throw protozero::end_of_buffer_exception(); }
    T value = 0;
    std::memcpy(&value, at_, sizeof value);  // little-endian, as all supported machines
    at_ += sizeof value;
    return value;
  }

  const char* at_;
  const char* end_;
  const char* start_ = nullptr;
  std::uint32_t tag_ = 0;
};

constexpr std::uint32_t varint_field(std::uint32_t number) { return number << 3; }
constexpr std::uint32_t bytes_field(std::uint32_t number) { return number << 3 | 2U; }

// The wire type of one value, or one element, of a type.
[[nodiscard]] constexpr protozero::pbf_wire_type wire_type_of(graph::ValueType type) {
  // By pairs of a value and its list: double, float, int32, int64, uint32, uint64, sint32, sint64, fixed32, fixed64,
  // sfixed32, sfixed64, bool, string, bytes.
  constexpr std::array<std::uint8_t, 15> kWire = {1, 5, 0, 0, 0, 0, 0, 0, 5, 1, 5, 1, 0, 2, 2};
  const auto number = static_cast<unsigned>(type);
  return number < 3 || number > 32 ? protozero::pbf_wire_type::unknown
                                   : static_cast<protozero::pbf_wire_type>(kWire[(number - 3) / 2]);
}

// Whether bytes could be an attribute of the current schema, and which parts it has. Texts almost never could.
struct AttributeShape {
  bool fits = false;
  bool has_name = false;
  bool has_value = false;
};
[[nodiscard]] AttributeShape attribute_shape(std::string_view bytes);

}  // namespace orrery::trace
