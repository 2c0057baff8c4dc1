// Serving simulations as text, JSON, CSV and timelines.
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/serving.hpp"

namespace orrery::report {

// "gpt-oss-120b on 1 GPU of dgx-h100, bf16, fp4 weights, quantized: experts".
[[nodiscard]] std::string serving_title(const results::Serving& serving);
[[nodiscard]] std::string serving_text(const results::Serving& serving, TextStyle style);
[[nodiscard]] std::string serving_curve_text(const results::ServingCurve& curve, TextStyle style);

// orrery.serve/1. A curve: the fields of its best point (without a service level, of its last), and "points".
[[nodiscard]] std::string serving_json(const results::Serving& serving);
[[nodiscard]] std::string serving_curve_json(const results::ServingCurve& curve);

// SVG: TTFT, TPOT and goodput against the load, with the limits of the service level; TTFT, requests in the system,
// arrivals, output and engines over the time of a run.
[[nodiscard]] std::string serving_curve_svg(const results::ServingCurve& curve);
[[nodiscard]] std::string serving_run_svg(const results::Serving& serving);

// One row per request; with branches, their tokens and preemptions together.
[[nodiscard]] std::string serving_requests_csv(const results::Serving& serving);
// One track per engine: requests in each stage, in the queue, in prefill, in decode (Chrome's trace format, read by
// Perfetto).
[[nodiscard]] std::string serving_timeline(const results::Serving& serving);

}  // namespace orrery::report
