#include "orrery/config/source_text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

namespace orrery::config {

namespace {

// Length of the well-formed UTF-8 sequence at `i`, 0 when there is none (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text, std::size_t i) {
  const auto byte = [&](std::size_t k) -> unsigned {
    return i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U;
  };
  const auto continues = [&](std::size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
  const unsigned first = byte(0);
  if (first < 0x80) { return 1; }
  if (first >= 0xC2 && first <= 0xDF) { return continues(1) ? 2 : 0; }
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && byte(1) < 0x90;
    const bool beyond = first == 0xF4 && byte(1) > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

}  // namespace

Spot spot_at(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return {static_cast<int>(lines) + 1, static_cast<int>(column) + 1};
}

namespace {

// Whether eight bytes from `i` on are ASCII.
bool is_ascii(std::string_view text, std::size_t i) {
  std::uint64_t bytes = 0;
  if (i + sizeof(bytes) > text.size()) { return false; }
  std::memcpy(&bytes, text.data() + i, sizeof(bytes));
  return (bytes & 0x8080'8080'8080'8080U) == 0;
}

}  // namespace

std::size_t first_ill_formed(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (is_ascii(text, i)) {
      i += sizeof(std::uint64_t);
      continue;
    }
    const std::size_t length = sequence_length(text, i);
    if (length == 0) { return i; }
    i += length;
  }
  return std::string_view::npos;
}

Result<std::string_view> checked_text(std::string_view text, const std::string& file) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const Place whole{file, 0, 0, {}};
  if (text.size() > kMaxFileBytes) {
    return fail(whole, fmt::format("is too large; at most {} MiB are read", kMaxFileBytes >> 20));
  }
  if (text.starts_with(kByteOrderMark)) { text.remove_prefix(kByteOrderMark.size()); }
  // The parsers below would skip another one without a word.
  if (text.starts_with(kByteOrderMark)) { return fail(Place{file, 1, 1, {}}, "starts with two byte order marks"); }
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return fail(whole, fmt::format("is not a text file (a zero byte at offset {})", zero));
  }
  if (const std::size_t at = first_ill_formed(text); at != std::string_view::npos) {
    const Spot spot = spot_at(text, at);
    return fail(Place{file, spot.line, spot.column, {}},
                fmt::format("is not UTF-8 text (byte 0x{:02x})", static_cast<unsigned char>(text[at])));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) { return fail(whole, "is empty"); }
  return text;
}

}  // namespace orrery::config
