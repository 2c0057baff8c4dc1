// Parses launch texts, for tests.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::launch::test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) { lines.push_back(line); }
  return lines;
}

// TOML as far as a job configuration goes: sections, and `key = value` with lists over several lines. Keys are unique.
inline std::map<std::string, std::string> toml(const std::string& text) {
  std::map<std::string, std::string> values;
  std::string section, open;
  for (const auto& line : lines_of(text)) {
    if (!open.empty()) {
      values[open] += line;
      if (line == "]") { open.clear(); }
    } else if (line.starts_with('[')) {
      EXPECT_EQ(line.back(), ']') << line;
      section = line.substr(1, line.size() - 2);
    } else if (!line.empty() && line.front() != '#') {
      const auto equals = line.find(" = ");
      EXPECT_NE(equals, std::string::npos) << line;
      if (equals == std::string::npos) { continue; }
      const std::string key = section + "." + line.substr(0, equals);
      EXPECT_FALSE(values.contains(key)) << key;
      values[key] = line.substr(equals + 3);
      if (values[key] == "[") { open = key; }
    }
  }
  EXPECT_TRUE(open.empty());
  return values;
}

}  // namespace orrery::launch::test
