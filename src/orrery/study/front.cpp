#include "orrery/study/front.hpp"

#include <algorithm>

namespace orrery::study {

using results::StudyRow;
using results::StudyStatus;
using results::StudyTable;

std::optional<double> value_of(const StudyTable& table, const StudyRow& row, const std::string& column) {
  for (std::size_t i = 0; i < results::kMetricNames.size(); ++i) {
    if (results::kMetricNames[i] == column) { return row.metrics[i]; }
  }
  for (std::size_t i = 0; i < table.columns.size() && i < row.columns.size(); ++i) {
    if (table.columns[i].name != column) { continue; }
    const double* number = results::number_of(row.columns[i]);
    return number != nullptr ? std::optional(*number) : std::nullopt;
  }
  return std::nullopt;
}

namespace {

struct Entry {
  std::size_t row = 0;
  std::vector<double> values;
};

bool dominates(const Entry& a, const Entry& b) {
  bool less = false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (a.values[i] > b.values[i]) { return false; }
    less = less || a.values[i] < b.values[i];
  }
  return less;
}

}  // namespace

std::vector<std::size_t> pareto_front(const StudyTable& table, const std::vector<std::string>& columns) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    if (table.rows[i].status != StudyStatus::ok) { continue; }
    Entry entry{i, {}};
    for (const auto& column : columns) {
      const auto value = value_of(table, table.rows[i], column);
      if (value) { entry.values.push_back(results::is_more_better(column) ? -*value : *value); }  // less is better
    }
    if (entry.values.size() == columns.size()) { entries.push_back(std::move(entry)); }
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.values < b.values; });
  // In lexicographic order an entry can be beaten by earlier ones only, and so by one that is on the front. With two
  // columns, the last one of the front has least of the second column.
  std::vector<Entry> front;
  for (auto& entry : entries) {
    const auto beats = [&](const Entry& other) { return dominates(other, entry); };
    const bool is_beaten =
        columns.size() == 2 ? !front.empty() && beats(front.back()) : std::any_of(front.begin(), front.end(), beats);
    if (!is_beaten) { front.push_back(std::move(entry)); }
  }
  std::vector<std::size_t> rows;
  for (const Entry& entry : front) { rows.push_back(entry.row); }
  return rows;
}

}  // namespace orrery::study
