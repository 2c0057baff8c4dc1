// A study's results as one self-contained HTML page: data, style, script and the chart library are inside; nothing is
// loaded from elsewhere. Numbers have ten significant digits of those in the database.
#pragma once

#include <string>
#include <string_view>

#include "orrery/results/study.hpp"

namespace orrery::report {

[[nodiscard]] std::string study_page(const results::StudyTable& table);

// Files that the build embeds (cmake/embed_functions.cmake).
[[nodiscard]] std::string_view embedded_chart_library();  // Chart.js, MIT licence, its notice included
[[nodiscard]] std::string_view embedded_page_style();
[[nodiscard]] std::string_view embedded_page_script();

}  // namespace orrery::report
