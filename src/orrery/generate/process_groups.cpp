#include "orrery/generate/process_groups.hpp"

#include <algorithm>
#include <array>

#include "orrery/core/error.hpp"
#include "orrery/parallel/calls.hpp"

namespace orrery::generate {

using parallel::GroupKind;
using parallel::kGroupKinds;
using parallel::Plan;
using parallel::Program;

namespace {

// Kinds of groups that have collectives, by lane.
class Uses {
 public:
  explicit Uses(const Program& program) : program_(program) {
    for (const auto& chunk : program.chunks) {
      for (const auto* segment : {&chunk.forward, &chunk.backward, &chunk.weight, &chunk.last_backward,
                                  &chunk.first_forward, &chunk.decode}) {
        add(*segment);
      }
    }
    if (parallel::has_pairs(program.pipeline)) { has(Lane::paired) = has(Lane::work); }
    for (const auto& rank_class : program.classes) {
      add(rank_class.finish_reduce);
      add(rank_class.finish);
    }
    if (rings_) { use(Lane::work, GroupKind::cp); }  // peers of other ranks of a class follow from it
    if (const auto gather = input_gather(program)) { use(Lane::transfer, gather->group); }
  }

  [[nodiscard]] bool contain(GroupKind kind, Lane lane) const {
    return used_[static_cast<std::size_t>(lane)][static_cast<std::size_t>(kind)];
  }

 private:
  std::array<bool, kGroupKinds>& has(Lane lane) { return used_[static_cast<std::size_t>(lane)]; }
  void use(Lane lane, GroupKind kind) { has(lane)[static_cast<std::size_t>(kind)] = true; }

  void add(const parallel::Segment& segment) {
    for (const auto& use : segment) {
      add(program_.block(use.work), Lane::work);
      if (use.gather) { add(program_.block(*use.gather), Lane::overlapped); }
      if (use.reduce) { add(program_.block(*use.reduce), Lane::overlapped); }
    }
  }

  void add(const parallel::Block& block, Lane lane) {
    for (const auto& item : block.items) {
      const auto* launch = item.collective();
      if (launch == nullptr) { continue; }
      switch (route_of(launch->call, program_.mesh)) {
        case parallel::Route::collective: use(lane, launch->call.group); break;
        case parallel::Route::node_dispatch: {
          const auto bytes = node_dispatch_bytes(launch->call, program_.mesh);
          use(lane, bytes.inside_group);
          if (bytes.across > Bytes(0)) { use(lane, GroupKind::ep_across); }
          break;
        }
        case parallel::Route::ring_steps: rings_ = true; break;
        case parallel::Route::host:
          if (launch->call.sharers != GroupKind::host) { use(lane, launch->call.sharers); }
          break;
      }
    }
  }

  const Program& program_;
  bool rings_ = false;
  std::array<std::array<bool, kGroupKinds>, kLanes> used_{};
};

}  // namespace

ProcessGroups::ProcessGroups(const Program& program, const hardware::Cluster& cluster)
    : plan_(program.plan), layout_(parallel::layout_of(cluster, program.plan)) {
  if (plan_.ep > 1) {
    ep_node_ = expert_strides(true);
    ep_across_ = expert_strides(false);
  }
  add_families(program);
}

// At most two digits are left: a group that is not pinned has one digit on the node, and none if a group of lower ranks
// has filled it.
ProcessGroups::Strides ProcessGroups::expert_strides(bool on_node) const {
  const auto digits = parallel::digits_of(layout_, plan_.etp, plan_.ep);
  if (!digits) {
    return (parallel::outermost_dimension(layout_) == 0) == on_node ? Strides{plan_.etp, plan_.ep} : Strides{};
  }
  std::vector<Strides> blocks;
  for (const auto& digit : *digits) {
    if ((digit.dimension == 0) != on_node) { continue; }
    if (!blocks.empty() && blocks.back().block() == digit.stride) {
      blocks.back().degree *= digit.members;
    } else {
      blocks.push_back({digit.stride, digit.members});
    }
  }
  if (blocks.empty()) { return {}; }
  ORRERY_ASSERT(blocks.size() <= 2);
  if (blocks.size() == 2) {
    blocks.front().outer_stride = blocks.back().stride;
    blocks.front().outer_degree = blocks.back().degree;
  }
  return blocks.front();
}

void ProcessGroups::add_families(const Program& program) {
  const Uses uses(program);
  std::int64_t next = 1;
  for (std::size_t k = 0; k < kGroupKinds; ++k) {
    const auto kind = static_cast<GroupKind>(k);
    if (kind == GroupKind::host || strides(kind).size() <= 1) { continue; }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (!uses.contain(kind, static_cast<Lane>(lane))) { continue; }
      ORRERY_ASSERT(program.mesh.group(kind).size() == strides(kind).size());
      families_.push_back({kind, static_cast<Lane>(lane), next, count(kind)});
      next += count(kind);
    }
  }
}

ProcessGroups::Strides ProcessGroups::strides(GroupKind kind) const {
  const Plan& plan = plan_;
  const std::int64_t stage_ranks = plan.stage_ranks();
  switch (kind) {
    case GroupKind::tp: return {1, plan.tp};
    case GroupKind::cp: return {plan.tp, plan.cp};
    case GroupKind::ep: return {plan.etp, plan.ep};
    case GroupKind::ep_node: return ep_node_;
    case GroupKind::ep_across: return ep_across_;
    case GroupKind::etp: return {1, plan.etp};
    case GroupKind::dp: return {plan.tp, plan.replicas()};
    case GroupKind::shard: return {plan.tp, plan.shards()};
    case GroupKind::copies: return {plan.tp * plan.shards(), plan.sharded_copies()};
    case GroupKind::expert_dp: return {plan.etp * plan.ep, plan.expert_replicas()};
    case GroupKind::embedding: return {(plan.pp - 1) * stage_ranks, plan.pp > 1 ? 2 : 1};
    case GroupKind::mirror: return {stage_ranks, plan.schedule == parallel::ScheduleKind::dualpipe ? 2 : 1};
    case GroupKind::world: return {1, plan.devices()};
    case GroupKind::tables: return {1, plan.table_ranks()};
    case GroupKind::table_copies: return {plan.table_ranks(), stage_ranks / plan.table_ranks()};
    case GroupKind::host: return {};
  }
  throw_internal_error("known group", __FILE__, __LINE__);
}

RankSet ProcessGroups::members(GroupKind kind, std::int64_t rank) const {
  const Strides of = strides(kind);
  if (of.size() <= 1) { return {rank, 1, 1}; }
  const std::int64_t stage_ranks = plan_.stage_ranks(), stage = rank / stage_ranks;
  if (kind == GroupKind::mirror) {
    const std::int64_t lower = std::min(stage, plan_.pp - 1 - stage);
    return {lower * stage_ranks + rank % stage_ranks, (plan_.pp - 1 - 2 * lower) * stage_ranks, 2};
  }
  if (kind == GroupKind::embedding && stage != 0 && stage != plan_.pp - 1) { return {rank, 1, 1}; }
  return strided_set(of, position(kind, rank));
}

std::int64_t ProcessGroups::count(GroupKind kind) const {
  if (kind == GroupKind::embedding) { return plan_.stage_ranks(); }
  return plan_.devices() / strides(kind).size();
}

std::int64_t ProcessGroups::position(GroupKind kind, std::int64_t rank) const {
  if (kind == GroupKind::mirror) { return members(kind, rank).first; }
  const Strides of = strides(kind);
  const std::int64_t outer = rank / (of.outer() * of.outer_degree) * (of.outer() / of.block());
  return (outer + rank % of.outer() / of.block()) * of.stride + rank % of.stride;
}

RankSet ProcessGroups::strided_set(const Strides& of, std::int64_t position) {
  const std::int64_t blocks = of.outer() / of.block(), before = position / of.stride;
  const std::int64_t first =
      before / blocks * of.outer() * of.outer_degree + before % blocks * of.block() + position % of.stride;
  return {first, of.stride, of.size(), of.degree, of.outer()};
}

std::vector<std::int64_t> ProcessGroups::devices(const RankSet& ranks) const {
  std::vector<std::int64_t> devices;
  for (std::int64_t i = 0; i < ranks.degree; ++i) { devices.push_back(device(ranks.rank(i))); }
  if (plan_.placement.any()) { std::sort(devices.begin(), devices.end()); }
  return devices;
}

RankSet ProcessGroups::group(const GroupFamily& family, std::int64_t position) const {
  if (family.kind == GroupKind::mirror) { return members(family.kind, position); }
  return strided_set(strides(family.kind), position);
}

std::string_view name_of(GroupKind kind) {
  switch (kind) {
    case GroupKind::tp: return "tp";
    case GroupKind::cp: return "cp";
    case GroupKind::ep: return "ep";
    case GroupKind::ep_node: return "ep_node";
    case GroupKind::ep_across: return "ep_across";
    case GroupKind::etp: return "etp";
    case GroupKind::dp: return "dp";
    case GroupKind::shard: return "shard";
    case GroupKind::copies: return "copies";
    case GroupKind::expert_dp: return "expert_dp";
    case GroupKind::embedding: return "embedding";
    case GroupKind::mirror: return "mirror";
    case GroupKind::world: return "world";
    case GroupKind::tables: return "tables";
    case GroupKind::table_copies: return "table_copies";
    case GroupKind::host: return "host";
  }
  throw_internal_error("known group", __FILE__, __LINE__);
}

std::string name_of(const GroupFamily& family) {
  std::string name(name_of(family.kind));
  switch (family.lane) {
    case Lane::work: break;
    case Lane::paired: name += ".paired"; break;
    case Lane::transfer: name += ".transfer"; break;
    case Lane::overlapped: name += ".overlapped"; break;
  }
  return name;
}

}  // namespace orrery::generate
