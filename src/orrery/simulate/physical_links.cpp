#include "orrery/simulate/physical_links.hpp"

#include "orrery/engine/prefetch.hpp"
#include "orrery/simulate/link_log.hpp"

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

auto keys(const Transfer& transfer) {
  const Order& order = transfer.order;
  return std::tuple(order.priority, transfer.requested_at, !transfer.has_left_source, order.node, order.chunk,
                    order.step, order.place, transfer.bytes);
}

}  // namespace

Links::Links(const Network& network, double memory_gb, bool counts) : ranks_(network.ranks()), has_counts_(counts) {
  if (network.dimensions.size() >= kReducer) { throw TooLong{}; }
  std::uint32_t stride = 1, count = 0;
  for (const NetworkDimension& given : network.dimensions) {
    Dimension& dimension = dimensions_.emplace_back();
    dimension.wiring = given.wiring;
    dimension.ranks = given.ranks;
    dimension.stride = stride;
    dimension.by_ranks = engine::Divisor(given.ranks);
    dimension.by_stride = engine::Divisor(stride);
    dimension.first_link = count;
    dimension.latency = up_to_picoseconds(given.latency_ns);
    dimension.rate = rate_of(given.bytes_per_second);
    if (given.wiring == Wiring::mesh) {
      dimension.rows.resize(ranks_);
    } else {
      count += 2 * ranks_;
    }
    links_.resize(count);
    set_link_ends(dimension, static_cast<std::uint8_t>(dimensions_.size() - 1));
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

// Links of rings and switches are created at the start: two for each rank.
void Links::set_link_ends(const Dimension& dimension, std::uint8_t number) {
  if (dimension.wiring == Wiring::mesh) { return; }
  const std::uint32_t n = dimension.ranks;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    const std::uint32_t here = dimension.coordinate(rank), line = rank - here * dimension.stride;
    const bool ring = dimension.wiring == Wiring::ring;
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

std::uint32_t Links::next_link(Dimension& dimension, std::uint8_t number, const Transfer& transfer) {
  const std::uint32_t n = dimension.ranks;
  if (hardware::has_switch(dimension.wiring) && !transfer.in_switch) { return dimension.first_link + 2 * transfer.at; }
  const std::uint32_t from = dimension.coordinate(transfer.at), to = dimension.coordinate(transfer.target);
  const std::uint32_t behind = transfer.at - from * dimension.stride + to * dimension.stride;
  switch (dimension.wiring) {
    case Wiring::mesh: return own_link(dimension, number, transfer.at, behind);
    case Wiring::rails:
    case Wiring::switched: return dimension.first_link + 2 * (is_folded_ ? image(behind) : behind) + 1;
    case Wiring::ring: break;
  }
  const std::uint32_t ahead = to >= from ? to - from : to + n - from;
  const bool back = n - ahead < ahead;  // equal distances: forward
  return dimension.first_link + 2 * transfer.at + (back ? 1 : 0);
}

std::uint32_t Links::next_link(const Transfer& transfer) {
  const Dimension& first = dimensions_[transfer.dimension];
  if (first.wiring == Wiring::ring) {  // most often to a neighbour
    const std::uint32_t forth = first.first_link + 2 * transfer.at;
    if (links_[forth].to == transfer.target) { return forth; }
    if (links_[forth + 1].to == transfer.target) { return forth + 1; }
  }
  const auto dimensions = static_cast<std::uint8_t>(dimensions_.size());
  for (std::uint8_t i = transfer.dimension; i < dimensions; ++i) {
    Dimension& dimension = dimensions_[i];
    const bool moves = transfer.in_switch || transfer.to_switch ||
                       dimension.coordinate(transfer.at) != dimension.coordinate(transfer.target);
    if (moves) { return next_link(dimension, i, transfer); }
  }
  ORRERY_ASSERT(false);
  return 0;
}

// ---- queues --------------------------------------------------------------------------------------------------------

bool Links::goes_before(const Transfer& a, const Transfer& b) const { return keys(a) < keys(b); }

void Links::request(std::uint32_t transfer, std::uint64_t now) {
  enqueue(next_link(transfers_[transfer]), transfer, now);
}

void Links::reduce(std::uint32_t transfer, std::uint64_t now) {
  enqueue(reducers_ + transfers_[transfer].at, transfer, now);
}

// Nearly all requests go to the end of the queue, behind those of earlier instants.
void Links::enqueue(std::uint32_t number, std::uint32_t id, std::uint64_t now) {
  Link& link = links_[number];
  Transfer& transfer = transfers_[id];
  transfer.requested_at = now;
  transfer.next = kNone;
  if (link.older_than != now) {
    link.older_than = now;
    link.older = link.last;
  }
  const std::int32_t priority = transfer.order.priority;
  if (link.first == kNone) {
    link.first = id;
  } else if (priority > link.last_priority || (priority == link.last_priority && now > link.last_requested_at)) {
    transfers_[link.last].next = id;
  } else {
    insert(link, id);
    if (link.last != id) { return touch(number, now); }
  }
  link.last = id;
  link.last_priority = priority;
  link.last_requested_at = now;
  touch(number, now);
}

// Inserts the transfer behind those that are equal to it. Usually the search starts at the requests of this instant.
void Links::insert(Link& link, std::uint32_t id) {
  Transfer& transfer = transfers_[id];
  if (goes_before(transfer, transfers_[link.first])) {
    transfer.next = link.first;
    link.first = id;
    return;
  }
  const bool is_behind = link.older != kNone && !goes_before(transfer, transfers_[link.older]);
  std::uint32_t ahead = is_behind ? link.older : link.first;
  while (transfers_[ahead].next != kNone && !goes_before(transfer, transfers_[transfers_[ahead].next])) {
    ahead = transfers_[ahead].next;
  }
  transfer.next = transfers_[ahead].next;
  transfers_[ahead].next = id;
  link.has_equals = link.has_equals || keys(transfers_[ahead]) == keys(transfer);
  if (transfer.next == kNone) { link.last = id; }
}

// Schedules the arbitration of a link with requests: at the end of this round if it is free, else when it becomes free.
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
  // Grants lead to requests in later rounds only, so `dirty_` does not grow here.
  constexpr std::size_t kFar = 14, kFarthest = 24;
  const std::size_t count = dirty_.size();
  if (count == 0 && notices_.empty()) { return {}; }
  for (std::size_t i = 0; i < kFarthest && i < count; ++i) { prefetch(dirty_[i]); }
  for (std::size_t i = 0; i < kFar && i < count; ++i) { prefetch_first(dirty_[i]); }
  for (std::size_t i = 0; i < count; ++i) {
    if (i + kFarthest < count) { prefetch(dirty_[i + kFarthest]); }
    if (i + kFar < count) { prefetch_first(dirty_[i + kFar]); }
    links_[dirty_[i]].is_dirty = false;
    grant(dirty_[i], now);
  }
  dirty_.clear();
  granted_.swap(notices_);
  notices_.clear();
  return granted_;
}

// Removes the first transfer of the queue.
std::uint32_t Links::take_first(Link& link) {
  const std::uint32_t id = link.first;
  Transfer& transfer = transfers_[id];
  link.first = transfer.next;
  if (transfer.has_next) { queue_next(link, id); }
  return id;
}

// Removes the first transfer of the queue, and those that are equal to it.
void Links::take_batch(Link& link) {
  batch_.clear();
  const Transfer& head = transfers_[link.first];
  do {
    batch_.push_back({take_first(link), kNone});
  } while (link.first != kNone && keys(transfers_[link.first]) == keys(head));
}

// The next message of a step takes the place of the one that leaves the queue.
void Links::queue_next(Link& link, std::uint32_t id) {
  const std::uint32_t made = transfers_.take([&] { return source_->next(transfers_[id]); });
  transfers_[made].requested_at = transfers_[id].requested_at;
  transfers_[made].next = link.first;
  transfers_[id].has_next = false;
  link.first = made;
  if (link.last == id) { link.last = made; }
}

void Links::grant(std::uint32_t number, std::uint64_t now) {
  Link& link = links_[number];
  const bool is_batch = link.has_equals;
  const std::uint32_t head = link.first;
  if (is_batch) {
    take_batch(link);
  } else {
    (void)take_first(link);
  }
  const std::uint64_t duration = occupy(link, transfers_[head].bytes, is_batch ? batch_.size() : 1, now);
  if (has_counts_) { count(number, now, duration, head, is_batch ? batch_.size() : 1); }
  if (log_ != nullptr) [[unlikely]] { note(number, is_batch, head, now, duration); }
  if (link.first != kNone) {
    engine::prefetch(&transfers_[link.first]);
    link.will_wake = true;
    notices_.push_back({link.free_at, number, LinkNotice::Kind::wakes});
  } else {
    link.last = kNone;
    link.has_equals = false;
  }
  link.older = kNone;
  if (is_batch) { return send_batch(link, now, duration); }
  if (link.dimension == kReducer) {
    notices_.push_back({now + duration, head, LinkNotice::Kind::reduced});
    return;
  }
  const std::uint64_t latency = dimensions_[link.dimension].latency;
  const std::uint32_t next = cross(link, head, now + duration);
  if (next == kNone) {
    notices_.push_back({now + latency + duration, head, LinkNotice::Kind::arrives});
  } else {
    request_next(next, {&head, 1}, now + latency, duration);
  }
}

// The link carries `count` transfers of so many bytes. Returns how long it does.
std::uint64_t Links::occupy(Link& link, std::uint64_t bytes, std::size_t count, std::uint64_t now) {
  Rate& rate = link.dimension == kReducer ? memory_rate_ : dimensions_[link.dimension].rate;
  const std::uint64_t single = rate.picoseconds(bytes), duration = single * count;
  if ((count > 1 && duration / count != single) || duration > kMostTime - now) { throw TooLong{}; }
  link.free_at = now + duration;
  return duration;
}

// The transfer moves to the end of the link, which its tail enters at `left`. Returns its next link, or kNone if it has
// arrived. Creates links, which makes `link` invalid.
std::uint32_t Links::cross(const Link& link, std::uint32_t id, std::uint64_t left) {
  Transfer& transfer = transfers_[id];
  // Folded, the simulated rank's link out of the switch stands for that of the target.
  transfer.at = is_folded_ && transfer.in_switch ? transfer.target : link.to;
  transfer.in_switch = link.into_switch;
  transfer.dimension = link.dimension;
  if (!transfer.has_left_source && transfer.of_collective) { notices_.push_back({left, id, LinkNotice::Kind::leaves}); }
  transfer.has_left_source = true;
  return arrived(transfer) ? kNone : next_link(transfer);
}

void Links::send_batch(const Link& given, std::uint64_t now, std::uint64_t duration) {
  if (given.dimension == kReducer) { return reduced(now, duration); }
  const Link link = given;  // next_link() may create links
  for (Granted& granted : batch_) { granted.next = cross(link, granted.transfer, now + duration); }
  forward(now, duration, dimensions_[link.dimension].latency);
}

void Links::reduced(std::uint64_t now, std::uint64_t duration) {
  for (const Granted& granted : batch_) {
    notices_.push_back({now + duration, granted.transfer, LinkNotice::Kind::reduced});
  }
}

// Transfers of the batch with the same next link request it together; they occupy it for the sum of their times.
void Links::forward(std::uint64_t now, std::uint64_t duration, std::uint64_t latency) {
  std::sort(batch_.begin(), batch_.end(), [](const Granted& a, const Granted& b) { return a.next < b.next; });
  for (std::size_t i = 0; i < batch_.size();) {
    const std::uint32_t next = batch_[i].next;
    if (next == kNone) {
      notices_.push_back({now + latency + duration, batch_[i++].transfer, LinkNotice::Kind::arrives});
      continue;
    }
    together_.clear();
    for (; i < batch_.size() && batch_[i].next == next; ++i) { together_.push_back(batch_[i].transfer); }
    request_next(next, together_, now + latency, duration);
  }
}

// Heads, which arrive at `head`, request the next link at once. If that is faster than the link that they were on for
// `duration`, they request it later, so that the tail has arrived when the next link needs it.
void Links::request_next(std::uint32_t next, std::span<const std::uint32_t> transfers, std::uint64_t head,
                         std::uint64_t duration) {
  Rate& rate = dimensions_[links_[next].dimension].rate;
  const std::uint64_t on_next = rate.picoseconds(transfers_[transfers.front()].bytes) * transfers.size();
  const std::uint64_t request = head + (duration > on_next ? duration - on_next : 0);
  for (const std::uint32_t id : transfers) { notices_.push_back({request, id, LinkNotice::Kind::requests}); }
}

// ---- speed ---------------------------------------------------------------------------------------------------------

// Of a transfer in a switch, the link to its target; else those of its rank in its dimension.
void Links::prefetch_next(const Transfer& transfer) const {
  const Dimension& dimension = dimensions_[transfer.dimension];
  if (dimension.wiring == Wiring::mesh) { return; }
  std::uint32_t rank = transfer.at;
  if (transfer.in_switch) {
    rank =
        rank - dimension.coordinate(rank) * dimension.stride + dimension.coordinate(transfer.target) * dimension.stride;
  }
  const std::uint32_t link = dimension.first_link + 2 * rank;
  if (!transfer.in_switch) { prefetch(link); }
  if (transfer.in_switch || dimension.wiring == Wiring::ring) { prefetch(link + 1); }
}

void Links::prefetch_own(std::uint32_t rank, std::uint32_t number) const {
  const Dimension& dimension = dimensions_[number];
  if (dimension.wiring == Wiring::mesh) { return; }
  prefetch(dimension.first_link + 2 * rank);
  if (dimension.wiring == Wiring::ring) { prefetch(dimension.first_link + 2 * rank + 1); }
}

// ---- log -----------------------------------------------------------------------------------------------------------

// A grant to one transfer, or to all of the batch.
void Links::note(std::uint32_t number, bool is_batch, std::uint32_t head, std::uint64_t now,
                 std::uint64_t duration) const {
  const Link& link = links_[number];
  LinkGrant grant;
  grant.link = number;
  grant.granted_at = now;
  grant.duration = duration;
  grant.is_reduction = link.dimension == kReducer;
  grant.dimension = grant.is_reduction ? std::uint8_t{0} : link.dimension;
  grant.latency = grant.is_reduction ? 0 : dimensions_[link.dimension].latency;
  grant.into_switch = link.into_switch && !grant.is_reduction;
  grant.behind = link.to;
  const auto add = [&](std::uint32_t id) {
    grant.at = transfers_[id].at;
    grant.from_switch = transfers_[id].in_switch && !grant.is_reduction;
    log_->add(id, transfers_[id], grant);
  };
  if (!is_batch) { return add(head); }
  for (const Granted& granted : batch_) { add(granted.transfer); }
}

// ---- counts --------------------------------------------------------------------------------------------------------

// A grant to `size` transfers that are equal to `first`.
void Links::count(std::uint32_t number, std::uint64_t now, std::uint64_t duration, std::uint32_t first,
                  std::size_t size) {
  if (counts_.size() < links_.size()) { counts_.resize(links_.size()); }
  const Transfer& head = transfers_[first];
  LinkCounts& counts = counts_[number];
  counts.busy += duration;
  counts.messages += size;
  counts.bytes += head.bytes * size;
  counts.queued += (now - head.requested_at) * size;
}

std::vector<results::SimulatedLink> Links::counts() const {
  std::vector<results::SimulatedLink> counts;
  const auto add = [&](std::uint32_t number, std::uint32_t from, std::uint32_t to) {
    if (number >= counts_.size() || counts_[number].messages == 0) { return; }
    const LinkCounts& link = counts_[number];
    counts.push_back({links_[number].dimension, from, to, link.bytes, link.busy, link.messages, link.queued});
  };
  for (const Dimension& dimension : dimensions_) {
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      const std::uint32_t here = dimension.coordinate(rank), n = dimension.ranks;
      const std::uint32_t line = rank - here * dimension.stride;
      switch (dimension.wiring) {
        case Wiring::ring:
          add(dimension.first_link + 2 * rank, rank, line + (here + 1) % n * dimension.stride);
          add(dimension.first_link + 2 * rank + 1, rank, line + (here + n - 1) % n * dimension.stride);
          break;
        case Wiring::rails:
        case Wiring::switched:
          add(dimension.first_link + 2 * rank, rank, results::SimulatedLink::kSwitch);
          add(dimension.first_link + 2 * rank + 1, results::SimulatedLink::kSwitch, rank);
          break;
        case Wiring::mesh:
          for (std::uint32_t to = 0; dimension.rows[rank] && to < n; ++to) {
            const std::uint32_t number = dimension.rows[rank][to];
            if (number != kNone) { add(number, rank, line + to * dimension.stride); }
          }
          break;
      }
    }
  }
  return counts;
}

}  // namespace orrery::simulate
