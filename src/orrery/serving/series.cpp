#include "orrery/serving/series.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "orrery/core/integers.hpp"
#include "orrery/serving/request_times.hpp"

namespace orrery::serving {

namespace {

constexpr std::int64_t kIntervals = 60;

// Equal intervals of a time.
struct Intervals {
  Ticks begin = 0, end = 1;

  // The interval that a moment is in, and the part of it that has passed.
  [[nodiscard]] std::pair<std::size_t, double> at(Ticks moment) const {
    const double whole = real(kIntervals) * real(moment - begin) / real(end - begin);
    const double number = std::clamp(std::floor(whole), 0.0, real(kIntervals - 1));
    return {static_cast<std::size_t>(number), whole - number};
  }
  [[nodiscard]] double seconds() const { return seconds_of(end - begin) / real(kIntervals); }
};

// The mean of a number in each interval, from the times in which it is larger: two entries for each of them.
class MeanNumber {
 public:
  explicit MeanNumber(const Intervals& intervals)
      : intervals_(intervals), rises_(kIntervals + 1), parts_(kIntervals + 1) {}

  void add(Ticks from, Ticks to, double by = 1.0) {
    if (to <= from) { return; }
    step(from, by);
    step(to, -by);
  }
  [[nodiscard]] std::vector<double> values() const {
    std::vector<double> values;
    double number = 0;
    for (std::size_t i = 0; i < kIntervals; ++i) {
      values.push_back(std::max(0.0, number + parts_[i]));
      number += rises_[i];
    }
    return values;
  }

 private:
  void step(Ticks moment, double by) {
    const auto [interval, passed] = intervals_.at(moment);
    parts_[interval] += by * (1.0 - passed);
    rises_[interval] += by;
  }

  const Intervals& intervals_;
  std::vector<double> rises_;  // [interval]: within it
  std::vector<double> parts_;  // [interval]: mean of what these add to it
};

// Tokens of an answer are taken as equally far apart; the first one is generated at once.
void add_tokens(MeanNumber& rates, std::vector<double>& first_tokens, const Intervals& intervals,
                const Outcome& outcome, std::int64_t output) {
  if (outcome.first < 0 || !outcome.done()) { return; }
  first_tokens[intervals.at(outcome.first).first] += 1.0;
  const double time = seconds_of(outcome.last - outcome.first);
  if (time > 0) {
    rates.add(outcome.first, outcome.last, real(output - 1) / time);
  } else {
    first_tokens[intervals.at(outcome.first).first] += real(output - 1);
  }
}

std::vector<results::ServingSeries::Engines> engines_of(const Intervals& intervals, const FleetRun& run,
                                                        const std::vector<results::ServingPool>& pools) {
  std::vector<results::ServingSeries::Engines> engines;
  for (std::size_t p = 0; p < run.autoscaled.size(); ++p) {
    const auto& changes = run.autoscaled[p].changes;
    if (changes.empty()) { continue; }
    MeanNumber on(intervals);
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const Ticks until = i + 1 < changes.size() ? changes[i + 1].first : intervals.end;
      on.add(std::max(changes[i].first, intervals.begin), std::min(until, intervals.end), real(changes[i].second));
    }
    engines.push_back({pools[p].name, on.values()});
  }
  return engines;
}

}  // namespace

results::ServingSeries series_of(const Workload& load, const std::vector<results::ServingPool>& pools,
                                 const FleetRun& run, double request_overhead_s) {
  const auto count = static_cast<std::size_t>(load.arriving());
  Intervals intervals{kNever, run.end};
  for (std::size_t i = 0; i < count; ++i) { intervals.begin = std::min(intervals.begin, load.requests[i].arrival); }
  if (intervals.end <= intervals.begin) { return {}; }
  MeanNumber waiting(intervals), in_system(intervals), rates(intervals);
  std::vector<double> arrivals(kIntervals), first_tokens(kIntervals);
  std::vector<std::vector<double>> ttft(kIntervals);
  for (std::size_t i = 0; i < count; ++i) {
    const Request& request = load.requests[i];
    const Outcome& outcome = run.outcomes[i];
    const std::size_t interval = intervals.at(request.arrival).first;
    arrivals[interval] += 1.0;
    if (outcome.refused) { continue; }
    const bool places_first = outcome.placed <= outcome.scheduled;
    waiting.add(outcome.ready, outcome.scheduled);
    if (!places_first) { waiting.add(outcome.asked, outcome.placed); }
    in_system.add(request.arrival, outcome.answered);
    ttft[interval].push_back(seconds_of(outcome.first - request.arrival) + request_overhead_s);
  }
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    const Outcome& outcome = run.outcomes[i];
    add_tokens(rates, first_tokens, intervals, outcome, outcome.cut ? outcome.cut_tokens : load.requests[i].output);
  }
  results::ServingSeries series;
  series.interval_s = intervals.seconds();
  series.waiting = waiting.values();
  series.in_system = in_system.values();
  series.output_tokens_per_s = rates.values();
  for (std::size_t i = 0; i < kIntervals; ++i) {
    series.arrivals_per_s.push_back(arrivals[i] / series.interval_s);
    series.output_tokens_per_s[i] += first_tokens[i] / series.interval_s;
    if (ttft[i].empty()) {
      series.ttft_p50_s.emplace_back(std::nullopt);
      series.ttft_max_s.emplace_back(std::nullopt);
      continue;
    }
    const auto median = ttft[i].begin() + nearest_rank(ttft[i].size(), 0.5);
    std::nth_element(ttft[i].begin(), median, ttft[i].end());
    series.ttft_p50_s.emplace_back(*median);
    series.ttft_max_s.emplace_back(*std::max_element(median, ttft[i].end()));
  }
  series.engines = engines_of(intervals, run, pools);
  return series;
}

}  // namespace orrery::serving
