#include "orrery/validate/setups.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/validate/columns.hpp"

namespace orrery::validate {

namespace {

constexpr std::string_view kSetup = "setup_row";
constexpr std::size_t kMostComplaints = 20;

// Rows of `setups` by name.
Result<std::map<std::string_view, const CsvRow*>> rows_by_name(const Csv& setups, std::size_t name_column) {
  std::map<std::string_view, const CsvRow*> rows;
  for (const CsvRow& row : setups.rows) {
    const std::string_view name = trimmed(row.cells[name_column]);
    if (!rows.emplace(name, &row).second) {
      return fail({setups.file, row.line, 0, std::string(kSetup)},
                  fmt::format("setup {} is defined twice", quote(name)));
    }
  }
  return rows;
}

// `cells` with `others`, but for the one at `left_out`, in place of the cell at `at`.
std::vector<std::string> spliced(const std::vector<std::string>& cells, std::size_t at,
                                 const std::vector<std::string>& others, std::size_t left_out) {
  std::vector<std::string> out;
  out.reserve(cells.size() + others.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != at) {
      out.push_back(cells[i]);
      continue;
    }
    for (std::size_t j = 0; j < others.size(); ++j) {
      if (j != left_out) { out.push_back(others[j]); }
    }
  }
  return out;
}

}  // namespace

Result<Csv> with_setups(Csv table, const Csv& setups) {
  const auto at = table.column(kSetup);
  if (!at) { return table; }
  const auto name_column = setups.column(kSetup);
  if (!name_column) { return fail({setups.file, 1, 0, {}}, "not a table of setups: missing column setup_row"); }
  for (const std::string& column : setups.header) {
    if (column != kSetup && table.column(column)) {
      return fail({setups.file, 1, 0, {}}, fmt::format("column {} is also in {}", quote(column), table.file));
    }
  }
  ORRERY_TRY(rows, rows_by_name(setups, *name_column));
  Failure failure;
  for (CsvRow& row : table.rows) {
    const std::string_view name = trimmed(row.cells[*at]);
    const auto setup = rows.find(name);
    if (setup == rows.end()) {
      failure.diagnostics.push_back({{table.file, row.line, 0, std::string(kSetup)},
                                     fmt::format("setup {} is not in {}", quote(name), setups.file)});
      if (failure.diagnostics.size() == kMostComplaints) { break; }
      continue;
    }
    row.cells = spliced(row.cells, *at, setup->second->cells, *name_column);
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  table.header = spliced(table.header, *at, setups.header, *name_column);
  return table;
}

Result<Csv> read_table(const std::string& path) {
  ORRERY_TRY(table, read_csv(path));
  if (!table.column(kSetup)) { return table; }
  const std::filesystem::path file(path);
  ORRERY_TRY(setups, read_csv((file.parent_path() / "setups" / file.filename()).string()));
  return with_setups(std::move(table), setups);
}

}  // namespace orrery::validate
