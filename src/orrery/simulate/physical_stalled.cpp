#include "orrery/simulate/physical_stalled.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <variant>

#include <fmt/format.h>

namespace orrery::simulate {

namespace {

struct Waiting {  // a node that is not over
  std::uint32_t rank = 0, node = 0;

  friend auto operator<=>(const Waiting&, const Waiting&) = default;
};

struct Cause {  // what never comes
  Waiting who;
  std::string why;
};

using Next = std::variant<Waiting, Cause>;

// Follows who waits for whom, from the first rank that did not finish, until somebody waits for what never comes, or
// the way comes back to where it was.
class PhysicalInquiry {
 public:
  PhysicalInquiry(const Job& job, const PhysicalMachine& machine) : job_(job), machine_(machine) {}

  Failure failure() {
    const auto count = static_cast<std::uint32_t>(machine_.ranks().size());
    std::uint32_t first = count, left = 0;
    for (std::uint32_t rank = count; rank-- > 0;) {
      if (!machine_.finished(rank)) {
        first = rank;
        ++left;
      }
    }
    const Cause cause = follow(keeper(first, open_node(first)));
    const Place place{job_.files.empty() ? "" : job_.files[cause.who.rank], 0, 0,
                      fmt::format("rank {}, node {}", cause.who.rank, work(cause.who).id)};
    return Failure{{{place, fmt::format("{} ({} of {} ranks cannot finish)", cause.why, left, count)}}, false};
  }

 private:
  [[nodiscard]] const Work& work(const Waiting& who) const { return job_.programs[who.rank].nodes[who.node]; }

  [[nodiscard]] std::string named(const Waiting& who) const {
    std::string text = fmt::format("rank {} in node {}", who.rank, work(who).id);
    const Act act = work(who).act;
    if (act == Act::collective) { text += fmt::format(" ({})", name_of(work(who).collective)); }
    if (act == Act::receive) { text += " (a receive)"; }
    if (act == Act::send) { text += " (a send)"; }
    return text;
  }

  Cause follow(Next next) {
    std::vector<Waiting> way;
    std::set<Waiting> seen;
    while (const auto* who = std::get_if<Waiting>(&next)) {
      if (!seen.insert(*who).second) { return circle(way, *who); }
      way.push_back(*who);
      next = behind(*who);
    }
    return std::get<Cause>(next);
  }

  [[nodiscard]] Cause circle(const std::vector<Waiting>& way, const Waiting& end) const {
    constexpr std::ptrdiff_t kMost = 8;
    const auto start = std::find(way.begin(), way.end(), end);
    const auto length = way.end() - start;
    std::string text = "waits for itself: " + named(end);
    for (std::ptrdiff_t i = 1; i < std::min(length, kMost); ++i) { text += ", which waits for " + named(*(start + i)); }
    if (length > kMost) { text += fmt::format(", … ({} more)", length - kMost); }
    return {end, text + fmt::format(", which waits for rank {}", end.rank)};
  }

  // ---- nodes that are not over ----

  // A node is open when it runs, or some node before it does.
  const std::vector<bool>& open(std::uint32_t rank) {
    auto& open = open_[rank];
    if (!open.empty()) { return open; }
    const Program& program = job_.programs[rank];
    open.assign(program.nodes.size(), false);
    std::vector<std::uint32_t> reached;
    for (std::uint32_t node = 0; node < program.nodes.size(); ++node) {
      if (machine_.ranks()[rank].runs[node]) { reached.push_back(node); }
    }
    while (!reached.empty()) {
      const std::uint32_t node = reached.back();
      reached.pop_back();
      if (open[node]) { continue; }
      open[node] = true;
      for (const std::uint32_t child : program.children_of(node)) { reached.push_back(child); }
    }
    return open;
  }

  [[nodiscard]] std::uint32_t open_node(std::uint32_t rank) {
    const auto& open = this->open(rank);
    return static_cast<std::uint32_t>(std::find(open.begin(), open.end(), true) - open.begin());
  }

  // What keeps an open node from ending: itself if it runs, or what keeps a node before it.
  [[nodiscard]] Waiting keeper(std::uint32_t rank, std::uint32_t node) {
    const Program& program = job_.programs[rank];
    while (!machine_.ranks()[rank].runs[node]) {
      std::uint32_t parent = kNone;
      for (std::uint32_t i = 0; i < program.nodes.size() && parent == kNone; ++i) {
        const auto children = program.children_of(i);
        if (open(rank)[i] && std::binary_search(children.begin(), children.end(), node)) { parent = i; }
      }
      if (parent == kNone) { return {rank, open_node(rank)}; }
      node = parent;
    }
    return {rank, node};
  }

  template <class Fits>
  [[nodiscard]] std::optional<std::uint32_t> find_open(std::uint32_t rank, Fits&& fits) {
    const std::vector<bool>& open = this->open(rank);
    for (std::uint32_t i = 0; i < open.size(); ++i) {
      if (open[i] && fits(job_.programs[rank].nodes[i])) { return i; }
    }
    return std::nullopt;
  }

  // ---- what a running node waits for ----

  [[nodiscard]] Next behind(const Waiting& who) {
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

  [[nodiscard]] Next behind_receive(const Waiting& who) {
    const Work& wanted = work(who);
    const auto partner = [&](const Work& other) {
      return other.act == Act::send && other.peer == who.rank && other.tag == wanted.tag;
    };
    const auto sender =
        find_open(wanted.peer, [&](const Work& other) { return partner(other) && other.amount == wanted.amount; });
    if (sender) { return keeper(wanted.peer, *sender); }
    std::string why = fmt::format("waits for {} B with tag {} from rank {}, which never sends them", wanted.amount,
                                  wanted.tag, wanted.peer);
    for (const Work& other : job_.programs[wanted.peer].nodes) {
      if (!partner(other) || other.amount == wanted.amount) { continue; }
      why += fmt::format("; its node {} sends {} B", other.id, other.amount);
      break;
    }
    return Cause{who, why};
  }

  [[nodiscard]] Next behind_send(const Waiting& who) {
    const Work& given = work(who);
    const auto receiver = find_open(given.peer, [&](const Work& other) {
      return other.act == Act::receive && other.peer == who.rank && other.tag == given.tag &&
             other.amount == given.amount;
    });
    if (receiver) { return keeper(given.peer, *receiver); }
    return Cause{who, fmt::format("waits until rank {} is ready for {} B with tag {}, which it never is (rendezvous)",
                                  given.peer, given.amount, given.tag)};
  }

  // Some rank has not come to the collective.
  [[nodiscard]] Next behind_collective(const Waiting& who) {
    const std::uint32_t number = machine_.collective_of(who.rank, who.node);
    const PhysicalCollective& collective = machine_.collectives()[number];
    const PhysicalGroup& group = machine_.group(collective.work.group);
    for (std::uint32_t position = 0; position < collective.ranks; ++position) {
      const std::uint32_t rank = group.rank(position);
      const auto node = machine_.node_of(rank, number);
      if (!node) { return absent(who, rank); }
      if (open(rank)[*node] && !machine_.ranks()[rank].runs[*node]) { return keeper(rank, *node); }
    }
    if (!collective.custom.empty()) { return Cause{who, "runs graphs whose sends and receives do not match"}; }
    return Cause{who, "does not end"};
  }

  // The rank's graph does not have the collective.
  [[nodiscard]] Cause absent(const Waiting& who, std::uint32_t rank) {
    const Work& ours = work(who);
    const std::string which = ours.group == kWholeMachine ? std::string("all ranks")
                                                          : fmt::format("group {}", job_.groups[ours.group - 1].id);
    const auto of_group = [&](const Work& other) { return other.act == Act::collective && other.group == ours.group; };
    const auto& nodes = job_.programs[rank].nodes;
    const auto joined = std::count_if(nodes.begin(), nodes.end(), of_group);
    std::string why = fmt::format("waits in {} of {} B of {} for rank {}, which ", name_of(ours.collective),
                                  ours.amount, which, rank);
    if (joined == 0) { return {who, why + "never joins"}; }
    const auto open = find_open(rank, of_group);
    if (!open) { return {who, why + fmt::format("is through with all its own ({})", joined)}; }
    const Work& theirs = nodes[*open];
    return {who, why + fmt::format("has {} of {} B in its place (node {})", name_of(theirs.collective), theirs.amount,
                                   theirs.id)};
  }

  const Job& job_;
  const PhysicalMachine& machine_;
  std::map<std::uint32_t, std::vector<bool>> open_;  // by rank, filled when asked for
};

}  // namespace

Failure physically_stalled(const Job& job, const PhysicalMachine& machine) {
  return PhysicalInquiry(job, machine).failure();
}

}  // namespace orrery::simulate
