#include "orrery/api/planning.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/api/fixed_problems.hpp"
#include "orrery/api/not_searched.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/stack_choice.hpp"
#include "orrery/explore/neighbours.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::api {

using explore::Point;
using explore::Space;
using parallel::Plan;
using parallel::ScheduleKind;

namespace {

// "h100-sxm", "h100-sxm and a100-sxm-80gb".
std::string accelerators_of(const hardware::Cluster& cluster) {
  std::vector<std::string> names{cluster.accelerator.name};
  for (const hardware::Nodes& nodes : cluster.nodes) {
    if (std::find(names.begin(), names.end(), nodes.accelerator.name) == names.end()) {
      names.push_back(nodes.accelerator.name);
    }
  }
  return join(names, " and ");
}

std::string why_nothing_fits(const results::SpaceCounts& space, const Inputs& inputs) {
  std::string why;
  if (space.points == 0) {
    why = "no plan is valid: the degrees must multiply to the devices and divide heads and batch";
  } else if (space.points == space.rejected_network + space.rejected_invalid) {
    why = fmt::format("none of {} points is a plan that the model and the network allow", space.points);
  } else {
    why = fmt::format("none of {} plans fits in the memory of {}",
                      space.points - space.rejected_network - space.rejected_invalid, accelerators_of(inputs.cluster));
  }
  return fmt::format("{} on {} of {}: {}", inputs.model.name, counted(inputs.cluster.devices, "device"),
                     inputs.cluster.name, why);
}

Result<explore::SpaceFile> space_file_of(const std::string& data_directory, const PlanRequest& request,
                                         const workload::Model& model) {
  if (request.space) { return explore::with_values(*request.space, request.values); }
  const bool serves = request.job.task == parallel::Task::inference;
  const std::string name = model.is_recommender() ? "recommender" : serves ? "inference" : "training";
  ORRERY_TRY(file,
             explore::read_space_file(data_directory + "/spaces/" + (request.wide ? "wide-" : "") + name + ".yaml"));
  return explore::with_values(std::move(file), request.values);
}

bool is_missing(const config::Node& value, const estimate::ChoiceLimit& limit) {
  return std::find(limit.missing.begin(), limit.missing.end(), value.scalar) != limit.missing.end();
}

// Lists of values of which the named stack has none.
std::vector<Diagnostic> lacking_values(const PlanRequest& request, const hardware::Stack& stack,
                                       const std::vector<estimate::ChoiceLimit>& limits) {
  std::vector<Diagnostic> found;
  for (const auto& limit : limits) {
    const auto* given = request.values.find(parallel::part_of(limit.field).axis);
    if (given == nullptr || given->items.empty()) { continue; }
    const auto is_of_none = [&](const config::Node& value) { return is_missing(value, limit); };
    if (!std::all_of(given->items.begin(), given->items.end(), is_of_none)) { continue; }
    found.push_back(
        {{"", 0, 0, parallel::flag_of(parallel::choice_of(limit.field))},
         fmt::format("{} does not have {} (--stack ideal runs everything)", stack.name, join(limit.missing, ", "))});
  }
  return found;
}

}  // namespace

Result<Problem> read_problem(const std::string& data_directory, const hardware::Catalogue& catalogue,
                             const PlanRequest& request) {
  const auto length = request.space ? Length::longest : Length::typed;
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, request.job, hardware::UnlikeNodes::modelled, length));
  return problem_of(data_directory, request, std::move(inputs));
}

Result<Problem> problem_of(const std::string& data_directory, const PlanRequest& request, Inputs inputs) {
  inputs.stack.memory_reserve = 1.0 - (1.0 - inputs.stack.memory_reserve) * (1.0 - request.headroom);
  ORRERY_TRY(file, space_file_of(data_directory, request, inputs.model));
  auto limits = estimate::choice_limits(inputs.stack);
  if (request.job.stack.empty()) {  // the default stack limits nothing
    std::erase_if(limits, [](const auto& limit) { return limit.field != parallel::PlanField::optimizer_device; });
    for (auto& limit : limits) { file.allowed.push_back({limit.field, std::move(limit.values)}); }
  } else {
    if (auto lacking = lacking_values(request, inputs.stack, limits); !lacking.empty()) {
      return tl::make_unexpected(Failure{std::move(lacking)});
    }
    for (auto& limit : limits) { file.allowed.push_back({limit.field, std::move(limit.values)}); }
  }
  parallel::Job job = estimate::job_of(request.job, inputs.model, inputs.stack);
  if (!file.max_batch) {
    if (auto wrong = parallel::problems(inputs.model, job); !wrong.empty()) {
      return tl::make_unexpected(Failure{std::move(wrong)});
    }
  }
  return Problem{std::move(inputs), std::move(file), job};
}

namespace {

Result<Space> space_over(const parallel::PartialPlan& fixed, const Problem& problem,
                         const std::function<void()>& while_counting = {}) {
  const Inputs& inputs = problem.inputs;
  return Space::make(problem.file, inputs.model, problem.job, inputs.cluster, fixed,
                     inputs.stack.overlap.gradient_reduce, while_counting);
}

}  // namespace

Result<Space> space_of(const PlanRequest& request, const Problem& problem) {
  return space_over(request.job, problem, [&request] {
    if (request.progress) { request.progress(0, 0); }
  });
}

namespace {

bool leaves_points(const parallel::PartialPlan& fixed, const Problem& problem) {
  const auto space = space_over(fixed, problem);
  return space && space->points() > 0;
}

// What the named stack does not have, if that alone leaves no points. The limits that are enough for it.
std::optional<Diagnostic> lacking_stack(const PlanRequest& request, const Problem& problem) {
  Problem unlimited = problem;
  unlimited.file.allowed.clear();
  if (problem.file.allowed.empty() || !leaves_points(request.job, unlimited)) { return std::nullopt; }
  std::vector<std::string> lacking;
  for (const auto& limit : estimate::choice_limits(problem.inputs.stack)) {
    unlimited.file.allowed = {{limit.field, limit.values}};
    if (leaves_points(request.job, unlimited)) { continue; }
    const std::string flag = parallel::flag_of(parallel::choice_of(limit.field));
    lacking.push_back(fmt::format("{} {}", flag.substr(2), join(limit.missing, ", ")));
  }
  std::string text =
      fmt::format("no plan of the search is left: {} does not have {} (--stack ideal runs everything)",
                  problem.inputs.stack.name, lacking.empty() ? "one of the choices of each" : join(lacking, "; "));
  return Diagnostic{{"", 0, 0, "--stack"}, std::move(text)};
}

}  // namespace

std::vector<Diagnostic> fixed_problems(const PlanRequest& request, const Problem& problem) {
  if (auto lacking = lacking_stack(request, problem)) { return {std::move(*lacking)}; }
  const auto has_points = [&](const parallel::PartialPlan& fixed) { return leaves_points(fixed, problem); };
  return problems_of(request.job, problem.inputs, problem.job, has_points);
}

explore::SearchOptions search_options(const PlanRequest& request) {
  explore::SearchOptions options;
  options.top = request.top;
  options.among = request.variants ? explore::Among::plans : explore::Among::layouts;
  options.exhaustive = request.exhaustive;
  options.front = request.front;
  options.per_sample = request.space && request.space->max_batch.has_value();
  options.threads = request.threads;
  options.progress = request.progress;
  return options;
}

Planning::Planning(const PlanRequest& request, const Problem& problem, Space space)
    : request_(request),
      inputs_(problem.inputs),
      space_(std::move(space)),
      estimator_(inputs_.model, inputs_.cluster, inputs_.stack, space_.job()) {}

results::PlanSearch Planning::run() {
  found_ = explore::search(
      explore::walks_of(space_), [&] { return std::make_unique<PlanEvaluator>(inputs_, space_); },
      search_options(request_));
  results::PlanSearch answer;
  answer.space = found_.space;
  answer.without_effect = space_.without_effect();
  answer.not_searched = not_searched(inputs_, space_.job(), request_, space_);
  if (found_.best.empty()) { answer.nothing_fits = why_nothing_fits(found_.space, inputs_); }
  for (const auto& candidate : found_.best) { answer.best.push_back(estimate(candidate.point)); }
  for (const auto& candidate : found_.front) { answer.front.push_back(estimate(candidate.point)); }
  return answer;
}

std::vector<std::string> Planning::explained(const std::vector<results::Estimate>& best) {
  return explanation(best, alternatives_to(winner().point));
}

results::Estimate Planning::estimate(const Point& point) {
  estimator_.set_global_batch(point.global_batch);
  return with_uncertainty(estimator_.estimate(point.plan), inputs_, space_.job());
}

// Neighbouring plans of the winner, and plans with schedules that a space has only if a flag sets them.
std::vector<Alternative> Planning::alternatives_to(const Point& best) {
  PlanEvaluator evaluator(inputs_, space_);
  const auto walk = explore::walks_of(space_)();
  std::vector<Alternative> alternatives;
  for (const auto& [axis, found] : explore::neighbours(*walk, best, evaluator)) {
    alternatives.push_back({axis, estimate(found.point), {}, true});
    if (found.beyond_memory) { alternatives.back().beyond_memory = estimate(*found.beyond_memory); }
  }
  const auto& axes = space_.axes();
  const bool has_schedules = std::find(axes.begin(), axes.end(), "schedule") != axes.end();
  const bool may_change = !request_.space && !request_.job.schedule && !has_schedules && !space_.job().is_inference();
  if (!may_change || best.plan.pp == 1) { return alternatives; }
  for (const auto schedule : {ScheduleKind::zero_bubble, ScheduleKind::dualpipe}) {
    const auto point = under_schedule(schedule, best, *walk, evaluator);
    if (point) { alternatives.push_back({"schedule", estimate(*point), {}, false}); }
  }
  return alternatives;
}

// The winner with a schedule that the space has only if a flag sets it, with a micro-batch that fits the schedule.
// Nothing if none of the space does.
std::optional<Point> Planning::under_schedule(ScheduleKind schedule, const Point& best, explore::Walk& walk,
                                              PlanEvaluator& evaluator) const {
  const auto as_best = [&](Plan plan) {
    plan.micro_batch = best.plan.micro_batch;
    plan.vpp = best.plan.vpp;
    plan.schedule = best.plan.schedule;
    plan.zero = best.plan.zero;
    return plan == best.plan;
  };
  std::vector<Point> points;
  for (Point point : explore::points_of(walk, as_best)) {
    const bool keeps_zero = point.plan.zero == best.plan.zero;
    point.plan.vpp = 1;
    point.plan.schedule = schedule;
    const auto same = [&](const Point& other) { return other.plan == point.plan; };
    const bool is_new = std::none_of(points.begin(), points.end(), same);
    if (keeps_zero && is_new && parallel::is_valid(inputs_.model, space_.job(), point.plan, inputs_.cluster.devices)) {
      points.push_back(point);
    }
  }
  if (points.empty()) { return std::nullopt; }
  return explore::fastest(points, evaluator).point;
}

}  // namespace orrery::api
