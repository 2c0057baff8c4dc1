#include "orrery/simulate/order_certificate.hpp"

#include <algorithm>
#include <utility>

#include "orrery/core/error.hpp"

namespace orrery::simulate {

namespace {

std::uint64_t thread_of(std::uint32_t chunk, OrderCertificate::Touches touches) {
  constexpr std::uint64_t kKinds = 8;
  return chunk * kKinds + static_cast<std::uint64_t>(touches);
}

}  // namespace

std::uint32_t OrderCertificate::label(std::uint64_t time, std::uint32_t source) {
  Origin origin{instant_, 0, 0, source};
  if (!events_.empty()) {
    Event& parent = events_.back();
    origin.block = parent.block;
    origin.thread = thread_of(parent.chunk, parent.touches);
    parent.is_immediate = parent.is_immediate || time == now_;
  }
  std::uint32_t number = 0;
  if (free_labels_.empty()) {
    number = static_cast<std::uint32_t>(labels_.size());
    labels_.emplace_back();
  } else {
    number = free_labels_.back();
    free_labels_.pop_back();
  }
  labels_[number] = origin;
  return number;
}

void OrderCertificate::begin(const Handled& event) {
  const Origin origin = labels_[event.label];
  free_labels_.push_back(event.label);
  const bool is_new_instant = instant_ == 0 || event.time != now_;
  const bool follows_in_lane = event.in_lane && last_in_lane_ && !is_new_instant;
  if (is_new_instant || (!follows_in_lane && origin.instant != group_instant_)) {
    close();
    group_instant_ = origin.instant;
  }
  if (is_new_instant) {
    ++instant_;
    now_ = event.time;
  }
  entries_ += follows_in_lane ? 0 : 1;
  last_in_lane_ = event.in_lane;
  if (events_.empty() || events_.back().origin.instant != origin.instant) {
    const auto number = static_cast<std::uint32_t>(blocks_.size());
    ORRERY_ASSERT(number != 0);
    blocks_.push_back({number, false});
  }
  events_.push_back({origin, event.touches, false, false, event.chunk, static_cast<std::uint32_t>(blocks_.size() - 1)});
}

// The events of the group have been handled. If two of its entries have no certain order, then neither have any two
// events of them. Otherwise, events of one entry that were registered at different instants are in order.
void OrderCertificate::close() {
  if (events_.size() > 1) {
    found_.clear();
    for (const Event& event : events_) {
      if (entries_ > 1 && event.origin.instant == group_instant_) { found_.push_back(event); }
    }
    if (has_uncertain_order(found_)) {
      for (const Event& event : events_) { blocks_[event.block].same_as = events_.front().block; }
      check(events_);
    } else {
      for (std::size_t begin = 0, end = 0; begin < events_.size(); begin = end) {
        while (end < events_.size() && events_[end].block == events_[begin].block) { ++end; }
        const std::span<const Event> block(events_.data() + begin, end - begin);
        if (has_uncertain_order(block)) { check(block); }
      }
    }
  }
  events_.clear();
  entries_ = 0;
}

// Of events that were registered at one instant.
bool OrderCertificate::has_uncertain_order(std::span<const Event> events) const {
  for (std::size_t i = 1; i < events.size(); ++i) {
    const Origin &origin = events[i].origin, &before = events[i - 1].origin;
    if (origin.source != before.source) { return true; }
    const bool same_block = blocks_[origin.block].same_as == blocks_[before.block].same_as;
    if (same_block && block_of(origin.block).is_mixed && origin.thread != before.thread) { return true; }
  }
  return false;
}

// The same operation on the same chunk, whatever the order.
bool OrderCertificate::are_all_alike(std::span<const Event> events) {
  return std::all_of(events.begin(), events.end(), [&](const Event& event) {
    return event.touches != Touches::everything && event.touches != Touches::link &&
           event.touches == events.front().touches && event.chunk == events.front().chunk;
  });
}

void OrderCertificate::check(std::span<const Event> events) {
  if (are_all_alike(events)) { return; }
  for (const Event& event : events) {
    if (event.shares || event.touches == Touches::everything) {
      throw OrderMatters{"a chunk ends a phase, or a node ends, at the same time as other events of its rank"};
    }
    if (event.is_immediate) { throw OrderMatters{"an event causes others at its own time"}; }
    if (has_links_ && event.touches != Touches::receives) {
      throw OrderMatters{"messages may be sent over a link at the same time"};
    }
  }
  std::vector<std::pair<std::uint32_t, bool>> chunks;
  for (const Event& event : events) { chunks.emplace_back(event.chunk, event.touches == Touches::receives); }
  std::sort(chunks.begin(), chunks.end());
  for (std::size_t i = 1; i < chunks.size(); ++i) {
    if (chunks[i].first == chunks[i - 1].first && chunks[i].second != chunks[i - 1].second) {
      throw OrderMatters{"a chunk receives a message at the same time as it may send one"};
    }
  }
  blocks_[blocks_[events.front().block].same_as].is_mixed = true;
}

}  // namespace orrery::simulate
