#include "orrery/network/schedule.hpp"

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"

namespace orrery::network {
namespace {

using Extents = InlineList<Extent, kMaxExtents>;

// Appends phases to a schedule and tracks how much of the buffer each member works on.
class Builder {
 public:
  Builder(Schedule& schedule, const Extents& extents, const Recipe& recipe)
      : schedule_(schedule), extents_(extents), recipe_(recipe) {}

  [[nodiscard]] std::size_t outermost() const { return extents_.size() - 1; }
  [[nodiscard]] CollectiveAlgorithm algorithm(std::size_t e) const { return recipe_[e]; }

  // From `bytes` at every member to bytes/n, reduced.
  void reduce_scatter(std::size_t e, Bytes bytes) {
    const Bytes shard = bytes / members(e);
    switch (algorithm(e)) {
      case CollectiveAlgorithm::ring: return add(e, Pattern::ring, rounds(e), shard, shard, true);
      case CollectiveAlgorithm::direct: return add(e, Pattern::all_pairs, 1, others(e, bytes), others(e, bytes), true);
      case CollectiveAlgorithm::in_switch: return add(e, Pattern::switch_up, 1, bytes, shard, true);
      case CollectiveAlgorithm::tree:
      case CollectiveAlgorithm::flat_ring:
      case CollectiveAlgorithm::halving_doubling:
      case CollectiveAlgorithm::hierarchical:
      case CollectiveAlgorithm::automatic: unsupported_ = true;
    }
  }

  // From bytes/n at every member to `bytes`.
  void all_gather(std::size_t e, Bytes bytes) {
    const Bytes shard = bytes / members(e);
    switch (algorithm(e)) {
      case CollectiveAlgorithm::ring: return add(e, Pattern::ring, rounds(e), shard, shard);
      case CollectiveAlgorithm::direct: return add(e, Pattern::all_pairs, 1, others(e, bytes), others(e, bytes));
      case CollectiveAlgorithm::in_switch: return add(e, Pattern::switch_down, 1, shard, bytes);
      case CollectiveAlgorithm::tree:
      case CollectiveAlgorithm::flat_ring:
      case CollectiveAlgorithm::halving_doubling:
      case CollectiveAlgorithm::hierarchical:
      case CollectiveAlgorithm::automatic: unsupported_ = true;
    }
  }

  // The outermost extent of an all_reduce.
  void all_reduce(std::size_t e, Bytes bytes) {
    if (algorithm(e) != CollectiveAlgorithm::tree) {
      reduce_scatter(e, bytes);
      all_gather(e, bytes);
      return;
    }
    tree(e, bytes);
  }

  // Along a ring, the shard for a member at distance o <= n/2 takes o hops:
  // n^2/4 hops (rounded down) for the n - 1 shards of a member, in n/2 steps.
  void all_to_all(std::size_t e, Bytes bytes) {
    switch (algorithm(e)) {
      case CollectiveAlgorithm::ring: {
        const std::int64_t n = extents_[e].members;
        const std::int64_t hops = n * n / 4, steps = n / 2;
        const Bytes mean = bytes / members(e) * (static_cast<double>(hops) / static_cast<double>(steps));
        return add(e, Pattern::ring, steps, mean, mean);
      }
      case CollectiveAlgorithm::direct: return add(e, Pattern::exchange, 1, others(e, bytes), others(e, bytes));
      case CollectiveAlgorithm::in_switch:
      case CollectiveAlgorithm::tree:
      case CollectiveAlgorithm::flat_ring:
      case CollectiveAlgorithm::halving_doubling:
      case CollectiveAlgorithm::hierarchical:
      case CollectiveAlgorithm::automatic: unsupported_ = true;
    }
  }

  // The root's `bytes` cut into n shards, one for each member.
  void scatter(std::size_t e, Bytes bytes) {
    const Bytes shard = bytes / members(e);
    switch (algorithm(e)) {
      case CollectiveAlgorithm::ring: return add(e, Pattern::scatter, rounds(e), shard, shard);
      case CollectiveAlgorithm::direct:
      case CollectiveAlgorithm::in_switch: return add(e, Pattern::scatter, 1, others(e, bytes), shard);
      case CollectiveAlgorithm::tree:
      case CollectiveAlgorithm::flat_ring:
      case CollectiveAlgorithm::halving_doubling:
      case CollectiveAlgorithm::hierarchical:
      case CollectiveAlgorithm::automatic: unsupported_ = true;
    }
  }

  // The outermost extent of a broadcast. The second tree's root gets its half first, which is one more step.
  void broadcast(std::size_t e, Bytes bytes) {
    switch (algorithm(e)) {
      case CollectiveAlgorithm::ring: return add(e, Pattern::chain, rounds(e), bytes, bytes);
      case CollectiveAlgorithm::tree: return add(e, Pattern::tree_down, depth(e) + 1, bytes, bytes);
      case CollectiveAlgorithm::in_switch: return add(e, Pattern::multicast, 1, bytes, bytes);
      case CollectiveAlgorithm::direct: scatter(e, bytes); return all_gather(e, bytes);
      case CollectiveAlgorithm::flat_ring:
      case CollectiveAlgorithm::halving_doubling:
      case CollectiveAlgorithm::hierarchical:
      case CollectiveAlgorithm::automatic: unsupported_ = true;
    }
  }

  // One ring through all extents.
  void ring_through_all_extents(Collective collective, Bytes bytes) {
    switch (collective) {
      case Collective::all_reduce: flat_ring(bytes, true); return flat_ring(bytes, false);
      case Collective::reduce_scatter: return flat_ring(bytes, true);
      case Collective::all_gather: return flat_ring(bytes, false);
      case Collective::all_to_all:
      case Collective::broadcast:
      case Collective::reduce:
      case Collective::gather:
      case Collective::scatter:
      case Collective::barrier: unsupported_ = true;
    }
  }

  [[nodiscard]] double members(std::size_t e) const { return static_cast<double>(extents_[e].members); }
  void mark_unsupported() { unsupported_ = true; }
  [[nodiscard]] bool unsupported() const { return unsupported_; }

 private:
  // A ring through all members: n - 1 steps of a shard of 1/n. There is one rotation of the ring's order for every
  // member of a node, so that each member is the node's egress in one of them. The mean over the rotations of a
  // member's hops along a dimension is that of the ring.
  void flat_ring(Bytes bytes, bool reduces) {
    double total = 1.0;
    for (const Extent& extent : extents_) { total *= static_cast<double>(extent.members); }
    double inside = 1.0;  // members of the inner extents
    for (std::size_t e = 0; e < extents_.size(); ++e) {
      const double leaves = e == outermost() ? 0.0 : 1.0 / members(e);
      const double hops = (1.0 - leaves) / inside;
      inside *= members(e);
      const Bytes part = bytes / total * hops;
      add(e, Pattern::flat_ring, static_cast<std::int64_t>(total) - 1, part, part, reduces);
      schedule_.phases.back().hops = hops;
      schedule_.phases.back().concurrent = e > 0;
    }
  }

  // Both passes of a double tree: a member sends or receives half of the buffer to or from each of two others. Between
  // two members each half uses one direction only. With rings inside the node, libraries do not use that (NCCL assumes
  // the full rate of two nodes for its NVLS tree only) and choose as if there were more members.
  void tree(std::size_t e, Bytes bytes) {
    const bool pair = extents_[e].members == 2 && (e == 0 || algorithm(e - 1) == CollectiveAlgorithm::in_switch);
    const Bytes part = pair ? bytes / 2.0 : bytes;
    add(e, Pattern::tree_up, depth(e), part, part, true);
    schedule_.phases.back().one_way = pair;
    add(e, Pattern::tree_down, depth(e), part, part);
    schedule_.phases.back().one_way = pair;
  }

  // What the kernel of a member copies in addition to the link's traffic: its own shard, once. The two passes of an
  // all_reduce share half of that (docs/models/collectives.md).
  [[nodiscard]] Bytes own(std::size_t e, Pattern pattern, Bytes shard) const {
    const bool once = pattern == Pattern::ring || pattern == Pattern::exchange;
    if (!once || e != 0 || schedule_.collective == Collective::broadcast) { return {}; }
    return schedule_.collective == Collective::all_reduce ? shard / 4.0 : shard;
  }

  // A switch reduces at the rate of its ports; members do not reduce then.
  void add(std::size_t e, Pattern pattern, std::int64_t steps, Bytes sent, Bytes received, bool reduces = false) {
    SchedulePhase phase;
    phase.pattern = pattern;
    phase.reduces = reduces;
    phase.dimension = extents_[e].dimension;
    phase.members = extents_[e].members;
    phase.steps = steps;
    phase.sent_per_step = sent;
    phase.received_per_step = received;
    if (reduces && pattern != Pattern::switch_up) { phase.reduced_per_step = received; }
    phase.own = own(e, pattern, pattern == Pattern::exchange ? sent / (members(e) - 1) : sent);
    schedule_.phases.push_back(phase);
  }

  // Steps after which data that moves one neighbour per step has reached all members.
  [[nodiscard]] std::int64_t rounds(std::size_t e) const { return extents_[e].members - 1; }

  // All shards but the member's own.
  [[nodiscard]] Bytes others(std::size_t e, Bytes bytes) const { return bytes * ((members(e) - 1) / members(e)); }

  // Levels of the binary tree: ceil(log2 n).
  [[nodiscard]] std::int64_t depth(std::size_t e) const {
    return ceil_log2(static_cast<std::uint64_t>(extents_[e].members));
  }

  Schedule& schedule_;
  const Extents& extents_;
  const Recipe& recipe_;
  bool unsupported_ = false;
};

// Applies `in` to the inner extents, `across` to the outermost one, and `out` to the inner extents in reverse order.
// Each member sends only its own shard across, so that the members of a node share the NICs of the node.
template <class In, class Across, class Out>
void hierarchical(Builder& builder, Bytes bytes, In in, Across across, Out out) {
  const std::size_t outermost = builder.outermost();
  for (std::size_t e = 0; e < outermost; ++e) {
    in(e, bytes);
    bytes /= builder.members(e);
  }
  across(outermost, bytes);
  for (std::size_t e = outermost; e-- > 0;) {
    bytes *= builder.members(e);
    out(e, bytes);
  }
}

void build(Builder& builder, Collective collective, Bytes bytes) {
  if (builder.algorithm(0) == CollectiveAlgorithm::flat_ring) {
    return builder.ring_through_all_extents(collective, bytes);
  }
  const auto reduce_scatter = [&](std::size_t e, Bytes b) { builder.reduce_scatter(e, b); };
  const auto all_gather = [&](std::size_t e, Bytes b) { builder.all_gather(e, b); };
  const auto nothing = [](std::size_t, Bytes) {};
  switch (collective) {
    case Collective::all_reduce:
      return hierarchical(
          builder, bytes, reduce_scatter, [&](std::size_t e, Bytes b) { builder.all_reduce(e, b); }, all_gather);
    case Collective::reduce_scatter: return hierarchical(builder, bytes, reduce_scatter, reduce_scatter, nothing);
    case Collective::all_gather: return hierarchical(builder, bytes, nothing, all_gather, all_gather);
    case Collective::all_to_all: {
      const auto exchange = [&](std::size_t e, Bytes) { builder.all_to_all(e, bytes); };
      return hierarchical(builder, bytes, exchange, exchange, nothing);
    }
    case Collective::broadcast:
      return hierarchical(
          builder, bytes, [&](std::size_t e, Bytes b) { builder.scatter(e, b); },
          [&](std::size_t e, Bytes b) { builder.broadcast(e, b); }, all_gather);
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier: return builder.mark_unsupported();
  }
}

}  // namespace

MemberSchedule line_schedule(Collective collective, const SchedulePhase& phase) {
  MemberSchedule line;
  line.members = static_cast<std::uint32_t>(phase.members);
  const auto is = [&](Collective along, CollectiveAlgorithm algorithm) {
    line.collective = along;
    line.algorithm = algorithm;
    return line;
  };
  const Collective half = phase.reduces ? Collective::reduce_scatter : Collective::all_gather;
  switch (phase.pattern) {
    case Pattern::ring: return is(collective == Collective::all_to_all ? collective : half, CollectiveAlgorithm::ring);
    case Pattern::flat_ring: return is(half, CollectiveAlgorithm::ring);
    case Pattern::chain: return is(Collective::broadcast, CollectiveAlgorithm::ring);
    case Pattern::scatter:
      return is(Collective::scatter, phase.steps == 1 ? CollectiveAlgorithm::direct : CollectiveAlgorithm::ring);
    case Pattern::tree_up:
    case Pattern::tree_down: return is(collective, CollectiveAlgorithm::tree);
    case Pattern::all_pairs: return is(half, CollectiveAlgorithm::direct);
    case Pattern::exchange: return is(Collective::all_to_all, CollectiveAlgorithm::direct);
    case Pattern::switch_up: return is(Collective::reduce_scatter, CollectiveAlgorithm::in_switch);
    case Pattern::switch_down: return is(Collective::all_gather, CollectiveAlgorithm::in_switch);
    case Pattern::multicast: return is(Collective::broadcast, CollectiveAlgorithm::in_switch);
  }
  throw_internal_error("known pattern", __FILE__, __LINE__);
}

LineSteps line_steps(Collective collective, const SchedulePhase& phase) {
  const auto steps = static_cast<std::uint32_t>(phase.steps);
  switch (phase.pattern) {
    case Pattern::tree_down: return {collective == Collective::all_reduce ? steps : 0, steps};
    case Pattern::switch_up:
    case Pattern::switch_down:
    case Pattern::multicast: return {0, 2 * steps};
    case Pattern::ring:
    case Pattern::flat_ring:
    case Pattern::chain:
    case Pattern::scatter:
    case Pattern::tree_up:
    case Pattern::all_pairs:
    case Pattern::exchange: break;
  }
  return {0, steps};
}

InlineList<Extent, kMaxExtents> effective_extents(const Group& group) {
  Extents extents;
  if (!group.regular && !group.extents.empty()) {
    const Extent whole{group.extents.back().dimension, group.size()};
    if (whole.members > 1) { extents.push_back(whole); }
    return extents;
  }
  for (const auto& extent : group.extents) {
    if (extent.members > 1) { extents.push_back(extent); }
  }
  return extents;
}

Schedule make_schedule(Collective collective, const Recipe& recipe, Bytes bytes, const Group& group) {
  Schedule schedule;
  schedule.collective = collective;
  schedule.bytes = bytes;
  const Extents extents = effective_extents(group);
  if (extents.empty()) { return schedule; }
  Builder builder(schedule, extents, recipe);
  build(builder, collective, bytes);
  if (builder.unsupported()) { schedule.phases.clear(); }
  return schedule;
}

Schedule make_schedule(Collective collective, CollectiveAlgorithm algorithm, Bytes bytes, const Group& group) {
  Recipe recipe;
  recipe.fill(algorithm);
  if (algorithm == CollectiveAlgorithm::tree) {
    const std::size_t extents = effective_extents(group).size();
    for (std::size_t e = 0; e + 1 < extents; ++e) { recipe[e] = CollectiveAlgorithm::ring; }
  }
  return make_schedule(collective, recipe, bytes, group);
}

}  // namespace orrery::network
