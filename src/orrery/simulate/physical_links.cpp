#include "orrery/simulate/physical_links.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace orrery::simulate {

namespace {

constexpr std::uint32_t kReducer = 0xFFFFFFFF;  // as a link's dimension

std::uint64_t up_to_picoseconds(double ns) {
  constexpr double kMost = 1e18;
  const double time = std::ceil(ns * static_cast<double>(kPicosecondsPerNs));
  if (!(time < kMost)) { throw TooLong{}; }
  return static_cast<std::uint64_t>(time);
}

auto keys(const Packet& packet) {
  const Order& order = packet.order;
  return std::tuple(order.priority, packet.asked, !packet.on_its_way, order.node, order.chunk, order.step, order.place,
                    packet.bytes);
}

}  // namespace

Links::Links(const Network& network, double memory_gb, LinkUser& user) : user_(user), ranks_(network.ranks()) {
  std::uint32_t stride = 1, count = 0;
  for (const NetworkDimension& given : network.dimensions) {
    Dimension& dimension = dimensions_.emplace_back();
    dimension.topology = given.topology;
    dimension.ranks = given.ranks;
    dimension.stride = stride;
    dimension.first_link = count;
    dimension.latency = up_to_picoseconds(given.latency_ns);
    dimension.rate = rate_of_gb(given.bandwidth_gib);
    if (given.topology == Topology::FullyConnected) {
      dimension.rows.resize(ranks_);
    } else {
      count += 2 * ranks_;
    }
    links_.resize(count);
    for (std::uint32_t i = dimension.first_link; i < count; ++i) {
      links_[i].dimension = static_cast<std::uint32_t>(dimensions_.size()) - 1;
    }
    stride *= given.ranks;
  }
  if (memory_gb > 0) {  // read, read, write
    constexpr std::uint64_t kPasses = 3;
    memory_rate_ = rate_of_gb(memory_gb, kPasses);
    reducers_ = count;
    links_.resize(std::size_t{count} + ranks_);
    for (std::uint32_t i = count; i < links_.size(); ++i) { links_[i].dimension = kReducer; }
  }
}

// ---- routes --------------------------------------------------------------------------------------------------------

std::uint32_t Links::own_link(Dimension& dimension, std::uint8_t number, std::uint32_t rank, std::uint32_t to) {
  auto& row = dimension.rows[rank];
  if (!row) {
    row = std::make_unique<std::uint32_t[]>(dimension.ranks);  // NOLINT(*-avoid-c-arrays)
    std::fill_n(row.get(), dimension.ranks, kNone);
  }
  if (row[to] == kNone) {
    row[to] = static_cast<std::uint32_t>(links_.size());
    links_.emplace_back().dimension = number;
  }
  return row[to];
}

// Ranks differ in the dimension, or the packet is at its switch.
Links::Hop Links::hop(Dimension& dimension, std::uint8_t number, const Packet& packet) {
  const std::uint32_t n = dimension.ranks, from = dimension.coordinate(packet.at),
                      to = dimension.coordinate(packet.target);
  const std::uint32_t line = packet.at - from * dimension.stride;
  switch (dimension.topology) {
    case Topology::FullyConnected:
      return {own_link(dimension, number, packet.at, to), line + to * dimension.stride, number, false};
    case Topology::Switch: {
      if (!packet.in_switch) { return {dimension.first_link + 2 * packet.at, packet.at, number, true}; }
      const std::uint32_t below = line + to * dimension.stride;
      return {dimension.first_link + 2 * below + 1, below, number, false};
    }
    case Topology::Ring: {
      const std::uint32_t ahead = to >= from ? to - from : to + n - from;
      const bool back = n - ahead < ahead;  // half-way round: forward
      const std::uint32_t next = back ? (from == 0 ? n - 1 : from - 1) : (from + 1 == n ? 0 : from + 1);
      return {dimension.first_link + 2 * packet.at + (back ? 1 : 0), line + next * dimension.stride, number, false};
    }
  }
  return {};
}

Links::Hop Links::hop(const Packet& packet) {
  for (std::uint8_t i = packet.dimension; i < dimensions_.size(); ++i) {
    Dimension& dimension = dimensions_[i];
    const bool moves =
        packet.in_switch || packet.to_switch || dimension.coordinate(packet.at) != dimension.coordinate(packet.target);
    if (moves) { return hop(dimension, i, packet); }
  }
  ORRERY_ASSERT(false);
  return {};
}

// ---- queues --------------------------------------------------------------------------------------------------------

bool Links::before(const Packet& a, const Packet& b) const { return keys(a) < keys(b); }

void Links::ask(std::uint32_t packet, std::uint64_t now) { put(hop(packets_[packet]).link, packet, now); }

void Links::reduce(std::uint32_t packet, std::uint64_t now) { put(reducers_ + packets_[packet].at, packet, now); }

// Nearly all requests come behind those of earlier instants, so that a look at those of this one is enough.
void Links::put(std::uint32_t number, std::uint32_t id, std::uint64_t now) {
  Link& link = links_[number];
  Packet& packet = packets_[id];
  packet.asked = now;
  packet.next = kNone;
  if (link.older_than != now) {
    link.older_than = now;
    link.older = link.last;
  }
  if (link.first == kNone) {
    link.first = link.last = id;
  } else if (!before(packet, packets_[link.last])) {
    packets_[link.last].next = id;
    link.last = id;
  } else if (before(packet, packets_[link.first])) {
    packet.next = link.first;
    link.first = id;
  } else {
    const bool behind = link.older != kNone && !before(packet, packets_[link.older]);
    std::uint32_t ahead = behind ? link.older : link.first;
    while (!before(packet, packets_[packets_[ahead].next])) { ahead = packets_[ahead].next; }
    packet.next = packets_[ahead].next;
    packets_[ahead].next = id;
  }
  touch(number, now);
}

// A link with requests is looked at when the round ends if it is free, else once it is.
void Links::touch(std::uint32_t number, std::uint64_t now) {
  Link& link = links_[number];
  if (link.free_at > now) {
    if (!link.will_wake) {
      link.will_wake = true;
      user_.wakes_at(link.free_at, number);
    }
  } else if (!link.is_dirty && !link.will_wake) {
    link.is_dirty = true;
    dirty_.push_back(number);
  }
}

void Links::wake(std::uint32_t number, std::uint64_t now) {
  links_[number].will_wake = false;
  touch(number, now);
}

// ---- grants --------------------------------------------------------------------------------------------------------

void Links::grant(std::uint64_t now) {
  // What is granted here asks for other links in later rounds only.
  constexpr std::size_t kNear = 4, kFar = 10;
  for (std::size_t i = 0; i < dirty_.size(); ++i) {
    if (i + kFar < dirty_.size()) { fetch(dirty_[i + kFar], 2); }
    if (i + kNear < dirty_.size()) { fetch(dirty_[i + kNear], 1); }
    links_[dirty_[i]].is_dirty = false;
    grant(dirty_[i], now);
  }
  dirty_.clear();
}

void Links::grant(std::uint32_t number, std::uint64_t now) {
  const std::uint32_t dimension = links_[number].dimension;
  const bool reduces = dimension == kReducer;
  batch_.clear();
  Link& link = links_[number];
  const Packet& head = packets_[link.first];
  do {
    batch_.push_back({link.first, {}, false});
    link.first = packets_[link.first].next;
  } while (link.first != kNone && keys(packets_[link.first]) == keys(head));
  if (link.first == kNone) { link.last = kNone; }
  link.older = kNone;
  const std::uint64_t one = (reduces ? memory_rate_ : dimensions_[dimension].rate).picoseconds(head.bytes);
  const std::uint64_t takes = one * batch_.size();
  if (takes / batch_.size() != one || takes > kMostTime - now) { throw TooLong{}; }
  link.free_at = now + takes;
  link.busy += takes;
  link.messages += batch_.size();
  link.bytes += head.bytes * batch_.size();
  link.queued += (now - head.asked) * batch_.size();
  if (link.first != kNone) {
    link.will_wake = true;
    user_.wakes_at(link.free_at, number);
  }
  if (reduces) { return reduced(now, takes); }
  for (Going& going : batch_) {
    Packet& packet = packets_[going.packet];
    const Hop taken = hop(packet);
    packet.at = taken.at;
    packet.in_switch = taken.in_switch;
    packet.dimension = taken.dimension;
    going.arrived = arrived(packet);
    if (!packet.on_its_way) { user_.leaves_at(now + takes, packet); }
    packet.on_its_way = true;
    if (!going.arrived) { going.next = hop(packet); }
  }
  send_on(now, takes, dimensions_[dimension].latency);
}

void Links::reduced(std::uint64_t now, std::uint64_t takes) {
  for (const Going& going : batch_) { user_.reduced_at(now + takes, going.packet); }
}

// Heads go on at once, or so much later that the tail of a slower link is there in time: those that go on together ask
// for the next link together, and would take it as long as all of them take.
void Links::send_on(std::uint64_t now, std::uint64_t takes, std::uint64_t latency) {
  if (batch_.size() > 1) {
    std::sort(batch_.begin(), batch_.end(), [](const Going& a, const Going& b) {
      return std::tuple(a.arrived, a.next.link) < std::tuple(b.arrived, b.next.link);
    });
  }
  for (std::size_t i = 0; i < batch_.size();) {
    std::size_t end = i + 1;
    while (end < batch_.size() && !batch_[i].arrived && batch_[end].next.link == batch_[i].next.link) { ++end; }
    if (batch_[i].arrived) {
      user_.arrives_at(now + latency + takes, batch_[i].packet);
    } else {
      const std::uint64_t there =
          dimensions_[batch_[i].next.dimension].rate.picoseconds(packets_[batch_[i].packet].bytes) * (end - i);
      const std::uint64_t ask = now + latency + (takes > there ? takes - there : 0);
      for (std::size_t k = i; k < end; ++k) { user_.asks_at(ask, batch_[k].packet); }
    }
    i = end;
  }
}

// ---- counts --------------------------------------------------------------------------------------------------------

std::vector<results::SimulatedLink> Links::counts() const {
  std::vector<results::SimulatedLink> counts;
  const auto add = [&](const Link& link, std::uint32_t from, std::uint32_t to) {
    if (link.messages == 0) { return; }
    counts.push_back({link.dimension, from, to, link.bytes, link.busy, link.messages, link.queued});
  };
  for (const Dimension& dimension : dimensions_) {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const std::uint32_t here = dimension.coordinate(rank), n = dimension.ranks;
      const std::uint32_t line = rank - here * dimension.stride;
      switch (dimension.topology) {
        case Topology::Ring:
          add(links_[dimension.first_link + 2 * rank], rank, line + (here + 1) % n * dimension.stride);
          add(links_[dimension.first_link + 2 * rank + 1], rank, line + (here + n - 1) % n * dimension.stride);
          break;
        case Topology::Switch:
          add(links_[dimension.first_link + 2 * rank], rank, results::SimulatedLink::kSwitch);
          add(links_[dimension.first_link + 2 * rank + 1], results::SimulatedLink::kSwitch, rank);
          break;
        case Topology::FullyConnected:
          for (std::uint32_t to = 0; dimension.rows[rank] && to < n; ++to) {
            const std::uint32_t number = dimension.rows[rank][to];
            if (number != kNone) { add(links_[number], rank, line + to * dimension.stride); }
          }
          break;
      }
    }
  }
  return counts;
}

}  // namespace orrery::simulate
