// Tokens of the language of expression.hpp. Private to the parser.
#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/explore/expression.hpp"

namespace orrery::explore {

struct Token {
  enum class Kind : std::uint8_t { end, integer, name, sign, wrong };
  Kind kind = Kind::end;
  std::string_view text;   // as written; for `wrong`, the character
  std::int64_t value = 0;  // of an integer
  int column = 0;          // 0-based

  [[nodiscard]] bool is(std::string_view expected) const {
    return (kind == Kind::sign || kind == Kind::name) && text == expected;
  }
};

// Reads one token at a time. Choices with other characters than names have (1f1b, zero-bubble) are also names.
class Lexer {
 public:
  Lexer(std::string_view text, const std::vector<const ValueKind*>& kinds) : text_(text), kinds_(kinds) { advance(); }

  [[nodiscard]] const Token& token() const { return token_; }
  void advance();

 private:
  [[nodiscard]] std::size_t special_choice() const;  // length of such a choice at this position; 0: none
  void read_integer();
  void read_name();
  void read_sign();
  void take(Token::Kind kind, std::size_t length);

  std::string_view text_;
  const std::vector<const ValueKind*>& kinds_;
  std::size_t at_ = 0;
  Token token_;
};

}  // namespace orrery::explore
