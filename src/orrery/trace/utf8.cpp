#include "orrery/trace/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace orrery::trace {

namespace {

bool is_ascii(std::string_view text) {
  constexpr std::uint64_t kHigh = 0x8080808080808080;
  std::uint64_t seen = 0;
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    seen |= word;
  }
  for (; left > 0; --left, ++at) { seen |= static_cast<unsigned char>(*at); }
  return (seen & kHigh) == 0;
}

// Length of the character that starts with `first`, 0 when none does; the range that its second byte must be in.
struct Shape {
  int length = 0;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Shape shape_of(unsigned char first) {
  if (first < 0x80) { return {1}; }
  if (first < 0xC2) { return {}; }
  if (first < 0xE0) { return {2}; }
  if (first == 0xE0) { return {3, 0xA0}; }
  if (first == 0xED) { return {3, 0x80, 0x9F}; }
  if (first < 0xF0) { return {3}; }
  if (first == 0xF0) { return {4, 0x90}; }
  if (first < 0xF4) { return {4}; }
  if (first == 0xF4) { return {4, 0x80, 0x8F}; }
  return {};
}

}  // namespace

bool is_utf8(std::string_view text) {
  if (is_ascii(text)) { return true; }
  for (std::size_t i = 0; i < text.size();) {
    const Shape shape = shape_of(static_cast<unsigned char>(text[i]));
    const auto length = static_cast<std::size_t>(shape.length);
    if (length == 0 || text.size() - i < length) { return false; }
    for (std::size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if (byte < (k == 1 ? shape.low : 0x80) || byte > (k == 1 ? shape.high : 0xBF)) { return false; }
    }
    i += length;
  }
  return true;
}

}  // namespace orrery::trace
