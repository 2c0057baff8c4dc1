// Every YAML block of docs/guide/my-model.md is a model, with the weights that its first line states.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/workload/catalogue.hpp"

namespace orrery::workload::model_guide_test {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> yaml_blocks(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string opening = "```yaml\n";
  std::vector<std::string> blocks;
  for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at)) {
    at += opening.size();
    blocks.push_back(text.substr(at, text.find("```\n", at) - at));
  }
  return blocks;
}

TEST(ModelGuide, every_example_reads_and_has_the_weights_it_states) {
  const auto blocks = yaml_blocks(std::string(ORRERY_SOURCE_DATA_DIR) + "/../docs/guide/my-model.md");
  ASSERT_GE(blocks.size(), 6U);
  for (const auto& block : blocks) {
    const auto path = std::filesystem::path(::testing::TempDir()) / "model_guide_example.yaml";
    std::ofstream(path) << block;
    const auto model = load_model(ORRERY_DATA_DIR, path.string());
    ASSERT_TRUE(model) << block << model.error().text();
    const std::string stated = block.substr(2, block.find(" parameters") - 2);  // "# 6.738 G parameters"
    EXPECT_THAT(describe(*model), HasSubstr(" (" + stated + ")\n")) << block;
  }
}

}  // namespace
}  // namespace orrery::workload::model_guide_test
