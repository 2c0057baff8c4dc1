// Follows who waits for whom, from the first rank that did not finish, until somebody waits for what never comes, or
// the way comes back to where it was.
#include "orrery/simulate/stalled.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <variant>

#include <fmt/format.h>

namespace orrery::simulate {

namespace {

// A node that runs on a rank and does not end; of a collective, the chunk in question.
struct Waiting {
  std::uint32_t rank = 0, node = 0;
  std::uint32_t chunk = kNone;

  friend bool operator<(const Waiting& a, const Waiting& b) {
    return std::tie(a.rank, a.node, a.chunk) < std::tie(b.rank, b.node, b.chunk);
  }
};

struct Cause {  // what never comes
  Waiting who;
  std::string why;
};

using Next = std::variant<Waiting, Cause>;

class Inquiry {
 public:
  Inquiry(const Job& job, const Machine& machine) : job_(job), machine_(machine), pending_(job.programs.size()) {
    for (const auto& [address, box] : machine.boxes()) {
      for (const Party& party : box.waiting) {
        if (party.kind == Party::Kind::node) { receives_.insert({party.rank, party.ref}); }
      }
    }
  }

  Failure failure() {
    const auto& ranks = machine_.ranks();
    const auto first = std::find_if(ranks.begin(), ranks.end(), [](const Rank& rank) { return !rank.finished; });
    const auto left = std::count_if(first, ranks.end(), [](const Rank& rank) { return !rank.finished; });
    const auto rank = static_cast<std::uint32_t>(first - ranks.begin());
    const Cause cause = follow(rank);
    Place place{job_.files[cause.who.rank], 0, 0, {}};
    place.path = fmt::format("rank {}", cause.who.rank);
    if (cause.who.node != kNone) { place.path += fmt::format(", node {}", work(cause.who).id); }
    return Failure{{{place, fmt::format("{} ({} of {} ranks cannot finish)", cause.why, left, ranks.size())}}, false};
  }

 private:
  [[nodiscard]] const Work& work(const Waiting& who) const { return job_.programs[who.rank].nodes[who.node]; }

  [[nodiscard]] std::string named(const Waiting& who) const {
    std::string text = fmt::format("rank {} in node {}", who.rank, work(who).id);
    const Act act = work(who).act;
    if (act == Act::collective) { text += fmt::format(" ({})", name_of(work(who).collective)); }
    if (act == Act::receive) { text += " (a receive)"; }
    if (act == Act::send) { text += " (a send)"; }
    if (who.chunk != kNone) { text += fmt::format(" with chunk {}", machine_.chunks()[who.chunk].ordinal); }
    return text;
  }

  Cause follow(std::uint32_t rank) {
    std::vector<Waiting> way;
    std::set<Waiting> seen;
    Next next = running(rank);
    while (const auto* who = std::get_if<Waiting>(&next)) {
      if (!seen.insert(*who).second) { return circle(way, *who); }
      way.push_back(*who);
      next = behind(*who);
    }
    return std::get<Cause>(next);
  }

  [[nodiscard]] Cause circle(const std::vector<Waiting>& way, const Waiting& end) const {
    constexpr std::size_t kMost = 8;
    const auto same = [&](const Waiting& other) { return !(other < end) && !(end < other); };
    const auto start = std::find_if(way.begin(), way.end(), same);
    std::string text = "waits for itself: " + named(end);
    const auto length = static_cast<std::size_t>(way.end() - start);
    for (std::size_t i = 1; i < length && i < kMost; ++i) {
      text += ", which waits for " + named(*(start + static_cast<std::ptrdiff_t>(i)));
    }
    if (length > kMost) { text += fmt::format(", … ({} more)", length - kMost); }
    return {end, text + fmt::format(", which waits for rank {}", end.rank)};
  }

  // Something that runs on the rank and does not end.
  [[nodiscard]] Next running(std::uint32_t rank) const {
    for (const std::uint32_t node : machine_.ranks()[rank].holds) {
      if (node != kNone) { return Waiting{rank, node, kNone}; }
    }
    const auto receive = receives_.lower_bound({rank, 0});
    if (receive != receives_.end() && receive->first == rank) { return Waiting{rank, receive->second, kNone}; }
    std::uint32_t ready = kNone;
    for (const auto& heap : machine_.ranks()[rank].ready) {
      if (!heap.empty()) { ready = std::min(ready, heap.front()); }
    }
    return Cause{{rank, ready, kNone},
                 "is never looked at again: it became ready when an INVALID_NODE or one of 0 B was over, which "
                 "ASTRA-sim notices only when another node of the rank ends"};
  }

  // ---- nodes that have not ended ----

  const std::vector<bool>& pending(std::uint32_t rank) {
    std::vector<bool>& pending = pending_[rank];
    if (!pending.empty()) { return pending; }
    const Program& program = job_.programs[rank];
    pending.assign(program.nodes.size(), false);
    std::vector<std::uint32_t> open;
    for (const std::uint32_t node : machine_.ranks()[rank].holds) {
      if (node != kNone) { open.push_back(node); }
    }
    for (auto i = receives_.lower_bound({rank, 0}); i != receives_.end() && i->first == rank; ++i) {
      open.push_back(i->second);
    }
    for (const auto& heap : machine_.ranks()[rank].ready) { open.insert(open.end(), heap.begin(), heap.end()); }
    while (!open.empty()) {
      const std::uint32_t node = open.back();
      open.pop_back();
      if (pending[node]) { continue; }
      pending[node] = true;
      for (const std::uint32_t child : program.children_of(node)) { open.push_back(child); }
    }
    return pending;
  }

  template <class Fits>
  [[nodiscard]] std::uint32_t find_pending(std::uint32_t rank, Fits&& fits) {
    const std::vector<bool>& pending = this->pending(rank);
    for (std::uint32_t i = 0; i < pending.size(); ++i) {
      if (pending[i] && fits(job_.programs[rank].nodes[i])) { return i; }
    }
    return kNone;
  }

  [[nodiscard]] bool runs(std::uint32_t rank, std::uint32_t node) const {
    const auto& holds = machine_.ranks()[rank].holds;
    return std::find(holds.begin(), holds.end(), node) != holds.end() || receives_.contains({rank, node});
  }

  // What keeps a pending node from ending: itself if it runs, who has its slot, or what keeps a parent.
  [[nodiscard]] Next keeper(std::uint32_t rank, std::uint32_t node) {
    const Program& program = job_.programs[rank];
    while (!runs(rank, node)) {
      if (machine_.ranks()[rank].parents[node] == 0) {
        const Slot slot = program.nodes[node].slot;
        const std::uint32_t holder =
            slot == Slot::none ? kNone : machine_.ranks()[rank].holds[static_cast<std::size_t>(slot)];
        if (holder == kNone) { return running(rank); }
        return Waiting{rank, holder, kNone};
      }
      std::uint32_t parent = kNone;
      for (std::uint32_t i = 0; i < program.nodes.size() && parent == kNone; ++i) {
        const auto children = program.children_of(i);
        if (pending(rank)[i] && std::binary_search(children.begin(), children.end(), node)) { parent = i; }
      }
      if (parent == kNone) { return running(rank); }
      node = parent;
    }
    return Waiting{rank, node, kNone};
  }

  // ---- what a node waits for ----

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
    const std::uint32_t sender =
        find_pending(wanted.peer, [&](const Work& other) { return partner(other) && other.amount == wanted.amount; });
    if (sender != kNone) { return keeper(wanted.peer, sender); }
    std::string why = fmt::format("waits for {} B with tag {} from rank {}, which never sends them", wanted.amount,
                                  wanted.tag, wanted.peer);
    for (const Work& other : job_.programs[wanted.peer].nodes) {
      if (partner(other) && other.amount != wanted.amount) {
        why += fmt::format("; its node {} sends {} B", other.id, other.amount);
        break;
      }
    }
    return Cause{who, why};
  }

  [[nodiscard]] Next behind_send(const Waiting& who) {
    const Work& given = work(who);
    const std::uint32_t receiver = find_pending(given.peer, [&](const Work& other) {
      return other.act == Act::receive && other.peer == who.rank && other.tag == given.tag &&
             other.amount == given.amount;
    });
    if (receiver != kNone) { return keeper(given.peer, receiver); }
    return Cause{who, fmt::format("waits until rank {} is ready for {} B with tag {}, which it never is (rendezvous)",
                                  given.peer, given.amount, given.tag)};
  }

  [[nodiscard]] Next behind_collective(const Waiting& who) {
    if (who.chunk != kNone) { return behind_chunk(who); }
    for (std::uint32_t i = 0; i < machine_.chunks().made(); ++i) {
      const Chunk& chunk = machine_.chunks()[i];
      if (belongs(chunk, who) && chunk.started) { return behind_chunk({who.rank, who.node, i}); }
    }
    for (std::uint32_t i = 0; i < machine_.chunks().made(); ++i) {
      if (belongs(machine_.chunks()[i], who)) { return behind_chunk({who.rank, who.node, i}); }
    }
    return Cause{who, nothing_to_do(who)};
  }

  [[nodiscard]] bool belongs(const Chunk& chunk, const Waiting& who) const {
    if (chunk.rank != who.rank || chunk.collective == kNone || chunk.unborn != 0) { return false; }
    const Running& running = machine_.collectives()[chunk.collective];
    return running.node == who.node && running.rank == who.rank && running.plan != nullptr &&
           machine_.chunk_of(chunk.rank, chunk.group, chunk.id) == &chunk;
  }

  [[nodiscard]] std::string nothing_to_do(const Waiting& who) const {
    const Work& what = work(who);
    const Choice& choice = job_.system.algorithms[static_cast<std::size_t>(what.collective)];
    if (const auto* list = std::get_if<std::vector<Algorithm>>(&choice); list != nullptr && list->empty()) {
      return fmt::format("runs {} for which the system file has no algorithm", name_of(what.collective));
    }
    if (std::holds_alternative<std::string>(choice)) {
      return "runs a custom collective in several chunks, of which ASTRA-sim makes one: preferred-dataset-splits must "
             "be "
             "1, and divide the size";
    }
    return fmt::format("runs {} of one rank or no dimension, which never ends in ASTRA-sim", name_of(what.collective));
  }

  [[nodiscard]] Next behind_chunk(const Waiting& who) {
    const Chunk& chunk = machine_.chunks()[who.chunk];
    if (!chunk.started) {  // behind those that run in its queue
      const std::uint32_t ahead = machine_.queue(chunk.queue).first;
      return Waiting{who.rank, machine_.collectives()[machine_.chunks()[ahead].collective].node, ahead};
    }
    std::uint32_t peer = kNone;
    chunk.channels.each_expected([&](std::uint32_t from, std::uint64_t) { peer = std::min(peer, from); });
    if (peer == kNone) { return Cause{who, nothing_to_do(who)}; }
    const Chunk* other = machine_.chunk_of(peer, chunk.group, chunk.id);
    if (other == nullptr || other->collective == kNone) { return absent(who, peer); }
    const std::uint32_t node = machine_.collectives()[other->collective].node;
    const Work &ours = work(who), &theirs = job_.programs[peer].nodes[node];
    if (ours.collective != theirs.collective || ours.amount != theirs.amount) {
      return Cause{
          who, fmt::format("runs {} of {} B, but rank {} {} of {} B in its place (node {})", name_of(ours.collective),
                           ours.amount, peer, name_of(theirs.collective), theirs.amount, theirs.id)};
    }
    return Waiting{peer, node, number_of(other)};
  }

  // The chunk that runs where chunk `number` of a collective is to start one day, if it is one of that collective.
  [[nodiscard]] std::optional<Waiting> queued_at(std::uint32_t rank, std::uint32_t node, std::uint32_t number) const {
    for (std::uint32_t i = 0; i < machine_.chunks().made(); ++i) {
      const Chunk& rest = machine_.chunks()[i];
      if (rest.unborn == 0 || rest.collective == kNone) { continue; }
      const Running& running = machine_.collectives()[rest.collective];
      if (running.rank != rank || running.node != node || running.plan == nullptr) { continue; }
      const std::uint32_t ordinal = number - running.first_number;
      if (ordinal < rest.ordinal || (ordinal - rest.ordinal) % running.stride != 0) { continue; }
      if ((ordinal - rest.ordinal) / running.stride >= rest.unborn) { continue; }
      const std::uint32_t ahead = machine_.queue(rest.queue).first;
      return Waiting{rank, machine_.collectives()[machine_.chunks()[ahead].collective].node, ahead};
    }
    return std::nullopt;
  }

  [[nodiscard]] std::uint32_t number_of(const Chunk* chunk) const {
    for (std::uint32_t i = 0; i < machine_.chunks().made(); ++i) {
      if (&machine_.chunks()[i] == chunk) { return i; }
    }
    return kNone;
  }

  // The peer has no such chunk (yet).
  [[nodiscard]] Next absent(const Waiting& who, std::uint32_t peer) {
    const Work& ours = work(who);
    const std::uint32_t later = find_pending(
        peer, [&](const Work& other) { return other.act == Act::collective && other.group == ours.group; });
    const std::string which = ours.group == kWholeMachine ? std::string("all ranks")
                                                          : fmt::format("group {}", job_.groups[ours.group - 1].id);
    const auto joined =
        std::count_if(job_.programs[peer].nodes.begin(), job_.programs[peer].nodes.end(),
                      [&](const Work& other) { return other.act == Act::collective && other.group == ours.group; });
    if (later == kNone && joined > 0) {
      return Cause{who, fmt::format("waits in {} of {} for rank {}, which is through with all its own ({})",
                                    name_of(ours.collective), which, peer, joined)};
    }
    if (later == kNone) {
      return Cause{
          who, fmt::format("waits in {} of {} for rank {}, which never joins", name_of(ours.collective), which, peer)};
    }
    if (runs(peer, later)) {
      if (const auto ahead = queued_at(peer, later, machine_.chunks()[who.chunk].id)) { return *ahead; }
      return Cause{who, fmt::format("waits in {} of {} for rank {}, whose chunks have other numbers: the two ranks ran "
                                    "different numbers of chunks before, those of groups included, which ASTRA-sim "
                                    "confuses",
                                    name_of(ours.collective), which, peer)};
    }
    return keeper(peer, later);
  }

  const Job& job_;
  const Machine& machine_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> receives_;  // that run: rank, node
  std::vector<std::vector<bool>> pending_;                      // by rank, filled when asked for
};

}  // namespace

Failure stalled(const Job& job, const Machine& machine) { return Inquiry(job, machine).failure(); }

}  // namespace orrery::simulate
