// Splits lists in flags: "emb=(mp); mlp=(tp,ddp)".
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace orrery::madmax {

[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') { text.remove_prefix(1); }
  while (!text.empty() && text.back() == ' ') { text.remove_suffix(1); }
  return text;
}

// The parts between separators, trimmed; one empty part for empty text.
[[nodiscard]] inline std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto end = std::min(text.find(separator), text.size());
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.size()) { return parts; }
    text.remove_prefix(end + 1);
  }
}

}  // namespace orrery::madmax
