// How an axis is narrowed by what was chosen before it, and how its values become a plan.
#include <fmt/format.h>

#include "orrery/explore/space_compiled.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::explore {

using parallel::Plan;
using parallel::ScheduleKind;

namespace {

// The batch of so many replicas; 0: there is none.
std::int64_t batch_of(const CompiledSpace& space, std::int64_t dp) {
  if (space.max_batch) { return *space.max_batch / dp * dp; }
  return space.job.global_batch % dp == 0 ? space.job.global_batch : 0;
}

bool end_degrees(const CompiledSpace& space, std::int64_t dp, Chosen& chosen) {
  const std::int64_t batch = batch_of(space, dp);
  if (batch == 0 || (space.dp && *space.dp != dp)) { return false; }
  chosen.member.point.plan.dp = dp;
  chosen.member.point.global_batch = batch;
  chosen.job.global_batch = batch;
  chosen.slots[slot_of(Fact::dp)] = dp;
  chosen.slots[slot_of(Fact::batch)] = batch;
  return true;
}

// devices = tp cp pp dp.
bool fits_degree(const CompiledSpace& space, const Level& level, std::int64_t value, Chosen& chosen) {
  const Plan& plan = chosen.member.point.plan;
  std::int64_t rest = space.cluster.devices;
  if (is_in(level.degrees_before, Axis::tp)) { rest /= plan.tp; }
  if (is_in(level.degrees_before, Axis::cp)) { rest /= plan.cp; }
  if (is_in(level.degrees_before, Axis::pp)) { rest /= plan.pp; }
  if (value < 1 || rest % value != 0) { return false; }
  return !level.ends_degrees || end_degrees(space, rest / value, chosen);
}

// ep x etp divides the ranks of a stage.
bool fits_experts(const Level& level, std::int64_t value, const Plan& plan) {
  const Axis other = level.axis == Axis::ep ? Axis::etp : Axis::ep;
  const std::int64_t taken = !is_in(level.reads, other) ? 1 : other == Axis::ep ? plan.ep : plan.etp;
  return value >= 1 && plan.stage_ranks() / taken % value == 0;
}

// Interleaving is of several chunks, and several chunks are interleaved.
bool fits_chunks(std::int64_t schedule, const Plan& plan) {
  return (schedule == position_of(ScheduleKind::interleaved)) == (plan.vpp > 1);
}

// Choices that no axis makes follow from others, by the rules of `orrery estimate`.
void follow(const CompiledSpace& space, Plan& plan) {
  if (space.follows_schedule) { plan.schedule = plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b; }
  if (space.follows_sequence) { plan.sequence_parallel = space.model.has_experts() && plan.tp > 1; }
  if (space.follows_tables) {
    const std::int64_t ranks = plan.tables.ranks > 0 ? plan.tables.ranks : plan.stage_ranks();
    plan.tables.sharding = workload::usual_sharding(space.model.recommender, plan.tables, ranks);
  }
  if (space.follows_etp) { plan.etp = space.model.has_experts() && plan.ep == 1 ? plan.tp : 1; }
}

// Of ag_redo, which only a published search problem has.
bool nothing_gathered_again(const Chosen& chosen) {
  const bool gathers = chosen.slots[slot_of(kTpComm)] == kReduceScatterAllGather;
  return !gathers || chosen.member.point.plan.recompute == parallel::Recompute::full;
}

}  // namespace

std::optional<std::int64_t> silent(const CompiledSpace& space, const Level& level, const Chosen& chosen) {
  // What is typed holds whatever it says, but a sequence that is not split has no method.
  if (level.fixed && !(level.typed && level.axis == Axis::cp_method)) { return std::nullopt; }
  const AxisRule& rule = *level.rule;
  const parallel::PlanSetting setting{space.model, chosen.member.point.plan, space.has_second_tier};
  const bool says_nothing = (rule.of_training && space.job.is_inference()) ||
                            (rule.is_silent != nullptr && rule.is_silent(setting)) ||
                            (level.axis == kAgRedo && nothing_gathered_again(chosen));
  return says_nothing ? std::optional(rule.nothing) : std::nullopt;
}

bool fits(const CompiledSpace& space, const Level& level, std::int64_t value, Chosen& chosen) {
  const Plan& plan = chosen.member.point.plan;
  if (is_in(kDegrees, level.axis)) { return fits_degree(space, level, value, chosen); }
  if (level.axis == Axis::dp) { return value == plan.dp; }
  if (level.axis == Axis::ep || level.axis == Axis::etp) { return fits_experts(level, value, plan); }
  if (level.axis == Axis::vpp) { return value >= 1; }
  if (level.axis == Axis::micro_batch) { return value >= 1 && chosen.job.global_batch / plan.dp % value == 0; }
  if (level.typed) { return true; }
  if (level.axis == Axis::table_ranks) { return value == 0 || plan.stage_ranks() % value == 0; }
  if (level.axis == Axis::shard) { return value == 0 || plan.replicas() % value == 0; }
  return level.axis != Axis::schedule || fits_chunks(value, plan);
}

std::string out_of_range(const CompiledSpace& space, Axis axis, std::int64_t value) {
  if (axis == Axis::zero && (value < 0 || value > 3)) {
    return fmt::format("{} is not a ZeRO stage; 0, 1, 2 and 3 are", value);
  }
  const auto dimensions = static_cast<std::int64_t>(space.cluster.dimensions.size());
  if (is_in(kTiers, axis) && (value < 0 || value >= dimensions)) {
    return fmt::format("{} is not a network dimension of {}; 0 to {} are", value, space.cluster.name, dimensions - 1);
  }
  return rule_of(axis).counts && value < 0 ? fmt::format("{} is negative; 0 leaves it open", value) : "";
}

std::int64_t effect(const Level& level, std::int64_t value, const Chosen& chosen) {
  const AxisRule& rule = *level.rule;
  return rule.effect == nullptr ? value : rule.effect(chosen.member.point.plan, value);
}

void choose(const CompiledSpace& space, const Level& level, std::int64_t value, Chosen& chosen) {
  Plan& plan = chosen.member.point.plan;
  chosen.slots[slot_of(level.axis)] = value;
  if (level.ends_degrees) {
    const bool ends = fits_degree(space, level, value, chosen);  // dp and batch
    ORRERY_ASSERT(ends);
  }
  const AxisRule& rule = *level.rule;
  // What is typed is in the plan already, but for what depends on the axes before it.
  const bool writes =
      rule.write != nullptr && (!level.typed || is_in(kDegrees, level.axis) || level.axis == Axis::cp_method);
  if (writes) { rule.write(plan, effect(level, value, chosen)); }
  if (!rule.inner) { follow(space, plan); }
}

}  // namespace orrery::explore
