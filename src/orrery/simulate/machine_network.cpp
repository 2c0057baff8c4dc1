// How long messages take. Without congestion a message takes its latency and its bytes over one bandwidth. With it,
// every link carries one message at a time, and a message is stored whole at every device on its way.
#include <algorithm>

#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

namespace {

std::uint32_t hops(const NetworkDimension& dimension, std::uint32_t from, std::uint32_t to) {
  const std::uint32_t forward = (to + dimension.ranks - from) % dimension.ranks;
  switch (dimension.topology) {
    case Topology::Ring: return std::min(forward, dimension.ranks - forward);
    case Topology::FullyConnected: return 1;
    case Topology::Switch: return 2;
  }
  return 1;
}

}  // namespace

// Only the lowest dimension in which the two differ is paid for: a defect of the original, told in the warnings.
std::uint64_t Machine::flight_ns(std::uint32_t source, std::uint32_t target, std::uint64_t bytes) {
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

void Machine::depart(std::uint32_t id) {
  const Letter& letter = letters_[id];
  if ((letter.tag & (kNativeTag | kNoticeTag)) == 0) { set_out(letter); }
  depart(id, flight_ns(letter.source, letter.target, letter.bytes));
}

void Machine::depart(std::uint32_t id, std::uint64_t flight) {
  if (!dimension_counts_.empty()) { count(letters_[id]); }
  if (job_.backend == Backend::congestion_aware) { return forward(id); }
  kernel_.at(kernel_.now() + flight, {Happening::arrival, 0, 0, id, 0});
}

// In the dimension that it pays for.
void Machine::count(const Letter& letter) {
  std::uint32_t source = letter.source, target = letter.target;
  for (std::size_t i = 0; i < dimension_counts_.size(); ++i) {
    const std::uint32_t ranks = job_.network.dimensions[i].ranks;
    if (source % ranks != target % ranks) {
      ++dimension_counts_[i].messages;
      dimension_counts_[i].bytes += letter.bytes;
      return;
    }
    source /= ranks;
    target /= ranks;
  }
}

void Machine::count_waiting(std::uint32_t number, bool joins) {
  LinkCount& count = link_counts_[number];
  count.queued_ns += count.waiting * (kernel_.now() - count.since_ns);
  count.since_ns = kernel_.now();
  joins ? ++count.waiting : --count.waiting;
}

// ---- links ---------------------------------------------------------------------------------------------------------

// Devices are the ranks and, of a switch, the hub behind them.
std::pair<std::uint32_t, std::uint32_t> Machine::next_link(const Letter& letter) const {
  const NetworkDimension& dimension = job_.network.dimensions.front();
  const std::uint32_t n = dimension.ranks;
  switch (dimension.topology) {
    case Topology::FullyConnected: return {letter.source * n + letter.target, letter.target};
    case Topology::Switch:
      if (letter.device == n) { return {n + letter.target, letter.target}; }
      return {letter.source, n};
    case Topology::Ring: {
      const std::uint32_t clockwise = (letter.target + n - letter.source) % n;
      const bool backward = n - clockwise < clockwise;
      const std::uint32_t next = (letter.device + (backward ? n - 1 : 1)) % n;
      return {2 * letter.device + (backward ? 1 : 0), next};
    }
  }
  return {0, letter.target};
}

void Machine::forward(std::uint32_t id) {
  const std::uint32_t number = next_link(letters_[id]).first;
  LinkState& link = links_[number];
  if (!link.busy) { return begin_link(number, id); }
  if (!link_counts_.empty()) { count_waiting(number, true); }
  letters_[id].next = kNone;
  (link.last == kNone ? link.first : letters_[link.last].next) = id;
  link.last = id;
}

void Machine::begin_link(std::uint32_t number, std::uint32_t id) {
  const double transfer = static_cast<double>(letters_[id].bytes) / bytes_per_ns_.front();
  links_[number].busy = true;
  if (!link_counts_.empty()) {
    LinkCount& count = link_counts_[number];
    ++count.messages;
    count.bytes += letters_[id].bytes;
    count.busy_ns += whole_ns(transfer);
  }
  const double latency = job_.network.dimensions.front().latency_ns;
  kernel_.at(kernel_.now() + whole_ns(latency + transfer), {Happening::hop, 0, 0, id, 0});
  kernel_.at(kernel_.now() + whole_ns(transfer), {Happening::link_free, 0, 0, number, 0});
}

void Machine::free_link(std::uint32_t number) {
  LinkState& link = links_[number];
  link.busy = false;
  const std::uint32_t id = link.first;
  if (id == kNone) { return; }
  link.first = letters_[id].next;
  if (link.first == kNone) { link.last = kNone; }
  if (!link_counts_.empty()) { count_waiting(number, false); }
  begin_link(number, id);
}

void Machine::hop(std::uint32_t id) {
  Letter& letter = letters_[id];
  letter.device = next_link(letter).second;
  if (letter.device == letter.target) { return arrive(id); }
  forward(id);
}

}  // namespace orrery::simulate
