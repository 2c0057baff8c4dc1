#include "orrery/network/flow_run.hpp"

#include <algorithm>
#include <queue>
#include <span>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/network/flow_network.hpp"

namespace orrery::network {

namespace {

// Of each flow, the flows that depend on it.
IndexLists dependents_of(const IndexLists& dependencies) {
  const std::size_t flows = dependencies.first.size() - 1;
  IndexLists dependents;
  dependents.first.assign(flows + 1, 0);
  for (const std::uint32_t on : dependencies.items) { ++dependents.first[on + 1]; }
  for (std::size_t f = 0; f < flows; ++f) { dependents.first[f + 1] += dependents.first[f]; }
  dependents.items.resize(dependencies.items.size());
  std::vector<std::uint32_t> next(dependents.first.begin(), dependents.first.end() - 1);
  for (std::uint32_t f = 0; f < flows; ++f) {
    for (const std::uint32_t on : dependencies[f]) { dependents.items[next[on]++] = f; }
  }
  return dependents;
}

std::vector<double> bandwidths_of(const FlowList& flows) {
  std::vector<double> bandwidths;
  for (const FlowLink& link : flows.links) { bandwidths.push_back(link.bandwidth); }
  return bandwidths;
}

class FlowRun {
 public:
  FlowRun(const FlowList& flows, FairRates::Method method)
      : flows_(flows),
        network_(bandwidths_of(flows), method),
        dependents_(dependents_of(flows.dependencies)),
        changes_(flows.changes),
        failed_(flows.links.size(), false),
        waits_(flows.size()),
        eligible_(flows.starts) {
    times_.finish.assign(flows.size(), 0.0);
    times_.carried.assign(flows.links.size(), 0.0);
  }

  FlowTimes run() {
    std::vector<Start> starts;
    for (std::uint32_t f = 0; f < flows_.size(); ++f) {
      waits_[f] = static_cast<std::uint32_t>(flows_.dependencies[f].size());
      if (waits_[f] == 0) { starts.push_back({eligible_[f] + latency_of(f), f}); }
    }
    starts_ = Starts(Later{}, std::move(starts));
    std::stable_sort(changes_.begin(), changes_.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    while (!times_.stuck && (!starts_.empty() || !network_.empty())) { advance(); }
    ORRERY_ASSERT(times_.stuck || finished_ == flows_.size());
    times_.updates = network_.updates();
    times_.full = network_.rates().counts().full;
    times_.repairs = network_.rates().counts().repairs;
    return std::move(times_);
  }

 private:
  using Start = std::pair<double, std::uint32_t>;  // time, flow
  using Later = std::greater<>;
  using Starts = std::priority_queue<Start, std::vector<Start>, Later>;

  [[nodiscard]] double latency_of(std::uint32_t f) const {
    double latency = 0;
    for (const std::uint32_t link : flows_.routes[f]) { latency += flows_.links[link].latency; }
    return latency;
  }

  // All events of the next instant.
  void advance() {
    double now = network_.empty() ? starts_.top().first : network_.next_end();
    if (!starts_.empty()) { now = std::min(now, starts_.top().first); }
    const bool is_change = change_ < changes_.size() && changes_[change_].time <= now;
    if (is_change) { now = changes_[change_].time; }
    const double until = now + kInstant * now;
    bool has_changed = false;
    if (!network_.empty() && network_.next_end() <= until) {
      for (const auto& [number, end] : network_.take_ended(until)) { finish(running_[number], end); }
      has_changed = true;
    }
    for (; change_ < changes_.size() && changes_[change_].time <= until; ++change_) {
      change(changes_[change_]);
      has_changed = true;
    }
    while (!starts_.empty() && starts_.top().first <= until) {
      const auto [time, flow] = starts_.top();
      starts_.pop();
      has_changed = start(time, flow) || has_changed;
    }
    if (has_changed) { network_.settle(now); }
  }

  // A link that has failed carries almost nothing: rates stay positive.
  void change(const LinkChange& change) {
    constexpr double kFailed = 1e-12;  // bytes/s
    network_.set_bandwidth(change.link, std::max(change.bandwidth, kFailed));
    failed_[change.link] = change.bandwidth == 0;
  }

  [[nodiscard]] bool is_stuck(std::uint32_t f) const {
    const auto route = flows_.routes[f];
    return change_ == changes_.size() && flows_.bytes[f] > 0 &&
           std::any_of(route.begin(), route.end(), [&](std::uint32_t link) { return failed_[link]; });
  }

  bool start(double time, std::uint32_t f) {
    const auto route = flows_.routes[f];
    if (route.empty() || flows_.bytes[f] == 0) {
      finish(f, time);
      return false;
    }
    const double latency = flows_.is_weighted ? latency_of(f) : 0;
    const auto number = network_.start(time, flows_.bytes[f], route, latency > 0 ? 1 / latency : 1);
    if (running_.size() <= number) { running_.resize(number + 1); }
    running_[number] = f;
    return true;
  }

  void finish(std::uint32_t f, double end) {
    if (is_stuck(f)) { times_.stuck = times_.stuck.value_or(f); }
    ++finished_;
    times_.finish[f] = end;
    for (const std::uint32_t link : flows_.routes[f]) { times_.carried[link] += flows_.bytes[f]; }
    for (const std::uint32_t next : dependents_[f]) {
      eligible_[next] = std::max(eligible_[next], end);
      if (--waits_[next] == 0) { starts_.emplace(eligible_[next] + latency_of(next), next); }
    }
  }

  const FlowList& flows_;
  FlowNetwork network_;
  IndexLists dependents_;
  std::vector<LinkChange> changes_;   // by time
  std::size_t change_ = 0;            // the next one
  std::vector<bool> failed_;          // links
  std::vector<std::uint32_t> waits_;  // by flow: dependencies that have not ended
  std::vector<double> eligible_;
  std::vector<std::uint32_t> running_;  // flows by their number in the network
  Starts starts_;
  std::size_t finished_ = 0;
  FlowTimes times_;
};

}  // namespace

FlowTimes run_flows(const FlowList& flows, FairRates::Method method) { return FlowRun(flows, method).run(); }

std::vector<std::uint32_t> find_cycle(const IndexLists& dependencies) {
  const std::size_t flows = dependencies.first.size() - 1;
  const IndexLists dependents = dependents_of(dependencies);
  std::vector<std::uint32_t> waits(flows), ready;
  for (std::uint32_t f = 0; f < flows; ++f) {
    waits[f] = static_cast<std::uint32_t>(dependencies[f].size());
    if (waits[f] == 0) { ready.push_back(f); }
  }
  std::size_t done = 0;
  for (; done < ready.size(); ++done) {
    for (const std::uint32_t next : dependents[ready[done]]) {
      if (--waits[next] == 0) { ready.push_back(next); }
    }
  }
  if (done == flows) { return {}; }
  // Every flow that is left depends on one that is left: going from one to the next ends in a cycle.
  std::vector<std::uint32_t> path, place(flows, 0);
  auto at = static_cast<std::uint32_t>(std::find_if(waits.begin(), waits.end(), [](auto n) { return n > 0; }) -
                                       waits.begin());
  while (place[at] == 0) {
    path.push_back(at);
    place[at] = static_cast<std::uint32_t>(path.size());
    const auto on = dependencies[at];
    at = *std::find_if(on.begin(), on.end(), [&](std::uint32_t f) { return waits[f] > 0; });
  }
  return {path.begin() + place[at] - 1, path.end()};
}

}  // namespace orrery::network
