#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"
#include "orrery/report/text.hpp"

namespace orrery::report {

namespace {

struct Sums {
  bool any = false;  // algorithms are code and have no figures
  int figures = 0;
  int unverified = 0;
};

Sums sums_of(std::span<const hardware::EntrySummary> entries) {
  Sums sums;
  for (const auto& entry : entries) {
    sums.figures += entry.figures;
    sums.unverified += entry.unverified;
  }
  sums.any = sums.figures > 0;
  return sums;
}

std::string last_line(std::string_view kind, std::size_t entries, const Sums& sums) {
  if (!sums.any) { return fmt::format("\n{} {}\n", entries, kind); }
  return fmt::format("\n{} {}, {} figures, {} of them unverified\n", entries, kind, sums.figures, sums.unverified);
}

}  // namespace

std::string listing_text(std::string_view kind, std::span<const hardware::EntrySummary> entries) {
  const Sums sums = sums_of(entries);
  Table table;
  table.column("name", Table::Align::left);
  if (sums.any) { table.column("figures").column("unverified"); }
  table.column("description", Table::Align::left);
  std::size_t longest = 0;
  for (const auto& entry : entries) { longest = std::max(longest, display_width(entry.name)); }
  const std::size_t fixed = longest + (sums.any ? 23 : 2);  // widths of the other columns and gaps
  const std::size_t room = fixed + 30 < kPageWidth ? kPageWidth - fixed : 30;
  for (const auto& entry : entries) {
    std::vector<std::string> cells = {entry.name};
    if (sums.any) { cells.insert(cells.end(), {std::to_string(entry.figures), std::to_string(entry.unverified)}); }
    cells.push_back(cut_to(entry.description, room));
    table.row(std::move(cells));
  }
  return table.text() + last_line(kind, entries.size(), sums);
}

std::string unverified_text(std::string_view kind, std::span<const hardware::EntrySummary> entries,
                            std::span<const UnverifiedFigure> figures, TextStyle style) {
  std::string text;
  for (const auto& entry : entries) {
    if (entry.unverified == 0) { continue; }
    text += fmt::format("{}: {} of {} figures\n", bold(printable(entry.name), style), entry.unverified, entry.figures);
    for (const auto& figure : figures) {
      if (figure.entry == entry.name) { text += wrapped("  - ", figure.figure + ": " + figure.why); }
    }
  }
  return text + last_line(kind, entries.size(), sums_of(entries));
}

}  // namespace orrery::report
