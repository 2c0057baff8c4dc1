// Name, kind of values, meaning for a plan, and condition of no effect of each axis of a space file
// (docs/format/space.md, "What is left out by itself"). Axes that are fields of a plan take these from
// parallel/plan_table.cpp.
#include <array>
#include <string_view>
#include <utility>

#include "orrery/explore/space_compiled.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::explore {

using parallel::Plan;
using parallel::PlanSetting;

namespace {

// Published search problems call selective recompute "attention".
constexpr std::array<std::pair<std::string_view, std::int64_t>, 1> kRecomputeAliases{{{"attention", 1}}};
static_assert(config::EnumNames<parallel::Recompute>::value[1].first == parallel::Recompute::selective);

ValueKind kind_from(const parallel::PlanChoice& choice, Axis axis) {
  ValueKind kind{choice.name, choice.names, {}};
  if (axis == Axis::recompute) { kind.aliases = kRecomputeAliases; }
  return kind;
}

bool has_names(Axis axis) { return parallel::choice_of(axis).kind == parallel::ChoiceKind::name; }

const ValueKind* kind_of_field(Axis axis) {
  using parallel::ChoiceKind;
  static const auto named = [] {
    std::array<ValueKind, parallel::kPlanFields> kinds{};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const Axis one = static_cast<Axis>(i);
      if (has_names(one)) { kinds[i] = kind_from(parallel::choice_of(one), one); }
    }
    return kinds;
  }();
  if (has_names(axis)) { return &named[static_cast<std::size_t>(axis)]; }
  const ChoiceKind kind = parallel::choice_of(axis).kind;
  return kind == ChoiceKind::boolean || kind == ChoiceKind::words ? &booleans() : &integers();
}

const ValueKind& tp_communications() {
  static constexpr std::array<std::string_view, 3> kNames{"all_reduce", "p2p_scatter", "reduce_scatter_all_gather"};
  static const ValueKind kind{"tp_comm", kNames, {}};
  return kind;
}

AxisRule rule_of_field(Axis axis) {
  const parallel::PlanPart& part = parallel::part_of(axis);
  const parallel::PlanChoice& choice = parallel::choice_of(axis);
  AxisRule rule{.name = part.axis,
                .kind = kind_of_field(axis),
                .needs = part.after,
                .inner = part.inner,
                .of_training = part.training_only,
                .no_effect_value = part.idle,
                .is_without_effect = part.is_idle,
                .effect = part.effect,
                .counts = choice.kind == parallel::ChoiceKind::number && choice.usual_is_open,
                .merges = part.merges,
                .write = part.set};
  // Other names of the axes that it needs.
  if (is_in(rule.needs, Axis::zero)) { rule.needs |= axis_mask({kOptimizerSharding}); }
  if (is_in(rule.needs, Axis::sequence_parallel)) { rule.needs |= axis_mask({kTpComm}); }
  return rule;
}

std::int64_t sequence_parallel_of(const Plan& plan, std::int64_t tp_comm) {
  return tp_comm == kReduceScatterAllGather && plan.tp > 1 ? 1 : 0;
}

std::array<AxisRule, kAxes> all_rules() {
  std::array<AxisRule, kAxes> rules;
  for (std::size_t i = 0; i < parallel::kPlanFields; ++i) { rules[i] = rule_of_field(static_cast<Axis>(i)); }
  const auto at = [&](Axis axis) -> AxisRule& { return rules[static_cast<std::size_t>(axis)]; };
  at(kOptimizerSharding) = at(Axis::zero);
  at(kOptimizerSharding).name = "optimizer_sharding";
  at(kOptimizerSharding).kind = &booleans();
  at(kTpComm) = {.name = "tp_comm",
                 .kind = &tp_communications(),
                 .needs = axis_mask({Axis::tp}),
                 .no_effect_value = kAllReduce,
                 .effect = sequence_parallel_of,
                 .merges = true,
                 .write = at(Axis::sequence_parallel).write};
  at(kAgRedo) = {.name = "ag_redo",
                 .kind = &booleans(),
                 .needs = axis_mask({kTpComm, Axis::recompute}),
                 .inner = true,
                 .of_training = true};
  at(kFusedActivation) = {.name = "fused_activation", .kind = &booleans(), .inner = true};
  return rules;
}

}  // namespace

const AxisRule& rule_of(Axis axis) {
  static const std::array<AxisRule, kAxes> rules = all_rules();
  return rules[static_cast<std::size_t>(axis)];
}

std::string_view axis_name(Axis axis) { return rule_of(axis).name; }
const ValueKind& kind_of(Axis axis) { return *rule_of(axis).kind; }

std::string_view fact_name(Fact fact) {
  static constexpr std::array<std::string_view, kFacts> kNames{"devices",  "node_size", "hidden",  "heads",
                                                               "kv_heads", "layers",    "experts", "tables",
                                                               "seq",      "batch",     "dp",      "max_batch"};
  return kNames[static_cast<std::size_t>(fact)];
}

}  // namespace orrery::explore
