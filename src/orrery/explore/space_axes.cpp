// What each axis of a space file is called, of what kind its values are, what it means for a plan, and when it says
// nothing: docs/format/space.md, "What is left out by itself".
#include <array>
#include <string_view>
#include <utility>

#include "orrery/explore/space_compiled.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::explore {

using parallel::Placement;
using parallel::Plan;
using parallel::Recompute;
using parallel::ScheduleKind;
using parallel::TpOverlap;
using workload::ContextMethod;

namespace {

// ---- kinds of values
// -------------------------------------------------------------------------------------------------

template <class E>
const ValueKind& choices_of(std::string_view name) {
  static const ValueKind kind{name, config::kEnumTexts<E>, {}};
  return kind;
}

const ValueKind& recomputes() {
  // "attention" is what published search problems call it.
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 1> kAliases{{{"attention", 1}}};
  static_assert(config::EnumNames<Recompute>::value[1].first == Recompute::selective);
  static const ValueKind kind{"recompute", config::kEnumTexts<Recompute>, kAliases};
  return kind;
}

const ValueKind& tp_communications() {
  static constexpr std::array<std::string_view, 3> kNames{"all_reduce", "p2p_scatter", "reduce_scatter_all_gather"};
  static const ValueKind kind{"tp_comm", kNames, {}};
  return kind;
}

const ValueKind& schedules() { return choices_of<ScheduleKind>("schedule"); }
const ValueKind& tp_overlaps() { return choices_of<TpOverlap>("tp_overlap"); }
const ValueKind& table_shardings() { return choices_of<workload::TableSharding>("table_sharding"); }
const ValueKind& cp_methods() { return choices_of<ContextMethod>("cp_method"); }

template <class E>
E choice(std::int64_t value) {
  return config::EnumNames<E>::value[static_cast<std::size_t>(value)].first;
}

// ---- when an axis says nothing
// ---------------------------------------------------------------------------------------

const Plan& plan_of(const Chosen& chosen) { return chosen.member.point.plan; }

bool one_slice(const CompiledSpace&, const Chosen& chosen) { return plan_of(chosen).tp == 1; }
bool one_part(const CompiledSpace&, const Chosen& chosen) { return plan_of(chosen).cp == 1; }
bool one_stage(const CompiledSpace&, const Chosen& chosen) { return plan_of(chosen).pp == 1; }
bool one_replica(const CompiledSpace&, const Chosen& chosen) { return plan_of(chosen).dp == 1; }
bool no_experts(const CompiledSpace& space, const Chosen&) { return !space.model.has_experts(); }
bool no_tables(const CompiledSpace& space, const Chosen&) { return !space.model.is_recommender(); }
bool no_tables_shared(const CompiledSpace& space, const Chosen& chosen) {
  return no_tables(space, chosen) || plan_of(chosen).tables.sharding == workload::TableSharding::replicated;
}
bool no_second_tier(const CompiledSpace& space, const Chosen&) { return !space.has_second_tier; }
bool nothing_sharded(const CompiledSpace&, const Chosen& chosen) { return plan_of(chosen).zero == 0; }

// Nobody else holds the same weights.
bool one_copy(const CompiledSpace& space, const Chosen& chosen) {
  const Plan& plan = plan_of(chosen);
  return plan.replicas() == 1 && (!space.model.has_experts() || plan.expert_replicas() == 1);
}

bool no_activations_kept(const CompiledSpace& space, const Chosen& chosen) {
  return !space.has_second_tier || plan_of(chosen).recompute == Recompute::full;
}

bool nothing_gathered_again(const CompiledSpace&, const Chosen& chosen) {
  const bool gathers = chosen.slots[slot_of(Axis::tp_comm)] == kReduceScatterAllGather;
  return !gathers || plan_of(chosen).recompute == Recompute::full;
}

// ---- what it means for a plan
// ----------------------------------------------------------------------------------------

template <auto Member>
void write_number(Plan& plan, std::int64_t value) {
  plan.*Member = static_cast<std::remove_reference_t<decltype(plan.*Member)>>(value);
}

template <auto Member>
void write_choice(Plan& plan, std::int64_t value) {
  plan.*Member = choice<std::remove_reference_t<decltype(plan.*Member)>>(value);
}

template <auto Member>
void write_offload(Plan& plan, std::int64_t value) {
  plan.offload.*Member = value != 0;
}

// Of a plan without tables, nothing is written.
void write_table_sharding(Plan& plan, std::int64_t value) {
  using workload::TableSharding;
  if (plan.tables.sharding != TableSharding::none) { plan.tables.sharding = choice<TableSharding>(value); }
}
template <auto Member>
void write_tables(Plan& plan, std::int64_t value) {
  plan.tables.*Member = value;
}

// A group of one lies nowhere.
template <auto Member, auto Degree>
void write_place(Plan& plan, std::int64_t value) {
  plan.placement.*Member = plan.*Degree > 1 ? static_cast<std::int8_t>(value) : Placement::kByRank;
}

constexpr bool kInner = true, kOuter = false, kOfTraining = true, kOfBoth = false;
constexpr SlotMask kCopies = kDegrees | axis_mask({Axis::ep, Axis::etp});

const std::array<AxisRule, kAxes>& rules() {
  static constexpr SlotMask kNone = 0, kTp = axis_mask({Axis::tp}), kCp = axis_mask({Axis::cp}),
                            kPp = axis_mask({Axis::pp});
  static const std::array<AxisRule, kAxes> table{{
      {"tp", integers, kNone, kOuter, kOfBoth, 1, nullptr, write_number<&Plan::tp>},
      {"cp", integers, kNone, kOuter, kOfTraining, 1, nullptr, write_number<&Plan::cp>},
      {"pp", integers, kNone, kOuter, kOfBoth, 1, nullptr, write_number<&Plan::pp>},
      {"dp", integers, kDegrees, kOuter, kOfBoth, 1, nullptr, nullptr},
      {"ep", integers, kDegrees, kOuter, kOfBoth, 1, no_experts, write_number<&Plan::ep>},
      {"etp", integers, kDegrees, kOuter, kOfBoth, 1, no_experts, write_number<&Plan::etp>},
      {"vpp", integers, kPp, kOuter, kOfTraining, 1, one_stage, write_number<&Plan::vpp>},
      {"micro_batch", integers, kDegrees, kOuter, kOfBoth, 1, nullptr, write_number<&Plan::micro_batch>},
      {"cp_method", cp_methods, kCp, kOuter, kOfTraining, position_of(ContextMethod::ring), one_part,
       write_choice<&Plan::cp_method>},
      {"sequence_parallel", booleans, kTp, kOuter, kOfBoth, 0, one_slice, write_number<&Plan::sequence_parallel>},
      {"recompute", recomputes, kNone, kOuter, kOfTraining, position_of(Recompute::none), nullptr,
       write_choice<&Plan::recompute>},
      {"schedule", schedules, kPp | axis_mask({Axis::vpp}), kOuter, kOfTraining, position_of(ScheduleKind::one_f_one_b),
       one_stage, write_choice<&Plan::schedule>},
      {"tp_overlap", tp_overlaps, kTp | axis_mask({Axis::sequence_parallel, Axis::tp_comm}), kOuter, kOfTraining,
       position_of(TpOverlap::none), one_slice, write_choice<&Plan::tp_overlap>},
      {"first_stage_layers", integers, kPp, kOuter, kOfBoth, 0, one_stage, write_number<&Plan::first_stage_layers>},
      {"last_stage_layers", integers, kPp, kOuter, kOfBoth, 0, one_stage, write_number<&Plan::last_stage_layers>},
      {"embedding_as_layer", booleans, kPp, kOuter, kOfBoth, 0, one_stage, write_number<&Plan::embedding_as_layer>},
      {"head_as_layer", booleans, kPp, kOuter, kOfBoth, 0, one_stage, write_number<&Plan::head_as_layer>},
      {"zero", integers, kCopies, kInner, kOfTraining, 0, one_copy, write_number<&Plan::zero>},
      {"shard", integers, kDegrees | axis_mask({Axis::zero, Axis::optimizer_sharding}), kInner, kOfTraining, 0,
       nothing_sharded, write_number<&Plan::shard>},
      {"dp_overlap", booleans, kCopies, kInner, kOfTraining, 0, one_copy, write_number<&Plan::dp_overlap>},
      {"offload_weights", booleans, kNone, kInner, kOfBoth, 0, no_second_tier,
       write_offload<&parallel::Offload::weights>},
      {"offload_activations", booleans, axis_mask({Axis::recompute}), kInner, kOfTraining, 0, no_activations_kept,
       write_offload<&parallel::Offload::activations>},
      {"offload_optimizer", booleans, kNone, kInner, kOfTraining, 0, no_second_tier,
       write_offload<&parallel::Offload::optimizer>},
      {"tier.tp", integers, kTp, kOuter, kOfBoth, 0, one_slice, write_place<&Placement::tp, &Plan::tp>},
      {"tier.cp", integers, kCp, kInner, kOfBoth, 0, one_part, write_place<&Placement::cp, &Plan::cp>},
      {"tier.dp", integers, kDegrees, kInner, kOfBoth, 0, one_replica, write_place<&Placement::dp, &Plan::dp>},
      {"tier.pp", integers, kPp, kInner, kOfBoth, 0, one_stage, write_place<&Placement::pp, &Plan::pp>},
      {"table_sharding", table_shardings, kNone, kOuter, kOfBoth, 0, no_tables, write_table_sharding},
      {"table_ranks", integers, kDegrees | axis_mask({Axis::table_sharding}), kOuter, kOfBoth, 0, no_tables_shared,
       write_tables<&workload::TablePlan::ranks>},
      {"replicate_tables_below", integers, axis_mask({Axis::table_sharding}), kOuter, kOfBoth, 0, no_tables_shared,
       write_tables<&workload::TablePlan::replicated_below>},
      {"optimizer_sharding", booleans, kCopies, kInner, kOfTraining, 0, one_copy, write_number<&Plan::zero>},
      {"tp_comm", tp_communications, kTp, kOuter, kOfBoth, kAllReduce, nullptr, write_number<&Plan::sequence_parallel>},
      {"ag_redo", booleans, axis_mask({Axis::tp_comm, Axis::recompute}), kInner, kOfTraining, 0, nothing_gathered_again,
       nullptr},
      {"fused_activation", booleans, kNone, kInner, kOfBoth, 0, nullptr, nullptr},
  }};
  return table;
}

}  // namespace

const AxisRule& rule_of(Axis axis) { return rules()[static_cast<std::size_t>(axis)]; }

std::string_view axis_name(Axis axis) { return rule_of(axis).name; }
const ValueKind& kind_of(Axis axis) { return rule_of(axis).kind(); }

std::string_view fact_name(Fact fact) {
  static constexpr std::array<std::string_view, kFacts> kNames{"devices",  "node_size", "hidden",  "heads",
                                                               "kv_heads", "layers",    "experts", "tables",
                                                               "seq",      "batch",     "dp",      "max_batch"};
  return kNames[static_cast<std::size_t>(fact)];
}

}  // namespace orrery::explore
