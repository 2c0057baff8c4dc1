// Descriptors of a plan's choices: their names in scenario files, flags, documents, searches and explanations, their
// values, and when they have no effect. The rows are in plan_table.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::parallel {

using FieldMask = std::uint64_t;
[[nodiscard]] constexpr FieldMask field_mask(std::initializer_list<PlanField> fields) {
  FieldMask mask = 0;
  for (const PlanField field : fields) { mask |= FieldMask{1} << static_cast<unsigned>(field); }
  return mask;
}

// What the effect of a choice depends on: the job's model and cluster, and earlier choices.
struct PlanSetting {
  const workload::Model& model;
  const Plan& plan;
  bool has_second_tier = false;
  bool pool_combines = false;  // hardware::SecondTier::combines
};

// One integer of a plan: a number, a boolean, or the position of a name. Also an axis of searches.
struct PlanPart {
  PlanField field = PlanField::tp;
  std::string_view axis;  // "tp_overlap", "tier.dp"
  std::string_view word;  // in the text of a choice with several parts: "weights" of --offload

  // As an axis:
  FieldMask after =
      0;  // fields that must be chosen before this one, because `is_idle`, `effect` or the valid values depend on them
  bool inner = false;  // the lower bound of the step time does not depend on it: members of a family differ in it
  bool training_only = false;                             // without effect in inference
  std::int64_t idle = 0;                                  // its value if it has no effect
  bool (*is_idle)(const PlanSetting& setting) = nullptr;  // whether it has no effect; null: it always has one
  // The effective value for a plan; null: the value itself. If several values have the same effect, searches price one
  // of them when `merges`.
  std::int64_t (*effect)(const Plan& plan, std::int64_t value) = nullptr;
  bool merges = false;

  std::int64_t (*get)(const Plan& plan) = nullptr;
  void (*set)(Plan& plan, std::int64_t value) = nullptr;
  std::optional<std::int64_t> (*given)(const PartialPlan& partial) = nullptr;
  void (*give)(PartialPlan& partial, std::int64_t value) = nullptr;
};

enum class ChoiceKind : std::uint8_t {
  number,
  boolean,
  name,   // one of `names`
  words,  // the parts that are on: "weights,optimizer"
  pins,   // parts with numbers: "tp=0 dp=1"
};

// What one flag sets.
struct PlanChoice {
  std::string_view name;  // in scenario files and documents: "tp_overlap"; the flag is --tp-overlap
  std::string_view help;
  ChoiceKind kind = ChoiceKind::number;
  std::span<const std::string_view> names = {};
  std::int64_t min = 1, max = 0;  // of a number; max 0: any

  // The default; nothing: a rule or the stack chooses (estimate/resolve.cpp).
  std::optional<std::int64_t> usual = {};
  bool usual_is_open = false;                          // in a search, giving the default value fixes nothing
  bool refused_in_inference = false;                   // error if given with --task inference
  std::string_view in_mad_max = "has no such choice";  // what --semantics mad-max has instead
  // What it requires of other choices, apart from model and job; null: nothing.
  bool (*is_met)(const Plan& plan) = nullptr;
  std::string_view needs = {};   // "needs --sequence-parallel": the error if it is not met
  bool of_recommenders = false;  // omitted in results of other models
  bool is_degree = false;        // tp, cp, pp, ep, etp: other choices follow when this one changes
  bool is_explained = true;      // --explain compares the best plan with plans that differ in this choice
  // Returns a plan with another value if a search should list the choice as not searched; null: never listed.
  void (*otherwise)(Plan& plan) = nullptr;
  std::string_view title = {};  // its name in that list; empty: "tp-overlap"
  // The value in results if it differs from the plan's.
  std::int64_t (*reported)(const Plan& plan) = nullptr;

  void (*take_back)(PartialPlan& partial) = nullptr;

  std::vector<PlanPart> parts;  // at least one

  std::string_view not_a_word = {};  // of words: what is wrong with another one, "cannot be offloaded"

  // Whether it is written as words ("weights,optimizer") or pins ("tp=0 pp=1").
  [[nodiscard]] bool has_text() const { return kind == ChoiceKind::words || kind == ChoiceKind::pins; }
};

// All choices, in the order of help, scenario files and flags.
[[nodiscard]] const std::vector<PlanChoice>& plan_choices();
[[nodiscard]] const PlanChoice* find_choice(std::string_view name);
[[nodiscard]] const PlanChoice& choice_of(PlanField field);
[[nodiscard]] const PlanPart& part_of(PlanField field);

// The choices with these names in this order, then all others.
[[nodiscard]] std::vector<const PlanChoice*> choices_from(std::span<const std::string_view> first);
[[nodiscard]] std::vector<const PlanChoice*> choices_from(std::initializer_list<std::string_view> first);

[[nodiscard]] std::string flag_of(const PlanChoice& choice);  // "--tp-overlap"

// A plan with the given choices; others have the values of Plan{}.
[[nodiscard]] Plan whole_plan(const PartialPlan& partial);
[[nodiscard]] bool is_given(const PlanChoice& choice, const PartialPlan& partial);
// Whether a choice is given and differs from its default.
[[nodiscard]] bool departs(const PlanChoice& choice, const PartialPlan& partial);
// The value to which `partial` fixes a field in a search.
[[nodiscard]] std::optional<std::int64_t> fixed_value(PlanField field, const PartialPlan& partial);

// A choice with words or pins as text; empty: no part is set.
[[nodiscard]] std::string text_of(const PlanChoice& choice, const Plan& plan);

}  // namespace orrery::parallel
