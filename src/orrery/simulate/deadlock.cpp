#include "orrery/simulate/deadlock.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orrery/simulate/deadlock_diagnosis.hpp"

namespace orrery::simulate {

namespace {

class MachineDiagnosis final : public DeadlockDiagnosis {
 public:
  MachineDiagnosis(const SimulationJob& job, const Machine& machine) : DeadlockDiagnosis(job), machine_(machine) {
    for (const auto& [key, unmatched] : machine.messenger().unmatched()) {
      for (const Continuation& receiver : unmatched.receivers) {
        if (receiver.kind == Continuation::Kind::node) { receives_.insert({receiver.rank, receiver.ref}); }
      }
    }
  }

 private:
  [[nodiscard]] std::string named(const BlockedNode& who) const override {
    std::string text = DeadlockDiagnosis::named(who);
    if (who.chunk != kNone) { text += fmt::format(" with chunk {}", machine_.chunks()[who.chunk].ordinal); }
    return text;
  }

  [[nodiscard]] std::vector<std::uint32_t> started(std::uint32_t rank) const override {
    std::vector<std::uint32_t> nodes;
    for (const std::uint32_t node : machine_.nodes().ranks()[rank].slots) {
      if (node != kNone) { nodes.push_back(node); }
    }
    for (auto i = receives_.lower_bound({rank, 0}); i != receives_.end() && i->first == rank; ++i) {
      nodes.push_back(i->second);
    }
    for (const auto& heap : machine_.nodes().ranks()[rank].ready) {
      nodes.insert(nodes.end(), heap.begin(), heap.end());
    }
    return nodes;
  }

  [[nodiscard]] bool runs(std::uint32_t rank, std::uint32_t node) const override {
    const auto& holds = machine_.nodes().ranks()[rank].slots;
    return std::find(holds.begin(), holds.end(), node) != holds.end() || receives_.contains({rank, node});
  }

  [[nodiscard]] Next running(std::uint32_t rank) override {
    for (const std::uint32_t node : machine_.nodes().ranks()[rank].slots) {
      if (node != kNone) { return BlockedNode{rank, node, kNone}; }
    }
    const auto receive = receives_.lower_bound({rank, 0});
    if (receive != receives_.end() && receive->first == rank) { return BlockedNode{rank, receive->second, kNone}; }
    std::uint32_t ready = kNone;
    for (const auto& heap : machine_.nodes().ranks()[rank].ready) {
      if (!heap.empty()) { ready = std::min(ready, heap.front()); }
    }
    return Cause{
        {rank, ready, kNone},
        "never starts: it became ready when an INVALID_NODE or a roofline node of 0 B ended, which ASTRA-sim notices "
        "only when another node of the rank ends"};
  }

  // The node that occupies its slot.
  [[nodiscard]] std::optional<Next> slot_holder(std::uint32_t rank, std::uint32_t node) const override {
    if (machine_.nodes().ranks()[rank].parents[node] != 0) { return std::nullopt; }
    const Slot slot = job().rank_graphs[rank].nodes[node].slot;
    const std::uint32_t holder =
        slot == Slot::none ? kNone : machine_.nodes().ranks()[rank].slots[static_cast<std::size_t>(slot)];
    if (holder == kNone) { return std::nullopt; }
    return BlockedNode{rank, holder, kNone};
  }

  [[nodiscard]] Next blocker_of_collective(const BlockedNode& who) override {
    if (who.chunk != kNone) { return blocker_of_chunk(who); }
    for (std::uint32_t i = 0; i < machine_.chunks().made(); ++i) {
      if (machine_.chunks()[i].started && belongs(i, who)) { return blocker_of_chunk({who.rank, who.node, i}); }
    }
    for (std::uint32_t i = 0; i < machine_.chunks().made(); ++i) {
      if (belongs(i, who)) { return blocker_of_chunk({who.rank, who.node, i}); }
    }
    return Cause{who, nothing_to_do(who)};
  }

  [[nodiscard]] bool belongs(std::uint32_t id, const BlockedNode& who) const {
    const Chunk& chunk = machine_.chunks()[id];
    if (chunk.rank != who.rank || chunk.collective == kNone || chunk.not_created != 0) { return false; }
    const ActiveCollective& running = machine_.collectives().active()[chunk.collective];
    return running.node == who.node && running.rank == who.rank && running.sequence != nullptr &&
           machine_.chunks().find(chunk.rank, chunk.group, chunk.id) == id;
  }

  [[nodiscard]] const ActiveCollective* running_at(const BlockedNode& who) const {
    for (std::uint32_t i = 0; i < machine_.collectives().active().made(); ++i) {
      const ActiveCollective& running = machine_.collectives().active()[i];
      if (running.sequence != nullptr && running.rank == who.rank && running.node == who.node) { return &running; }
    }
    return nullptr;
  }

  [[nodiscard]] std::string nothing_to_do(const BlockedNode& who) const {
    const NodeTask what = task(who);
    const Choice& choice = job().system.algorithms[static_cast<std::size_t>(what.collective)];
    if (const auto* list = std::get_if<std::vector<DimensionAlgorithm>>(&choice); list != nullptr && list->empty()) {
      return fmt::format("runs {}, for which the system file has no algorithm", name_of(what.collective));
    }
    if (const ActiveCollective* running = running_at(who); running != nullptr && !running->sequence->custom.empty()) {
      return running->count > 1 ? "runs a custom collective in several chunks, of which ASTRA-sim creates one: "
                                  "preferred-dataset-splits must be 1"
                                : "is a custom collective whose sends and receives do not match";
    }
    return fmt::format("runs {} with one rank or no dimension, which never ends in ASTRA-sim",
                       name_of(what.collective));
  }

  [[nodiscard]] Next blocker_of_chunk(const BlockedNode& who) {
    const Chunk& chunk = machine_.chunks()[who.chunk];
    if (!chunk.started) {  // it waits for the running chunks of its queue
      const std::uint32_t ahead = machine_.collectives().queues().front(chunk.queue);
      return BlockedNode{who.rank, machine_.collectives().active()[machine_.chunks()[ahead].collective].node, ahead};
    }
    std::uint32_t peer = kNone;
    chunk.channels.each_expected([&](std::uint32_t from, std::uint64_t) { peer = std::min(peer, from); });
    if (peer == kNone) { return Cause{who, nothing_to_do(who)}; }
    const std::uint32_t other = machine_.chunks().find(peer, chunk.group, chunk.id);
    const std::uint32_t collective = other == kNone ? kNone : machine_.chunks()[other].collective;
    if (collective == kNone) { return absent(who, peer); }
    const std::uint32_t node = machine_.collectives().active()[collective].node;
    const NodeTask &ours = task(who), &theirs = job().rank_graphs[peer].nodes[node];
    if (ours.collective != theirs.collective || ours.amount != theirs.amount) {
      return Cause{
          who, fmt::format("runs {} of {} B, but rank {} runs {} of {} B instead (node {})", name_of(ours.collective),
                           ours.amount, peer, name_of(theirs.collective), theirs.amount, theirs.id)};
    }
    return BlockedNode{peer, node, other};
  }

  // The chunk at the front of the queue in which chunk `number` of a collective waits to be created, if a placeholder
  // represents it.
  [[nodiscard]] std::optional<BlockedNode> queued_at(std::uint32_t rank, std::uint32_t node,
                                                     std::uint32_t number) const {
    for (std::uint32_t i = 0; i < machine_.chunks().made(); ++i) {
      const Chunk& rest = machine_.chunks()[i];
      if (rest.not_created == 0 || rest.collective == kNone) { continue; }
      const ActiveCollective& running = machine_.collectives().active()[rest.collective];
      if (running.rank != rank || running.node != node || running.sequence == nullptr) { continue; }
      const std::uint32_t ordinal = number - running.first_number;
      if (ordinal < rest.ordinal || (ordinal - rest.ordinal) % running.stride != 0) { continue; }
      if ((ordinal - rest.ordinal) / running.stride >= rest.not_created) { continue; }
      const std::uint32_t ahead = machine_.collectives().queues().front(rest.queue);
      return BlockedNode{rank, machine_.collectives().active()[machine_.chunks()[ahead].collective].node, ahead};
    }
    return std::nullopt;
  }

  // The peer has no such chunk (yet).
  [[nodiscard]] Next absent(const BlockedNode& who, std::uint32_t peer) {
    const NodeTask ours = task(who);
    const auto of_group = [&](const NodeTask& other) {
      return other.act == Act::collective && other.group == ours.group;
    };
    const auto later = find_open(peer, of_group);
    if (later && !runs(peer, *later)) { return blocker(peer, *later); }
    const std::string what =
        fmt::format("waits in {} ({}) for rank {}, ", name_of(ours.collective), group_name(ours), peer);
    if (later) {
      if (const auto ahead = queued_at(peer, *later, machine_.chunks()[who.chunk].id)) { return *ahead; }
      return Cause{who, what +
                            "whose chunks have other numbers: the two ranks ran different numbers of chunks before, in "
                            "groups or in the machine, which ASTRA-sim does not tell apart"};
    }
    const auto& nodes = job().rank_graphs[peer].nodes;
    const auto joined = std::count_if(nodes.begin(), nodes.end(), of_group);
    if (joined == 0) { return Cause{who, what + "which never joins"}; }
    return Cause{who, what + fmt::format("which has completed all of its collectives in the group ({})", joined)};
  }

  const Machine& machine_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> receives_;  // running receives: rank, node
};

}  // namespace

Failure deadlock(const SimulationJob& job, const Machine& machine) {
  std::vector<bool> finished;
  for (const RankState& rank : machine.nodes().ranks()) { finished.push_back(rank.finished); }
  return MachineDiagnosis(job, machine).failure(finished);
}

}  // namespace orrery::simulate
