#include "orrery/api/not_searched.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/estimate/stack_choice.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::api {

using parallel::Plan;
using parallel::ScheduleKind;

namespace {

using parallel::ChoiceKind;
using parallel::PlanChoice;

// One choice, the distribution of layers over stages, is set by several flags.
constexpr std::string_view kEnds = "head_as_layer";

class UnsearchedChoices {
 public:
  UnsearchedChoices(const Inputs& inputs, const parallel::Job& job, const PlanRequest& request,
                    const explore::Space& space)
      : inputs_(inputs), job_(job), fixed_(request.job), request_(request), space_(space) {}

  // Of a space file of the user's, only what the stack takes out of it.
  std::vector<std::string> list() {
    if (!request_.space) { add_unsearched(); }
    add_missing();
    return std::move(texts_);
  }

 private:
  void add_unsearched() {
    add_contexts();
    add_expert_slices();
    for (const PlanChoice* choice : parallel::choices_from({"schedule", "tp_overlap", "offload", "shard", kEnds})) {
      if (choice->name == "schedule") {
        add_schedules();
      } else if (choice->name == kEnds) {
        add_ends();
      } else if (!is_searched(*choice)) {
        add_choice(*choice);
      }
    }
  }

  void add(bool applies, std::string text) {
    if (applies) { texts_.push_back(std::move(text)); }
  }

  template <class Holds>
  [[nodiscard]] bool any(Holds holds) const {
    bool found = false;
    explore::SpaceWalk walk(space_), of_members(space_);
    walk.families([&](const explore::Family& family) {
      if (family.verdict != explore::Verdict::possible) { return true; }
      of_members.members(family, [&](const explore::Member& member) { found = found || holds(member.point.plan); });
      return !found;
    });
    return found;
  }

  // Whether `change` turns some plan into another valid plan.
  template <class Change>
  [[nodiscard]] bool can_change(Change change) const {
    return any([&](Plan plan) {
      const Plan before = plan;
      change(plan);
      return !(plan == before) && parallel::is_valid(inputs_.cluster, plan) &&
             parallel::is_valid(inputs_.model, job_, plan, inputs_.cluster.devices);
    });
  }

  // The choice is an axis of the space, fixed, or without effect on the task.
  [[nodiscard]] bool is_searched(const PlanChoice& choice) const {
    if (choice.refused_in_inference && job_.is_inference()) { return true; }
    return std::any_of(choice.parts.begin(), choice.parts.end(), [&](const parallel::PlanPart& part) {
      return parallel::fixed_value(part.field, fixed_) || is_axis(part.axis);
    });
  }

  // "schedule dualpipe, which megatron-core does not have (--stack ideal)", of axes that the space has.
  void add_missing() {
    if (request_.job.stack.empty()) { return; }
    for (const auto& limit : estimate::choice_limits(inputs_.stack)) {
      const auto& part = parallel::part_of(limit.field);
      if (!is_axis(part.axis) || parallel::fixed_value(limit.field, fixed_)) { continue; }
      if (request_.space && !leaves_out(limit.field)) { continue; }
      const std::string title = parallel::flag_of(parallel::choice_of(limit.field)).substr(2);
      add(true, fmt::format("{} {}, which {} does not have (--stack ideal)", title, join(limit.missing, ", "),
                            inputs_.stack.name));
    }
  }

  // Whether the space would have more points without the limit of this choice.
  [[nodiscard]] bool leaves_out(parallel::PlanField field) const {
    auto file = explore::with_values(*request_.space, request_.values);
    if (!file) { return true; }
    for (const auto& limit : estimate::choice_limits(inputs_.stack)) {
      if (limit.field != field) { file->allowed.push_back({limit.field, limit.values}); }
    }
    const auto wider = explore::Space::make(std::move(*file), inputs_.model, job_, inputs_.cluster, fixed_,
                                            inputs_.stack.overlap.gradient_reduce);
    return !wider || wider->points() != space_.points();
  }

  [[nodiscard]] bool is_axis(std::string_view name) const {
    const auto& axes = space_.axes();
    return std::find(axes.begin(), axes.end(), name) != axes.end();
  }

  // "tp-overlap (--tp-overlap)", "offload of weights, optimizer (--offload)".
  void add_choice(const PlanChoice& choice) {
    const std::string flag = parallel::flag_of(choice);
    const std::string title = choice.title.empty() ? flag.substr(2) : std::string(choice.title);
    if (choice.kind == ChoiceKind::words && choice.otherwise == nullptr) {
      std::vector<std::string> words;
      for (const auto& part : choice.parts) {
        if (can_change([&](Plan& plan) { part.set(plan, 1); })) { words.emplace_back(part.word); }
      }
      add(!words.empty(), fmt::format("{} {} ({})", title, join(words, ", "), flag));
    } else if (choice.otherwise != nullptr) {
      add(can_change(choice.otherwise), fmt::format("{} ({})", title, flag));
    }
  }

  // Degrees of context parallelism above those of the space, with fewer replicas.
  void add_contexts() {
    if (has_all("cp") || fixed_.cp || fixed_.dp || job_.is_inference()) { return; }
    std::int64_t most = 1;
    (void)any([&](const Plan& plan) {
      most = std::max(most, plan.cp);
      return false;
    });
    const bool possible = can_change([&](Plan& plan) {
      if (plan.cp != most || plan.dp % 2 != 0) { return; }
      plan.cp *= 2;
      plan.dp /= 2;
    });
    add(possible, fmt::format("cp above {} (--cp)", most));
  }

  // Tensor parallelism of experts between 1 and tp.
  void add_expert_slices() {
    if (has_all("etp") || fixed_.etp || !inputs_.model.has_experts()) { return; }
    const bool possible = can_change([](Plan& plan) {
      if (plan.etp == plan.tp && plan.tp % 2 == 0) { plan.etp = plan.tp / 2; }
    });
    add(possible, "etp between 1 and tp (--etp)");
  }

  // Whether the space has all values of an axis, or those that the request asks for.
  [[nodiscard]] bool has_all(std::string_view axis) const {
    return request_.wide || request_.values.find(axis) != nullptr;
  }

  // In inference all schedules are identical.
  void add_schedules() {
    if (fixed_.schedule || is_axis("schedule") || fixed_.vpp.value_or(1) > 1 || job_.is_inference()) { return; }
    std::vector<std::string> names;
    for (const auto schedule : {ScheduleKind::zero_bubble, ScheduleKind::dualpipe, ScheduleKind::gpipe}) {
      const bool possible = can_change([&](Plan& plan) {
        if (plan.pp > 1 && plan.vpp == 1) { plan.schedule = schedule; }
      });
      if (possible) { names.emplace_back(config::enum_name(schedule)); }
    }
    add(!names.empty(), fmt::format("schedule {} (--schedule)", join(names, ", ")));
  }

  void add_ends() {
    using F = parallel::PlanField;
    for (const F end : {F::first_stage_layers, F::last_stage_layers, F::embedding_as_layer, F::head_as_layer}) {
      if (parallel::fixed_value(end, fixed_)) { return; }
    }
    if (is_axis("first_stage_layers") || is_axis("last_stage_layers")) { return; }
    if (is_axis("embedding_as_layer") || is_axis("head_as_layer")) {
      const bool possible = can_change([](Plan& plan) { plan.last_stage_layers = plan.pp > 1 ? 1 : 0; });
      return add(possible, "other numbers of layers on the end stages (--first-stage-layers, --last-stage-layers)");
    }
    add(can_change([](Plan& plan) { plan.head_as_layer = plan.pp > 1; }),
        "uneven ends (--embedding-as-layer, --head-as-layer, --first-stage-layers, --last-stage-layers)");
  }

  const Inputs& inputs_;
  const parallel::Job& job_;
  const parallel::PartialPlan& fixed_;
  const PlanRequest& request_;
  const explore::Space& space_;
  std::vector<std::string> texts_;
};

}  // namespace

std::vector<std::string> not_searched(const Inputs& inputs, const parallel::Job& job, const PlanRequest& request,
                                      const explore::Space& space) {
  return UnsearchedChoices(inputs, job, request, space).list();
}

}  // namespace orrery::api
