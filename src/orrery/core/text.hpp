// Text functions for error messages: nearest names, lists, quotes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// The number of edits (insert, delete, replace, swap of neighbours) from `a` to `b`, regardless of case.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `word`, if the user probably meant it: at most a third of the letters differ (one edit is
// always allowed). Ties go to the first candidate.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

// The candidates that begin with `word` ("h100": h100-pcie and h100-sxm), in their order; empty if there are more than
// four.
[[nodiscard]] std::vector<std::string> completions(std::string_view word, std::span<const std::string> candidates);

// "a", "a or b", "a, b or c".
[[nodiscard]] std::string either(std::span<const std::string> parts);

// An ASCII digit, whatever the locale.
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The index of the first character from `i` on that is not a digit.
[[nodiscard]] constexpr std::size_t skip_digits(std::string_view text, std::size_t i) {
  while (i < text.size() && is_digit(text[i])) { ++i; }
  return i;
}

// All of the text as a whole number in decimal digits; nullopt where it is something else, or too large.
[[nodiscard]] std::optional<std::uint64_t> whole_number(std::string_view text);

// The words of a line: what blanks, tabs and carriage returns separate.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view line);

[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);

// 1064 -> "1,064".
[[nodiscard]] std::string grouped(long long number);

// "1 node", "1,064 nodes".
[[nodiscard]] std::string counted(long long number, std::string_view noun);

// `"text"` for messages, with control characters escaped and long text cut.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace orrery
