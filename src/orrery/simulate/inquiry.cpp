#include "orrery/simulate/inquiry.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace orrery::simulate {

Failure Inquiry::failure(const std::vector<bool>& finished) {
  const auto first = static_cast<std::uint32_t>(std::find(finished.begin(), finished.end(), false) - finished.begin());
  const auto left = std::count(finished.begin(), finished.end(), false);
  const Cause cause = follow(running(first));
  Place place{job_.files.empty() ? "" : job_.files[cause.who.rank], 0, 0, fmt::format("rank {}", cause.who.rank)};
  if (cause.who.node != kNone) { place.path += fmt::format(", node {}", work(cause.who).id); }
  return Failure{{{place, fmt::format("{} ({} of {} ranks cannot finish)", cause.why, left, finished.size())}}, false};
}

std::string Inquiry::named(const Waiting& who) const {
  std::string text = fmt::format("rank {} in node {}", who.rank, work(who).id);
  const Act act = work(who).act;
  if (act == Act::collective) { text += fmt::format(" ({})", name_of(work(who).collective)); }
  if (act == Act::receive) { text += " (a receive)"; }
  if (act == Act::send) { text += " (a send)"; }
  return text;
}

std::string Inquiry::group_name(const Work& collective) const {
  return collective.group == kWholeMachine ? std::string("all ranks")
                                           : fmt::format("group {}", job_.groups[collective.group - 1].name);
}

Cause Inquiry::follow(Next next) {
  std::vector<Waiting> way;
  std::set<Waiting> seen;
  while (const auto* who = std::get_if<Waiting>(&next)) {
    if (!seen.insert(*who).second) { return circle(way, *who); }
    way.push_back(*who);
    next = behind(*who);
  }
  return std::get<Cause>(next);
}

Cause Inquiry::circle(const std::vector<Waiting>& way, const Waiting& end) const {
  constexpr std::ptrdiff_t kMost = 8;
  const auto start = std::find(way.begin(), way.end(), end);
  const auto length = way.end() - start;
  std::string text = "deadlock: " + named(end);
  for (std::ptrdiff_t i = 1; i < std::min(length, kMost); ++i) { text += ", which waits for " + named(*(start + i)); }
  if (length > kMost) { text += fmt::format(", … ({} more)", length - kMost); }
  return {end, text + fmt::format(", which waits for rank {}", end.rank)};
}

const std::vector<bool>& Inquiry::open(std::uint32_t rank) {
  std::vector<bool>& open = open_[rank];
  if (!open.empty()) { return open; }
  const Program& program = job_.programs[rank];
  open.assign(program.nodes.size(), false);
  std::vector<std::uint32_t> reached = started(rank);
  while (!reached.empty()) {
    const std::uint32_t node = reached.back();
    reached.pop_back();
    if (open[node]) { continue; }
    open[node] = true;
    for (const std::uint32_t child : program.children_of(node)) { reached.push_back(child); }
  }
  return open;
}

std::optional<std::uint32_t> Inquiry::open_parent(std::uint32_t rank, std::uint32_t node) {
  const Program& program = job_.programs[rank];
  for (std::uint32_t i = 0; i < program.nodes.size(); ++i) {
    const auto children = program.children_of(i);
    if (open(rank)[i] && std::binary_search(children.begin(), children.end(), node)) { return i; }
  }
  return std::nullopt;
}

Next Inquiry::keeper(std::uint32_t rank, std::uint32_t node) {
  while (!runs(rank, node)) {
    if (auto other = in_the_way(rank, node)) { return *other; }
    const auto parent = open_parent(rank, node);
    if (!parent) { return running(rank); }
    node = *parent;
  }
  return Waiting{rank, node, kNone};
}

Next Inquiry::behind(const Waiting& who) {
  switch (work(who).act) {
    case Act::receive: return behind_receive(who);
    case Act::send: return behind_send(who);
    case Act::collective: return behind_collective(who);
    case Act::hold:
    case Act::memory:
    case Act::nothing:
    case Act::mark: break;
  }
  return Cause{who, "does not end"};
}

Next Inquiry::behind_receive(const Waiting& who) {
  const Work& wanted = work(who);
  const auto partner = [&](const Work& other) {
    return other.act == Act::send && other.peer == who.rank && other.tag == wanted.tag;
  };
  const auto sender =
      find_open(wanted.peer, [&](const Work& other) { return partner(other) && other.amount == wanted.amount; });
  if (sender) { return keeper(wanted.peer, *sender); }
  std::string why = fmt::format("waits for {} B with tag {} from rank {}, which has no matching send", wanted.amount,
                                wanted.tag, wanted.peer);
  const auto& nodes = job_.programs[wanted.peer].nodes;
  const auto other = std::find_if(nodes.begin(), nodes.end(), [&](const Work& candidate) {
    return partner(candidate) && candidate.amount != wanted.amount;
  });
  if (other != nodes.end()) { why += fmt::format("; its node {} sends {} B", other->id, other->amount); }
  return Cause{who, why};
}

Next Inquiry::behind_send(const Waiting& who) {
  const Work& given = work(who);
  const auto receiver = find_open(given.peer, [&](const Work& other) {
    return other.act == Act::receive && other.peer == who.rank && other.tag == given.tag &&
           other.amount == given.amount;
  });
  if (receiver) { return keeper(given.peer, *receiver); }
  return Cause{who, fmt::format("sends {1} B with tag {2} to rank {0}, which has no matching receive (rendezvous)",
                                given.peer, given.amount, given.tag)};
}

}  // namespace orrery::simulate
