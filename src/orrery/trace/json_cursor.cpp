#include "orrery/trace/json_cursor.hpp"

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::trace {

namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) { return put(code); }
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

}  // namespace

void JsonCursor::expect(char wanted) {
  if (accept(wanted)) { return; }
  if (at_ >= text_.size()) { fail(fmt::format("the line ends, expected '{}'", wanted)); }
  fail(fmt::format("{}, expected '{}'", quote(text_.substr(at_, 1)), wanted));
}

void JsonCursor::end() {
  if (peek() != '\0' || at_ < text_.size()) { fail("unexpected characters after the object"); }
}

std::string_view JsonCursor::string() {
  if (peek() != '"') { fail("expected a string in double quotes"); }
  const std::size_t start = ++at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '"') { return text_.substr(start, at_++ - start); }
    if (c == '\\') { return escaped_string(start); }
    if (static_cast<unsigned char>(c) < 0x20) { fail("a control character in a string must be escaped"); }
  }
  fail("the line ends inside a string");
}

std::string_view JsonCursor::escaped_string(std::size_t start) {
  std::string& into = store_.fresh();
  into.append(text_.substr(start, at_ - start));
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '"') {
      ++at_;
      return into;
    }
    if (static_cast<unsigned char>(c) < 0x20) { fail("a control character in a string must be escaped"); }
    ++at_;
    if (c == '\\') {
      escape(into);
    } else {
      into += c;
    }
  }
  fail("the line ends inside a string");
}

void JsonCursor::escape(std::string& into) {
  const char c = at_ < text_.size() ? text_[at_++] : '\0';
  switch (c) {
    case '"':
    case '\\':
    case '/': into += c; return;
    case 'b': into += '\b'; return;
    case 'f': into += '\f'; return;
    case 'n': into += '\n'; return;
    case 'r': into += '\r'; return;
    case 't': into += '\t'; return;
    case 'u': break;
    default: fail("unknown escape in a string");
  }
  std::uint32_t code = four_digits();
  if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_).starts_with("\\u")) {
    at_ += 2;
    const std::uint32_t low = four_digits();
    if (low < 0xDC00 || low > 0xDFFF) { fail("half of a \\u surrogate pair"); }
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  if (code >= 0xD800 && code <= 0xDFFF) { fail("half of a \\u surrogate pair"); }
  append_utf8(into, code);
}

std::uint32_t JsonCursor::four_digits() {
  std::uint32_t code = 0;
  const std::string_view digits = text_.substr(at_, 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (error != std::errc() || digits.size() < 4 || end != digits.data() + 4) { fail("\\u requires four hex digits"); }
  at_ += 4;
  return code;
}

bool JsonCursor::boolean() {
  skip_space();
  for (const auto& [word, value] : {std::pair(std::string_view("true"), true), {"false", false}}) {
    if (text_.substr(at_).starts_with(word)) {
      at_ += word.size();
      return value;
    }
  }
  fail("expected true or false");
}

std::string_view JsonCursor::number_text() {
  skip_space();
  std::size_t end = at_;
  while (end < text_.size() && std::string_view("+-.0123456789eE").find(text_[end]) != std::string_view::npos) {
    ++end;
  }
  return text_.substr(at_, end - at_);
}

std::uint64_t JsonCursor::natural(std::uint64_t most) {
  const std::string_view text = number_text();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size() || error != std::errc() || number > most) {
    fail(fmt::format("{} is not a whole number from 0 to {}", quote(text), most));
  }
  at_ += text.size();
  return number;
}

std::int64_t JsonCursor::integer(std::int64_t least, std::int64_t most) {
  const std::string_view text = number_text();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size() || error != std::errc() || number < least || number > most) {
    fail(fmt::format("{} is not a whole number from {} to {}", quote(text), least, most));
  }
  at_ += text.size();
  return number;
}

template <class Real, class Bits>
Real JsonCursor::any_real() {
  if (peek() == '"') {
    const std::string_view word = string();
    if (word == "Infinity") { return std::numeric_limits<Real>::infinity(); }
    if (word == "-Infinity") { return -std::numeric_limits<Real>::infinity(); }
    if (word == "NaN") { return std::numeric_limits<Real>::quiet_NaN(); }
    const std::string_view digits = word.starts_with("NaN:") ? word.substr(4) : std::string_view();
    Bits bits = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    const auto number = std::bit_cast<Real>(bits);
    if (!digits.empty() && error == std::errc() && end == digits.data() + digits.size() && std::isnan(number)) {
      return number;
    }
    fail(fmt::format("{} is not a number; valid strings are NaN, Infinity, -Infinity and NaN:bits", quote(word)));
  }
  const std::string_view text = number_text();
  Real number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size() || error != std::errc()) {
    fail(fmt::format("{} is not a number, or is out of range", quote(text)));
  }
  at_ += text.size();
  return number;
}

double JsonCursor::real() { return any_real<double, std::uint64_t>(); }
float JsonCursor::real32() { return any_real<float, std::uint32_t>(); }

}  // namespace orrery::trace
