// The Pareto front of rows: what no other row beats in every column.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "orrery/results/study.hpp"

namespace orrery::study {

// The value of a column of results or of the study; nothing: the row has no number there.
[[nodiscard]] std::optional<double> value_of(const results::StudyTable& table, const results::StudyRow& row,
                                             const std::string& column);

// Positions of the rows with status ok that no other beats: smaller is better in each column (larger:
// results::is_more_better), and equal rows are all on the front. In the order of the first column, ties in the order of
// rows. O(n log n) for two columns.
[[nodiscard]] std::vector<std::size_t> pareto_front(const results::StudyTable& table,
                                                    const std::vector<std::string>& columns);

}  // namespace orrery::study
