#include "orrery/simulate/link_log.hpp"

#include <algorithm>

namespace orrery::simulate {

void LinkLog::add(std::uint32_t id, const Transfer& transfer, LinkGrant grant) {
  const auto number = static_cast<std::uint32_t>(grants_.size());
  if (id >= last_of_transfer_.size()) { last_of_transfer_.resize(id + 1, kNone); }
  if (grant.link >= last_on_link_.size()) { last_on_link_.resize(grant.link + 1, kNone); }
  grant.owner = transfer.owner;
  grant.chunk = transfer.order.chunk;
  grant.step = transfer.order.step;
  grant.node = transfer.order.node;
  grant.from = transfer.from;
  grant.to = transfer.to;
  grant.of_collective = transfer.of_collective;
  grant.to_switch = transfer.to_switch;
  grant.requested_at = transfer.requested_at;
  grant.source = transfer.at;
  if (transfer.has_left_source) {
    grant.previous_hop = last_of_transfer_[id];
    LinkGrant& before = grants_[grant.previous_hop];
    grant.source = before.source;
    if (grant.is_reduction) {
      before.is_reduced_later = true;
    } else {
      before.is_last_hop = false;
    }
  }
  grant.previous_on_link = last_on_link_[grant.link];
  last_of_transfer_[id] = number;
  last_on_link_[grant.link] = number;
  grants_.push_back(grant);
}

}  // namespace orrery::simulate
