// Every emitted option is documented by its tool: lists of names in tests/fixtures/launch.
#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "orrery/launch/test_runs.hpp"
#include "orrery/launch/test_texts.hpp"

namespace orrery::launch::options_test {
namespace {

using test::lines_of;
using test::toml;
using testing::IsEmpty;

// Names of a file of tests/fixtures/launch.
std::set<std::string> documented(const std::string& file) {
  std::ifstream stream(std::string(ORRERY_SOURCE_DATA_DIR) + "/../tests/fixtures/launch/" + file);
  EXPECT_TRUE(stream.good()) << file;
  std::set<std::string> names;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.front() != '#') { names.insert(line); }
  }
  return names;
}

void merge(std::set<std::string>& all, const std::set<std::string>& more) { all.insert(more.begin(), more.end()); }

// Every word with two leading dashes, except in comments.
std::set<std::string> arguments_in(const std::string& text) {
  std::set<std::string> found;
  for (const auto& line : lines_of(text)) {
    if (line.starts_with('#')) { continue; }
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word.starts_with("--")) { found.insert(word); }
    }
  }
  return found;
}

// Left sides of `section.field=value` in the array of overrides.
std::set<std::string> overrides_in(const std::string& text) {
  std::set<std::string> found;
  bool inside = false;
  for (const auto& line : lines_of(text)) {
    if (line == "OVERRIDES=(") {
      inside = true;
    } else if (line == ")") {
      inside = false;
    } else if (inside) {
      const auto start = line.find_first_not_of(" '\"");
      found.insert(line.substr(start, line.find('=') - start));
    }
  }
  return found;
}

void collect_keys(const nlohmann::json& json, const std::string& path, std::set<std::string>& found) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = path.empty() ? key : path + "." + key;
    if (value.is_object()) {
      collect_keys(value, name, found);
    } else {
      found.insert(name);
    }
  }
}

std::set<std::string> keys_of(const std::map<std::string, std::string>& values) {
  std::set<std::string> keys;
  for (const auto& [key, value] : values) { keys.insert(key); }
  return keys;
}

std::vector<std::string> missing_in(const std::set<std::string>& names, const std::set<std::string>& known) {
  std::vector<std::string> missing;
  std::set_difference(names.begin(), names.end(), known.begin(), known.end(), std::back_inserter(missing));
  return missing;
}

// Option names of a launch, and those that its tool documents.
std::vector<std::string> undocumented(Tool tool, const std::string& text) {
  auto known =
      documented(tool == Tool::deepspeed ? "deepspeed-options.txt" : std::string(name_of(tool)) + "-options.txt");
  switch (tool) {
    case Tool::megatron: {
      merge(known, documented("torchrun-options.txt"));
      return missing_in(arguments_in(text), known);
    }
    case Tool::nemo: return missing_in(overrides_in(text), known);
    case Tool::torchtitan: return missing_in(keys_of(toml(text)), known);
    case Tool::deepspeed: break;
  }
  const auto json = nlohmann::json::parse(text);
  std::set<std::string> names;
  collect_keys(json, "", names);
  auto missing = missing_in(names, known);
  const auto arguments = arguments_in(json["_orrery"]["command"].get<std::string>());
  const auto more = missing_in(arguments, documented("deepspeed-megatron-options.txt"));
  missing.insert(missing.end(), more.begin(), more.end());
  return missing;
}

TEST(LaunchOptions, every_option_is_one_that_the_tool_documents) {
  for (const Tool tool : kAllTools) {
    for (const auto& run : test::published_runs()) {
      EXPECT_THAT(undocumented(tool, test::launched(tool, run).text), IsEmpty())
          << name_of(tool) << " " << run.model.name;
    }
  }
}

// Random valid jobs and plans use the options that published ones do not.
TEST(LaunchOptions, every_option_of_any_valid_run_is_one_that_the_tool_documents) {
  parallel::test::SeededRandom random(7);
  int launched = 0;
  for (int i = 0; i < 400; ++i) {
    const auto c = parallel::test::any_case(random);
    if (c.model.encoder_layers > 0) { continue; }
    ++launched;
    const TrainingRun run{c.model, c.job, c.plan, c.stack, 8};
    for (const Tool tool : kAllTools) {
      const auto launch = test::launched(tool, run);
      EXPECT_THAT(undocumented(tool, launch.text), IsEmpty()) << name_of(tool) << "\n" << parallel::test::to_text(c);
      EXPECT_TRUE(launch.text.ends_with('\n'));
    }
  }
  EXPECT_GT(launched, 200);
}

}  // namespace
}  // namespace orrery::launch::options_test
