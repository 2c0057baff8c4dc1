#include "orrery/simulate/message_network.hpp"

#include <algorithm>

#include "orrery/simulate/phase.hpp"

namespace orrery::simulate {

namespace {

std::uint32_t hops(const NetworkDimension& dimension, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t forward = (to + dimension.ranks - from) % dimension.ranks;
  switch (dimension.wiring) {
    case Wiring::ring: return std::min(forward, dimension.ranks - forward);
    case Wiring::mesh: return 1;
    case Wiring::rails:
    case Wiring::switched: return 2;
  }
  return 1;
}

std::size_t link_count(const Network& network) {
  const NetworkDimension& dimension = network.dimensions.front();
  return hardware::has_pair_links(dimension.wiring) ? std::size_t{dimension.ranks} * dimension.ranks
                                                    : std::size_t{dimension.ranks} * 2;
}

}  // namespace

MessageNetwork::MessageNetwork(const SimulationJob& job, EventQueue& events)
    : job_(job), events_(events), is_folded_(is_folded(job)) {
  for (const NetworkDimension& dimension : job.network.dimensions) {
    bytes_per_ns_.push_back(dimension.bytes_per_ns());
  }
  if (job.backend == Backend::congestion_aware) { links_.resize(link_count(job.network)); }
  if (job.tables) {
    link_counts_.resize(links_.size());
    dimension_counts_.resize(job.network.dimensions.size());
  }
}

// The time of the lowest dimension in which the two ranks differ, without the others: a defect of ASTRA-sim, with a
// warning.
std::uint64_t MessageNetwork::flight_ns(std::uint32_t source, std::uint32_t target, std::uint64_t bytes) {
  if (job_.backend == Backend::congestion_aware) { return 0; }
  for (std::size_t i = 0; i < job_.network.dimensions.size(); ++i) {
    const NetworkDimension& dimension = job_.network.dimensions[i];
    const std::uint32_t from = source % dimension.ranks, to = target % dimension.ranks;
    source /= dimension.ranks;
    target /= dimension.ranks;
    if (from == to) { continue; }
    skipped_dimensions_ = skipped_dimensions_ || source != target;
    const double latency = static_cast<double>(hops(dimension, from, to)) * dimension.latency_ns;
    return whole_ns(latency + static_cast<double>(bytes) / bytes_per_ns_[i]);
  }
  return 0;
}

MessageNetwork::Flight MessageNetwork::flight_of(std::uint32_t source, std::uint32_t target) const {
  for (std::uint32_t i = 0; i < job_.network.dimensions.size(); ++i) {
    const NetworkDimension& dimension = job_.network.dimensions[i];
    const std::uint32_t from = source % dimension.ranks, to = target % dimension.ranks;
    if (from != to) { return {i, static_cast<double>(hops(dimension, from, to)) * dimension.latency_ns}; }
    source /= dimension.ranks;
    target /= dimension.ranks;
  }
  return {};
}

std::pair<std::uint32_t, std::uint32_t> MessageNetwork::ends_of_hop(std::uint32_t id) const {
  return ends_of_link(next_hop(messages_[id]).link);
}

std::pair<std::uint32_t, std::uint32_t> MessageNetwork::ends_of_link(std::uint32_t link) const {
  const NetworkDimension& dimension = job_.network.dimensions.front();
  const std::uint32_t n = dimension.ranks;
  switch (dimension.wiring) {
    case Wiring::mesh: return {link / n, link % n};
    case Wiring::rails:
    case Wiring::switched: return link < n ? std::pair{link, kHub} : std::pair{kHub, link - n};
    case Wiring::ring: break;
  }
  return {link / 2, (link / 2 + (link % 2 == 0 ? 1 : n - 1)) % n};
}

void MessageNetwork::depart(std::uint32_t id, std::uint64_t flight) {
  if (!dimension_counts_.empty()) { count(messages_[id]); }
  if (job_.backend == Backend::congestion_aware) { return forward(id); }
  const Message& message = messages_[id];
  const bool of_chunk = message.owner.kind == Continuation::Kind::none;
  const std::uint32_t rank = is_folded_ ? static_cast<std::uint32_t>(message.expected_bytes) : message.target;
  events_.at(events_.now() + flight, {EventKind::arrival, 0, rank, id, of_chunk ? message.owner.ref : kNone});
}

// Counts the message in the dimension of which it takes the time.
void MessageNetwork::count(const Message& message, std::uint64_t copies) {
  std::uint32_t source = message.source, target = message.target;
  for (std::size_t i = 0; i < dimension_counts_.size(); ++i) {
    const std::uint32_t ranks = job_.network.dimensions[i].ranks;
    if (source % ranks != target % ranks) {
      dimension_counts_[i].messages += copies;
      dimension_counts_[i].bytes += copies * message.bytes;
      if (links_.empty()) {
        count_route({static_cast<std::uint32_t>(i), source % ranks, target % ranks}, message, copies);
      }
      return;
    }
    source /= ranks;
    target /= ranks;
  }
}

// `line`: the dimension, and the positions of both ranks on it.
void MessageNetwork::count_route(const LinkEnds& line, const Message& message, std::uint64_t copies) {
  const NetworkDimension& dimension = job_.network.dimensions[line.dimension];
  const std::uint32_t n = dimension.ranks;
  std::uint32_t stride = 1;
  for (std::uint32_t i = 0; i < line.dimension; ++i) { stride *= job_.network.dimensions[i].ranks; }
  const std::uint32_t base = message.source - line.from * stride;
  const auto add = [&](std::uint32_t from, std::uint32_t to) {
    LinkCount& count = route_counts_[{line.dimension, from == kHub ? kHub : base + from * stride,
                                      to == kHub ? kHub : base + to * stride}];
    count.messages += copies;
    count.bytes += copies * message.bytes;
    count.busy_ns += copies * whole_ns(static_cast<double>(message.bytes) / bytes_per_ns_[line.dimension]);
  };
  switch (dimension.wiring) {
    case Wiring::mesh: return add(line.from, line.to);
    case Wiring::rails:
    case Wiring::switched: add(line.from, kHub); return add(kHub, line.to);
    case Wiring::ring: break;
  }
  const std::uint32_t clockwise = (line.to + n - line.from) % n;
  const std::uint32_t step = n - clockwise < clockwise ? n - 1 : 1;
  for (std::uint32_t at = line.from; at != line.to; at = (at + step) % n) { add(at, (at + step) % n); }
}

void MessageNetwork::count_waiting(std::uint32_t number, bool joins) {
  LinkCount& count = link_counts_[number];
  count.queued_ns += count.waiting * (events_.now() - count.since_ns);
  count.since_ns = events_.now();
  joins ? ++count.waiting : --count.waiting;
}

// ---- links ---------------------------------------------------------------------------------------------------------

// Devices are the ranks and, of a switch, the hub behind them.
MessageNetwork::Hop MessageNetwork::next_hop(const Message& message) const {
  const NetworkDimension& dimension = job_.network.dimensions.front();
  const std::uint32_t n = dimension.ranks;
  switch (dimension.wiring) {
    case Wiring::mesh: return {message.source * n + message.target, message.target};
    case Wiring::rails:
    case Wiring::switched:
      if (message.device == n) { return {n + message.target, message.target}; }
      return {message.source, n};
    case Wiring::ring: {
      const std::uint32_t clockwise = (message.target + n - message.source) % n;
      const bool backward = n - clockwise < clockwise;
      const std::uint32_t next = (message.device + (backward ? n - 1 : 1)) % n;
      return {2 * message.device + (backward ? 1 : 0), next};
    }
  }
  return {0, message.target};
}

void MessageNetwork::forward(std::uint32_t id) {
  const std::uint32_t number = next_hop(messages_[id]).link;
  Link& link = links_[number];
  if (!link.busy) { return begin_link(number, id); }
  if (!link_counts_.empty()) { count_waiting(number, true); }
  messages_[id].next = kNone;
  (link.last == kNone ? link.first : messages_[link.last].next) = id;
  link.last = id;
}

void MessageNetwork::begin_link(std::uint32_t number, std::uint32_t id) {
  const double transfer = static_cast<double>(messages_[id].bytes) / bytes_per_ns_.front();
  links_[number].busy = true;
  if (!link_counts_.empty()) {
    LinkCount& count = link_counts_[number];
    ++count.messages;
    count.bytes += messages_[id].bytes;
    count.busy_ns += whole_ns(transfer);
  }
  const double latency = job_.network.dimensions.front().latency_ns;
  const std::uint32_t rank = is_folded_ ? static_cast<std::uint32_t>(messages_[id].expected_bytes) : 0;
  events_.at(events_.now() + whole_ns(latency + transfer), {EventKind::hop, 0, rank, id, 0});
  events_.at(events_.now() + whole_ns(transfer), {EventKind::link_free, 0, 0, number, 0});
}

void MessageNetwork::free_link(std::uint32_t number) {
  Link& link = links_[number];
  link.busy = false;
  const std::uint32_t id = link.first;
  if (id == kNone) { return; }
  link.first = messages_[id].next;
  if (link.first == kNone) { link.last = kNone; }
  if (!link_counts_.empty()) { count_waiting(number, false); }
  begin_link(number, id);
}

bool MessageNetwork::hop(std::uint32_t id) {
  Message& message = messages_[id];
  message.device = next_hop(message).device;
  if (message.device == message.target) { return true; }
  forward(id);
  return false;
}

}  // namespace orrery::simulate
