// Keys and values on their way from prefill engines to decode engines. Private to the room.
//
// A transfer takes links of both engines. Those that are free first are reserved when a prompt has ended and the
// request has a place, so that transfers of one pair of engines never overtake each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "orrery/serving/fleet.hpp"

namespace orrery::serving {

struct Transfer {
  Ticks at = 0;  // when the decode engine has all
  std::int64_t request = 0;
  std::size_t from = 0, to = 0;  // engines of the two pools
  friend bool operator>(const Transfer& a, const Transfer& b) {
    return a.at != b.at ? a.at > b.at : a.request > b.request;
  }
};

class Transfers {
 public:
  Transfers(const TransferPolicy& policy, std::size_t senders, std::size_t receivers)
      : policy_(policy),
        senders_(senders, std::vector<Link>(static_cast<std::size_t>(policy.sends))),
        receivers_(receivers, std::vector<Link>(static_cast<std::size_t>(policy.receives))) {}

  [[nodiscard]] Ticks next() const { return on_their_way_.empty() ? kNever : on_their_way_.top().at; }

  // Of `positions` of a prompt, whose computation began at `began` and ends now. Returns when it is on `to`.
  Ticks begin(std::int64_t request, std::int64_t positions, std::size_t from, std::size_t to, Ticks began, Ticks now) {
    if (positions == 0) {
      on_their_way_.push({saturated_sum(now, policy_.latency), request, from, to});
      return saturated_sum(now, policy_.latency);
    }
    const bool by_layer = policy_.layers > 0;  // as the prompt is computed, but the last layer when it has ended
    const Ticks whole = saturated_product(positions, policy_.token), last = by_layer ? whole / policy_.layers : whole;
    Link& sender = *std::min_element(senders_[from].begin(), senders_[from].end());
    Link& receiver = *std::min_element(receivers_[to].begin(), receivers_[to].end());
    const Ticks free = saturated_sum(std::max({sender.free, receiver.free, by_layer ? began : now}), whole);
    const Ticks end = std::max(free, saturated_sum(std::max({sender.end, receiver.end, now}), last));
    sender = receiver = {free, end};
    const Ticks at = saturated_sum(end, policy_.latency);  // handshakes of requests overlap
    on_their_way_.push({at, request, from, to});
    busy_ = saturated_sum(busy_, whole);
    return at;
  }

  Transfer take() {
    const Transfer first = on_their_way_.top();
    on_their_way_.pop();
    return first;
  }

  // In which links were in use, sum over transfers.
  [[nodiscard]] Ticks busy() const { return busy_; }

 private:
  // Layers of prompts that are computed at the same time alternate on a link; the last ones follow each other.
  struct Link {
    Ticks free = 0;  // when it has sent the transfers so far, if it never waits for a layer
    Ticks end = 0;   // of the last one's last layer
    friend bool operator<(const Link& a, const Link& b) { return a.free != b.free ? a.free < b.free : a.end < b.end; }
  };

  TransferPolicy policy_;
  std::vector<std::vector<Link>> senders_, receivers_;  // [engine]
  std::priority_queue<Transfer, std::vector<Transfer>, std::greater<>> on_their_way_;
  Ticks busy_ = 0;
};

}  // namespace orrery::serving
