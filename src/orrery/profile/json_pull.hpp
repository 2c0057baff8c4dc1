// Reads a JSON document from left to right in a window of bytes, for files that are larger than memory should be. The
// caller parses one element at a time; where the window ends inside it, NeedMore is thrown and the caller tries again
// with a larger window.
//
// Two kinds of damage that profilers write are repaired, because the repair is certain, and reported:
//   - a quote inside a text that is not escaped: the text ends at the first quote that is followed by what must follow
//   - a comma that is missing between two objects of a list
// Private to the room.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

namespace orrery::profile {

struct NeedMore {};

class PullError : public std::runtime_error {
 public:
  PullError(const std::string& what, std::size_t at) : std::runtime_error(what), position(at) {}
  std::size_t position;  // in the window
};

class JsonPull {
 public:
  // `complete`: the window reaches the end of the file.
  JsonPull(std::string_view window, bool complete)
      : begin_(window.data()), at_(window.data()), end_(window.data() + window.size()), complete_(complete) {}

  [[nodiscard]] std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  [[nodiscard]] std::uint32_t repaired_quotes() const { return repaired_quotes_; }
  [[nodiscard]] std::uint32_t repaired_commas() const { return repaired_commas_; }

  // The next character that is not a blank; '\0' at the end of the file.
  char peek() {
    skip_blanks();
    return at_ < end_ ? *at_ : '\0';
  }
  bool accept(char wanted) {
    if (peek() != wanted) { return false; }
    ++at_;
    return true;
  }
  void expect(char wanted);

  // A text without its quotes, escapes as they are in the file. `key`: a colon follows it.
  std::string_view text(bool key);

  // A value of any type as it is in the file (texts with their quotes); nested ones are skipped to their end.
  std::string_view value();

  // A number, word or text, without quotes.
  std::string_view scalar();

  // Calls take(key) for each field of an object; take has to read the value.
  template <class Take>
  void object(const Take& take) {
    expect('{');
    if (accept('}')) { return; }
    for (;;) {
      if (peek() != '"') { fail("a field name in quotes"); }
      const std::string_view key = text(true);
      expect(':');
      take(key);
      const char c = peek();
      if (c == ',') {
        ++at_;
        if (peek() == '}') { fail("a field name after the comma"); }
        continue;
      }
      expect('}');
      return;
    }
  }

  // Calls take() for each element of a list.
  template <class Take>
  void list(const Take& take) {
    expect('[');
    if (accept(']')) { return; }
    do { take(); } while (more_elements());
  }

  // After an element of a list: whether another follows. Repairs a missing comma between objects.
  bool more_elements();

  [[noreturn]] void fail(const std::string& wanted) const;

 private:
  void skip_blanks() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) { ++at_; }
    if (at_ == end_ && !complete_) { throw NeedMore{}; }
  }
  [[nodiscard]] bool ends_text(const char* quote, bool key) const;
  void skip_nested();

  const char* begin_;
  const char* at_;
  const char* end_;
  bool complete_;
  std::uint32_t repaired_quotes_ = 0;
  std::uint32_t repaired_commas_ = 0;
};

// The text that JSON escapes stand for. Control characters become spaces: the result is one line.
[[nodiscard]] std::string decoded_text(std::string_view raw);

}  // namespace orrery::profile
