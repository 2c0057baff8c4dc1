#include "orrery/profile/thread_wakes.hpp"

#include <algorithm>

#include "orrery/profile/intervals.hpp"

namespace orrery::profile {

namespace {

// Shorter pauses are the thread's own work.
constexpr std::int64_t kLeastPause = 20'000;  // ns

// Operators that call each other are next to each other in the file: most join the last interval, and few are kept.
void join_or_add(const Interval& interval, std::vector<Interval>& intervals) {
  if (intervals.empty() || interval.start > intervals.back().end || interval.end < intervals.back().start) {
    intervals.push_back(interval);
    return;
  }
  Interval& last = intervals.back();
  last = {std::min(last.start, interval.start), std::max(last.end, interval.end)};
}

std::vector<std::vector<Interval>> busy_intervals(const Profile& profile, const std::vector<bool>& threads) {
  std::vector<std::vector<Interval>> all(threads.size());
  for (const Event& event : profile.events) {
    const bool runs = event.category == Category::operation || event.category == Category::call;
    if (runs && threads[event.track]) { join_or_add({event.start, event.end()}, all[event.track]); }
  }
  for (std::vector<Interval>& intervals : all) {
    std::sort(intervals.begin(), intervals.end());
    std::size_t kept = 0;
    for (const Interval& interval : intervals) {
      if (kept > 0 && interval.start <= intervals[kept - 1].end) {
        intervals[kept - 1].end = std::max(intervals[kept - 1].end, interval.end);
      } else {
        intervals[kept++] = interval;
      }
    }
    intervals.resize(kept);
  }
  return all;
}

// Finds who ran while a thread paused.
class Wakers {
 public:
  explicit Wakers(const std::vector<std::vector<Interval>>& busy) : busy_(busy) {}

  // The pause from `asleep` to `awake`; the first one of a thread has no `asleep`.
  void pause(TrackIndex sleeper, const Interval* before, std::int64_t awake, std::vector<Wake>& wakes) const {
    Wake best{sleeper, before == nullptr ? awake : before->end, awake, sleeper, 0};
    bool found = false;
    for (TrackIndex other = 0; other < busy_.size(); ++other) {
      if (other == sleeper || busy_[other].empty()) { continue; }
      const auto& runs = busy_[other];
      auto after = std::lower_bound(runs.begin(), runs.end(), awake,
                                    [](const Interval& run, std::int64_t time) { return run.start < time; });
      if (after == runs.begin()) { continue; }
      const Interval& last = *std::prev(after);
      if (last.end > awake) { continue; }  // it still ran
      if (before != nullptr) {
        const auto first = std::lower_bound(runs.begin(), after, before->end,
                                            [](const Interval& run, std::int64_t time) { return run.start < time; });
        if (first == after || 2 * (last.end - first->start) < awake - before->end) { continue; }
      }
      if (found && last.end <= best.done) { continue; }
      best.waker = other;
      best.done = last.end;
      found = true;
    }
    if (found) { wakes.push_back(best); }
  }

 private:
  const std::vector<std::vector<Interval>>& busy_;
};

}  // namespace

std::vector<Wake> wakes_of(const Profile& profile, const std::vector<bool>& threads) {
  const auto busy = busy_intervals(profile, threads);
  const Wakers wakers(busy);
  std::vector<Wake> wakes;
  for (TrackIndex thread = 0; thread < busy.size(); ++thread) {
    for (std::size_t i = 0; i < busy[thread].size(); ++i) {
      const Interval* const before = i == 0 ? nullptr : &busy[thread][i - 1];
      if (before != nullptr && busy[thread][i].start - before->end < kLeastPause) { continue; }
      wakers.pause(thread, before, busy[thread][i].start, wakes);
    }
  }
  return wakes;
}

}  // namespace orrery::profile
