#include "orrery/simulate/link_path.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace orrery::simulate {

namespace {

constexpr std::uint32_t kAnyStep = 0xFFFFFFFF;

}  // namespace

std::span<const LinkPath::KeyedGrant> LinkPath::find(const Grants& grants, const Key& key) {
  const auto first = std::lower_bound(grants.begin(), grants.end(), KeyedGrant{key, 0});
  auto end = first;
  while (end != grants.end() && end->key == key) { ++end; }
  return {first, end};
}

LinkPath::LinkPath(const SimulationJob& job, const PhysicalMachine& machine)
    : job_(job),
      machine_(machine),
      grants_(machine.log()->grants()),
      endpoint_(job.system.endpoint_delay_ns * kPicosecondsPerNs) {
  for (const RankGraph& graph : job.rank_graphs) { starts_.emplace_back(graph.nodes.size(), 0); }
  for (const PhysicalSpan& span : machine.nodes().spans()) { starts_[span.rank][span.node] = span.start; }
  for (std::uint32_t i = 0; i < grants_.size(); ++i) {
    const LinkGrant& grant = grants_[i];
    if (const auto time = usable_at(grant)) {
      const Key key =
          grant.of_collective ? Key{true, grant.owner, grant.to, *time} : Key{false, grant.source, grant.node, *time};
      arrivals_.push_back({key, i});
    }
    const bool is_first = grant.of_collective && grant.previous_hop == kNone;
    if (is_first) { departures_.push_back({{true, grant.owner, grant.from, grant.left_at()}, i}); }
  }
  std::sort(arrivals_.begin(), arrivals_.end());
  std::sort(departures_.begin(), departures_.end());
}

// When its target can use what it has received; nothing if it cannot yet.
std::optional<std::uint64_t> LinkPath::usable_at(const LinkGrant& grant) const {
  if (grant.is_reduction) { return grant.left_at(); }
  if (!grant.is_last_hop || grant.is_reduced_later) { return std::nullopt; }
  return grant.arrives_at() + (grant.of_collective && !grant.to_switch ? endpoint_ : 0);
}

// The transfer of the last step before `before_step` that the participant could use from that time on; kNone.
std::uint32_t LinkPath::last_arrival(std::uint32_t owner, std::uint32_t index, std::uint64_t time,
                                     std::uint32_t before_step) const {
  std::uint32_t last = kNone;
  for (const auto& [key, grant] : find(arrivals_, {true, owner, index, time})) {
    if (grants_[grant].step >= before_step) { continue; }
    if (last == kNone || grants_[last].step < grants_[grant].step) { last = grant; }
  }
  return last;
}

std::uint32_t LinkPath::participants_of(std::uint32_t owner) const {
  const PhysicalSchedule* schedule = machine_.collectives().all()[owner].schedule;
  return schedule == nullptr ? 0 : schedule->participant_count;
}

// Of the chunks of a rank, the transfer with which the last one ended: received, or sent.
std::uint32_t LinkPath::chunk_end(std::uint32_t collective, std::uint32_t rank, std::uint64_t time) const {
  const PhysicalCollective& one = machine_.collectives().all()[collective];
  const std::uint32_t participants = participants_of(collective);
  if (participants == 0) { return kNone; }
  const std::uint32_t position = machine_.collectives().group(one.task.group).position(rank);
  for (std::uint32_t chunk = 0; chunk < one.chunks; ++chunk) {
    const std::uint32_t index = chunk * participants + position;
    if (const std::uint32_t found = last_arrival(collective, index, time, kAnyStep); found != kNone) { return found; }
  }
  for (std::uint32_t chunk = 0; chunk < one.chunks; ++chunk) {
    const auto found = find(departures_, {true, collective, chunk * participants + position, time});
    if (!found.empty()) { return found.front().grant; }
  }
  return kNone;
}

std::uint32_t LinkPath::first_of(const PhysicalSpan& span) const {
  const NodeTask task = job_.rank_graphs.task(span.rank, span.node);
  if (task.act == Act::collective) {
    return chunk_end(machine_.match().collective_of(span.rank, span.node), span.rank, span.end);
  }
  const auto found = find(arrivals_, {false, span.rank, span.node, span.end});
  return found.empty() ? kNone : found.front().grant;
}

std::optional<PathTrace> LinkPath::trace(const PhysicalSpan& span) const {
  if (job_.system.rendezvous) { return std::nullopt; }
  std::uint32_t grant = first_of(span);
  if (grant == kNone || span.end <= span.start) { return std::nullopt; }
  PathTrace trace;
  trace.node = kNone;
  trace.pieces.push_back(piece(grants_[grant], span.end, false));
  while (trace.node == kNone) {
    if (!go_back(grant, trace)) { return std::nullopt; }
  }
  std::erase_if(trace.pieces, [](const PathPiece& one) { return one.start == one.end; });
  return trace;
}

// From the time when `grant` was granted to what it waited for: another grant, or the start of a node.
bool LinkPath::go_back(std::uint32_t& number, PathTrace& trace) const {
  const LinkGrant& grant = grants_[number];
  const std::uint64_t time = grant.granted_at;
  if (time > grant.requested_at) {  // the link was occupied
    std::uint32_t before = grant.previous_on_link;
    while (before != kNone && grants_[before].granted_at == time) { before = grants_[before].previous_on_link; }
    if (before == kNone || grants_[before].left_at() != time) { return false; }
    trace.pieces.push_back(piece(grants_[before], time, true));
    number = before;
    return true;
  }
  if (grant.previous_hop != kNone) {
    const LinkGrant& before = grants_[grant.previous_hop];
    if (grant.is_reduction && before.arrives_at() + endpoint_ < time) {  // the rank came later
      return begin_at_member(grant.owner, grant.to, time, trace);
    }
    trace.pieces.push_back(piece(before, time, false));
    number = grant.previous_hop;
    return true;
  }
  if (!grant.of_collective) { return begin_at(grant.source, grant.node, time, trace); }
  const std::uint32_t arrival = last_arrival(grant.owner, grant.from, time, grant.step);
  if (arrival == kNone) { return begin_at_member(grant.owner, grant.from, time, trace); }
  trace.pieces.push_back(piece(grants_[arrival], time, false));
  number = arrival;
  return true;
}

bool LinkPath::begin_at_member(std::uint32_t owner, std::uint32_t index, std::uint64_t time, PathTrace& trace) const {
  const PhysicalCollective& collective = machine_.collectives().all()[owner];
  const std::uint32_t participants = participants_of(owner);
  if (participants == 0 || index % participants >= collective.ranks) { return false; }
  const std::uint32_t rank = machine_.collectives().group(collective.task.group).rank(index % participants);
  const auto node = machine_.match().node_of(rank, owner);
  return node && begin_at(rank, *node, time, trace);
}

bool LinkPath::begin_at(std::uint32_t rank, std::uint32_t node, std::uint64_t time, PathTrace& trace) const {
  if (starts_[rank][node] != time) { return false; }
  trace.rank = rank;
  trace.node = node;
  return true;
}

// ---- words ---------------------------------------------------------------------------------------------------------

std::pair<std::string, std::string> LinkPath::ends_of(const LinkGrant& grant) const {
  const auto name = [&](std::uint32_t rank, bool is_switch) {
    return is_switch ? fmt::format("switch of dimension {}", grant.dimension) : fmt::format("rank {}", rank);
  };
  return {name(grant.at, grant.from_switch), name(grant.behind, grant.into_switch)};
}

std::string LinkPath::name_of(const LinkGrant& grant) const {
  const auto [from, to] = ends_of(grant);
  const std::string where = grant.is_reduction ? fmt::format("memory of rank {}", grant.at) : from + " to " + to;
  return grant.of_collective ? fmt::format("chunk {}, step {}: {}", grant.chunk, grant.step, where) : where;
}

// From the grant on. `is_waiting`: until the link is free for another transfer.
PathPiece LinkPath::piece(const LinkGrant& grant, std::uint64_t end, bool is_waiting) const {
  PathPiece made{grant.source, kNone, grant.granted_at, end, name_of(grant), {}, {}, {}};
  if (grant.of_collective) {
    made.node = machine_.match().node_of(grant.source, grant.owner).value_or(kNone);
  } else {
    made.node = grant.node;
  }
  const std::uint64_t time = end - grant.granted_at;
  if (is_waiting) { made.name += ", which others wait for"; }
  if (grant.is_reduction) {
    made.parts = {{is_waiting ? "waiting for reductions" : "reduction of arriving data", time}};
    return made;
  }
  std::tie(made.from, made.to) = ends_of(grant);
  const std::string dimension =
      fmt::format("{} {}", simulate::name_of(job_.network.dimensions[grant.dimension].wiring), grant.dimension);
  if (is_waiting) {
    made.parts = {{"waiting for links of " + dimension, time}};
    return made;
  }
  // The next link of a cut-through route is requested before the whole transfer has passed.
  const std::uint64_t latency = grant.is_last_hop ? std::min(time - std::min(time, grant.duration), grant.latency)
                                                  : std::min(time, grant.latency);
  const std::uint64_t moving = std::min(time - latency, grant.duration);
  made.parts = {{"bandwidth of " + dimension, moving},
                {"latency of " + dimension, latency},
                {"endpoint delay", time - moving - latency}};
  return made;
}

}  // namespace orrery::simulate
