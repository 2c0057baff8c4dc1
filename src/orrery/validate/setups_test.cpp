#include "orrery/validate/setups.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::validate::setups_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Csv parsed(const char* text, const char* file) {
  auto csv = parse_csv(text, file);
  EXPECT_TRUE(csv) << csv.error().text();
  return *csv;
}

std::string error_of(const char* table, const char* setups) {
  const auto joined = with_setups(parsed(table, "t.csv"), parsed(setups, "setups/t.csv"));
  EXPECT_FALSE(joined);
  return joined ? std::string() : joined.error().text();
}

TEST(Setups, columns_of_a_setup_stand_where_the_column_setup_row_was) {
  const auto joined = with_setups(parsed("id,setup_row,size\na,2,8\nb, 1 ,16\nc,2,32\n", "t.csv"),
                                  parsed("gpus,setup_row,gpu_type\n4,1,A100\n16,2,H100\n", "setups/t.csv"));
  ASSERT_TRUE(joined) << joined.error().text();
  EXPECT_EQ(joined->file, "t.csv");
  EXPECT_THAT(joined->header, ElementsAre("id", "gpus", "gpu_type", "size"));
  ASSERT_EQ(joined->rows.size(), 3u);
  EXPECT_THAT(joined->rows[0].cells, ElementsAre("a", "16", "H100", "8"));
  EXPECT_THAT(joined->rows[1].cells, ElementsAre("b", "4", "A100", "16"));
  EXPECT_THAT(joined->rows[2].cells, ElementsAre("c", "16", "H100", "32"));
  EXPECT_EQ(joined->rows[2].line, 4);
}

TEST(Setups, a_table_without_the_column_is_as_it_was) {
  const auto joined = with_setups(parsed("id,size\na,8\n", "t.csv"), parsed("other\n1\n", "setups/t.csv"));
  ASSERT_TRUE(joined);
  EXPECT_THAT(joined->header, ElementsAre("id", "size"));
}

TEST(Setups, mistakes_are_named_with_their_line) {
  EXPECT_EQ(error_of("id,setup_row\na,1\nb,7\n", "setup_row,gpus\n1,4\n"),
            "t.csv:3 setup_row: setup \"7\" is not in setups/t.csv");
  EXPECT_THAT(error_of("id,setup_row\na,1\n", "setup_row,gpus\n1,4\n1,8\n"),
              HasSubstr("setups/t.csv:3 setup_row: setup \"1\" is defined twice"));
  EXPECT_THAT(error_of("id,setup_row,gpus\na,1,4\n", "setup_row,gpus\n1,4\n"), HasSubstr("\"gpus\" is also in t.csv"));
  EXPECT_THAT(error_of("id,setup_row\na,1\n", "gpus\n4\n"), HasSubstr("missing column setup_row"));
}

TEST(Setups, are_read_from_the_folder_next_to_the_table) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "orrery_setups_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "setups");
  const auto path = (folder / "t.csv").string();
  std::ofstream(path) << "id,setup_row\na,1\n";
  const auto missing = read_table(path);
  std::ofstream(folder / "setups" / "t.csv") << "setup_row,gpus\n1,4\n";
  const auto joined = read_table(path);
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("setups/t.csv"));
  ASSERT_TRUE(joined) << joined.error().text();
  EXPECT_THAT(joined->rows[0].cells, ElementsAre("a", "4"));
}

}  // namespace
}  // namespace orrery::validate::setups_test
