#include "orrery/simulate/physical_deadlock.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/simulate/deadlock_diagnosis.hpp"

namespace orrery::simulate {

namespace {

class PhysicalDiagnosis final : public DeadlockDiagnosis {
 public:
  PhysicalDiagnosis(const SimulationJob& job, const PhysicalNodes& nodes, const CollectiveMatch& match)
      : DeadlockDiagnosis(job), nodes_(nodes), match_(match) {}

 private:
  [[nodiscard]] std::vector<std::uint32_t> started(std::uint32_t rank) const override {
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t node = 0; node < job().rank_graphs[rank].nodes.size(); ++node) {
      if (runs(rank, node)) { nodes.push_back(node); }
    }
    return nodes;
  }

  [[nodiscard]] bool runs(std::uint32_t rank, std::uint32_t node) const override {
    return nodes_.ranks()[rank].runs(node);
  }

  [[nodiscard]] Next running(std::uint32_t rank) override {
    const auto nodes = started(rank);
    if (nodes.empty()) { return Cause{{rank, kNone, kNone}, "does not end"}; }
    return BlockedNode{rank, nodes.front(), kNone};
  }

  // No node waits for a slot: nodes start as soon as their parents have ended.
  [[nodiscard]] std::optional<Next> slot_holder(std::uint32_t /*rank*/, std::uint32_t /*node*/) const override {
    return std::nullopt;
  }

  // Some rank has not reached the collective.
  [[nodiscard]] Next blocker_of_collective(const BlockedNode& who) override {
    const std::uint32_t number = match_.collective_of(who.rank, who.node);
    const CollectiveMatch::One& collective = match_.all()[number];
    const std::uint32_t group = collective.task.group;
    for (std::uint32_t position = 0; position < collective.ranks; ++position) {
      const std::uint32_t rank = group == kWholeMachine ? position : job().groups[group - 1].ranks[position];
      if (rank >= nodes_.ranks().size()) { break; }  // folded: like the simulated one
      const auto node = match_.node_of(rank, number);
      if (!node) { return absent(who, rank); }
      if (open(rank)[*node] && !nodes_.ranks()[rank].runs(*node)) { return blocker(rank, *node); }
    }
    if (!collective.custom.empty()) {
      return Cause{who, "is a custom collective whose sends and receives do not match"};
    }
    return Cause{who, "does not end"};
  }

  // The rank's graph does not have the collective.
  [[nodiscard]] Cause absent(const BlockedNode& who, std::uint32_t rank) {
    const NodeTask ours = task(who);
    const auto of_group = [&](const NodeTask& other) {
      return other.act == Act::collective && other.group == ours.group;
    };
    std::uint32_t joined = 0;
    for (std::uint32_t node = 0; node < job().rank_graphs[rank].nodes.size(); ++node) {
      if (of_group(job().rank_graphs.task(rank, node))) { ++joined; }
    }
    std::string why = fmt::format("waits in {} of {} B ({}) for rank {}, which ", name_of(ours.collective), ours.amount,
                                  group_name(ours), real_rank(job(), rank));
    if (joined == 0) { return {who, why + "never joins"}; }
    const auto open = find_open(rank, of_group);
    if (!open) { return {who, why + fmt::format("has completed all of its collectives in the group ({})", joined)}; }
    const NodeTask& theirs = job().rank_graphs[rank].nodes[*open];
    return {who, why + fmt::format("runs {} of {} B instead (node {})", name_of(theirs.collective), theirs.amount,
                                   theirs.id)};
  }

  const PhysicalNodes& nodes_;
  const CollectiveMatch& match_;
};

}  // namespace

Failure physical_deadlock(const SimulationJob& job, const PhysicalNodes& nodes, const CollectiveMatch& match) {
  std::vector<bool> finished(nodes.ranks().size());
  for (std::uint32_t rank = 0; rank < finished.size(); ++rank) { finished[rank] = nodes.finished(rank); }
  return PhysicalDiagnosis(job, nodes, match).failure(finished);
}

}  // namespace orrery::simulate
