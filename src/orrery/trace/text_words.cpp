#include "orrery/trace/text_words.hpp"

#include <algorithm>
#include <utility>

namespace orrery::trace {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

}  // namespace

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t i = 0; i < line.size();) {
    if (is_blank(line[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < line.size() && !is_blank(line[i])) { ++i; }
    words.push_back({line.substr(begin, i - begin), static_cast<int>(begin) + 1});
  }
  return words;
}

std::vector<WordLine> lines_of(std::string_view text) {
  std::vector<WordLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto words = words_of(text.substr(0, end)); !words.empty()) { lines.push_back({number, std::move(words)}); }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace orrery::trace
