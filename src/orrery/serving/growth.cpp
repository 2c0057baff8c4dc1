#include "orrery/serving/growth.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

namespace orrery::serving {

namespace {

struct Stay {
  double from = 0, to = 0;  // arrival, answer
  friend bool operator<(const Stay& a, const Stay& b) { return a.from < b.from; }
};

// Of all requests, or of sessions, whose rate is the load's; by arrival.
std::vector<Stay> stays_of(const Workload& load, const FleetRun& run) {
  std::vector<Stay> stays;
  std::unordered_map<std::int32_t, std::size_t> sessions;
  const bool counts_sessions = !load.following.empty();
  const auto count = static_cast<std::size_t>(load.arriving());
  for (std::size_t i = 0; i < count; ++i) {
    if (run.outcomes[i].refused) { continue; }
    const Stay stay = {seconds_of(load.requests[i].arrival), seconds_of(run.outcomes[i].answered)};
    const std::int32_t session = counts_sessions ? load.requests[i].session : -1;
    const auto [known, is_new] =
        session >= 0 ? sessions.try_emplace(session, stays.size()) : std::pair(sessions.end(), true);
    if (is_new) {
      stays.push_back(stay);
      continue;
    }
    Stay& whole = stays[known->second];
    whole = {std::min(whole.from, stay.from), std::max(whole.to, stay.to)};
  }
  std::sort(stays.begin(), stays.end());
  return stays;
}

double mean_time(const std::vector<Stay>& stays, std::size_t first) {
  double sum = 0;
  for (std::size_t i = 0; i < first; ++i) { sum += stays[i].to - stays[i].from; }
  return sum / static_cast<double>(first);
}

// Of the first requests: the least of the means over more and more of them. Of a load far above what is answered, only
// the first ones do not wait.
double first_time(const std::vector<Stay>& stays) {
  constexpr std::size_t kFirst = 5, kTenth = 10;
  double least = mean_time(stays, std::min(kFirst, stays.size()));
  for (std::size_t count = 2 * kFirst; count <= stays.size() / kTenth; count *= 2) {
    least = std::min(least, mean_time(stays, count));
  }
  return least;
}

// Mean number in the system from `begin` for `time`.
double mean_number(const std::vector<Stay>& stays, double begin, double time) {
  double sum = 0;
  for (const Stay& stay : stays) { sum += std::max(0.0, std::min(stay.to, begin + time) - std::max(stay.from, begin)); }
  return sum / time;
}

// Squared coefficient of variation of the intervals between arrivals.
double interval_variation(const std::vector<Stay>& stays) {
  const double count = static_cast<double>(stays.size() - 1), mean = (stays.back().from - stays.front().from) / count;
  double squares = 0;
  for (std::size_t i = 1; i < stays.size(); ++i) {
    const double gap = stays[i].from - stays[i - 1].from;
    squares += gap * gap;
  }
  return squares / count / (mean * mean) - 1.0;
}

// Part of the requests that wait for an engine when the last one arrives.
double left_waiting(const Workload& load, const FleetRun& run) {
  const auto count = static_cast<std::size_t>(load.arriving());
  Ticks last = 0;
  for (std::size_t i = 0; i < count; ++i) { last = std::max(last, load.requests[i].arrival); }
  double waiting = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Outcome& outcome = run.outcomes[i];
    waiting += !outcome.refused && outcome.ready <= last && outcome.scheduled > last ? 1.0 : 0.0;
  }
  return waiting / static_cast<double>(count);
}

}  // namespace

results::ServingGrowth growth_of(const Workload& load, const FleetRun& run) {
  const std::vector<Stay> stays = stays_of(load, run);
  constexpr std::size_t kFewest = 20;
  results::ServingGrowth growth;
  if (stays.empty()) { return growth; }
  const double first = stays.front().from, span = stays.back().from - first;
  const double answer = first_time(stays);
  growth.stay_s = mean_time(stays, stays.size());
  growth.left = left_waiting(load, run);
  growth.is_burst = stays.size() > 1 && span < answer;
  constexpr double kAnswers = 8;  // then the system has filled before the second quarter begins
  growth.is_short = !growth.is_burst && (stays.size() < kFewest || span < kAnswers * answer);
  if (growth.is_burst || growth.is_short) { return growth; }
  const double quarter = span / 4.0;
  const double early = mean_number(stays, first + quarter, quarter);
  const double late = mean_number(stays, first + 3.0 * quarter, quarter);
  const double arrived = static_cast<double>(stays.size()) / 2.0;  // between the middles of the quarters
  const double scatter = std::max(1.0, interval_variation(stays));
  growth.part = (late - early) / arrived;
  growth.chance = std::sqrt(scatter * 2.0 * early * std::min(1.0, growth.stay_s / quarter)) / arrived;
  return growth;
}

}  // namespace orrery::serving
