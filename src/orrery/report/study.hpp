// The end of a study as text and as JSON (orrery.explore/1).
#pragma once

#include <string>
#include <vector>

#include "orrery/report/text.hpp"
#include "orrery/results/study.hpp"

namespace orrery::report {

struct StudyEnd {
  results::StudyInfo info;
  std::vector<results::StudyColumn> columns;
  results::StudySummary summary;
  std::vector<results::Sensitivity> sensitivities;
  std::string database;
};

[[nodiscard]] std::string study_text(const StudyEnd& end, TextStyle style = {});
[[nodiscard]] std::string study_json(const StudyEnd& end);

// A number with the unit of its column, for people: "1.20 TB/s", "17.3 s", "4,096" as 4096.
[[nodiscard]] std::string cell_text(const results::StudyCell& cell, const std::string& unit);
// The base unit of what a study's threshold is a value of ("B/s"); empty: none.
[[nodiscard]] std::string threshold_unit(const results::StudyInfo& info);

}  // namespace orrery::report
