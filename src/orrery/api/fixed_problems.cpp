#include "orrery/api/fixed_problems.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "orrery/parallel/plan_degrees.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::api {

using parallel::ChoiceKind;
using parallel::PartialPlan;
using parallel::Plan;
using parallel::PlanChoice;
using parallel::ScheduleKind;

namespace {

using Choices = std::vector<const PlanChoice*>;

// ---- which of the fixed choices contradict each other ---------------------------------------------------------------

Choices fixed_choices(const PartialPlan& fixed) {
  Choices choices;
  for (const PlanChoice& choice : parallel::plan_choices()) {
    const bool is_fixed = std::any_of(choice.parts.begin(), choice.parts.end(), [&](const auto& part) {
      return parallel::fixed_value(part.field, fixed).has_value();
    });
    if (is_fixed) { choices.push_back(&choice); }
  }
  return choices;
}

bool contains(const Choices& choices, const PlanChoice& choice) {
  return std::find(choices.begin(), choices.end(), &choice) != choices.end();
}

// `fixed` without all other choices.
PartialPlan only(PartialPlan fixed, const Choices& kept) {
  for (const PlanChoice& choice : parallel::plan_choices()) {
    if (!contains(kept, choice)) { choice.take_back(fixed); }
  }
  return fixed;
}

// Of `choices`, which leave a space without points, some that do so together and of which none can be left out. Empty:
// the space has no points whatever is fixed.
Choices smallest_conflict(const PartialPlan& fixed, Choices choices, const HasPoints& has_points) {
  for (std::size_t i = 0; i < choices.size();) {
    Choices fewer = choices;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (has_points(only(fixed, fewer))) {
      ++i;
    } else {
      choices = std::move(fewer);
    }
  }
  return choices;
}

// ---- what the rules of plans have against them ----------------------------------------------------------------------

// The fewest stages that the given choices need.
std::int64_t fewest_stages(const PartialPlan& given) {
  const auto schedule = given.schedule.value_or(ScheduleKind::one_f_one_b);
  const bool several = given.vpp.value_or(1) > 1 || given.first_stage_layers > 0 || given.last_stage_layers > 0 ||
                       (schedule != ScheduleKind::one_f_one_b && schedule != ScheduleKind::gpipe);
  return several ? 2 : 1;
}

// Sets degrees that are not given: each to the least that the given choices need, times `factor`. The rest of the
// devices goes to dp, or to another degree where dp is given.
void set_degrees(Plan& plan, const PartialPlan& given, std::int64_t devices, std::int64_t factor) {
  std::int64_t rest = std::max<std::int64_t>(1, devices);
  const auto take = [&](const std::optional<std::int64_t>& degree) {
    if (degree) { rest = *degree >= 1 && rest % *degree == 0 ? rest / *degree : 1; }
  };
  for (const auto* degree : {&given.tp, &given.cp, &given.pp, &given.dp}) { take(*degree); }
  const auto set = [&](std::int64_t& degree, const std::optional<std::int64_t>& value, std::int64_t least) {
    if (value) { return; }
    const std::int64_t wanted = least * factor;
    degree = rest % wanted == 0 ? wanted : rest % least == 0 ? least : 1;
    rest /= degree;
  };
  const bool splits = given.sequence_parallel.value_or(false) ||
                      given.tp_overlap.value_or(parallel::TpOverlap::none) != parallel::TpOverlap::none;
  set(plan.tp, given.tp, splits ? 2 : 1);
  if (given.dp) { set(plan.cp, given.cp, 1); }
  set(plan.pp, given.pp, fewest_stages(given));
  for (auto [degree, value] : {std::pair{&plan.dp, &given.dp}, {&plan.pp, &given.pp}, {&plan.tp, &given.tp}}) {
    if (*value) { continue; }
    *degree *= rest;
    return;
  }
}

// A plan with what is given; all else is as little as that needs.
Plan plan_around(const PartialPlan& given, const Inputs& inputs, bool serves, std::int64_t factor) {
  Plan plan = parallel::whole_plan(given);
  set_degrees(plan, given, inputs.cluster.devices, factor);
  if (!given.vpp) { plan.vpp = given.schedule == ScheduleKind::interleaved ? 2 : 1; }
  if (!given.schedule) { plan.schedule = plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b; }
  const bool needs_split = inputs.model.has_experts() || plan.tp_overlap != parallel::TpOverlap::none;
  if (!given.sequence_parallel) { plan.sequence_parallel = plan.tp > 1 && needs_split; }
  const bool shards = plan.shard > 0 || !plan.gather_overlap;
  if (!given.zero) { plan.zero = shards && !serves ? 1 : 0; }
  if (!given.recompute && plan.recompute_modules.any()) {
    plan.recompute = parallel::Recompute::selective;
  } else if (!given.recompute && plan.recompute_layers > 0) {
    plan.recompute = parallel::Recompute::full;
  }
  const bool is_open = !parallel::fixed_value(parallel::PlanField::table_sharding, given);
  if (inputs.model.is_recommender() && is_open) { plan.tables.sharding = workload::TableSharding::row; }
  return plan;
}

// The flag to blame for what is wrong with `flag`: itself where it is given, else one that it follows from.
std::string blamed(const std::string& flag, const std::set<std::string>& given) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> follows = {
      {"--schedule", {"--vpp"}},
      {"--vpp", {"--schedule", "--pp"}},
      {"--cp", {"--cp-method"}},
      {"--pp", {"--schedule", "--embedding-as-layer", "--head-as-layer"}},
      {"--sequence-parallel", {"--tp-overlap", "--tp"}},
      {"--tp", {"--sequence-parallel", "--tp-overlap"}},
  };
  if (given.contains(flag)) { return flag; }
  for (const auto& [open, sources] : follows) {
    if (open != flag) { continue; }
    const auto source = std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return given.contains(s); });
    if (source != sources.end()) { return *source; }
  }
  return "";
}

std::vector<Diagnostic> problems_around(const PartialPlan& given, const Choices& choices, const Inputs& inputs,
                                        const parallel::Job& job, std::int64_t factor) {
  std::set<std::string> flags;
  for (const PlanChoice* choice : choices) { flags.insert(parallel::flag_of(*choice)); }
  const Plan plan = plan_around(given, inputs, job.is_inference(), factor);
  auto found = parallel::problems(inputs.model, job, plan, inputs.cluster.devices);
  for (auto& problem : parallel::problems(inputs.cluster, plan)) { found.push_back(std::move(problem)); }
  std::erase_if(found, [&](Diagnostic& problem) {
    auto& flag = problem.place.path;
    const bool of_batch = flag == "--global-batch" || flag == "--batch";
    if (of_batch) { return !given.dp.has_value(); }
    flag = blamed(flag, flags);
    return flag.empty();
  });
  return found;
}

// Problems of any plan with what is given: those that plans with other degrees in place of those not given share, so
// that no sentence is about a value that nobody gave.
std::vector<Diagnostic> shared_problems(const PartialPlan& given, const Choices& choices, const Inputs& inputs,
                                        const parallel::Job& job) {
  auto found = problems_around(given, choices, inputs, job, 1);
  const auto others = problems_around(given, choices, inputs, job, 2);
  std::erase_if(found, [&](const Diagnostic& one) {
    return std::none_of(others.begin(), others.end(), [&](const Diagnostic& other) {
      return other.place.path == one.place.path && other.message == one.message;
    });
  });
  return found;
}

// ---- where no rule alone is broken ----------------------------------------------------------------------------------

// "tp 4", "no sequence-parallel", "schedule dualpipe".
std::string shown(const PlanChoice& choice, const PartialPlan& given) {
  const std::string name = parallel::flag_of(choice).substr(2);
  const std::int64_t value = choice.parts.front().given(given).value_or(0);
  switch (choice.kind) {
    case ChoiceKind::number: return fmt::format("{} {}", name, value);
    case ChoiceKind::boolean: return value != 0 ? name : "no " + name;
    case ChoiceKind::name: return fmt::format("{} {}", name, choice.names[static_cast<std::size_t>(value)]);
    case ChoiceKind::words:
    case ChoiceKind::pins:
      return fmt::format("{} \"{}\"", name, parallel::text_of(choice, parallel::whole_plan(given)));
  }
  throw_internal_error("known kind of choice", __FILE__, __LINE__);
}

// Every number that a choice of a plan of this job can be, sorted.
std::vector<std::int64_t> possible_numbers(const Inputs& inputs, const parallel::Job& job) {
  std::set<std::int64_t> numbers;
  for (std::int64_t n = 1; n <= inputs.model.depth(); ++n) { numbers.insert(n); }
  for (const std::int64_t whole : {inputs.cluster.devices, job.global_batch}) {
    for (std::int64_t d = 1; d <= whole / d; ++d) {
      if (whole % d == 0) { numbers.insert({d, whole / d}); }
    }
  }
  return {numbers.begin(), numbers.end()};
}

// The nearest values of a number below and above the given one that leave points; at most two.
std::vector<std::int64_t> nearest_values(const PlanChoice& choice, const PartialPlan& given,
                                         const std::vector<std::int64_t>& numbers, const HasPoints& has_points) {
  const std::int64_t now = choice.parts.front().given(given).value_or(0);
  const auto leaves_points = [&](std::int64_t value) {
    PartialPlan other = given;
    choice.parts.front().give(other, value);
    return has_points(other);
  };
  std::vector<std::int64_t> found;
  const auto above = std::upper_bound(numbers.begin(), numbers.end(), now);
  const auto at = std::lower_bound(numbers.begin(), numbers.end(), now);
  const auto lower = std::find_if(std::make_reverse_iterator(at), numbers.rend(), leaves_points);
  if (lower != numbers.rend()) { found.push_back(*lower); }
  const auto higher = std::find_if(above, numbers.end(), leaves_points);
  if (higher != numbers.end()) { found.push_back(*higher); }
  return found;
}

// "tp 4, pp 2 and dp 3".
std::string list_of(const Choices& choices, const PartialPlan& given) {
  std::string text;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const char* const separator = i == 0 ? "" : i + 1 == choices.size() ? " and " : ", ";
    text += separator + shown(*choices[i], given);
  }
  return text;
}

Diagnostic without_points(const PartialPlan& given, const Choices& choices, const Inputs& inputs,
                          const parallel::Job& job, const HasPoints& has_points) {
  const PlanChoice& last = *choices.back();
  std::string text =
      fmt::format("no plan of the search has {} on {} devices", list_of(choices, given), inputs.cluster.devices);
  if (job.global_batch > 0) { text += fmt::format(" with {} sequences", job.global_batch); }
  if (last.kind == ChoiceKind::number) {
    const auto values = nearest_values(last, given, possible_numbers(inputs, job), has_points);
    const std::string name = parallel::flag_of(last).substr(2);
    if (!values.empty()) { text += fmt::format("; nearest valid {}: {}", name, fmt::join(values, " and ")); }
  }
  return {{"", 0, 0, parallel::flag_of(last)}, std::move(text)};
}

}  // namespace

std::vector<Diagnostic> problems_of(const PartialPlan& fixed, const Inputs& inputs, const parallel::Job& job,
                                    const HasPoints& has_points) {
  std::vector<Diagnostic> found;
  Choices left = fixed_choices(fixed);
  while (!left.empty() && !has_points(only(fixed, left))) {
    const Choices conflict = smallest_conflict(fixed, left, has_points);
    const Choices& choices = conflict.empty() ? left : conflict;
    const PartialPlan given = only(fixed, choices);
    auto reasons = parallel::degree_problems(given, inputs.cluster.devices);
    const bool divide = reasons.empty();
    for (auto& problem : shared_problems(given, choices, inputs, job)) {
      // Degrees that do not divide the devices do not multiply to them either: that is reported once.
      const bool is_of_devices = problem.message.find(" devices") != std::string::npos;
      if (divide || !is_of_devices) { reasons.push_back(std::move(problem)); }
    }
    if (reasons.empty() && !conflict.empty()) {
      reasons.push_back(without_points(given, choices, inputs, job, has_points));
    }
    for (auto& reason : reasons) { found.push_back(std::move(reason)); }
    if (conflict.empty()) { break; }  // no plan is possible without them either
    std::erase_if(left, [&](const PlanChoice* choice) { return contains(conflict, *choice); });
  }
  return found;
}

}  // namespace orrery::api
