#include "orrery/profile/idle.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "orrery/profile/intervals.hpp"

namespace orrery::profile {

namespace {

// Intervals that do not overlap, by start.
std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::vector<Interval> all;
  for (const Interval& one : intervals) {
    if (!all.empty() && one.start <= all.back().end) {
      all.back().end = std::max(all.back().end, one.end);
    } else {
      all.push_back(one);
    }
  }
  return all;
}

// Length of the part of [start, end) that the intervals cover.
std::int64_t covered(const std::vector<Interval>& intervals, std::int64_t start, std::int64_t end) {
  auto at = std::lower_bound(intervals.begin(), intervals.end(), start,
                             [](const Interval& one, std::int64_t time) { return one.end <= time; });
  std::int64_t length = 0;
  for (; at != intervals.end() && at->start < end; ++at) {
    length += std::min(at->end, end) - std::max(at->start, start);
  }
  return length;
}

class IdleFinder {
 public:
  IdleFinder(const Profile& profile, const RankPlan& plan) : plan_(plan) {
    std::vector<Interval> overhead;
    for (const Event& event : profile.events) {
      if (event.category == Category::overhead) { overhead.push_back({event.start, event.end()}); }
      if (event.category == Category::call && event.correlation != 0) { calls_.push_back(event.correlation); }
    }
    std::sort(calls_.begin(), calls_.end());
    profiler_ = merged(std::move(overhead));
    // A call that waits: from the end of its own work to its return.
    std::vector<Interval> blocked;
    for (std::size_t i = 1; i < plan.nodes.size(); ++i) {
      const PlannedNode& body = plan.nodes[i - 1];
      if (plan.nodes[i].kind == NodeKind::return_ && plan.nodes[i].start > body.end()) {
        blocked.push_back({body.end(), plan.nodes[i].start});
      }
    }
    blocked_ = merged(std::move(blocked));
  }

  IdleFacts find() {
    std::optional<std::int64_t> end;
    for (const PlannedNode& node : plan_.nodes) {
      if (node.kind != NodeKind::device) { continue; }  // these are in the order of their start
      if (end && node.start > *end) { split(node, *end); }
      end = std::max(end.value_or(node.end()), node.end());
    }
    return facts_;
  }

 private:
  void split(const PlannedNode& node, std::int64_t from) {
    const std::int64_t unexplained = std::min(node.unexplained, node.start - from);
    facts_.unexplained_ns += unexplained;
    const std::int64_t until = node.start - unexplained;
    const auto launch = std::find_if(node.deps.begin(), node.deps.end(),
                                     [](const Dependency& one) { return one.cause == Cause::launch; });
    if (launch == node.deps.end()) {
      const bool called = std::binary_search(calls_.begin(), calls_.end(), node.event->correlation);
      (called ? facts_.graph_ns : facts_.without_call_ns) += until - from;
      return;
    }
    const std::int64_t call = std::clamp(plan_.nodes[launch->node].end(), from, until);
    (call > from ? facts_.launch_ns : facts_.gap_ns) += until - call;
    const std::int64_t profiler = covered(profiler_, from, call);
    const std::int64_t blocked = std::min(covered(blocked_, from, call), call - from - profiler);
    facts_.profiler_ns += profiler;
    facts_.blocked_ns += blocked;
    facts_.host_ns += call - from - profiler - blocked;
  }

  const RankPlan& plan_;
  std::vector<std::uint64_t> calls_;  // correlations, sorted
  std::vector<Interval> profiler_, blocked_;
  IdleFacts facts_;
};

}  // namespace

IdleFacts idle_facts(const Profile& profile, const RankPlan& plan) { return IdleFinder(profile, plan).find(); }

}  // namespace orrery::profile
