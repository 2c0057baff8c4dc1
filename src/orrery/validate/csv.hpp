// Tables of comma-separated values (RFC 4180): a header and rows of text cells with their line.
//
// Accepted beyond the RFC: a byte order mark, lines that end in LF, CRLF or CR, a missing last line break, empty lines.
// A cell in quotes may have commas, line breaks and doubled quotes. Left out: other separators, comments, other
// encodings than UTF-8, types of cells.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::validate {

// Bounds on memory for a wrong file.
inline constexpr std::size_t kMaxCsvBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxCsvColumns = 1'000;

struct CsvRow {
  int line = 0;  // where the row starts, 1-based
  std::vector<std::string> cells;
};

struct Csv {
  std::string file;
  std::vector<std::string> header;  // distinct, without blanks around them
  std::vector<CsvRow> rows;         // each with as many cells as the header

  [[nodiscard]] std::optional<std::size_t> column(std::string_view name) const;
};

// `file` is only for messages. Errors: no header, a column without a name or named twice, rows of another length than
// the header (all are reported, up to a limit), quotes that are not closed or are inside a cell, bytes that are not
// text.
[[nodiscard]] Result<Csv> parse_csv(std::string_view text, const std::string& file);

// Errors: those of parse_csv; a file that does not exist, is a folder, cannot be read or is larger than kMaxCsvBytes.
[[nodiscard]] Result<Csv> read_csv(const std::string& path);

}  // namespace orrery::validate
