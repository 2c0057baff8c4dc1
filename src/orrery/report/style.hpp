// Shared parts of the text reports. Private to the room.
#pragma once

#include <string>
#include <string_view>

#include "orrery/report/text.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::report {

[[nodiscard]] std::string bold(std::string_view text, TextStyle style);
[[nodiscard]] std::string red(std::string_view text, TextStyle style);
[[nodiscard]] std::string dim(std::string_view text, TextStyle style);

// ", fp4 weights, fp8 KV cache": of those that are not empty.
[[nodiscard]] std::string formats_text(const std::string& weights, const std::string& cache,
                                       const std::string& attention, const std::string& quantized);

// Two lines: model and cluster; batch, precision and stack.
[[nodiscard]] std::string job_header(const results::Estimate& estimate, TextStyle style);

}  // namespace orrery::report
