#include "orrery/profile/operators.hpp"

#include <algorithm>

#include "orrery/profile/collective_kind.hpp"

namespace orrery::profile {

OperatorIndex::OperatorIndex(const Profile& profile)
    : operations_(profile.threads.size()), collectives_(profile.threads.size()) {
  std::vector<int> names_collective(profile.names.size(), -1);
  std::vector<std::size_t> counts(profile.threads.size());
  for (const Event& event : profile.events) {
    if (event.category == Category::operation) { ++counts[event.track]; }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) { operations_[i].events.reserve(counts[i]); }
  for (const Event& event : profile.events) {
    if (event.category == Category::operation) { operations_[event.track].events.push_back(&event); }
    if (event.category != Category::operation && event.category != Category::annotation) { continue; }
    int& named = names_collective[event.name];
    if (named < 0) {
      const std::string_view name = profile.name(event);
      named = name == "record_param_comms" || !collective_kind_of_name(name).empty() ? 1 : 0;
    }
    if (named == 1 || profile.comm(event) != nullptr) { collectives_[event.track].events.push_back(&event); }
  }
  for (Thread& thread : operations_) { add_parents(thread); }
  for (Thread& thread : collectives_) { add_parents(thread); }
}

void OperatorIndex::add_parents(Thread& thread) {
  std::stable_sort(thread.events.begin(), thread.events.end(), [](const Event* a, const Event* b) {
    return a->start != b->start ? a->start < b->start : a->duration > b->duration;
  });
  thread.parent.resize(thread.events.size());
  std::vector<std::int32_t> open;
  for (std::size_t i = 0; i < thread.events.size(); ++i) {
    while (!open.empty() && thread.events[static_cast<std::size_t>(open.back())]->end() <= thread.events[i]->start) {
      open.pop_back();
    }
    thread.parent[i] = open.empty() ? -1 : open.back();
    open.push_back(static_cast<std::int32_t>(i));
  }
}

const Event* OperatorIndex::innermost(const Thread& thread, const Event& call) {
  const auto after = std::upper_bound(thread.events.begin(), thread.events.end(), call.start,
                                      [](std::int64_t time, const Event* event) { return time < event->start; });
  for (auto at = static_cast<std::int32_t>(after - thread.events.begin()) - 1; at >= 0;
       at = thread.parent[static_cast<std::size_t>(at)]) {
    const Event* const event = thread.events[static_cast<std::size_t>(at)];
    if (event->end() > call.start || (event->end() == call.start && event->duration == 0)) { return event; }
  }
  return nullptr;
}

const Event* OperatorIndex::around(const Event& call) const {
  return call.track < operations_.size() ? innermost(operations_[call.track], call) : nullptr;
}

const Event* OperatorIndex::record_around(const Event& call, const Profile& profile) const {
  if (call.track >= collectives_.size()) { return nullptr; }
  const Thread& thread = collectives_[call.track];
  const auto after = std::upper_bound(thread.events.begin(), thread.events.end(), call.start,
                                      [](std::int64_t time, const Event* event) { return time < event->start; });
  for (auto at = static_cast<std::int32_t>(after - thread.events.begin()) - 1; at >= 0;
       at = thread.parent[static_cast<std::size_t>(at)]) {
    const Event* const event = thread.events[static_cast<std::size_t>(at)];
    if (event->end() > call.start && event->category == Category::operation && profile.comm(*event) != nullptr) {
      return event;
    }
  }
  return nullptr;
}

const Event* OperatorIndex::collective_around(const Event& call) const {
  return call.track < collectives_.size() ? innermost(collectives_[call.track], call) : nullptr;
}

const Event* OperatorIndex::outermost_collective(const Event& call) const {
  const Event* found = call.track < collectives_.size() ? innermost(collectives_[call.track], call) : nullptr;
  while (found != nullptr) {
    // The innermost one that starts before it and contains it.
    const Thread& thread = collectives_[call.track];
    const auto at =
        std::lower_bound(thread.events.begin(), thread.events.end(), found, [](const Event* a, const Event* b) {
          return a->start != b->start ? a->start < b->start : a->duration > b->duration;
        });
    auto position = static_cast<std::size_t>(at - thread.events.begin());
    while (position < thread.events.size() && thread.events[position] != found) { ++position; }
    const std::int32_t parent = position < thread.events.size() ? thread.parent[position] : -1;
    if (parent < 0 || thread.events[static_cast<std::size_t>(parent)]->end() < found->end()) { break; }
    found = thread.events[static_cast<std::size_t>(parent)];
  }
  return found;
}

}  // namespace orrery::profile
