#include "orrery/hardware/routes.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "orrery/core/error.hpp"
#include "orrery/core/random.hpp"

namespace orrery::hardware {

namespace {

constexpr std::uint32_t kNoDevice = std::numeric_limits<std::uint32_t>::max();

std::uint64_t hash_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  RandomStream stream(a * 0x9E3779B97F4A7C15U ^ (b + 0x632BE59BD9B4E019U) * 0xFF51AFD7ED558CCDU ^ c << 17U);
  return stream.bits();
}

}  // namespace

Routes::Routes(const Topology& topology)
    : topology_(topology),
      first_(topology.nodes.size() + 1, 0),
      closed_(topology.links.size(), 0),
      tables_(topology.nodes.size()),
      target_(kNoDevice),
      known_ways_(topology.switches()) {
  for (const TopologyLink& link : topology.links) { ++first_[link.from + 1]; }
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) { first_[i + 1] += first_[i]; }
  out_.resize(topology.links.size());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (std::uint32_t i = 0; i < topology.links.size(); ++i) { out_[next[topology.links[i].from]++] = i; }
}

void Routes::close(std::uint32_t link) {
  closed_[link] = 1;
  has_closed_ = true;
  for (auto& table : tables_) { table.clear(); }
  known_ways_.assign(topology_.switches(), {});
  known_links_.clear();
  target_ = kNoDevice;
}

// Cables have both directions, so a search along the links out of a node, where the links back are open, finds the
// distances to it.
const std::vector<std::uint16_t>& Routes::distances_to(std::uint32_t node) {
  auto& table = tables_[node];
  if (!table.empty()) { return table; }
  table.assign(topology_.nodes.size(), kFar);
  table[node] = 0;
  std::vector<std::uint32_t> reached = {node};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const std::uint32_t at = reached[i];
    if (at < topology_.devices && at != node && !topology_.devices_forward) { continue; }
    for (std::uint32_t j = first_[at]; j < first_[at + 1]; ++j) {
      const std::uint32_t to = topology_.links[out_[j]].to;
      if (table[to] != kFar || closed_[out_[j] ^ 1U] != 0) { continue; }
      table[to] = static_cast<std::uint16_t>(table[at] + 1);
      reached.push_back(to);
    }
  }
  return table;
}

// A device that does not forward is reached through the switches that it is joined to: their tables serve all of their
// devices.
void Routes::prepare(std::uint32_t to) {
  if (target_ == to) { return; }
  target_ = to;
  ends_.clear();
  if (topology_.devices_forward || to >= topology_.devices) {
    ends_.emplace_back(to, &distances_to(to));
    return;
  }
  for (std::uint32_t j = first_[to]; j < first_[to + 1]; ++j) {
    const std::uint32_t node = topology_.links[out_[j]].to;
    if (closed_[out_[j] ^ 1U] == 0) { ends_.emplace_back(node, &distances_to(node)); }
  }
}

std::uint16_t Routes::remaining(std::uint32_t node, std::uint32_t to) {
  prepare(to);
  if (node == to) { return 0; }
  std::uint16_t least = kFar;
  if (ends_.empty()) { return least; }
  const std::uint16_t last = ends_.front().first == to ? 0 : 1;
  for (const auto& [end, table] : ends_) {
    if ((*table)[node] != kFar) { least = std::min(least, static_cast<std::uint16_t>((*table)[node] + last)); }
  }
  return least;
}

std::uint32_t Routes::distance(std::uint32_t from, std::uint32_t to) { return remaining(from, to); }

bool Routes::are_of_one_domain(std::uint32_t a, std::uint32_t b) const {
  if (!topology_.has_scale_up || a >= topology_.devices || b >= topology_.devices) { return false; }
  const std::int64_t size = topology_.levels.front().size;
  return a / size == b / size;
}

// Whether the link into the switch of a scale-up domain still leads to a device there.
bool Routes::is_way(std::uint32_t link, std::uint32_t to) {
  return !has_closed_ || (closed_[link] == 0 && remaining(topology_.links[link].to, to) <= 1);
}

// The links out of a node that lead nearer to a device, in their order. Inside a scale-up domain that is the link to
// its switch alone, although a leaf switch that both devices are on is as near.
std::span<const std::uint32_t> Routes::ways(std::uint32_t node, std::uint32_t to) {
  if (are_of_one_domain(node, to)) {
    ways_.clear();
    for (std::uint32_t j = first_[node]; j < first_[node + 1]; ++j) {
      if (topology_.links[out_[j]].level == 0 && is_way(out_[j], to)) { ways_.push_back(out_[j]); }
    }
    if (!ways_.empty()) { return ways_; }
  }
  if (!topology_.devices_forward && node >= topology_.devices) { return ways_of_switch(node, to); }
  return scanned_ways(node, to);
}

// To the nearest switch of the device, which many devices have in common; there, the cables to the device.
std::span<const std::uint32_t> Routes::ways_of_switch(std::uint32_t node, std::uint32_t to) {
  prepare(to);
  const auto distance = [&](const auto& end) { return (*end.second)[node]; };
  const auto nearest = std::min_element(ends_.begin(), ends_.end(),
                                        [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
  const std::uint16_t least = distance(*nearest);
  if (least == 0 && to < topology_.devices) {
    ways_.clear();
    for (std::uint32_t j = first_[to]; j < first_[to + 1]; ++j) {
      const std::uint32_t into = out_[j] ^ 1U;
      if (topology_.links[out_[j]].to == node && closed_[into] == 0) { ways_.push_back(into); }
    }
    return ways_;
  }
  const bool is_only = std::all_of(ends_.begin(), ends_.end(), [&](const auto& end) {
    return end.first == nearest->first || distance(end) > least;
  });
  if (!is_only) { return scanned_ways(node, to); }
  auto& known = known_ways_[nearest->first - topology_.devices];
  if (known.empty()) { known.resize(topology_.switches()); }
  Slice& slice = known[node - topology_.devices];
  if (slice.count == 0) {
    const auto found = scanned_ways(node, to);
    slice = {static_cast<std::uint32_t>(known_links_.size()), static_cast<std::uint32_t>(found.size())};
    known_links_.insert(known_links_.end(), found.begin(), found.end());
  }
  return std::span(known_links_).subspan(slice.first, slice.count);
}

std::span<const std::uint32_t> Routes::scanned_ways(std::uint32_t node, std::uint32_t to) {
  const std::uint16_t left = remaining(node, to);
  ORRERY_ASSERT(left != kFar && left > 0);
  ways_.clear();
  for (std::uint32_t j = first_[node]; j < first_[node + 1]; ++j) {
    const std::uint32_t next = topology_.links[out_[j]].to;
    const bool is_closed = next < topology_.devices && next != to && !topology_.devices_forward;
    if (!is_closed && closed_[out_[j]] == 0 && remaining(next, to) + 1 == left) { ways_.push_back(out_[j]); }
  }
  ORRERY_ASSERT(!ways_.empty());
  return ways_;
}

template <class Choose, class Take>
void Routes::walk(std::uint32_t from, std::uint32_t to, Choose&& choose, Take&& take) {
  while (from != to) {
    const std::uint32_t link = choose(from, ways(from, to));
    take(link);
    from = topology_.links[link].to;
  }
}

// Valiant's intermediate node: any switch, or any device if there are no switches.
std::uint32_t Routes::middle(std::uint32_t from, std::uint32_t to, std::uint64_t seed) {
  const std::size_t scale_up =
      topology_.has_scale_up ? topology_.devices / static_cast<std::size_t>(topology_.levels.front().size) : 0;
  const bool has_switches = topology_.switches() > scale_up && !topology_.devices_forward;
  const std::size_t first = has_switches ? topology_.devices + scale_up : 0;
  const std::size_t count = has_switches ? topology_.switches() - scale_up : topology_.devices;
  for (std::size_t i = 0; i < count; ++i) {
    const auto via = static_cast<std::uint32_t>(first + (hash_of(from, to, seed) + i) % count);
    if (!has_closed_ || (reaches(from, via) && reaches(via, to))) { return via; }
  }
  return to;
}

template <class Take>
void Routes::follow(std::uint32_t from, std::uint32_t to, std::uint64_t seed, Take&& take) {
  const auto first = [](std::uint32_t, std::span<const std::uint32_t> ways) { return ways.front(); };
  switch (topology_.routing) {
    case Routing::adaptive:
    case Routing::shortest: walk(from, to, first, take); break;
    case Routing::d_mod_k:
      walk(
          from, to,
          [&](std::uint32_t node, std::span<const std::uint32_t> ways) {
            return ways[to / topology_.nodes[node].stride % ways.size()];
          },
          take);
      break;
    case Routing::ecmp:
    case Routing::spread:
      walk(
          from, to,
          [&](std::uint32_t node, std::span<const std::uint32_t> ways) {
            return ways[hash_of(hash_of(from, to, seed), node, 1) % ways.size()];
          },
          take);
      break;
    case Routing::valiant: {
      const bool is_near = remaining(from, to) <= 2;  // one switch, or neighbours: no detour
      const std::uint32_t via = is_near ? to : middle(from, to, seed);
      if (via != from && via != to) { walk(from, via, first, take); }
      walk(via == from || via == to ? from : via, to, first, take);
      break;
    }
  }
}

std::vector<std::uint32_t> Routes::route(std::uint32_t from, std::uint32_t to, std::uint64_t seed) {
  constexpr std::size_t kUsual = 6;  // links through three levels of switches
  std::vector<std::uint32_t> links;
  links.reserve(kUsual);
  follow(from, to, seed, [&](std::uint32_t link) { links.push_back(link); });
  return links;
}

// The part of a node goes on in equal parts over its ways; nodes farther from the destination first.
void Routes::spread(std::uint32_t from, std::uint32_t to, double amount, std::vector<double>& load) {
  std::map<std::pair<int, std::uint32_t>, double> parts = {{{-static_cast<int>(remaining(from, to)), from}, amount}};
  while (!parts.empty()) {
    const auto [where, part] = *parts.begin();
    parts.erase(parts.begin());
    if (where.second == to) { continue; }
    const auto links = ways(where.second, to);
    for (const std::uint32_t link : links) {
      const double share = part / static_cast<double>(links.size());
      load[link] += share;
      parts[{where.first + 1, topology_.links[link].to}] += share;
    }
  }
}

void Routes::charge(std::uint32_t from, std::uint32_t to, double amount, std::vector<double>& load) {
  if (topology_.routing == Routing::spread) { return spread(from, to, amount, load); }
  if (topology_.routing != Routing::adaptive) {
    return follow(from, to, 0, [&](std::uint32_t link) { load[link] += amount; });
  }
  for (const std::uint32_t link : route_by_load(from, to, load)) { load[link] += amount; }
}

std::vector<std::uint32_t> Routes::route_by_load(std::uint32_t from, std::uint32_t to, std::span<const double> load) {
  std::vector<std::uint32_t> links;
  walk(
      from, to,
      [&](std::uint32_t, std::span<const std::uint32_t> ways) {
        return *std::min_element(ways.begin(), ways.end(), [&](std::uint32_t a, std::uint32_t b) {
          return load[a] * topology_.links[b].bandwidth < load[b] * topology_.links[a].bandwidth;
        });
      },
      [&](std::uint32_t link) { links.push_back(link); });
  return links;
}

double least_rate(const Routes& routes, std::span<const double> load) {
  double rate = std::numeric_limits<double>::infinity();
  for (std::size_t link = 0; link < load.size(); ++link) {
    if (load[link] > 0) { rate = std::min(rate, routes.topology().links[link].bandwidth / load[link]); }
  }
  return rate;
}

Seconds added_latency(const Topology& topology, std::span<const std::uint32_t> route) {
  std::size_t passed = 0;
  bool has_switch = false;
  for (std::size_t i = 0; i + 1 < route.size(); ++i) {
    ++passed;
    has_switch = has_switch || topology.links[route[i]].to >= topology.devices;
  }
  return topology.switch_latency * static_cast<double>(passed - (has_switch ? 1 : 0));
}

double rate_of_pattern(Routes& routes, const std::function<std::vector<std::uint32_t>(std::uint32_t)>& peers) {
  const Topology& topology = routes.topology();
  std::vector<double> load(topology.links.size(), 0.0);
  std::size_t most = 0;
  for (std::uint32_t device = 0; device < topology.devices; ++device) {
    const auto to = peers(device);
    most = std::max(most, to.size());
    for (const std::uint32_t peer : to) { routes.charge(device, peer, 1.0, load); }
  }
  return least_rate(routes, load) * static_cast<double>(most);
}

}  // namespace orrery::hardware
