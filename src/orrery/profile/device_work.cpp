#include "orrery/profile/device_work.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "orrery/profile/collective_kind.hpp"
#include "orrery/profile/decimal.hpp"

namespace orrery::profile {

DeviceWork::DeviceWork(const Profile& profile)
    : profile_(profile), streams_(profile.streams.size()), launches_(profile.streams.size()) {
  std::vector<int> communicates(profile.names.size(), -1);
  for (const Event& event : profile.events) {
    if (event.category == Category::call && event.correlation != 0) { calls_.add(event.correlation, &event); }
  }
  calls_.sort();
  operations_.reserve(
      static_cast<std::size_t>(std::count_if(profile.events.begin(), profile.events.end(),
                                             [](const Event& event) { return is_device_work(event.category); })));
  for (const Event& event : profile.events) {
    if (!is_device_work(event.category)) { continue; }
    const Event* const launch = event.correlation == 0 ? nullptr : call(event.correlation);
    int& known = communicates[event.name];
    if (known < 0) { known = is_communication(profile.name(event)) ? 1 : 0; }
    operations_.push_back({&event, launch, kNone, 0, kNone, known == 1 && event.category == Category::kernel});
  }
  std::stable_sort(operations_.begin(), operations_.end(), [](const DeviceOperation& a, const DeviceOperation& b) {
    return a.event->start != b.event->start ? a.event->start < b.event->start : a.event->end() < b.event->end();
  });
  for (std::uint32_t i = 0; i < operations_.size(); ++i) {
    DeviceOperation& operation = operations_[i];
    auto& stream = streams_[operation.event->track];
    operation.position = static_cast<std::uint32_t>(stream.size());
    if (!stream.empty()) { operation.previous = stream.back(); }
    stream.push_back(i);
    if (operation.call == nullptr) {
      launches_[operation.event->track].emplace_back(std::numeric_limits<std::int64_t>::min(), i);
      continue;
    }
    launched_.push_back(i);
    launches_[operation.event->track].emplace_back(operation.call->start, i);
  }
  for (auto& launches : launches_) {
    launches.shrink_to_fit();
    std::stable_sort(launches.begin(), launches.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  group_by_call();
}

void DeviceWork::group_by_call() {
  launched_.shrink_to_fit();
  std::stable_sort(launched_.begin(), launched_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::less<>()(operations_[a].call, operations_[b].call);
  });
  for (std::uint32_t first = 0; first < launched_.size();) {
    const Event* const call = operations_[launched_[first]].call;
    std::uint32_t last = first;
    for (; last < launched_.size() && operations_[launched_[last]].call == call; ++last) {
      operations_[launched_[last]].first_of_call = launched_[first];
    }
    by_call_.add(call, {first, last - first});
    first = last;
  }
  by_call_.sort();
}

std::span<const std::uint32_t> DeviceWork::launched_by(const Event& call) const {
  const auto* const found = by_call_.find(&call);
  if (found == nullptr) { return {}; }
  return std::span(launched_).subspan(found->first, found->second);
}

std::uint32_t DeviceWork::last_launched(TrackIndex stream, std::int64_t before) const {
  const auto& launches = launches_[stream];
  const auto after = std::lower_bound(launches.begin(), launches.end(), before,
                                      [](const auto& launch, std::int64_t time) { return launch.first < time; });
  return after == launches.begin() ? kNone : std::prev(after)->second;
}

const Event* DeviceWork::call(std::uint64_t correlation) const {
  const Event* const* const found = calls_.find(correlation);
  return found == nullptr ? nullptr : *found;
}

std::uint32_t DeviceWork::stream_of(std::string_view device, std::int64_t number) const {
  for (std::uint32_t i = 0; i < profile_.streams.size(); ++i) {
    if (profile_.streams[i].process == device && integer_of<std::int64_t>(profile_.streams[i].thread) == number) {
      return i;
    }
  }
  return kNone;
}

}  // namespace orrery::profile
