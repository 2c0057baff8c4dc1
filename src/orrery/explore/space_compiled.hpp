// A space prepared for walking. Private to Space and its walks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/codec.hpp"
#include "orrery/explore/expression.hpp"
#include "orrery/explore/point.hpp"
#include "orrery/explore/space_file.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::explore {

static_assert(kAxes <= kMostAxes);

// A set of levels.
using LevelMask = std::uint64_t;

struct AxisRule;

// An axis, in the order of the walk.
struct Level {
  Axis axis = Axis::tp;
  const AxisRule* rule = nullptr;
  AxisValues values;
  Place place;
  std::optional<std::int64_t> fixed;  // the only value: given by a flag, or the axis is not in the file
  std::vector<std::int64_t> allowed;  // values other than these are left out; empty: none is
  bool by_flag = false;               // fixed by a flag: kept even where it has no effect
  std::optional<std::size_t> order;   // position in Order; none: not an axis of the file
  SlotMask reads = 0;                 // axes and facts that its values depend on, through expressions or rules
  std::vector<Level> counted;         // axes without effect whose values are counted with this level
  LevelMask readers = 0;              // later levels that read this one
  bool merges = false;                // values with the same effect are one entry; no other axis distinguishes them
  bool ends_degrees = false;          // the last of tp, cp and pp: determines dp and batch
  SlotMask degrees_before = 0;        // the ones of tp, cp and pp that are walked earlier
};

struct CompiledSpace {
  workload::Model model;
  parallel::Job job;
  hardware::Cluster cluster;
  std::optional<std::int64_t> max_batch, dp;  // largest batch, of which a multiple of dp is used; dp if fixed
  bool count_invalid = true;

  parallel::Plan base;        // choices that are not axes
  Slots slots{};              // facts, and choices that are not axes
  std::vector<Level> levels;  // levels that families share come first
  std::size_t outer = 0;      // number of levels that families share
  std::size_t placed = 0;     // number of levels after which all groups are placed, at least `outer`
  bool pins = false;          // groups are pinned to dimensions
  // Choices without an axis that follow from other axes.
  bool follows_schedule = false, follows_sequence = false, follows_etp = false, follows_tables = false;
  bool validity_varies = false;  // within a family
  bool refused = false;          // the cluster rules out every plan
  bool has_second_tier = false, pool_combines = false;
  std::int64_t count = 0;  // of all points, invalid ones included

  std::vector<std::string> names, without_effect;
};

// The values that a walk has chosen so far.
struct Chosen {
  Member member;      // plan, batch, order
  parallel::Job job;  // with the batch
  Slots slots{};
};

struct AxisRule {
  std::string_view name;
  const ValueKind* kind = nullptr;
  SlotMask needs = 0;                // axes that must be walked earlier, in addition to those that expressions name
  bool inner = false;                // members of a family differ in it
  bool of_training = false;          // without effect in inference
  std::int64_t no_effect_value = 0;  // the value where the axis has no effect
  // Whether it has no effect for this plan; null: always has one.
  bool (*is_without_effect)(const parallel::PlanSetting& setting) = nullptr;
  // What a plan depends on: values with the same effect mean the same plan. Null: the value itself.
  std::int64_t (*effect)(const parallel::Plan& plan, std::int64_t value) = nullptr;
  bool counts = false;  // a number where 0 means the default; must not be negative
  bool merges = false;  // values with the same effect are one point of the walk, unless another axis distinguishes them
  // Writes an effect to a plan; null: plans do not have this choice.
  void (*write)(parallel::Plan& plan, std::int64_t value) = nullptr;
};
[[nodiscard]] const AxisRule& rule_of(Axis axis);

[[nodiscard]] constexpr SlotMask axis_mask(std::initializer_list<Axis> list) {
  SlotMask mask = 0;
  for (const Axis axis : list) { mask |= mask_of(slot_of(axis)); }
  return mask;
}
inline constexpr SlotMask kDegrees = axis_mask({Axis::tp, Axis::cp, Axis::pp});
inline constexpr SlotMask kTiers = axis_mask({Axis::tier_tp, Axis::tier_cp, Axis::tier_dp, Axis::tier_pp});
inline constexpr SlotMask kWithoutEffect = axis_mask({kAgRedo, kFusedActivation});
[[nodiscard]] constexpr bool is_in(SlotMask mask, Axis axis) { return (mask & mask_of(slot_of(axis))) != 0; }

// The position of an enumerator among the choices of its axis; this is its value in expressions.
template <class E>
[[nodiscard]] std::int64_t position_of(E enumerator) {
  std::int64_t at = 0;
  for (const auto& [value, name] : config::EnumNames<E>::value) {
    if (value == enumerator) { return at; }
    ++at;
  }
  return 0;
}
inline constexpr std::int64_t kAllReduce = 0, kReduceScatterAllGather = 2;  // of tp_comm

// The only value of an axis that has no effect on this plan; nothing if it has one.
[[nodiscard]] std::optional<std::int64_t> value_without_effect(const CompiledSpace& space, const Level& level,
                                                               const Chosen& chosen);
// Whether a value satisfies divisibility. Sets dp and batch in `chosen` if the level ends the degrees.
[[nodiscard]] bool fits(const CompiledSpace& space, const Level& level, std::int64_t value, Chosen& chosen);
// The error of a value that no plan can have; empty: none.
[[nodiscard]] std::string out_of_range(const CompiledSpace& space, Axis axis, std::int64_t value);
// Sets the value in the plan and in the slots.
void choose(const CompiledSpace& space, const Level& level, std::int64_t value, Chosen& chosen);
// The effect of a value on the plan.
[[nodiscard]] std::int64_t effect(const Level& level, std::int64_t value, const Chosen& chosen);

}  // namespace orrery::explore
