// Chooses what a request does not give. docs/guide/plans.md lists the rules.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "orrery/core/integers.hpp"
#include "orrery/estimate/open_choices.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/estimate/stack_choice.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::estimate {

namespace {

// "2", "on", "selective".
std::string value_of(parallel::PlanField field, const parallel::Plan& plan) {
  const parallel::PlanChoice& choice = parallel::choice_of(field);
  const std::int64_t value = parallel::part_of(field).get(plan);
  if (choice.kind == parallel::ChoiceKind::boolean) { return value != 0 ? "on" : "off"; }
  if (choice.kind == parallel::ChoiceKind::name) { return std::string(choice.names[to_index(value)]); }
  return std::to_string(value);
}

// "micro-batch 1 (2: +3.1 %)": the value, and what the fastest plan with another one costs.
std::string chosen_text(const OpenChoice& choice, const OpenChoice::Field& field) {
  std::string why = "nothing fits: the lowest memory";
  if (choice.fits && field.runner_up) {
    why = fmt::format("{}: {:+.1f} %", value_of(field.field, field.runner_up->plan), 100.0 * field.runner_up->slower);
  } else if (choice.fits) {
    why = "nothing else fits in memory";
  }
  const std::string flag = parallel::flag_of(parallel::choice_of(field.field));
  return fmt::format("{} {} ({})", flag.substr(2), value_of(field.field, choice.plan), why);
}

bool gives_sharding(const Request& request) {
  return request.tables && request.tables->sharding != workload::TableSharding::none;
}

std::vector<std::string> chosen_fields(const Request& request, const parallel::Job& job, const OpenChoice& choice,
                                       const workload::Model& model, const hardware::Stack& stack) {
  const parallel::Plan& plan = choice.plan;
  std::vector<std::string> chosen;
  if (!request.dp) {
    const char* product = plan.cp > 1 ? "tp x cp x pp" : "tp x pp";
    chosen.push_back(fmt::format("dp {} (devices / ({}))", plan.dp, product));
  }
  if (auto padding = parallel::padding_text(model, job, plan.tp); !padding.empty()) {
    chosen.push_back(std::move(padding));
  }
  const auto is_chosen = [&](parallel::PlanField field) {
    return std::any_of(choice.fields.begin(), choice.fields.end(), [&](const auto& one) { return one.field == field; });
  };
  if (!request.sequence_parallel && plan.sequence_parallel && !is_chosen(parallel::PlanField::sequence_parallel)) {
    chosen.push_back(fmt::format("sequence-parallel on (required by {})",
                                 model.has_experts() ? "experts with tp > 1" : "tp-overlap"));
  }
  if (!request.etp && plan.tp * plan.ep > 1 && model.has_experts()) {
    chosen.push_back(plan.etp > 1 ? fmt::format("etp {} (same as tp: experts are not distributed over ranks)", plan.etp)
                                  : std::string("etp 1 (experts are not split)"));
  }
  if (!gives_sharding(request) && plan.tables.sharding != workload::TableSharding::none) {
    chosen.push_back(plan.tables.sharding == workload::TableSharding::row
                         ? fmt::format("table-sharding row (fewer tables than {} ranks)", plan.table_ranks())
                         : std::string("table-sharding table (enough tables for all ranks)"));
  }
  if (!request.micro_batch && !is_chosen(parallel::PlanField::micro_batch)) {
    chosen.push_back(fmt::format("micro-batch {} (the only valid one)", plan.micro_batch));
  }
  for (const auto& field : choice.fields) { chosen.push_back(chosen_text(choice, field)); }
  if (!job.is_inference() && !request.dp_overlap) {
    const bool is_disabled = plan.dp_overlap && !parallel::reduces_under_backward(plan, stack);
    chosen.push_back(is_disabled ? "dp-overlap off (offloaded data is fetched for the last backward)"
                                 : fmt::format("dp-overlap {} (the stack's default)", plan.dp_overlap ? "on" : "off"));
  }
  return chosen;
}

// Flags without effect on this plan. A search tries other degrees, so it accepts them.
std::vector<Diagnostic> idle_flags(const Request& request) {
  std::vector<Diagnostic> found;
  const auto require = [&](bool holds, const char* flag, const char* message) {
    if (!holds) { found.push_back({{"", 0, 0, flag}, message}); }
  };
  using workload::ContextMethod;
  const bool has_context = request.cp.value_or(1) > 1, has_stages = request.pp.value_or(1) > 1;
  require(has_context || request.cp_method.value_or(ContextMethod::ring) == ContextMethod::ring, "--cp-method",
          "needs --cp of at least 2");
  require(has_stages || !request.embedding_as_layer.value_or(false), "--embedding-as-layer",
          "needs --pp of at least 2");
  require(has_stages || !request.head_as_layer.value_or(false), "--head-as-layer", "needs --pp of at least 2");
  return found;
}

// Experts that are not distributed (ep 1) are split over tp like other layers; distributed experts are not split.
std::int64_t default_etp(const parallel::Plan& plan, const workload::Model& model) {
  const bool sliced = model.has_experts() && plan.ep == 1 && plan.tp >= 1 && model.experts.ffn % plan.tp == 0;
  return sliced ? plan.tp : 1;
}

// Table-wise if there are enough tables for all ranks, else row-wise.
workload::TableSharding default_sharding(const parallel::Plan& plan, const workload::Model& model) {
  const std::int64_t ranks = plan.tables.ranks > 0 ? plan.tables.ranks : plan.dp;
  return workload::default_sharding(model.recommender, plan.tables, ranks);
}

// The product of degrees may overflow; problems() reports that.
std::int64_t default_dp(const parallel::Plan& plan, std::int64_t devices) {
  const double product = static_cast<double>(plan.tp) * static_cast<double>(plan.cp) * static_cast<double>(plan.pp);
  const bool countable = product >= 1.0 && product <= static_cast<double>(devices);
  return std::max<std::int64_t>(1, countable ? devices / (plan.tp * plan.cp * plan.pp) : 1);
}

}  // namespace

parallel::Plan plan_with_defaults(const Request& request, const workload::Model& model, std::int64_t devices,
                                  const hardware::Stack& stack) {
  parallel::Plan plan = parallel::whole_plan(request);
  const auto set_default = [](const auto& given, auto& choice, auto fallback) {
    if (!given) { choice = fallback; }
  };
  const bool is_inference = request.task == parallel::Task::inference;
  const auto default_schedule =
      plan.vpp > 1 ? parallel::ScheduleKind::interleaved : parallel::ScheduleKind::one_f_one_b;
  set_default(request.etp, plan.etp, default_etp(plan, model));
  set_default(request.dp, plan.dp, default_dp(plan, devices));
  set_default(request.sequence_parallel, plan.sequence_parallel, model.has_experts() && plan.tp > 1);
  set_default(request.zero, plan.zero, is_inference ? 0 : default_zero(stack));
  if (plan.recompute_modules.any()) { set_default(request.recompute, plan.recompute, parallel::Recompute::selective); }
  set_default(request.schedule, plan.schedule, default_schedule);
  set_default(request.dp_overlap, plan.dp_overlap, stack.overlap.gradient_reduce);
  if (model.is_recommender() && !gives_sharding(request)) { plan.tables.sharding = default_sharding(plan, model); }
  return plan;
}

std::vector<Diagnostic> problems(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
                                 const hardware::Stack& stack, const parallel::Plan& plan) {
  auto found = parallel::problems(model, job_of(request, model, stack), plan, cluster.devices);
  for (auto& problem : parallel::problems(cluster, plan)) { found.push_back(std::move(problem)); }
  for (auto& problem : idle_flags(request)) { found.push_back(std::move(problem)); }
  return found;
}

Result<ResolvedPlan> resolve(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
                             const hardware::Stack& stack) {
  Estimator estimator(model, cluster, stack, job_of(request, model, stack));
  return resolve(request, model, cluster, stack, estimator);
}

Result<ResolvedPlan> resolve(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
                             const hardware::Stack& stack, Estimator& estimator) {
  const parallel::Job job = job_of(request, model, stack);
  const parallel::Plan plan = plan_with_defaults(request, model, cluster.devices, stack);
  const auto plans = open_plans(request, model, cluster, stack, plan);
  auto found = problems(request, model, cluster, stack, plans.empty() ? plan : plans.front());
  if (!found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  const OpenChoice choice = fastest(estimator, plans);
  return ResolvedPlan{choice.plan, chosen_fields(request, job, choice, model, stack)};
}

}  // namespace orrery::estimate
