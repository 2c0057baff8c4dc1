// Results as one self-contained HTML page: data, style, script and the chart library are inside; nothing is loaded from
// elsewhere. Numbers of a study have ten significant digits of those in the database.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "orrery/core/embedded_file.hpp"
#include "orrery/results/study.hpp"

namespace orrery::report {

[[nodiscard]] std::string study_page(const results::StudyTable& table);

// A JSON document that `campaign` or `jobs` printed, and its name on the page.
struct NamedResult {
  std::string name, json;
};
[[nodiscard]] std::string runs_page(const std::vector<NamedResult>& runs);

// Chart.js (MIT licence, its notice included), and the style and the scripts of pages.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

}  // namespace orrery::report
