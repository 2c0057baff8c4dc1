// Encodes protobuf for tests, including what protobuf's libraries do not write: old schemas, malformed records,
// unpacked lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::trace::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) { out += static_cast<char>(static_cast<unsigned char>(value) | 0x80U); }
  out += static_cast<char>(value);
  return out;
}

inline std::string number(std::uint32_t field, std::uint64_t value) { return varint(field << 3) + varint(value); }

inline std::string bytes(std::uint32_t field, std::string_view content) {
  return varint(field << 3 | 2U) + varint(content.size()) + std::string(content);
}

inline std::string real32(std::uint32_t field, float value) {
  return varint(field << 3 | 5U) + std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

inline std::string real64(std::uint32_t field, double value) {
  return varint(field << 3 | 1U) + std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// A record with its length before it.
inline std::string framed(std::string_view message) { return varint(message.size()) + std::string(message); }

inline std::string file_of(const std::vector<std::string>& messages) {
  std::string out;
  for (const std::string& message : messages) { out += framed(message); }
  return out;
}

// The messages of a well-framed file.
inline std::vector<std::string> messages_of(std::string_view file) {
  std::vector<std::string> messages;
  while (!file.empty()) {
    std::uint64_t size = 0;
    int shift = 0;
    unsigned char byte = 0x80;
    for (; byte >= 0x80; shift += 7, file.remove_prefix(1)) {
      byte = static_cast<unsigned char>(file[0]);
      size |= std::uint64_t{byte & 0x7FU} << shift;
    }
    messages.emplace_back(file.substr(0, size));
    file.remove_prefix(size);
  }
  return messages;
}

}  // namespace orrery::trace::test
