#include "orrery/simulate/deadlock_diagnosis.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace orrery::simulate {

Failure DeadlockDiagnosis::failure(const std::vector<bool>& finished) {
  const auto first = static_cast<std::uint32_t>(std::find(finished.begin(), finished.end(), false) - finished.begin());
  const auto left = std::count(finished.begin(), finished.end(), false);
  const Cause cause = follow(running(first));
  Place place{job_.files.empty() ? "" : job_.files[cause.who.rank], 0, 0,
              fmt::format("rank {}", real_rank(job_, cause.who.rank))};
  if (cause.who.node != kNone) { place.path += fmt::format(", node {}", task(cause.who).id); }
  return Failure{{{place, fmt::format("{} ({} of {} ranks cannot finish)", cause.why, left, finished.size())}}, false};
}

std::string DeadlockDiagnosis::named(const BlockedNode& who) const {
  std::string text = fmt::format("rank {} in node {}", real_rank(job_, who.rank), task(who).id);
  const Act act = task(who).act;
  if (act == Act::collective) { text += fmt::format(" ({})", name_of(task(who).collective)); }
  if (act == Act::receive) { text += " (a receive)"; }
  if (act == Act::send) { text += " (a send)"; }
  return text;
}

std::string DeadlockDiagnosis::group_name(const NodeTask& collective) const {
  return collective.group == kWholeMachine ? std::string("all ranks")
                                           : fmt::format("group {}", job_.groups[collective.group - 1].name);
}

Cause DeadlockDiagnosis::follow(Next next) {
  std::vector<BlockedNode> path;
  std::set<BlockedNode> seen;
  while (const auto* who = std::get_if<BlockedNode>(&next)) {
    if (!seen.insert(*who).second) { return cycle(path, *who); }
    path.push_back(*who);
    next = blocker_of(*who);
  }
  return std::get<Cause>(next);
}

Cause DeadlockDiagnosis::cycle(const std::vector<BlockedNode>& path, const BlockedNode& end) const {
  constexpr std::ptrdiff_t kMost = 8;
  const auto start = std::find(path.begin(), path.end(), end);
  const auto length = path.end() - start;
  std::string text = "deadlock: " + named(end);
  for (std::ptrdiff_t i = 1; i < std::min(length, kMost); ++i) { text += ", which waits for " + named(*(start + i)); }
  if (length > kMost) { text += fmt::format(", … ({} more)", length - kMost); }
  return {end, text + fmt::format(", which waits for rank {}", real_rank(job_, end.rank))};
}

const std::vector<bool>& DeadlockDiagnosis::open(std::uint32_t rank) {
  std::vector<bool>& open = open_[rank];
  if (!open.empty()) { return open; }
  const RankGraph& rank_graph = job_.rank_graphs[rank];
  open.assign(rank_graph.nodes.size(), false);
  std::vector<std::uint32_t> reached = started(rank);
  while (!reached.empty()) {
    const std::uint32_t node = reached.back();
    reached.pop_back();
    if (open[node]) { continue; }
    open[node] = true;
    for (const std::uint32_t child : rank_graph.children_of(node)) { reached.push_back(child); }
  }
  return open;
}

std::optional<std::uint32_t> DeadlockDiagnosis::open_parent(std::uint32_t rank, std::uint32_t node) {
  const RankGraph& rank_graph = job_.rank_graphs[rank];
  for (std::uint32_t i = 0; i < rank_graph.nodes.size(); ++i) {
    const auto children = rank_graph.children_of(i);
    if (open(rank)[i] && std::binary_search(children.begin(), children.end(), node)) { return i; }
  }
  return std::nullopt;
}

Next DeadlockDiagnosis::blocker(std::uint32_t rank, std::uint32_t node) {
  while (!runs(rank, node)) {
    if (auto other = slot_holder(rank, node)) { return *other; }
    const auto parent = open_parent(rank, node);
    if (!parent) { return running(rank); }
    node = *parent;
  }
  return BlockedNode{rank, node, kNone};
}

Next DeadlockDiagnosis::blocker_of(const BlockedNode& who) {
  switch (task(who).act) {
    case Act::receive: return blocker_of_receive(who);
    case Act::send: return blocker_of_send(who);
    case Act::collective: return blocker_of_collective(who);
    case Act::busy:
    case Act::memory:
    case Act::no_op:
    case Act::metadata: break;
  }
  return Cause{who, "does not end"};
}

Next DeadlockDiagnosis::blocker_of_receive(const BlockedNode& who) {
  const NodeTask wanted = task(who);
  const auto partner = [&](const NodeTask& other) {
    return other.act == Act::send && other.peer == who.rank && other.tag == wanted.tag;
  };
  const auto sender =
      find_open(wanted.peer, [&](const NodeTask& other) { return partner(other) && other.amount == wanted.amount; });
  if (sender) { return blocker(wanted.peer, *sender); }
  const std::string why = fmt::format("waits for {} B with tag {} from rank {}, which has no matching send",
                                      wanted.amount, wanted.tag, real_rank(job_, wanted.peer));
  for (std::uint32_t node = 0; node < job_.rank_graphs[wanted.peer].nodes.size(); ++node) {
    const NodeTask other = job_.rank_graphs.task(wanted.peer, node);
    if (!partner(other) || other.amount == wanted.amount) { continue; }
    return Cause{who, why + fmt::format("; its node {} sends {} B", other.id, other.amount)};
  }
  return Cause{who, why};
}

Next DeadlockDiagnosis::blocker_of_send(const BlockedNode& who) {
  const NodeTask given = task(who);
  const auto receiver = find_open(given.peer, [&](const NodeTask& other) {
    return other.act == Act::receive && other.peer == who.rank && other.tag == given.tag &&
           other.amount == given.amount;
  });
  if (receiver) { return blocker(given.peer, *receiver); }
  return Cause{who, fmt::format("sends {1} B with tag {2} to rank {0}, which has no matching receive (rendezvous)",
                                given.peer, given.amount, given.tag)};
}

}  // namespace orrery::simulate
