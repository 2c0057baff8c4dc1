// What a command printed, as the answer to a request.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "apps/server/child.hpp"
#include "orrery/core/error.hpp"

namespace orrery::server {

struct Answer {
  int status = 200;
  std::string body;  // one JSON document
};

[[nodiscard]] Answer error_answer(int status, std::string_view message);
// All diagnostics, one a line, as the command line prints them.
[[nodiscard]] std::string message_of(const Failure& failure);
// For statuses that no handler explained.
[[nodiscard]] std::string reason_of(int status, const std::string& path);

// `is_text`: the command prints text, which becomes {"text": "…"}; else one JSON document.
[[nodiscard]] Answer answer_of(const ChildResult& result, bool is_text);

// The answer with the events of a Chrome trace as "timeline"; an error stays as it is.
[[nodiscard]] Answer with_timeline(const Answer& answer, const std::string& trace);

// "1,000 of 60,396 points, 1 %" as {"progress": {"done": 1000, "all": 60396, "unit": "points"}}; nothing for other
// lines.
[[nodiscard]] std::optional<std::string> progress_line(std::string_view line);
// The last line of a stream.
[[nodiscard]] std::string final_line(const Answer& answer);

}  // namespace orrery::server
