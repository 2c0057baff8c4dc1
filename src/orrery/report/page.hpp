// A study's results as one self-contained HTML page: data, style, script and the chart library are inside; nothing is
// loaded from elsewhere. Numbers have ten significant digits of those in the database.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "orrery/core/embedded_file.hpp"
#include "orrery/results/study.hpp"

namespace orrery::report {

[[nodiscard]] std::string study_page(const results::StudyTable& table);

// Chart.js, MIT licence, its notice included.
[[nodiscard]] std::string_view chart_library();

// Chart.js, and the page's style and script.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

}  // namespace orrery::report
