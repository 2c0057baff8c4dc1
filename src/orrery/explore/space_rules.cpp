// Which values of an axis remain after earlier choices, and how a value changes the plan.
#include <fmt/format.h>

#include "orrery/explore/space_compiled.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::explore {

using parallel::Plan;
using parallel::ScheduleKind;

namespace {

// The batch for `dp` replicas; 0: none.
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

// More than one chunk if and only if the schedule is interleaved.
bool fits_chunks(std::int64_t schedule, const Plan& plan) {
  return (schedule == position_of(ScheduleKind::interleaved)) == (plan.vpp > 1);
}

// Choices without an axis follow from others, by the rules of `orrery estimate`.
void set_following_choices(const CompiledSpace& space, Plan& plan) {
  if (space.follows_schedule) { plan.schedule = plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b; }
  if (space.follows_sequence) { plan.sequence_parallel = space.model.has_experts() && plan.tp > 1; }
  if (space.follows_tables) {
    const std::int64_t ranks = plan.tables.ranks > 0 ? plan.tables.ranks : plan.stage_ranks();
    plan.tables.sharding = workload::default_sharding(space.model.recommender, plan.tables, ranks);
  }
  if (space.follows_etp) { plan.etp = space.model.has_experts() && plan.ep == 1 ? plan.tp : 1; }
}

// ag_redo (published search problems only) has no effect if nothing is gathered again.
bool gathers_nothing_again(const Chosen& chosen) {
  const bool gathers = chosen.slots[slot_of(kTpComm)] == kReduceScatterAllGather;
  return !gathers || chosen.member.point.plan.recompute == parallel::Recompute::full;
}

}  // namespace

std::optional<std::int64_t> value_without_effect(const CompiledSpace& space, const Level& level, const Chosen& chosen) {
  // A value given by a flag is kept even without effect, except cp_method if cp is 1.
  if (level.fixed && !(level.by_flag && level.axis == Axis::cp_method)) { return std::nullopt; }
  const AxisRule& rule = *level.rule;
  const parallel::PlanSetting setting{space.model, chosen.member.point.plan, space.has_second_tier,
                                      space.pool_combines};
  const bool has_no_effect = (rule.of_training && space.job.is_inference()) ||
                             (rule.is_without_effect != nullptr && rule.is_without_effect(setting)) ||
                             (level.axis == kAgRedo && gathers_nothing_again(chosen));
  return has_no_effect ? std::optional(rule.no_effect_value) : std::nullopt;
}

bool fits(const CompiledSpace& space, const Level& level, std::int64_t value, Chosen& chosen) {
  const Plan& plan = chosen.member.point.plan;
  if (is_in(kDegrees, level.axis)) { return fits_degree(space, level, value, chosen); }
  if (level.axis == Axis::dp) { return value == plan.dp; }
  if (level.axis == Axis::ep || level.axis == Axis::etp) { return fits_experts(level, value, plan); }
  if (level.axis == Axis::vpp) { return value >= 1; }
  if (level.axis == Axis::micro_batch) { return value >= 1 && chosen.job.global_batch / plan.dp % value == 0; }
  if (level.by_flag) { return true; }
  if (level.axis == Axis::table_ranks) { return value == 0 || plan.stage_ranks() % value == 0; }
  if (level.axis == Axis::shard) { return value == 0 || plan.replicas() % value == 0; }
  return level.axis != Axis::schedule || fits_chunks(value, plan);
}

std::string out_of_range(const CompiledSpace& space, Axis axis, std::int64_t value) {
  if (axis == Axis::zero && (value < 0 || value > 3)) { return fmt::format("{} is not a ZeRO stage (0 to 3)", value); }
  const auto dimensions = static_cast<std::int64_t>(space.cluster.dimensions.size());
  if (is_in(kTiers, axis) && (value < 0 || value >= dimensions)) {
    return fmt::format("{} is not a network dimension of {} (0 to {})", value, space.cluster.name, dimensions - 1);
  }
  return rule_of(axis).counts && value < 0 ? fmt::format("{} is negative; 0 means the default", value) : "";
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
  // A value given by a flag is already in the plan, unless it depends on earlier axes.
  const bool writes =
      rule.write != nullptr && (!level.by_flag || is_in(kDegrees, level.axis) || level.axis == Axis::cp_method);
  if (writes) { rule.write(plan, effect(level, value, chosen)); }
  if (!rule.inner) { set_following_choices(space, plan); }
}

}  // namespace orrery::explore
