#include "orrery/validate/spelling.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace orrery::validate {

namespace {

using Words = std::initializer_list<std::string_view>;

bool is_one_of(const std::string& text, Words words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::string dashed(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool gap = c == ' ' || c == '_' || c == '-';
    if (gap && (out.empty() || out.back() == '-')) { continue; }
    out += gap ? '-' : lower(c);
  }
  if (out.ends_with('-')) { out.pop_back(); }
  return out;
}

std::string letters(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) { out += lower(c); }
  }
  return out;
}

bool is_not_stated(std::string_view text) {
  return text.empty() || text == "-" || text == "?" ||
         is_one_of(dashed(text), {"n/a", "na", "nan", "null", "unknown", "not-stated"});
}

std::optional<bool> yes_or_no(std::string_view text) {
  const std::string word = letters(text);
  if (is_one_of(word, {"yes", "y", "true", "on", "1"})) { return true; }
  if (is_one_of(word, {"no", "n", "false", "off", "none", "0"})) { return false; }
  return std::nullopt;
}

}  // namespace orrery::validate
