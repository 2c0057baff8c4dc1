#include "orrery/validate/csv.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"

namespace orrery::validate {

namespace {

constexpr std::size_t kMostComplaints = 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string without_blanks(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) { return {}; }
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// Splits text into rows of cells. Not usable after an error.
class Splitter {
 public:
  Splitter(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[nodiscard]] bool at_end() const { return next_ == text_.size(); }

  // The next row, its line break consumed.
  Result<CsvRow> row() {
    CsvRow row{line_, {}};
    while (true) {
      ORRERY_TRY(cell, this->cell());
      row.cells.push_back(std::move(cell));
      if (row.cells.size() > kMaxCsvColumns) {
        return complain(line_, next_, fmt::format("row has more than {} cells", kMaxCsvColumns));
      }
      if (at_end() || text_[next_] != ',') { break; }
      ++next_;
    }
    skip_line_break();
    return row;
  }

 private:
  [[nodiscard]] tl::unexpected<Failure> complain(int line, std::size_t offset, std::string message) const {
    return fail({file_, line, static_cast<int>(offset - line_start_) + 1, {}}, std::move(message));
  }

  Result<std::string> cell() { return !at_end() && text_[next_] == '"' ? quoted_cell() : plain_cell(); }

  Result<std::string> plain_cell() {
    const std::size_t begin = next_;
    next_ = std::min(text_.find_first_of(std::string_view(",\r\n\"\0", 5), begin), text_.size());
    if (!at_end() && text_[next_] == '"') {
      return complain(line_, next_,
                      "quote inside a cell without quotes; put the whole cell in quotes and double the inner ones");
    }
    if (!at_end() && text_[next_] == '\0') { return complain(line_, next_, "NUL byte: not a text file"); }
    return std::string(text_.substr(begin, next_ - begin));
  }

  Result<std::string> quoted_cell() {
    const int opened_line = line_;
    const std::size_t opened = next_++, opened_start = line_start_;
    std::string cell;
    while (true) {
      if (at_end()) {
        line_start_ = opened_start;
        return complain(opened_line, opened, "quote is not closed");
      }
      const char c = text_[next_];
      if (c == '\0') { return complain(line_, next_, "NUL byte: not a text file"); }
      if (c == '\r' || c == '\n') {
        const std::size_t begin = next_;
        skip_line_break();
        cell.append(text_.substr(begin, next_ - begin));
        continue;
      }
      ++next_;
      if (c == '"') {
        if (at_end() || text_[next_] != '"') { break; }
        ++next_;
      }
      cell += c;
    }
    if (!at_end() && text_[next_] != ',' && text_[next_] != '\r' && text_[next_] != '\n') {
      return complain(line_, next_, "text after a closing quote; double a quote inside a quoted cell");
    }
    return cell;
  }

  void skip_line_break() {
    if (at_end()) { return; }
    next_ += text_.substr(next_, 2) == "\r\n" ? 2 : 1;
    line_start_ = next_;
    ++line_;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t next_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

bool is_blank(const CsvRow& row) { return row.cells.size() == 1 && without_blanks(row.cells.front()).empty(); }

std::vector<Diagnostic> header_complaints(const CsvRow& row, const Csv& csv) {
  std::vector<Diagnostic> found;
  for (std::size_t i = 0; i < csv.header.size() && found.size() < kMostComplaints; ++i) {
    const Place place{csv.file, row.line, 0, {}};
    if (csv.header[i].empty()) { found.push_back({place, fmt::format("column {} of the header has no name", i + 1)}); }
    const auto end = csv.header.begin() + static_cast<std::ptrdiff_t>(i);
    if (!csv.header[i].empty() && std::find(csv.header.begin(), end, csv.header[i]) != end) {
      found.push_back({place, fmt::format("column {} is twice in the header", quote(csv.header[i]))});
    }
  }
  return found;
}

}  // namespace

std::optional<std::size_t> Csv::column(std::string_view name) const {
  const auto it = std::find(header.begin(), header.end(), name);
  if (it == header.end()) { return std::nullopt; }
  return static_cast<std::size_t>(it - header.begin());
}

Result<Csv> parse_csv(std::string_view text, const std::string& file) {
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) { text.remove_prefix(kByteOrderMark.size()); }
  Csv csv{file, {}, {}};
  std::vector<Diagnostic> complaints;
  Splitter splitter(text, file);
  while (!splitter.at_end() && complaints.size() < kMostComplaints) {
    ORRERY_TRY(row, splitter.row());
    if (is_blank(row)) { continue; }
    if (csv.header.empty()) {
      for (const auto& cell : row.cells) { csv.header.push_back(without_blanks(cell)); }
      complaints = header_complaints(row, csv);
    } else if (row.cells.size() != csv.header.size()) {
      complaints.push_back({{file, row.line, 0, {}},
                            fmt::format("row has {} cell{}, the header has {}", row.cells.size(),
                                        row.cells.size() == 1 ? "" : "s", csv.header.size())});
    } else {
      csv.rows.push_back(std::move(row));
    }
  }
  if (!complaints.empty()) { return tl::make_unexpected(Failure{std::move(complaints)}); }
  if (csv.header.empty()) { return fail({file, 0, 0, {}}, "is empty; a table starts with a header line"); }
  return csv;
}

Result<Csv> read_csv(const std::string& path) {
  ORRERY_TRY(text, config::read_text_file(path, kMaxCsvBytes));
  return parse_csv(text, path);
}

}  // namespace orrery::validate
