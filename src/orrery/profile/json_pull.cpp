#include "orrery/profile/json_pull.hpp"

#include <charconv>

#include <fmt/format.h>

namespace orrery::profile {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code < 0x20 ? ' ' : code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0U | code >> 6U);
    out += static_cast<char>(0x80U | (code & 0x3FU));
  } else {
    out += static_cast<char>(0xE0U | code >> 12U);
    out += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
    out += static_cast<char>(0x80U | (code & 0x3FU));
  }
}

}  // namespace

void JsonPull::fail(const std::string& wanted) const {
  if (at_ == end_ && !complete_) { throw NeedMore{}; }
  if (at_ == end_) { throw PullError(fmt::format("the file ends where {} should follow", wanted), position()); }
  throw PullError(fmt::format("expected {}, found \"{}\"", wanted, decoded_text({at_, 1})), position());
}

void JsonPull::expect(char wanted) {
  if (peek() != wanted) { fail(fmt::format("'{}'", wanted)); }
  ++at_;
}

// Whether the text that the quote could end is followed by what must follow a text.
bool JsonPull::ends_text(const char* quote, bool key) const {
  const char* next = quote + 1;
  while (next < end_ && is_blank(*next)) { ++next; }
  if (next == end_) {
    if (!complete_) { throw NeedMore{}; }
    return true;
  }
  return key ? *next == ':' : *next == ',' || *next == '}' || *next == ']';
}

std::string_view JsonPull::text(bool key) {
  ++at_;  // the quote
  const char* const first = at_;
  bool inner_quote = false;
  for (const char* from = at_;;) {
    const auto* const quote = static_cast<const char*>(std::memchr(from, '"', static_cast<std::size_t>(end_ - from)));
    if (quote == nullptr) {
      if (!complete_) { throw NeedMore{}; }
      at_ = end_;
      fail("the end of a text");
    }
    std::size_t slashes = 0;
    while (quote - slashes > first && *(quote - slashes - 1) == '\\') { ++slashes; }
    from = quote + 1;
    if (slashes % 2 == 1) { continue; }
    if (!ends_text(quote, key)) {
      inner_quote = true;
      continue;
    }
    at_ = quote + 1;
    repaired_quotes_ += inner_quote ? 1 : 0;
    return {first, static_cast<std::size_t>(quote - first)};
  }
}

void JsonPull::skip_nested() {
  std::size_t depth = 0;
  do {
    const char c = peek();
    if (c == '\0') { fail("the end of a list or an object"); }
    if (c == '"') {
      // Inside a nested value a text may be a key or a value.
      const char* const start = at_;
      const std::uint32_t repairs = repaired_quotes_;
      for (const char* from = start + 1;;) {
        const auto* const quote =
            static_cast<const char*>(std::memchr(from, '"', static_cast<std::size_t>(end_ - from)));
        if (quote == nullptr) {
          if (!complete_) { throw NeedMore{}; }
          at_ = end_;
          fail("the end of a text");
        }
        std::size_t slashes = 0;
        while (*(quote - slashes - 1) == '\\') { ++slashes; }
        from = quote + 1;
        if (slashes % 2 == 1) { continue; }
        if (ends_text(quote, false) || ends_text(quote, true)) {
          at_ = quote + 1;
          break;
        }
        repaired_quotes_ = repairs + 1;
      }
      continue;
    }
    if (c == '{' || c == '[') { ++depth; }
    if (c == '}' || c == ']') { --depth; }
    ++at_;
  } while (depth > 0);
}

std::string_view JsonPull::value() {
  const char c = peek();
  const char* const first = at_;
  if (c == '"') {
    text(false);
  } else if (c == '{' || c == '[') {
    skip_nested();
  } else {
    scalar();
  }
  return {first, static_cast<std::size_t>(at_ - first)};
}

std::string_view JsonPull::scalar() {
  const char c = peek();
  if (c == '"') { return text(false); }
  if (c == '{' || c == '[') { return value(); }
  const char* const first = at_;
  while (at_ < end_ && *at_ != ',' && *at_ != '}' && *at_ != ']' && *at_ != ':' && *at_ != '"' && !is_blank(*at_)) {
    ++at_;
  }
  if (at_ == end_ && !complete_) { throw NeedMore{}; }
  if (at_ == first) { fail("a value"); }
  return {first, static_cast<std::size_t>(at_ - first)};
}

bool JsonPull::more_elements() {
  const char c = peek();
  if (c == ',') {
    ++at_;
    return true;
  }
  if (c == '{') {
    ++repaired_commas_;
    return true;
  }
  expect(']');
  return false;
}

std::string decoded_text(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    if (c != '\\' || i + 1 == raw.size()) {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
      continue;
    }
    const char escaped = raw[++i];
    unsigned code = 0;
    switch (escaped) {
      case 'n':
      case 'r':
      case 't':
      case 'b':
      case 'f': out += ' '; break;
      case 'u':
        if (i + 4 < raw.size() &&
            std::from_chars(raw.data() + i + 1, raw.data() + i + 5, code, 16).ptr == raw.data() + i + 5) {
          append_utf8(out, code);
          i += 4;
        } else {
          out += escaped;
        }
        break;
      default: out += escaped;
    }
  }
  return out;
}

}  // namespace orrery::profile
