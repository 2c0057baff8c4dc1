#include "orrery/simulate/flows.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::simulate {

namespace {

__extension__ using Wide = unsigned __int128;

// The weight of a flow: its speed, at a common level L, is L x weight / 2^32, so that its largest share is L.
std::uint64_t weight(FlowShare largest) { return (std::uint64_t{1} << 63U) / largest * 2; }

}  // namespace

std::uint32_t Flows::start(std::uint64_t now, std::uint64_t alone, std::uint32_t kind,
                           std::span<const PortDemand> demands) {
  const std::uint32_t number = flows_.take();
  Flow& flow = flows_[number];
  flow.demands.assign(demands.begin(), demands.end());
  for (PortDemand& demand : flow.demands) { demand.share = std::max(demand.share, kLeastShare); }
  flow.left = Wide{alone} << kShareBits;
  flow.alone = alone;
  flow.since = now;
  flow.speed = 0;
  flow.kind = kind;
  flow.limit = kNone;
  occupy(number);
  started_.push_back(number);
  return number;
}

// Adds what is left of the flow to its ports.
void Flows::occupy(std::uint32_t number) {
  Flow& flow = flows_[number];
  flow.largest = kLeastShare;
  const auto left = static_cast<std::uint64_t>(flow.left >> kShareBits);
  for (const PortDemand& demand : flow.demands) {
    ORRERY_ASSERT(demand.share <= kWholeShare);
    Port& port = ports_[demand.port];
    port.users.push_back({number, demand.copies, demand.share});
    port.asked += demand.copies * demand.share;
    const auto busy = demand.copies * static_cast<std::uint64_t>((Wide{left} * demand.share) >> kShareBits);
    port.busy += busy;
    if (demand.port >= watched_) { port_uses_[{flow.kind, demand.port}].busy += busy; }
    flow.largest = std::max(flow.largest, demand.share);
    mark(demand.port);
  }
}

void Flows::replace(std::uint64_t now, std::uint32_t number, std::uint64_t alone, std::span<const PortDemand> demands) {
  Flow& flow = flows_[number];
  take(now, number);
  const auto left = static_cast<std::uint64_t>(flow.left >> kShareBits);
  for (const PortDemand& demand : flow.demands) {  // what it will not use after all
    const auto busy = demand.copies * static_cast<std::uint64_t>((Wide{left} * demand.share) >> kShareBits);
    ports_[demand.port].busy -= busy;
    if (demand.port >= watched_) { port_uses_[{flow.kind, demand.port}].busy -= busy; }
  }
  leave(now, number);
  flow.demands.assign(demands.begin(), demands.end());
  for (PortDemand& demand : flow.demands) { demand.share = std::max(demand.share, kLeastShare); }
  if (flow.alone > 0) {
    flow.left = flow.left / flow.alone * alone + flow.left % flow.alone * alone / flow.alone;
    flow.alone = alone;
  }
  flow.speed = 0;
  flow.limit = kNone;
  occupy(number);
  started_.push_back(number);
}

std::vector<std::uint32_t> Flows::users(std::uint32_t port) const {
  std::vector<std::uint32_t> flows;
  for (const User& user : ports_[port].users) { flows.push_back(user.flow); }
  return flows;
}

void Flows::mark(std::uint32_t port) {
  if (ports_[port].is_dirty) { return; }
  ports_[port].is_dirty = true;
  dirty_ports_.push_back(port);
}

void Flows::set_capacity(std::uint32_t port, FlowShare capacity) {
  ORRERY_ASSERT(capacity <= kWholeShare);
  ports_[port].capacity = capacity;
  mark(port);
}

void Flows::end(std::uint64_t now, std::uint32_t number) {
  leave(now, number);
  flows_.give_back(number);
}

void Flows::leave(std::uint64_t now, std::uint32_t number) {
  const Flow& flow = flows_[number];
  for (const PortDemand& demand : flow.demands) {  // who shared its ports until now
    if (ports_[demand.port].asked <= ports_[demand.port].capacity) { continue; }
    for (const User& user : ports_[demand.port].users) {
      if (flows_[user.flow].limit == demand.port) { take(now, user.flow); }
    }
  }
  for (const PortDemand& demand : flow.demands) {
    Port& port = ports_[demand.port];
    auto& users = port.users;
    *std::find_if(users.begin(), users.end(), [=](const User& user) { return user.flow == number; }) = users.back();
    users.pop_back();
    // Flows of a port that was not full have their full speed, as far as this port is concerned.
    if (port.asked > port.capacity) { mark(demand.port); }
    port.asked -= demand.copies * demand.share;
  }
}

std::uint64_t Flows::ends_at(std::uint64_t now, std::uint32_t number) const {
  const Flow& flow = flows_[number];
  if (flow.limit != kNone && ports_[flow.limit].capacity == 0) { return kNever; }
  const Wide duration = (flow.left + flow.speed - 1) / flow.speed;
  return duration > Wide{kNever - now} ? kNever : now + static_cast<std::uint64_t>(duration);
}

// ---- speeds --------------------------------------------------------------------------------------------------------

void Flows::find_speeds(std::uint64_t now) {
  list_affected();
  fill_ports();
  for (const std::uint32_t number : affected_flows_) {
    Flow& flow = flows_[number];
    flow.is_listed = false;
    if (flow.found == flow.speed && flow.found_limit == flow.limit) { continue; }
    const bool changes = flow.found != flow.speed;
    take(now, number);
    flow.speed = flow.found;
    flow.limit = flow.found_limit;
    if (changes) { changed_.push_back(number); }
  }
  for (const std::uint32_t number : affected_ports_) { ports_[number].is_listed = false; }
  for (const std::uint32_t number : dirty_ports_) { ports_[number].is_dirty = false; }
  affected_flows_.clear();
  affected_ports_.clear();
  dirty_ports_.clear();
  started_.clear();
}

void Flows::list(std::uint32_t number) {
  Flow& flow = flows_[number];
  if (flow.is_listed) { return; }
  flow.is_listed = true;
  flow.found = 0;
  flow.found_limit = kNone;
  affected_flows_.push_back(number);
}

// Flows that have started, those on ports that have changed and are, or were, full, and those connected with them
// through full ports. A port that is not full limits nothing.
void Flows::list_affected() {
  for (const std::uint32_t number : started_) { list(number); }
  if (!shared_) { return; }
  for (const std::uint32_t number : dirty_ports_) {
    const bool is_full = ports_[number].asked > ports_[number].capacity;
    for (const User& user : ports_[number].users) {
      if (is_full || flows_[user.flow].limit == number) { list(user.flow); }
    }
  }
  for (std::size_t i = 0; i < affected_flows_.size(); ++i) {
    const std::uint32_t listed = affected_flows_[i];
    for (const PortDemand& demand : flows_[listed].demands) {
      Port& port = ports_[demand.port];
      if (port.asked <= port.capacity || port.is_listed) { continue; }
      port.is_listed = true;
      affected_ports_.push_back(demand.port);
      for (const User& user : port.users) { list(user.flow); }
    }
  }
}

// Raises the common level from limit to limit: of a port, when it is full; of a flow, when it has its full speed.
void Flows::fill_ports() {
  for (const std::uint32_t number : affected_ports_) {
    Port& port = ports_[number];
    port.rest = port.capacity;
    port.rise = 0;
    for (const User& user : port.users) {
      port.rise += user.copies * ((Wide{user.share} * weight(flows_[user.flow].largest)) >> kShareBits);
    }
  }
  for (const std::uint32_t number : affected_flows_) {
    const Flow& flow = flows_[number];
    const bool is_free = std::none_of(flow.demands.begin(), flow.demands.end(),
                                      [&](const PortDemand& demand) { return ports_[demand.port].is_listed; });
    if (is_free) { set_speed(number, kWholeShare, kNone); }
  }
  const auto level_of = [](const Port& port) {
    return port.rise == 0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>((Wide{port.rest} << kShareBits) / port.rise);
  };
  for (;;) {
    std::uint64_t level = ~std::uint64_t{0};
    for (const std::uint32_t number : affected_ports_) { level = std::min(level, level_of(ports_[number])); }
    for (const std::uint32_t number : affected_flows_) {
      if (flows_[number].found == 0) { level = std::min(level, flows_[number].largest); }
    }
    if (level == ~std::uint64_t{0}) { return; }
    // All limits of this level, before any of them changes the ports.
    full_ports_.clear();
    for (const std::uint32_t number : affected_ports_) {
      if (ports_[number].rise != 0 && level_of(ports_[number]) == level) { full_ports_.push_back(number); }
    }
    for (const std::uint32_t number : affected_flows_) {
      if (flows_[number].found == 0 && flows_[number].largest == level) { set_speed(number, kWholeShare, kNone); }
    }
    std::sort(full_ports_.begin(), full_ports_.end());
    for (const std::uint32_t number : full_ports_) {
      for (const User& user : ports_[number].users) {
        if (flows_[user.flow].found != 0) { continue; }
        const Wide speed = (Wide{level} * weight(flows_[user.flow].largest)) >> kShareBits;
        set_speed(user.flow, std::max<FlowShare>(1, static_cast<FlowShare>(std::min<Wide>(speed, kWholeShare))),
                  number);
      }
    }
  }
}

void Flows::set_speed(std::uint32_t number, FlowShare speed, std::uint32_t limit) {
  Flow& flow = flows_[number];
  flow.found = speed;
  flow.found_limit = limit;
  for (const PortDemand& demand : flow.demands) {
    Port& port = ports_[demand.port];
    if (!port.is_listed) { continue; }
    const Wide used = demand.copies * ((Wide{demand.share} * speed + kWholeShare - 1) >> kShareBits);
    port.rest -= std::min(port.rest, static_cast<std::uint64_t>(used));
    port.rise -= demand.copies * ((Wide{demand.share} * weight(flow.largest)) >> kShareBits);
  }
}

// ---- progress ------------------------------------------------------------------------------------------------------

// What the flow has done until now, at its speed so far.
void Flows::take(std::uint64_t now, std::uint32_t number) {
  Flow& flow = flows_[number];
  const std::uint64_t length = now - flow.since;
  const Wide done = Wide{length} * flow.speed;
  flow.left = done >= flow.left ? Wide{0} : flow.left - done;
  if (length > 0 && flow.limit != kNone) { note_meetings(flow, length); }
  flow.since = now;
}

void Flows::note_meetings(const Flow& flow, std::uint64_t length) {
  const auto lost = static_cast<std::uint64_t>((Wide{length} * (kWholeShare - flow.speed)) >> kShareBits);
  if (flow.limit >= watched_) { port_uses_[{flow.kind, flow.limit}].lost += lost; }
  for (const User& other : ports_[flow.limit].users) {
    const std::uint64_t others = other.copies - (&flows_[other.flow] == &flow ? 1 : 0);
    if (others == 0) { continue; }
    FlowMeeting& meeting = meetings_[{flow.kind, flows_[other.flow].kind, flow.limit % classes_}];
    meeting.together += others * length;
    meeting.lost += others * lost;
  }
}

}  // namespace orrery::simulate
