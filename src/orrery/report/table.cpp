#include "orrery/report/table.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"

namespace orrery::report {

namespace {

bool continues_code_point(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

// Controls are below 0x20, 0x7f, and U+0080 .. U+009F, which UTF-8 writes as c2 80 .. c2 9f.
std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte < 0x20U || byte == 0x7fU) {
      out += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2U && next >= 0x80U && next < 0xa0U) {
      out += fmt::format("\\x{:02x}", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::size_t display_width(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_code_point));
}

std::string cut_to(std::string_view text, std::size_t width) {
  constexpr std::string_view kMark = "..";
  if (display_width(text) <= width) { return std::string(text); }
  if (width <= kMark.size()) { return std::string(kMark.substr(0, width)); }
  std::size_t left = width - kMark.size();
  std::size_t end = 0;
  while (end < text.size() && (left > 0 || continues_code_point(text[end]))) {
    if (!continues_code_point(text[end])) { --left; }
    ++end;
    while (end < text.size() && continues_code_point(text[end])) { ++end; }
  }
  return std::string(text.substr(0, end)) + std::string(kMark);
}

namespace {

// Pieces on lines, a space between two on the same line.
std::string filled(std::string_view first, std::span<const std::string> pieces, std::size_t width) {
  const std::size_t indent = display_width(first);
  std::string out(first);
  std::size_t used = indent;
  bool line_is_empty = true;
  for (const auto& piece : pieces) {
    if (!line_is_empty && used + 1 + display_width(piece) > width) {
      out += "\n" + std::string(indent, ' ');
      used = indent;
      line_is_empty = true;
    }
    if (!line_is_empty) { out += ' '; }
    out += piece;
    used += display_width(piece) + (line_is_empty ? 0 : 1);
    line_is_empty = false;
  }
  return out + "\n";
}

}  // namespace

std::string wrapped(std::string_view first, std::string_view text, std::size_t width) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) { words.push_back(printable(text.substr(0, end))); }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return filled(first, words, width);
}

std::string wrapped_list(std::string_view first, std::span<const std::string> parts, std::size_t width) {
  std::vector<std::string> pieces;
  for (const auto& part : parts) { pieces.push_back(printable(part)); }
  for (std::size_t i = 0; i + 1 < pieces.size(); ++i) { pieces[i] += ','; }
  return filled(first, pieces, width);
}

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:.1f} %", 100.0 * fraction) : std::string("-");
}

std::string dollars(double amount) {
  constexpr double kNamesThousands = 1e3;
  const std::string number =
      std::abs(amount) < kNamesThousands ? fmt::format("{:.{}f}", amount, std::abs(amount) < 1 ? 4 : 2) : "";
  return (number.empty() ? config::format_count(amount) : number) + " USD";
}

std::string joules(double amount) {
  const std::string number = config::format_count(amount);  // "3.25 M", "512"
  return number + (number.find(' ') == std::string::npos ? " J" : "J");
}

Table& Table::column(std::string header, Align align) {
  columns_.push_back({std::move(header), align});
  return *this;
}

void Table::row(std::vector<std::string> cells) {
  for (auto& cell : cells) { cell = printable(cell); }
  lines_.push_back({std::move(cells), false});
}

void Table::title(std::string line) { lines_.push_back({{std::move(line)}, true}); }

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (const auto& column : columns_) { widths.push_back(display_width(column.header)); }
  for (const auto& line : lines_) {
    const std::size_t cells = line.is_title ? 0 : std::min(line.cells.size(), widths.size());
    for (std::size_t i = 0; i < cells; ++i) { widths[i] = std::max(widths[i], display_width(line.cells[i])); }
  }
  return widths;
}

std::string Table::line_text(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                             std::size_t gap, std::size_t indent) const {
  std::string text(indent, ' ');
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string cell = i < cells.size() ? cells[i] : std::string();
    const std::string padding(widths[i] - display_width(cell), ' ');
    if (i > 0) { text += std::string(gap, ' '); }
    text += columns_[i].align == Align::left ? cell + padding : padding + cell;
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string Table::text(std::size_t indent) const {
  const auto column_widths = widths();
  const std::size_t content = std::accumulate(column_widths.begin(), column_widths.end(), std::size_t{0});
  const std::size_t gaps = columns_.empty() ? 0 : columns_.size() - 1;
  const std::size_t gap = indent + content + 2 * gaps <= kPageWidth ? 2 : 1;
  std::vector<std::string> headers;
  for (const auto& column : columns_) { headers.push_back(column.header); }
  const bool has_header = std::any_of(headers.begin(), headers.end(), [](const auto& h) { return !h.empty(); });
  std::string text = has_header ? line_text(headers, column_widths, gap, indent) : std::string();
  for (const auto& line : lines_) {
    text += line.is_title ? std::string(indent, ' ') + line.cells.front() + "\n"
                          : line_text(line.cells, column_widths, gap, indent);
  }
  return text;
}

}  // namespace orrery::report
