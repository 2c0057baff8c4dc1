#include "orrery/simulate/physical_links.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace orrery::simulate {

namespace {

constexpr std::uint8_t kReducer = 0xFF;  // as a link's dimension

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

Links::Links(const Network& network, double memory_gb) : ranks_(network.ranks()) {
  if (network.dimensions.size() >= kReducer) { throw TooLong{}; }
  std::uint32_t stride = 1, count = 0;
  for (const NetworkDimension& given : network.dimensions) {
    Dimension& dimension = dimensions_.emplace_back();
    dimension.topology = given.topology;
    dimension.ranks = given.ranks;
    dimension.stride = stride;
    dimension.first_link = count;
    dimension.latency = up_to_picoseconds(given.latency_ns);
    dimension.rate = rate_of(given.bytes_per_second);
    if (given.topology == Topology::FullyConnected) {
      dimension.rows.resize(ranks_);
    } else {
      count += 2 * ranks_;
    }
    links_.resize(count);
    know_ends(dimension, static_cast<std::uint8_t>(dimensions_.size() - 1));
    stride *= given.ranks;
  }
  if (memory_gb > 0) {  // read, read, write
    constexpr std::uint64_t kPasses = 3;
    memory_rate_ = rate_of(memory_gb * 1e9, kPasses);
    reducers_ = count;
    links_.resize(std::size_t{count} + ranks_);
    for (std::uint32_t i = count; i < links_.size(); ++i) { links_[i].dimension = kReducer; }
  }
}

// ---- routes --------------------------------------------------------------------------------------------------------

// Of rings and switches, whose links are there from the start: two for each rank.
void Links::know_ends(const Dimension& dimension, std::uint8_t number) {
  if (dimension.topology == Topology::FullyConnected) { return; }
  const std::uint32_t n = dimension.ranks;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t here = dimension.coordinate(rank), line = rank - here * dimension.stride;
    const bool ring = dimension.topology == Topology::Ring;
    Link& forth = links_[dimension.first_link + 2 * rank];
    Link& back = links_[dimension.first_link + 2 * rank + 1];
    forth.dimension = back.dimension = number;
    forth.into_switch = !ring;
    forth.to = ring ? line + (here + 1 == n ? 0 : here + 1) * dimension.stride : rank;
    back.to = ring ? line + (here == 0 ? n - 1 : here - 1) * dimension.stride : rank;
  }
}

std::uint32_t Links::own_link(Dimension& dimension, std::uint8_t number, std::uint32_t rank, std::uint32_t to) {
  auto& row = dimension.rows[rank];
  if (!row) {
    row = std::make_unique<std::uint32_t[]>(dimension.ranks);  // NOLINT(*-avoid-c-arrays)
    std::fill_n(row.get(), dimension.ranks, kNone);
  }
  const std::uint32_t column = dimension.coordinate(to);
  if (row[column] == kNone) {
    row[column] = static_cast<std::uint32_t>(links_.size());
    Link& link = links_.emplace_back();
    link.dimension = number;
    link.to = to;
  }
  return row[column];
}

std::uint32_t Links::next_link(Dimension& dimension, std::uint8_t number, const Packet& packet) {
  const std::uint32_t n = dimension.ranks;
  if (dimension.topology == Topology::Switch && !packet.in_switch) { return dimension.first_link + 2 * packet.at; }
  const std::uint32_t from = dimension.coordinate(packet.at), to = dimension.coordinate(packet.target);
  const std::uint32_t behind = packet.at - from * dimension.stride + to * dimension.stride;
  switch (dimension.topology) {
    case Topology::FullyConnected: return own_link(dimension, number, packet.at, behind);
    case Topology::Switch: return dimension.first_link + 2 * behind + 1;
    case Topology::Ring: break;
  }
  const std::uint32_t ahead = to >= from ? to - from : to + n - from;
  const bool back = n - ahead < ahead;  // half-way round: forward
  return dimension.first_link + 2 * packet.at + (back ? 1 : 0);
}

std::uint32_t Links::next_link(const Packet& packet) {
  const Dimension& first = dimensions_[packet.dimension];
  if (first.topology == Topology::Ring) {  // most often to a neighbour
    const std::uint32_t forth = first.first_link + 2 * packet.at;
    if (links_[forth].to == packet.target) { return forth; }
    if (links_[forth + 1].to == packet.target) { return forth + 1; }
  }
  const auto dimensions = static_cast<std::uint8_t>(dimensions_.size());
  for (std::uint8_t i = packet.dimension; i < dimensions; ++i) {
    Dimension& dimension = dimensions_[i];
    const bool moves =
        packet.in_switch || packet.to_switch || dimension.coordinate(packet.at) != dimension.coordinate(packet.target);
    if (moves) { return next_link(dimension, i, packet); }
  }
  ORRERY_ASSERT(false);
  return 0;
}

// ---- queues --------------------------------------------------------------------------------------------------------

bool Links::before(const Packet& a, const Packet& b) const { return keys(a) < keys(b); }

void Links::ask(std::uint32_t packet, std::uint64_t now) { put(next_link(packets_[packet]), packet, now); }

void Links::reduce(std::uint32_t packet, std::uint64_t now) { put(reducers_ + packets_[packet].at, packet, now); }

// Nearly all requests come behind those of earlier instants.
void Links::put(std::uint32_t number, std::uint32_t id, std::uint64_t now) {
  Link& link = links_[number];
  Packet& packet = packets_[id];
  packet.asked = now;
  packet.next = kNone;
  if (link.older_than != now) {
    link.older_than = now;
    link.older = link.last;
  }
  const std::int32_t priority = packet.order.priority;
  if (link.first == kNone) {
    link.first = id;
  } else if (priority > link.last_priority || (priority == link.last_priority && now > link.last_asked)) {
    packets_[link.last].next = id;
  } else {
    insert(link, id);
    if (link.last != id) { return touch(number, now); }
  }
  link.last = id;
  link.last_priority = priority;
  link.last_asked = now;
  touch(number, now);
}

// Somewhere among those that wait, behind its equals: a look at those of this instant is enough most of the time.
void Links::insert(Link& link, std::uint32_t id) {
  Packet& packet = packets_[id];
  if (before(packet, packets_[link.first])) {
    packet.next = link.first;
    link.first = id;
    return;
  }
  const bool is_behind = link.older != kNone && !before(packet, packets_[link.older]);
  std::uint32_t ahead = is_behind ? link.older : link.first;
  while (packets_[ahead].next != kNone && !before(packet, packets_[packets_[ahead].next])) {
    ahead = packets_[ahead].next;
  }
  packet.next = packets_[ahead].next;
  packets_[ahead].next = id;
  link.has_equals = link.has_equals || keys(packets_[ahead]) == keys(packet);
  if (packet.next == kNone) { link.last = id; }
}

// A link with requests is looked at when the round ends if it is free, else once it is.
void Links::touch(std::uint32_t number, std::uint64_t now) {
  Link& link = links_[number];
  if (link.free_at > now) {
    if (!link.will_wake) {
      link.will_wake = true;
      notices_.push_back({link.free_at, number, LinkNotice::Kind::wakes});
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

std::span<const LinkNotice> Links::grant(std::uint64_t now) {
  // What is granted here asks for other links in later rounds only.
  constexpr std::size_t kFar = 14, kFarthest = 24;
  const std::size_t count = dirty_.size();
  for (std::size_t i = 0; i < kFarthest && i < count; ++i) { fetch(dirty_[i], 2); }
  for (std::size_t i = 0; i < kFar && i < count; ++i) { fetch(dirty_[i], 1); }
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kFarthest < count) { fetch(dirty_[i + kFarthest], 2); }
    if (i + kFar < count) { fetch(dirty_[i + kFar], 1); }
    links_[dirty_[i]].is_dirty = false;
    grant(dirty_[i], now);
  }
  dirty_.clear();
  granted_.swap(notices_);
  notices_.clear();
  return granted_;
}

// The first, and those that are equal to it.
void Links::take_batch(Link& link) {
  batch_.clear();
  const Packet& head = packets_[link.first];
  do {
    batch_.push_back({link.first, kNone});
    link.first = packets_[link.first].next;
  } while (link.has_equals && link.first != kNone && keys(packets_[link.first]) == keys(head));
  if (link.first == kNone) {
    link.last = kNone;
    link.has_equals = false;
  } else {
    __builtin_prefetch(&packets_[link.first]);
  }
  link.older = kNone;
}

void Links::grant(std::uint32_t number, std::uint64_t now) {
  Link& link = links_[number];
  take_batch(link);
  const bool reduces = link.dimension == kReducer, into_switch = link.into_switch;
  const std::uint32_t to = link.to;
  const std::uint8_t dimension = link.dimension;
  const Packet& head = packets_[batch_.front().packet];
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
    notices_.push_back({link.free_at, number, LinkNotice::Kind::wakes});
  }
  if (reduces) { return reduced(now, takes); }
  for (Going& going : batch_) {
    Packet& packet = packets_[going.packet];
    packet.at = to;
    packet.in_switch = into_switch;
    packet.dimension = dimension;
    if (!packet.on_its_way && packet.of_collective) {
      notices_.push_back({now + takes, going.packet, LinkNotice::Kind::leaves});
    }
    packet.on_its_way = true;
    if (!arrived(packet)) { going.next = next_link(packet); }
  }
  send_on(now, takes, dimensions_[dimension].latency);
}

void Links::reduced(std::uint64_t now, std::uint64_t takes) {
  for (const Going& going : batch_) { notices_.push_back({now + takes, going.packet, LinkNotice::Kind::reduced}); }
}

// Heads go on at once, or so much later that the tail of a slower link is there in time: those that go on together ask
// for the next link together, and would take it as long as all of them take.
void Links::send_on(std::uint64_t now, std::uint64_t takes, std::uint64_t latency) {
  if (batch_.size() > 1) {
    std::sort(batch_.begin(), batch_.end(), [](const Going& a, const Going& b) { return a.next < b.next; });
  }
  for (std::size_t i = 0; i < batch_.size();) {
    const std::uint32_t next = batch_[i].next;
    if (next == kNone) {
      notices_.push_back({now + latency + takes, batch_[i++].packet, LinkNotice::Kind::arrives});
      continue;
    }
    std::size_t end = i + 1;
    while (end < batch_.size() && batch_[end].next == next) { ++end; }
    Rate& rate = dimensions_[links_[next].dimension].rate;
    const std::uint64_t there = rate.picoseconds(packets_[batch_[i].packet].bytes) * (end - i);
    const std::uint64_t ask = now + latency + (takes > there ? takes - there : 0);
    for (; i < end; ++i) { notices_.push_back({ask, batch_[i].packet, LinkNotice::Kind::asks}); }
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
