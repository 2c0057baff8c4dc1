// Reads one line of JSON from left to right, for readers with a fixed format. Errors are JsonError, with what was
// expected and the column. Private to the room.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "orrery/trace/decode.hpp"

namespace orrery::trace {

class JsonError : public std::runtime_error {
 public:
  JsonError(const std::string& what, std::size_t at) : std::runtime_error(what), column(at + 1) {}
  std::size_t column;  // from 1
};

class JsonCursor {
 public:
  // Texts with escapes are kept in `store`, others are views of `text`.
  JsonCursor(std::string_view text, Scratch& store) : text_(text), store_(store) {}

  // Calls take(key) for every field of an object; it has to read the value.
  template <class Take>
  void object(const Take& take) {
    expect('{');
    if (accept('}')) { return; }
    do {
      skip_space();
      key_at_ = at_;
      const std::string_view key = string();
      expect(':');
      take(key);
    } while (accept(','));
    expect('}');
  }

  // Calls take() before every element of an array; it has to read the element.
  template <class Take>
  void array(const Take& take) {
    expect('[');
    if (accept(']')) { return; }
    do { take(); } while (accept(','));
    expect(']');
  }

  [[nodiscard]] std::string_view string();
  [[nodiscard]] bool boolean();
  [[nodiscard]] std::uint64_t natural(std::uint64_t most);
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most);
  [[nodiscard]] double real();
  [[nodiscard]] float real32();

  // The next character after spaces; '\0' at the end.
  [[nodiscard]] char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  // Nothing but spaces may follow.
  void end();

  [[noreturn]] void fail(const std::string& what) const { throw JsonError(what, at_); }
  // The same, at the key that object() read last.
  [[noreturn]] void fail_at_key(const std::string& what) const { throw JsonError(what, key_at_); }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r')) { ++at_; }
  }
  void expect(char wanted);
  [[nodiscard]] bool accept(char wanted) {
    if (peek() != wanted) { return false; }
    ++at_;
    return true;
  }
  [[nodiscard]] std::string_view number_text();
  [[nodiscard]] std::string_view escaped_string(std::size_t start);
  void escape(std::string& into);
  [[nodiscard]] std::uint32_t four_digits();
  template <class Real, class Bits>
  [[nodiscard]] Real any_real();

  std::string_view text_;
  Scratch& store_;
  std::size_t at_ = 0;
  std::size_t key_at_ = 0;
};

}  // namespace orrery::trace
