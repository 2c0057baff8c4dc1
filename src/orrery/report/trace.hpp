// Results of the trace commands as text and as JSON documents (orrery.trace-info/1, orrery.trace-check/1,
// orrery.trace-stats/1, orrery.trace-diff/1).
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/trace.hpp"

namespace orrery::report {

[[nodiscard]] std::string trace_info_text(const results::TraceInfo& info, TextStyle style = {});
[[nodiscard]] std::string trace_info_json(const results::TraceInfo& info);

// Sound files without findings and notes are one line together.
[[nodiscard]] std::string trace_check_text(const results::TraceCheck& check, TextStyle style = {});
[[nodiscard]] std::string trace_check_json(const results::TraceCheck& check);

[[nodiscard]] std::string trace_stats_text(const results::TraceStats& stats, TextStyle style = {});
[[nodiscard]] std::string trace_stats_json(const results::TraceStats& stats);

[[nodiscard]] std::string trace_diff_text(const results::TraceDiff& diff, TextStyle style = {});
[[nodiscard]] std::string trace_diff_json(const results::TraceDiff& diff);

}  // namespace orrery::report
