// Tables of comma-separated values (RFC 4180): a header and rows of text cells that know their line.
//
// Read besides the RFC: a byte order mark, lines that end in LF, CRLF or CR, a missing last line break. Lines without
// any text are skipped. A cell in quotes may hold commas, line breaks and doubled quotes. Left out: other separators,
// comments, other encodings than UTF-8, meaning of cells (text stays text).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::validate {

// Bounds, so that a wrong file gets an answer instead of the machine's memory.
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
// the header (all of them are told, up to a point), quotes that do not close or stand inside a cell, bytes that are not
// text.
[[nodiscard]] Result<Csv> parse_csv(std::string_view text, const std::string& file);

// Errors: those of parse_csv; a file that does not exist, is a folder, cannot be read or is larger than kMaxCsvBytes.
[[nodiscard]] Result<Csv> read_csv(const std::string& path);

}  // namespace orrery::validate
