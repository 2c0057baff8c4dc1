#include "orrery/profile/polls.hpp"

#include <algorithm>
#include <vector>

#include "orrery/profile/stream_waits.hpp"

namespace orrery::profile {

namespace {

constexpr std::int64_t kLeastWait = 50'000;  // ns; a shorter row of queries is the thread's own work
constexpr std::size_t kLeastQueries = 4;

// Whether a stream finished its last launch inside the call, shortly before the call returned.
bool ends_with_a_stream(const DeviceWork& work, const Event& call) {
  for (TrackIndex stream = 0; stream < work.stream_count(); ++stream) {
    const std::uint32_t last = work.last_launched(stream, call.start);
    if (last == kNone) { continue; }
    const std::int64_t end = work[last].event->end();
    if (end > call.start && end <= call.end() && call.end() - end < kUnexplained) { return true; }
  }
  return false;
}

class Rows {
 public:
  explicit Rows(const DeviceWork& work) : work_(work) {}

  void add(const Event& event, bool query) {
    if (!query) {
      finish();
    } else if (count_++ == 0) {
      row_ = event;
      row_.correlation = 0;
    } else {
      row_.duration = event.end() - row_.start;
    }
  }

  void finish() {
    if (count_ >= kLeastQueries && row_.duration >= kLeastWait && ends_with_a_stream(work_, row_)) {
      polls_.push_back(row_);
    }
    count_ = 0;
  }

  std::vector<Event> take() { return std::move(polls_); }

 private:
  const DeviceWork& work_;
  std::vector<Event> polls_;
  Event row_;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<Event> polls_of(const Profile& profile, const DeviceWork& work) {
  std::vector<std::vector<const Event*>> threads(profile.threads.size());
  std::vector<bool> queries(profile.names.size());
  bool any = false;
  for (NameIndex name = 0; name < profile.names.size(); ++name) {
    queries[name] = call_kind(profile.names[name]) == CallKind::query;
    any = any || queries[name];
  }
  if (!any) { return {}; }
  for (const Event& event : profile.events) {
    if (event.category == Category::call || event.category == Category::operation) {
      threads[event.track].push_back(&event);
    }
  }
  Rows rows(work);
  for (auto& events : threads) {
    std::stable_sort(events.begin(), events.end(), [](const Event* a, const Event* b) { return a->start < b->start; });
    // A thread that launches nothing is a watchdog: nobody waits for it.
    const bool launches = std::any_of(events.begin(), events.end(),
                                      [&](const Event* event) { return !work.launched_by(*event).empty(); });
    if (!launches) { continue; }
    for (const Event* event : events) { rows.add(*event, event->category == Category::call && queries[event->name]); }
    rows.finish();
  }
  return rows.take();
}

}  // namespace orrery::profile
