// The choices of a plan described once: what scenario files, flags, documents, searches and explanations call each of
// them, which values it takes and when it has an effect. The rows are in plan_table.cpp.
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

// What decides whether a choice has an effect: the job's model and cluster, and the choices before it.
struct PlanSetting {
  const workload::Model& model;
  const Plan& plan;
  bool has_second_tier = false;
};

// One whole number of a plan: the value of a number, 0 or 1, or the position of a name. Also an axis of searches.
struct PlanPart {
  PlanField field = PlanField::tp;
  std::string_view axis;  // "tp_overlap", "tier.dp"
  std::string_view word;  // in the text of a choice with several parts: "weights" of --offload

  // As an axis.
  FieldMask after = 0;  // fields that have to be chosen before, as `is_idle`, `effect` and valid values read them
  bool inner = false;   // no lower bound on the step time reads it: members of a family differ in it
  bool training_only = false;                             // without effect in inference
  std::int64_t idle = 0;                                  // its value where it has no effect
  bool (*is_idle)(const PlanSetting& setting) = nullptr;  // whether it has no effect; null: it always has one
  // What a value comes to in a plan; null: itself. Where several come to the same, searches price one of them if
  // `merges`.
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
  words,  // those parts that are on: "weights,optimizer"
  pins,   // parts and their numbers: "tp=0 dp=1"
};

// What one flag sets.
struct PlanChoice {
  std::string_view name;  // in scenario files and documents: "tp_overlap"; the flag is --tp-overlap
  std::string_view help;
  ChoiceKind kind = ChoiceKind::number;
  std::span<const std::string_view> names = {};
  std::int64_t min = 1, max = 0;  // of a number; max 0: any

  // The value where nobody gives one; nothing: a rule or the stack decides (estimate/settle.cpp).
  std::optional<std::int64_t> usual = {};
  bool usual_is_open = false;                          // in a search, giving the usual value fixes nothing
  bool refused_in_inference = false;                   // giving it with --task inference is a mistake
  std::string_view in_mad_max = "has no such choice";  // what --semantics mad-max has instead
  // What it needs of the other choices, apart from model and job; null: nothing.
  bool (*is_met)(const Plan& plan) = nullptr;
  std::string_view needs = {};   // "needs --sequence-parallel": the error where it is not met
  bool of_recommenders = false;  // results of other models leave it out
  bool is_degree = false;        // tp, cp, pp, ep, etp: other choices follow where this one changes
  bool is_explained = true;      // --explain compares the best plan with plans that differ in this choice
  // A search names a choice that it does not vary where this makes another valid plan of one of its own; null: never.
  void (*otherwise)(Plan& plan) = nullptr;
  std::string_view title = {};  // what it is called then; empty: "tp-overlap"
  // The value in results where it is another than the plan's.
  std::int64_t (*reported)(const Plan& plan) = nullptr;

  void (*take_back)(PartialPlan& partial) = nullptr;

  std::vector<PlanPart> parts;  // at least one

  // Written as words ("weights,optimizer") or pins ("tp=0 pp=1").
  [[nodiscard]] bool has_text() const { return kind == ChoiceKind::words || kind == ChoiceKind::pins; }
};

// All choices, in the order of help, scenario files and flags.
[[nodiscard]] const std::vector<PlanChoice>& plan_choices();
[[nodiscard]] const PlanChoice* find_choice(std::string_view name);
[[nodiscard]] const PlanChoice& choice_of(PlanField field);
[[nodiscard]] const PlanPart& part_of(PlanField field);

// The choices of these names in this order, then all others.
[[nodiscard]] std::vector<const PlanChoice*> choices_from(std::initializer_list<std::string_view> first);

[[nodiscard]] std::string flag_of(const PlanChoice& choice);  // "--tp-overlap"

// A plan with what is given; other choices have the values of Plan{}.
[[nodiscard]] Plan whole_plan(const PartialPlan& partial);
[[nodiscard]] bool is_given(const PlanChoice& choice, const PartialPlan& partial);
// Given, and not as it is where nobody gives it.
[[nodiscard]] bool departs(const PlanChoice& choice, const PartialPlan& partial);
// What a search that is given `partial` fixes a field to.
[[nodiscard]] std::optional<std::int64_t> fixed_value(PlanField field, const PartialPlan& partial);

// A choice with words or pins as text; empty: none of its parts.
[[nodiscard]] std::string text_of(const PlanChoice& choice, const Plan& plan);

}  // namespace orrery::parallel
