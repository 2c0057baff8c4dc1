// Splits a text into lines and words with their positions. Private to the room.
#pragma once

#include <string_view>
#include <vector>

namespace orrery::trace {

struct Word {
  std::string_view text;
  int column = 0;  // from 1
};

struct WordLine {
  int number = 0;  // from 1
  std::vector<Word> words;
};

// The words of a line, separated by blanks and tabs.
[[nodiscard]] std::vector<Word> words_of(std::string_view line);

// The lines that have words.
[[nodiscard]] std::vector<WordLine> lines_of(std::string_view text);

}  // namespace orrery::trace
