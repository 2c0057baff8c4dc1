// Chooses what a request does not give. docs/guide/plans.md lists the rules.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/estimate/request.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::estimate {

namespace {

// Tries recompute choices from the lowest to the highest, and for each micro-batches from large to small, until one
// fits.
class FitSearch {
 public:
  FitSearch(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
            const hardware::Stack& stack, parallel::Plan plan)
      : request_(request),
        model_(model),
        job_(job_of(request, model)),
        devices_(cluster.devices),
        estimator_(model, cluster, stack, job_),
        plan_(plan) {}

  // True if a choice fits; otherwise plan() is the choice with the lowest memory.
  bool run() {
    for (const auto recompute : recompute_choices()) {
      for (const std::int64_t micro_batch : micro_batch_choices()) {
        plan_.recompute = recompute;
        plan_.micro_batch = micro_batch;
        if (!parallel::is_valid(model_, job_, plan_, devices_)) { continue; }
        if (estimator_.memory(plan_).fits) { return true; }
      }
    }
    plan_.recompute = recompute_choices().back();
    plan_.micro_batch = micro_batch_choices().back();
    return false;
  }

  [[nodiscard]] const parallel::Plan& plan() const { return plan_; }

 private:
  [[nodiscard]] std::vector<parallel::Recompute> recompute_choices() const {
    if (request_.recompute) { return {*request_.recompute}; }
    if (job_.is_inference()) { return {parallel::Recompute::none}; }
    return {parallel::Recompute::none, parallel::Recompute::selective, parallel::Recompute::full};
  }

  [[nodiscard]] std::vector<std::int64_t> micro_batch_choices() const {
    if (request_.micro_batch) { return {*request_.micro_batch}; }
    if (job_.is_inference()) {
      // As many micro-batches as stages, or the largest smaller divisor of the batch: every stage has work.
      const std::int64_t replica = job_.global_batch / plan_.dp;
      std::int64_t count = std::min(plan_.pp, replica);
      while (replica % count != 0) { --count; }
      return {replica / count};
    }
    if (model_.is_recommender()) { return whole_batch_and_halves(job_.global_batch / plan_.dp); }
    return {8, 7, 6, 5, 4, 3, 2, 1};  // values that do not divide the batch are invalid plans
  }

  // A recommender's kernels are faster with larger micro-batches.
  static std::vector<std::int64_t> whole_batch_and_halves(std::int64_t batch) {
    std::vector<std::int64_t> sizes{batch};
    while (sizes.back() % 2 == 0) { sizes.push_back(sizes.back() / 2); }
    return sizes;
  }

  const Request& request_;
  const workload::Model& model_;
  parallel::Job job_;
  std::int64_t devices_;
  Estimator estimator_;
  parallel::Plan plan_;
};

std::string why_this_micro_batch(const parallel::Job& job, const parallel::Plan& plan, bool fits) {
  if (job.is_inference()) {
    return plan.pp > 1 ? "one micro-batch per stage if that divides the batch" : "the whole batch of a replica";
  }
  if (!fits) { return "nothing fits"; }
  if (plan.tables.sharding != workload::TableSharding::none) {
    return "the largest that fits: a replica's batch, or 1/2, 1/4, ... of it";
  }
  const std::int64_t count = parallel::micro_batches(job, plan);
  const bool starved = count < plan.pp && plan.micro_batch > 1;
  return starved ? fmt::format(
                       "the largest that fits, up to 8; but {} micro-batches leave {} stages idle most of the time: "
                       "try --micro-batch 1",
                       count, plan.pp)
                 : "the largest that fits, up to 8";
}

bool gives_sharding(const Request& request) {
  return request.tables && request.tables->sharding != workload::TableSharding::none;
}

std::vector<std::string> chosen_fields(const Request& request, const parallel::Job& job, const parallel::Plan& plan,
                                       bool experts, bool fits) {
  std::vector<std::string> chosen;
  if (!request.dp) {
    const char* product = plan.cp > 1 ? "tp x cp x pp" : "tp x pp";
    chosen.push_back(fmt::format("dp {} (devices / ({}))", plan.dp, product));
  }
  if (!request.sequence_parallel && plan.sequence_parallel) {
    chosen.emplace_back("sequence-parallel on (required by experts with tp > 1)");
  }
  if (!request.etp && plan.tp * plan.ep > 1 && experts) {
    chosen.push_back(plan.etp > 1 ? fmt::format("etp {} (same as tp: experts are not distributed over ranks)", plan.etp)
                                  : std::string("etp 1 (experts are not split)"));
  }
  if (!gives_sharding(request) && plan.tables.sharding != workload::TableSharding::none) {
    chosen.push_back(plan.tables.sharding == workload::TableSharding::row
                         ? fmt::format("table-sharding row (fewer tables than {} ranks)", plan.table_ranks())
                         : std::string("table-sharding table (enough tables for all ranks)"));
  }
  if (!request.micro_batch && job.is_inference()) {
    chosen.push_back(fmt::format("micro-batch {} ({})", plan.micro_batch, why_this_micro_batch(job, plan, fits)));
  }
  if (job.is_inference()) { return chosen; }
  if (!request.recompute) {
    chosen.push_back(fmt::format("recompute {} ({})", config::enum_name(plan.recompute),
                                 fits ? "the least that fits in memory" : "nothing fits"));
  }
  if (!request.micro_batch) {
    chosen.push_back(fmt::format("micro-batch {} ({})", plan.micro_batch, why_this_micro_batch(job, plan, fits)));
  }
  if (!request.schedule) { chosen.push_back(fmt::format("schedule {}", config::enum_name(plan.schedule))); }
  if (!request.dp_overlap) {
    const bool is_disabled = plan.dp_overlap && !plan.reduces_under_backward();
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

// The plan as given; the rest has defaults, before memory is checked.
parallel::Plan plan_of(const Request& request, const workload::Model& model, std::int64_t devices,
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
  set_default(request.zero, plan.zero, is_inference ? 0 : 1);
  set_default(request.schedule, plan.schedule, default_schedule);
  set_default(request.dp_overlap, plan.dp_overlap, stack.overlap.gradient_reduce);
  if (model.is_recommender() && !gives_sharding(request)) { plan.tables.sharding = default_sharding(plan, model); }
  return plan;
}

}  // namespace

Result<ResolvedPlan> resolve(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
                             const hardware::Stack& stack) {
  const parallel::Job job = job_of(request, model);
  parallel::Plan plan = plan_of(request, model, cluster.devices, stack);
  auto found = parallel::problems(model, job, plan, cluster.devices);
  for (auto& problem : parallel::problems(cluster, plan)) { found.push_back(std::move(problem)); }
  for (auto& problem : idle_flags(request)) { found.push_back(std::move(problem)); }
  if (!found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  FitSearch search(request, model, cluster, stack, plan);
  const bool fits = search.run();
  return ResolvedPlan{search.plan(), chosen_fields(request, job, search.plan(), model.has_experts(), fits)};
}

}  // namespace orrery::estimate
