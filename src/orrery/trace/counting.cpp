#include "orrery/trace/counting.hpp"

#include "orrery/trace/fields.hpp"

namespace orrery::trace {

namespace {

// Numbers in a packed list: the bytes without a continuation bit.
std::size_t packed_count(std::string_view bytes) {
  std::size_t count = 0;
  for (const char byte : bytes) { count += static_cast<unsigned char>(byte) < 0x80 ? 1U : 0U; }
  return count;
}

}  // namespace

std::uint64_t EntryCounter::add(std::string_view record) {
  if (version_ == ChakraVersion::v0_0_4) { return add_current(record); }
  decoder_.decode_node(record, node_);
  counts_ = counts_ + EntryCounts{node_.ctrl_deps.size(), node_.data_deps.size(), node_.attributes.size(),
                                  (node_.inputs ? 1U : 0U) + (node_.outputs ? 1U : 0U)};
  return node_.id;
}

std::uint64_t EntryCounter::add_current(std::string_view record) {
  std::uint64_t id = 0;
  bool inputs = false;
  bool outputs = false;
  FieldReader field(record);
  while (field.next()) {
    switch (field.tag_and_type()) {
      case varint_field(1): id = field.varint(); continue;
      case varint_field(4): ++counts_.ctrl; break;
      case bytes_field(4): counts_.ctrl += packed_count(field.bytes()); continue;
      case varint_field(5): ++counts_.data; break;
      case bytes_field(5): counts_.data += packed_count(field.bytes()); continue;
      case bytes_field(8): inputs = true; break;
      case bytes_field(9): outputs = true; break;
      case bytes_field(10): ++counts_.attributes; break;
      default: break;
    }
    field.skip();
  }
  counts_.io += (inputs ? 1U : 0U) + (outputs ? 1U : 0U);
  return id;
}

}  // namespace orrery::trace
