#include "orrery/trace/json_text.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "orrery/trace/utf8.hpp"

namespace orrery::trace {

namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<bool, 256> kNeedsEscape = [] {
  std::array<bool, 256> needs = {};
  for (std::size_t c = 0; c < 0x20; ++c) { needs.at(c) = true; }
  needs['"'] = needs['\\'] = true;
  return needs;
}();

constexpr std::array<std::uint8_t, 256> kValues = [] {
  std::array<std::uint8_t, 256> values = {};
  values.fill(0xFF);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values.at(static_cast<unsigned char>(kDigits[i])) = static_cast<std::uint8_t>(i);
  }
  return values;
}();

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned char>(c));
  }
}

template <class Real, class Bits>
void append_real(std::string& out, Real number) {
  if (std::isfinite(number)) {
    std::array<char, 32> buffer;
    const auto end = fmt::format_to(buffer.data(), "{}", number);
    out.append(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  } else if (std::isinf(number)) {
    out += number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  } else if (const auto bits = std::bit_cast<Bits>(number);
             bits == std::bit_cast<Bits>(std::numeric_limits<Real>::quiet_NaN())) {
    out += "\"NaN\"";
  } else {
    fmt::format_to(std::back_inserter(out), "\"NaN:{:x}\"", bits);
  }
}

}  // namespace

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!kNeedsEscape[static_cast<unsigned char>(text[at])]) { continue; }
    out.append(text.data() + done, at - done);
    append_escaped(out, text[at]);
    done = at + 1;
  }
  out.append(text.data() + done, text.size() - done);
  out += '"';
}

void append_text_or_bytes(std::string& out, std::string_view text) {
  if (is_utf8(text)) { return append_quoted(out, text); }
  out += R"({"base64":)";
  append_base64(out, text);
  out += '}';
}

void append_base64(std::string& out, std::string_view bytes) {
  out += '"';
  const auto byte = [&](std::size_t at) { return std::uint32_t{static_cast<unsigned char>(bytes[at])}; };
  std::size_t at = 0;
  for (; at + 3 <= bytes.size(); at += 3) {
    const std::uint32_t three = byte(at) << 16 | byte(at + 1) << 8 | byte(at + 2);
    for (const int shift : {18, 12, 6, 0}) { out += kDigits[three >> shift & 63U]; }
  }
  if (const std::size_t left = bytes.size() - at; left > 0) {
    const std::uint32_t rest = byte(at) << 16 | (left == 2 ? byte(at + 1) << 8 : 0);
    out += kDigits[rest >> 18 & 63U];
    out += kDigits[rest >> 12 & 63U];
    out += left == 2 ? kDigits[rest >> 6 & 63U] : '=';
    out += '=';
  }
  out += '"';
}

std::optional<std::string> decoded_base64(std::string_view text) {
  if (text.size() % 4 != 0) { return std::nullopt; }
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t three = 0;
    const std::size_t digits = at + 4 == text.size() ? 4 - padding : 4;
    for (std::size_t i = 0; i < digits; ++i) {
      const std::uint8_t value = kValues[static_cast<unsigned char>(text[at + i])];
      if (value == 0xFF) { return std::nullopt; }
      three |= std::uint32_t{value} << (18 - 6 * i);
    }
    for (std::size_t i = 0; i + 1 < digits; ++i) { bytes += static_cast<char>(three >> (16 - 8 * i) & 0xFFU); }
  }
  return bytes;
}

void append_unsigned(std::string& out, std::uint64_t number) {
  if (number < 10) {
    out += static_cast<char>('0' + number);
    return;
  }
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

void append_signed(std::string& out, std::int64_t number) {
  const fmt::format_int text(number);
  out.append(text.data(), text.size());
}

void append_double(std::string& out, double number) { append_real<double, std::uint64_t>(out, number); }
void append_float(std::string& out, float number) { append_real<float, std::uint32_t>(out, number); }

}  // namespace orrery::trace
