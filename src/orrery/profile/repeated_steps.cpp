#include "orrery/profile/repeated_steps.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace orrery::profile {

namespace {

constexpr double kLeastShare = 0.95;  // of elements that are equal one period later
constexpr std::size_t kLeastPeriods = 3;

// The commonest distance between equal elements, for each kind of element.
std::set<std::size_t> candidates(const std::vector<std::uint32_t>& sequence) {
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < sequence.size(); ++i) { places[sequence[i]].push_back(i); }
  std::map<std::size_t, std::size_t> weights;  // how many kinds have the distance
  for (const auto& [kind, at] : places) {
    std::map<std::size_t, std::size_t> distances;
    for (std::size_t i = 1; i < at.size(); ++i) { ++distances[at[i] - at[i - 1]]; }
    std::size_t best = 0;
    for (const auto& [distance, count] : distances) {
      if (best == 0 || count > distances[best]) { best = distance; }
    }
    if (best > 1) { ++weights[best]; }  // one launch is no step
  }
  std::vector<std::pair<std::size_t, std::size_t>> order;
  for (const auto& [distance, weight] : weights) { order.emplace_back(weight, distance); }
  std::sort(order.rbegin(), order.rend());
  constexpr std::size_t kMost = 32;
  std::set<std::size_t> chosen;
  for (std::size_t i = 0; i < order.size() && i < kMost; ++i) { chosen.insert(order[i].second); }
  return chosen;
}

struct Launch {
  std::int64_t time = 0;
  std::uint32_t name = 0;
};

}  // namespace

std::size_t period_of(const std::vector<std::uint32_t>& sequence) {
  for (const std::size_t period : candidates(sequence)) {
    if (sequence.size() < kLeastPeriods * period) { break; }
    std::size_t equal = 0;
    for (std::size_t i = period; i < sequence.size(); ++i) { equal += sequence[i] == sequence[i - period] ? 1 : 0; }
    if (static_cast<double>(equal) >= kLeastShare * static_cast<double>(sequence.size() - period)) { return period; }
  }
  return 0;
}

RepeatedSteps repeated_steps(const DeviceWork& work) {
  std::map<TrackIndex, std::vector<Launch>> threads;
  for (std::uint32_t i = 0; i < work.operations().size(); ++i) {
    const DeviceOperation& operation = work[i];
    if (operation.call == nullptr || operation.first_of_call != i) { continue; }
    threads[operation.call->track].push_back({operation.call->start, operation.event->name});
  }
  RepeatedSteps steps;
  const auto most = std::max_element(threads.begin(), threads.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == threads.end()) { return steps; }
  std::vector<Launch>& launches = most->second;
  std::stable_sort(launches.begin(), launches.end(), [](const Launch& a, const Launch& b) { return a.time < b.time; });
  std::vector<std::uint32_t> sequence;
  for (const Launch& launch : launches) { sequence.push_back(launch.name); }
  const std::size_t period = period_of(sequence);
  if (period == 0) { return steps; }
  steps.thread = most->first;
  for (std::size_t i = 0; i < launches.size(); i += period) { steps.begins.push_back(launches[i].time); }
  return steps;
}

}  // namespace orrery::profile
