#include "orrery/explore/expression_lexer.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "orrery/core/text.hpp"

namespace orrery::explore {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_spelled_like_a_name(std::string_view text) {
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); });
}

}  // namespace

void Lexer::advance() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) { ++at_; }
  if (at_ == text_.size()) { return take(Token::Kind::end, 0); }
  if (const std::size_t length = special_choice(); length > 0) { return take(Token::Kind::name, length); }
  if (is_digit(text_[at_])) { return read_integer(); }
  if (is_letter(text_[at_])) { return read_name(); }
  read_sign();
}

std::size_t Lexer::special_choice() const {
  std::size_t longest = 0;
  const auto offer = [&](std::string_view choice) {
    const auto rest = text_.substr(at_);
    const bool ends = rest.size() == choice.size() || (rest.size() > choice.size() && !is_letter(rest[choice.size()]) &&
                                                       !is_digit(rest[choice.size()]));
    if (!is_spelled_like_a_name(choice) && rest.starts_with(choice) && ends) {
      longest = std::max(longest, choice.size());
    }
  };
  for (const ValueKind* kind : kinds_) {
    for (const std::string_view choice : kind->choices) { offer(choice); }
  }
  return longest;
}

void Lexer::read_integer() {
  std::size_t length = 1;
  while (at_ + length < text_.size() && is_digit(text_[at_ + length])) { ++length; }
  const std::string_view digits = text_.substr(at_, length);
  std::int64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool continues = at_ + length < text_.size() && is_letter(text_[at_ + length]);
  take(read.ec == std::errc() && !continues ? Token::Kind::integer : Token::Kind::wrong, length);
  token_.value = value;
}

// Letters, digits, and dots between them: "tier.tp", but not the first dot of "tp..8".
void Lexer::read_name() {
  std::size_t length = 1;
  const auto at = [&](std::size_t i) { return at_ + i < text_.size() ? text_[at_ + i] : ' '; };
  while (is_letter(at(length)) || is_digit(at(length)) || (at(length) == '.' && is_letter(at(length + 1)))) {
    ++length;
  }
  take(Token::Kind::name, length);
}

void Lexer::read_sign() {
  static constexpr std::string_view kSigns[] = {"==", "!=", "<=", ">=", "..", "<", ">", "+", "-",
                                                "*",  "/",  "%",  "(",  ")",  "[", "]", ","};
  const std::string_view rest = text_.substr(at_);
  const auto* const found =
      std::find_if(std::begin(kSigns), std::end(kSigns), [&](std::string_view sign) { return rest.starts_with(sign); });
  if (found != std::end(kSigns)) { return take(Token::Kind::sign, found->size()); }
  std::size_t length = 1;  // a character of several bytes stays whole in messages
  while (length < rest.size() && (static_cast<unsigned char>(rest[length]) & 0xC0U) == 0x80U) { ++length; }
  take(Token::Kind::wrong, length);
}

void Lexer::take(Token::Kind kind, std::size_t length) {
  token_ = {kind, text_.substr(at_, length), 0, static_cast<int>(at_)};
  at_ += length;
}

}  // namespace orrery::explore
