#include "orrery/network/flow_network.hpp"

#include <algorithm>
#include <limits>

#include "orrery/core/error.hpp"

namespace orrery::network {

namespace {

// The development and sanitizer builds. (The release build defines no NDEBUG: its assertions stay.)
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kChecked = true;
#else
constexpr bool kChecked = false;
#endif

}  // namespace

// ---- ends ----------------------------------------------------------------------------------------------------------

void FlowEnds::place(std::size_t i, const End& end) {
  ends_[i] = end;
  places_[end.flow] = static_cast<std::uint32_t>(i);
}

void FlowEnds::rise(std::size_t i) {
  const End end = ends_[i];
  while (i > 0 && end.time < ends_[(i - 1) / kArity].time) {
    place(i, ends_[(i - 1) / kArity]);
    i = (i - 1) / kArity;
  }
  place(i, end);
}

void FlowEnds::sink(std::size_t i) {
  const End end = ends_[i];
  for (;;) {
    const std::size_t first = kArity * i + 1, last = std::min(first + kArity, ends_.size());
    std::size_t least = first;
    for (std::size_t child = first; child < last; ++child) {
      if (ends_[child].time < ends_[least].time) { least = child; }
    }
    if (first >= ends_.size() || !(ends_[least].time < end.time)) { break; }
    place(i, ends_[least]);
    i = least;
  }
  place(i, end);
}

void FlowEnds::make_heap() {
  for (std::size_t i = ends_.size() / kArity + 1; i-- > 0;) {
    if (i < ends_.size()) { sink(i); }
  }
  is_heap_ = true;
}

void FlowEnds::set(std::uint32_t flow, double end) {
  if (places_.size() <= flow) { places_.resize(flow + 1, std::numeric_limits<std::uint32_t>::max()); }
  is_known_ = false;
  const std::uint32_t known = places_[flow];
  if (known < ends_.size() && ends_[known].flow == flow) {
    const bool is_later = end > ends_[known].time;
    ends_[known].time = end;
    if (is_heap_) { is_later ? sink(known) : rise(known); }
    return;
  }
  ends_.push_back({end, flow});
  places_[flow] = static_cast<std::uint32_t>(ends_.size() - 1);
  if (is_heap_) { rise(ends_.size() - 1); }
}

void FlowEnds::remove_at(std::size_t i) {
  const End last = ends_.back();
  ends_.pop_back();
  is_known_ = false;
  if (i == ends_.size()) { return; }
  const bool is_later = last.time > ends_[i].time;
  place(i, last);
  if (is_heap_) { is_later ? sink(i) : rise(i); }
}

void FlowEnds::remove(std::uint32_t flow) { remove_at(places_[flow]); }

double FlowEnds::first() {
  ORRERY_ASSERT(!ends_.empty());
  if (is_heap_) { return ends_.front().time; }
  if (!is_known_) {
    first_ = ends_.front().time;
    for (const End& end : ends_) { first_ = std::min(first_, end.time); }
    is_known_ = true;
  }
  return first_;
}

void FlowEnds::take(double time, std::vector<std::pair<std::uint32_t, double>>& ended) {
  if (!is_heap_) {
    const std::size_t before = ends_.size();
    for (std::size_t i = ends_.size(); i-- > 0;) {
      if (ends_[i].time > time) { continue; }
      ended.emplace_back(ends_[i].flow, ends_[i].time);
      remove_at(i);
    }
    if ((before - ends_.size()) * kMany < before) { make_heap(); }
    return;
  }
  while (!ends_.empty() && ends_.front().time <= time) {
    ended.emplace_back(ends_.front().flow, ends_.front().time);
    remove_at(0);
  }
}

// ---- flows ---------------------------------------------------------------------------------------------------------

std::uint32_t FlowNetwork::start(double now, double bytes, std::span<const std::uint32_t> route, double weight) {
  const std::uint32_t number = rates_.add(route, weight);
  if (flows_.size() <= number) { flows_.resize(number + 1); }
  flows_[number] = {bytes, now, 0};
  return number;
}

void FlowNetwork::settle(double now) {
  ++updates_;
  changed_.clear();
  rates_.settle([&](std::uint32_t number, double rate) {
    Flow& flow = flows_[number];
    if (now > flow.since) {  // flows that start later in this instant have moved nothing
      flow.left = std::max(flow.left - flow.rate * (now - flow.since), 0.0);
      flow.since = now;
    }
    flow.rate = rate;
    changed_.push_back(number);
  });
  ends_.expect_changes(changed_.size());
  for (const std::uint32_t number : changed_) {
    const Flow& flow = flows_[number];
    ends_.set(number, flow.since + flow.left / flow.rate);
  }
  if constexpr (kChecked) { ORRERY_ASSERT(!rates_.uncertified()); }
}

const std::vector<FlowNetwork::Ended>& FlowNetwork::take_ended(double time) {
  ended_.clear();
  ends_.take(time, ended_);
  for (const auto& [flow, end] : ended_) { rates_.remove(flow); }
  return ended_;
}

}  // namespace orrery::network
