// Results as one self-contained HTML page: data, style, script and the chart library are inside; nothing is loaded from
// elsewhere. Numbers of a study have ten significant digits of those in the database.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/results/study.hpp"

namespace orrery::report {

[[nodiscard]] std::string study_page(const results::StudyTable& table);

// A JSON document that `campaign` or `jobs` printed, and its name on the page.
struct NamedResult {
  std::string name, json;
};
[[nodiscard]] std::string runs_page(const std::vector<NamedResult>& runs);

// Files that the build embeds (cmake/embed_functions.cmake).
[[nodiscard]] std::string_view embedded_chart_library();  // Chart.js, MIT licence, its notice included
[[nodiscard]] std::string_view embedded_page_style();
[[nodiscard]] std::string_view embedded_page_common();
[[nodiscard]] std::string_view embedded_page_script();
[[nodiscard]] std::string_view embedded_runs_script();

}  // namespace orrery::report
