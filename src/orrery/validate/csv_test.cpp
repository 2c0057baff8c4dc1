#include "orrery/validate/csv.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <rapidcheck.h>

namespace orrery::validate::csv_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Csv read(std::string_view text) {
  auto csv = parse_csv(text, "t.csv");
  EXPECT_TRUE(csv) << (csv ? "" : csv.error().text());
  return csv ? std::move(*csv) : Csv{};
}

std::string complaint(std::string_view text) {
  const auto csv = parse_csv(text, "t.csv");
  EXPECT_FALSE(csv);
  return csv ? "" : csv.error().text();
}

TEST(Csv, a_header_and_rows_that_know_their_line) {
  const Csv csv = read("a,b\n1,2\n\n3,\n");
  EXPECT_THAT(csv.header, ElementsAre("a", "b"));
  ASSERT_EQ(csv.rows.size(), 2U);
  EXPECT_THAT(csv.rows[0].cells, ElementsAre("1", "2"));
  EXPECT_EQ(csv.rows[0].line, 2);
  EXPECT_THAT(csv.rows[1].cells, ElementsAre("3", ""));
  EXPECT_EQ(csv.rows[1].line, 4);
  EXPECT_EQ(csv.column("b"), 1U);
  EXPECT_EQ(csv.column("c"), std::nullopt);
}

TEST(Csv, quoted_cells_hold_commas_quotes_and_line_breaks) {
  const Csv csv = read("a,b\n\"x,\"\"y\"\"\",\"one\r\ntwo\"\nlast,row");
  ASSERT_EQ(csv.rows.size(), 2U);
  EXPECT_THAT(csv.rows[0].cells, ElementsAre("x,\"y\"", "one\r\ntwo"));
  EXPECT_EQ(csv.rows[1].line, 4);  // the line break inside the cell counts
  EXPECT_THAT(csv.rows[1].cells, ElementsAre("last", "row"));
}

TEST(Csv, a_byte_order_mark_and_every_line_break_are_accepted) {
  for (const std::string eol : {"\n", "\r\n", "\r"}) {
    const Csv csv = read("\xEF\xBB\xBF" + std::string(" a ,b") + eol + "1,2" + eol);
    EXPECT_THAT(csv.header, ElementsAre("a", "b"));
    ASSERT_EQ(csv.rows.size(), 1U);
    EXPECT_THAT(csv.rows[0].cells, ElementsAre("1", "2"));
  }
}

TEST(Csv, the_error_of_an_unclosed_quote_has_the_place_of_its_start) {
  EXPECT_EQ(complaint("a,b\n1,\"2\n3,4\n"), "t.csv:2:3: quote is not closed");
  EXPECT_EQ(complaint("a,\"b"), "t.csv:1:3: quote is not closed");
}

TEST(Csv, stray_quotes_and_bytes_are_errors) {
  EXPECT_THAT(complaint("a,b\n1,x\"y\n"), HasSubstr("t.csv:2:4: quote inside a cell"));
  EXPECT_THAT(complaint("a,b\n1,\"x\"y\n"), HasSubstr("t.csv:2:6: text after a closing quote"));
  EXPECT_THAT(complaint(std::string_view("a,b\n1,\0\n", 8)), HasSubstr("t.csv:2:3: NUL byte"));
  EXPECT_THAT(complaint(std::string_view("a,b\n1,\"\0\"\n", 10)), HasSubstr("t.csv:2:4: NUL byte"));
}

TEST(Csv, every_row_of_another_length_is_reported) {
  EXPECT_EQ(complaint("a,b\n1\n1,2\n1,2,3\n"),
            "t.csv:2: row has 1 cell, the header has 2\nt.csv:4: row has 3 cells, the header has 2");
}

TEST(Csv, a_header_names_each_column_once) {
  EXPECT_EQ(complaint(""), "t.csv: is empty; a table starts with a header line");
  EXPECT_EQ(complaint("\n \n"), "t.csv: is empty; a table starts with a header line");
  EXPECT_EQ(complaint("a,,a\n"),
            "t.csv:1: column 2 of the header has no name\nt.csv:1: column \"a\" is twice in the header");
}

TEST(Csv, rows_without_end_are_refused) {
  EXPECT_THAT(complaint(std::string(kMaxCsvColumns + 1, ',')), HasSubstr("more than 1000 cells"));
}

TEST(Csv, files_that_cannot_be_tables_are_refused) {
  const auto folder = std::filesystem::temp_directory_path() / "orrery_csv_test";
  std::filesystem::create_directories(folder);
  const auto missing = read_csv((folder / "nothing.csv").string());
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().text(), HasSubstr("does not exist"));
  const auto directory = read_csv(folder.string());
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().text(), HasSubstr("is a folder"));
  const auto large = folder / "large.csv";
  std::ofstream(large).close();
  std::filesystem::resize_file(large, kMaxCsvBytes + 1);
  const auto too_large = read_csv(large.string());
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(too_large);
  EXPECT_THAT(too_large.error().text(), HasSubstr("is too large"));
}

std::string quoted_cell(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) { out += c == '"' ? std::string("\"\"") : std::string(1, c); }
  return out + "\"";
}

TEST(Csv, what_is_written_quoted_is_read_back) {
  rc::check([](const std::vector<std::string>& texts) {
    std::string written = "a,b\n";
    std::vector<std::string> cells;
    for (std::string text : texts) {
      std::erase(text, '\0');
      cells.push_back(text);
      written += quoted_cell(text) + "," + quoted_cell("") + "\n";
    }
    const auto csv = parse_csv(written, "t.csv");
    RC_ASSERT(csv.has_value());
    RC_ASSERT(csv->rows.size() == cells.size());
    for (std::size_t i = 0; i < cells.size(); ++i) { RC_ASSERT(csv->rows[i].cells[0] == cells[i]); }
  });
}

TEST(Csv, any_bytes_get_an_answer) {
  rc::check([](const std::string& text) {
    const auto csv = parse_csv(text, "t.csv");
    if (!csv) {
      RC_ASSERT(!csv.error().diagnostics.empty());
      return;
    }
    for (const auto& row : csv->rows) { RC_ASSERT(row.cells.size() == csv->header.size()); }
  });
}

}  // namespace
}  // namespace orrery::validate::csv_test
