#include "orrery/report/table.hpp"

#include <limits>

#include <gtest/gtest.h>

namespace orrery::report::table_test {
namespace {

TEST(Table, columns_line_up_and_lines_end_without_spaces) {
  Table table;
  table.column("name", Table::Align::left).column("size").column("", Table::Align::left);
  table.row({"a", "1", "#"});
  table.title("-- then");
  table.row({"longer", "100"});
  EXPECT_EQ(table.text(1),
            " name    size\n"
            " a          1  #\n"
            " -- then\n"
            " longer   100\n");
}

TEST(Table, a_table_that_would_not_fit_the_page_draws_its_columns_together) {
  Table table;
  table.column("", Table::Align::left).column("", Table::Align::left);
  table.row({std::string(60, 'a'), std::string(39, 'b')});
  EXPECT_EQ(table.text(), std::string(60, 'a') + " " + std::string(39, 'b') + "\n");
}

TEST(Table, letters_beyond_ascii_take_one_column) {
  Table table;
  table.column("", Table::Align::left).column("");
  table.row({"\u00b5s", "1"});
  table.row({"abcd", "22"});
  EXPECT_EQ(table.text(), "\u00b5s     1\nabcd  22\n");
}

TEST(Table, control_characters_of_names_are_written_out) {
  EXPECT_EQ(printable("a\x1b[31m\r\n\x7f"), "a\\x1b[31m\\x0d\\x0a\\x7f");
  EXPECT_EQ(printable("\u009b2J \u00b5"), "\\x9b2J \u00b5");  // the one-byte form of ESC [ as UTF-8; a letter stays
  EXPECT_EQ(wrapped("- ", "a\x1b]b c"), "- a\\x1b]b c\n");
  Table table;
  table.column("", Table::Align::left);
  table.row({"a\tb"});
  EXPECT_EQ(table.text(), "a\\x09b\n");
}

TEST(Table, cutting_never_splits_a_letter) {
  EXPECT_EQ(cut_to("short", 5), "short");
  EXPECT_EQ(cut_to("longer than that", 8), "longer..");
  EXPECT_EQ(cut_to("\u00b5\u00b5\u00b5\u00b5\u00b5", 4), "\u00b5\u00b5..");
  EXPECT_EQ(cut_to("abc", 1), ".");
}

TEST(Table, wrapped_text_hangs_below_its_label) {
  EXPECT_EQ(wrapped("plan  ", "one two  three four", 15), "plan  one two\n      three\n      four\n");
  EXPECT_EQ(wrapped("", "a-word-longer-than-the-page", 10), "a-word-longer-than-the-page\n");
  EXPECT_EQ(wrapped("label", ""), "label\n");
}

TEST(Table, parts_of_a_list_stay_whole) {
  const std::vector<std::string> parts = {"tp 8", "recompute full", "zero 1"};
  EXPECT_EQ(wrapped_list("plan  ", parts, 21), "plan  tp 8,\n      recompute full,\n      zero 1\n");
}

TEST(Table, numbers_are_grouped_by_thousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(grouped(std::numeric_limits<long long>::min()), "-9,223,372,036,854,775,808");
}

TEST(Table, a_share_that_is_no_number_is_a_dash) {
  EXPECT_EQ(percent(0.4117), "41.2 %");
  EXPECT_EQ(percent(std::numeric_limits<double>::quiet_NaN()), "-");
  EXPECT_EQ(percent(std::numeric_limits<double>::infinity()), "-");
}

TEST(Table, money_has_cents_and_energy_a_prefix) {
  EXPECT_EQ(dollars(0.03125), "0.0312 USD");
  EXPECT_EQ(dollars(999.5), "999.50 USD");
  EXPECT_EQ(dollars(12345.678), "12.3 k USD");
  EXPECT_EQ(dollars(-30408.94), "-30.4 k USD");
  EXPECT_EQ(dollars(1.25e6), "1.25 M USD");
  EXPECT_EQ(joules(512), "512 J");
  EXPECT_EQ(joules(3.25e6), "3.25 MJ");
}

}  // namespace
}  // namespace orrery::report::table_test
