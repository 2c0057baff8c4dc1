// A space made ready to be walked. Private to Space and its walks.
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

// Levels of a walk, as a set.
using LevelMask = std::uint64_t;

struct AxisRule;

// An axis in the order of the walk.
struct Level {
  Axis axis = Axis::tp;
  const AxisRule* rule = nullptr;
  AxisValues values;
  Place place;
  std::optional<std::int64_t> fixed;  // typed, or no axis of the file: has this value alone
  bool typed = false;                 // fixed by the user: holds even where it says nothing
  std::optional<std::size_t> order;   // position in Order; none: not an axis of the file
  SlotMask reads = 0;                 // axes and facts that its values depend on, by expressions or by rule
  std::vector<Level> counted;         // axes without effect that follow from this one and those before it
  LevelMask readers = 0;              // later levels that read this one
  bool merges = false;                // values with the same effect are one: nothing else reads which it was
  bool ends_degrees = false;          // the last of tp, cp and pp: dp and batch follow from it
  SlotMask degrees_before = 0;        // those of tp, cp and pp that are walked before
};

struct CompiledSpace {
  workload::Model model;
  parallel::Job job;
  hardware::Cluster cluster;
  std::optional<std::int64_t> max_batch, dp;  // batch by dp; the dp that is fixed
  bool count_invalid = true;

  parallel::Plan base;        // what no axis says
  Slots slots{};              // facts, and what no axis says
  std::vector<Level> levels;  // those that families share first
  std::size_t outer = 0;      // how many families share
  std::size_t placed = 0;     // levels until groups have their places, at least `outer`
  bool pins = false;          // groups are pinned to dimensions
  // From other axes.
  bool follows_schedule = false, follows_sequence = false, follows_etp = false, follows_tables = false;
  bool validity_varies = false;  // within a family
  bool refused = false;          // by the cluster, whatever the axes say
  bool has_second_tier = false;
  std::int64_t count = 0;  // of all points, invalid ones included

  std::vector<std::string> names, without_effect;
};

// What a walk has chosen so far.
struct Chosen {
  Member member;      // plan, batch, order
  parallel::Job job;  // with the batch
  Slots slots{};
};

// ---- what an axis is (space_axes.cpp)
// --------------------------------------------------------------------------------

struct AxisRule {
  std::string_view name;
  const ValueKind* kind = nullptr;
  SlotMask needs = 0;        // axes that have to be walked before, besides those that expressions name
  bool inner = false;        // members of a family differ in it
  bool of_training = false;  // without effect in inference
  std::int64_t nothing = 0;  // the value that stands for having no effect
  // Whether it has no effect; null: it always has one.
  bool (*is_silent)(const parallel::PlanSetting& setting) = nullptr;
  // What the model depends on of a value; null: the value. Values with the same effect mean the same plan.
  std::int64_t (*effect)(const parallel::Plan& plan, std::int64_t value) = nullptr;
  bool counts = false;  // things, 0 for as many as usual: no negative values
  bool merges = false;  // they are one point of the walk, unless another axis asks which it was
  // Writes an effect to a plan; null: our model does not depend on it.
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

// Position of a choice among those of its axis, which is its value in expressions.
template <class E>
[[nodiscard]] std::int64_t position_of(E wanted) {
  std::int64_t at = 0;
  for (const auto& [value, name] : config::EnumNames<E>::value) {
    if (value == wanted) { return at; }
    ++at;
  }
  return 0;
}
inline constexpr std::int64_t kAllReduce = 0, kReduceScatterAllGather = 2;  // of tp_comm

// ---- rules (space_rules.cpp)
// -----------------------------------------------------------------------------------------

// The one value that an axis has where it says nothing.
[[nodiscard]] std::optional<std::int64_t> silent(const CompiledSpace& space, const Level& level, const Chosen& chosen);
// Whether a value divides what it has to divide. Sets dp and batch in `chosen` where the degrees end.
[[nodiscard]] bool fits(const CompiledSpace& space, const Level& level, std::int64_t value, Chosen& chosen);
// What is wrong with a value whatever the plan.
[[nodiscard]] std::string out_of_range(const CompiledSpace& space, Axis axis, std::int64_t value);
// Makes the choice in the plan and in the slots.
void choose(const CompiledSpace& space, const Level& level, std::int64_t value, Chosen& chosen);
// What a value comes to in the plan.
[[nodiscard]] std::int64_t effect(const Level& level, std::int64_t value, const Chosen& chosen);

}  // namespace orrery::explore
