// Aligned columns of text for a terminal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/text.hpp"  // grouped, counted

namespace orrery::report {

inline constexpr std::size_t kPageWidth = 100;  // maximum width of lines, if words allow

// `text` with control characters as \xHH: names from files must not control the terminal. Rows of tables and wrapped
// text are passed through it.
[[nodiscard]] std::string printable(std::string_view text);

// The width of UTF-8 text in columns, one per code point.
[[nodiscard]] std::size_t display_width(std::string_view text);

// `text` cut to `width` columns, with ".." at the cut.
[[nodiscard]] std::string cut_to(std::string_view text, std::size_t width);

// Words of `text` on lines of at most `width` columns; the first line begins with `first`, the others with as many
// spaces. Ends with a line break.
[[nodiscard]] std::string wrapped(std::string_view first, std::string_view text, std::size_t width = kPageWidth);

// The same for parts that are not broken, with a comma after each but the last.
[[nodiscard]] std::string wrapped_list(std::string_view first, std::span<const std::string> parts,
                                       std::size_t width = kPageWidth);

// "41.2 %" for a fraction; "-" if it is not finite.
[[nodiscard]] std::string percent(double fraction);

// "0.0312 USD", "999.50 USD", from 1,000 on three digits: "12.3 k USD", "1.23 M USD"; "3.25 MJ".
[[nodiscard]] std::string dollars(double amount);
[[nodiscard]] std::string joules(double amount);

class Table {
 public:
  enum class Align { left, right };

  Table& column(std::string header, Align align = Align::right);
  void row(std::vector<std::string> cells);  // missing cells at the end are empty
  void title(std::string line);              // a line between rows, across all columns

  // Columns are two spaces apart, or one if the table would not fit the page. Each line ends with a line break.
  [[nodiscard]] std::string text(std::size_t indent = 0) const;

 private:
  struct Column {
    std::string header;
    Align align;
  };
  struct Line {
    std::vector<std::string> cells;
    bool is_title;
  };

  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::string line_text(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                                      std::size_t gap, std::size_t indent) const;

  std::vector<Column> columns_;
  std::vector<Line> lines_;
};

}  // namespace orrery::report
