// Times of one request, and the rank of a percentile: what summaries and service levels count. Private to the room.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "orrery/serving/request.hpp"

namespace orrery::serving {

// In seconds.
struct RequestTimes {
  double before = 0;  // stages before the engines, and tokenisation
  double place = 0;   // the wait for a place on a decode engine of another pool
  double queue = 0, prefill = 0;
  double transfer = 0;  // to that engine, until its next iteration starts
  double sending = 0;   // the first token waits for the server
  double ttft = 0, tpot = 0, e2e = 0;

  // Of a metric of a service level.
  [[nodiscard]] double of(std::string_view metric) const {
    return metric == "ttft" ? ttft : metric == "tpot" ? tpot : e2e;
  }
};

// `ending`, `end`: the sequence that ends last; the request itself without branches. TPOT is that sequence's.
[[nodiscard]] inline RequestTimes times_of(const Request& request, const Outcome& outcome, const Request& ending,
                                           const Outcome& end, double overhead) {
  RequestTimes times;
  times.place = seconds_of(outcome.placed - outcome.asked);
  const bool is_before = outcome.placed <= outcome.scheduled;  // the prompt
  times.queue = seconds_of(outcome.scheduled - outcome.ready) - (is_before ? times.place : 0.0);
  const bool is_sent = outcome.prefilled_by >= 0;
  times.before = seconds_of(outcome.ready - request.arrival);
  const Ticks made = outcome.made < 0 ? outcome.first : outcome.made;
  times.sending = seconds_of(outcome.first - made);
  times.prefill = seconds_of((is_sent ? outcome.prefilled : made) - outcome.scheduled);
  if (is_sent) { times.transfer = seconds_of(made - outcome.prefilled) - (is_before ? 0.0 : times.place); }
  times.ttft = seconds_of(outcome.first - request.arrival) + overhead;
  times.e2e = seconds_of(outcome.answered - request.arrival) + overhead;
  const auto later = static_cast<double>(ending.output - 1);
  times.tpot = ending.output > 1 ? seconds_of(end.last - end.first) / later : 0.0;
  return times;
}

// Place of the percentile's nearest rank among `count` sorted values.
[[nodiscard]] inline std::ptrdiff_t nearest_rank(std::size_t count, double p) {
  return static_cast<std::ptrdiff_t>(std::max(1.0, std::ceil(p * static_cast<double>(count)))) - 1;
}

// The part of requests that a limit on a percentile is about: "p90" is 0.9.
[[nodiscard]] inline double part_within(std::string_view measure) {
  return measure == "p50" ? 0.5 : measure == "p90" ? 0.9 : measure == "p95" ? 0.95 : 0.99;
}

// The first requests, which no statistic counts; at least one is counted.
[[nodiscard]] inline std::size_t warm_up_requests(std::size_t count, double part) {
  constexpr double kRounding = 1e-9;
  return std::min(count - 1, static_cast<std::size_t>(part * static_cast<double>(count) + kRounding));
}

}  // namespace orrery::serving
