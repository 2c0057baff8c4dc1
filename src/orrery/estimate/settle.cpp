// What a request does not give, decided by documented rules.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/estimate/request.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::estimate {

namespace {

// Tries recompute choices from least to most, and micro-batches from large to small, until one fits.
class Settling {
 public:
  Settling(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
           const hardware::Stack& stack, parallel::Plan plan)
      : request_(request),
        model_(model),
        job_(job_of(request, model)),
        devices_(cluster.devices),
        estimator_(model, cluster, stack, job_),
        plan_(plan) {}

  // True when a choice was found that fits; otherwise plan() is the one that needs least.
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
      // As many micro-batches as stages, or the most below that the batch divides into: every stage has one at work.
      const std::int64_t replica = job_.global_batch / plan_.dp;
      std::int64_t count = std::min(plan_.pp, replica);
      while (replica % count != 0) { --count; }
      return {replica / count};
    }
    if (model_.is_recommender()) { return whole_batch_and_halves(job_.global_batch / plan_.dp); }
    return {8, 7, 6, 5, 4, 3, 2, 1};  // those that do not divide the batch are not valid plans
  }

  // Samples of one position: a kernel wants as many as there are.
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
    return plan.pp > 1 ? "a micro-batch for every stage, where the batch divides" : "the whole batch of a replica";
  }
  if (!fits) { return "nothing fits"; }
  if (plan.tables.sharding != workload::TableSharding::none) {
    return "the largest that fits, a replica's batch halved";
  }
  const std::int64_t count = parallel::micro_batches(job, plan);
  const bool starved = count < plan.pp && plan.micro_batch > 1;
  return starved ? fmt::format(
                       "the largest that fits, up to 8; but {} of them leave {} stages idle most of the time: "
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
    chosen.emplace_back("sequence-parallel on (experts under tp need it)");
  }
  if (!request.etp && plan.tp * plan.ep > 1 && experts) {
    chosen.push_back(plan.etp > 1 ? fmt::format("etp {} (experts are sliced as tp, not shared out)", plan.etp)
                                  : std::string("etp 1 (experts stay whole)"));
  }
  if (!gives_sharding(request) && plan.tables.sharding != workload::TableSharding::none) {
    chosen.push_back(plan.tables.sharding == workload::TableSharding::row
                         ? fmt::format("table-sharding row (there are fewer tables than {} ranks)", plan.table_ranks())
                         : std::string("table-sharding table (every rank can have some)"));
  }
  if (!request.micro_batch && job.is_inference()) {
    chosen.push_back(fmt::format("micro-batch {} ({})", plan.micro_batch, why_this_micro_batch(job, plan, fits)));
  }
  if (job.is_inference()) { return chosen; }
  if (!request.recompute) {
    chosen.push_back(fmt::format("recompute {} ({})", config::enum_name(plan.recompute),
                                 fits ? "the least that fits" : "nothing fits"));
  }
  if (!request.micro_batch) {
    chosen.push_back(fmt::format("micro-batch {} ({})", plan.micro_batch, why_this_micro_batch(job, plan, fits)));
  }
  if (!request.schedule) { chosen.push_back(fmt::format("schedule {}", config::enum_name(plan.schedule))); }
  if (!request.dp_overlap) {
    const bool in_turns = plan.dp_overlap && !plan.reduces_under_backward();
    chosen.push_back(in_turns ? "dp-overlap off (what is offloaded is fetched for the last backward)"
                              : fmt::format("dp-overlap {} (the stack's habit)", plan.dp_overlap ? "on" : "off"));
  }
  return chosen;
}

// What was typed and would change nothing. (Of a search, which tries other degrees, it would.)
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

// Experts that are not shared out over ranks are sliced as everything else is; those that are stay whole.
std::int64_t usual_etp(const parallel::Plan& plan, const workload::Model& model) {
  const bool sliced = model.has_experts() && plan.ep == 1 && plan.tp >= 1 && model.experts.ffn % plan.tp == 0;
  return sliced ? plan.tp : 1;
}

// Whole tables where they go round, else rows.
workload::TableSharding usual_sharding(const parallel::Plan& plan, const workload::Model& model) {
  const std::int64_t ranks = plan.tables.ranks > 0 ? plan.tables.ranks : plan.dp;
  return workload::usual_sharding(model.recommender, plan.tables, ranks);
}

// A product of degrees that a user typed may be beyond counting; problems() says so.
std::int64_t usual_dp(const parallel::Plan& plan, std::int64_t devices) {
  const double product = static_cast<double>(plan.tp) * static_cast<double>(plan.cp) * static_cast<double>(plan.pp);
  const bool countable = product >= 1.0 && product <= static_cast<double>(devices);
  return std::max<std::int64_t>(1, countable ? devices / (plan.tp * plan.cp * plan.pp) : 1);
}

// The plan as given; the rest is at its first guess.
parallel::Plan plan_of(const Request& request, const workload::Model& model, std::int64_t devices,
                       const hardware::Stack& stack) {
  parallel::Plan plan = parallel::whole_plan(request);
  const auto unless = [](const auto& given, auto& choice, auto usual) {
    if (!given) { choice = usual; }
  };
  const bool serves = request.task == parallel::Task::inference;
  const auto usual_schedule = plan.vpp > 1 ? parallel::ScheduleKind::interleaved : parallel::ScheduleKind::one_f_one_b;
  unless(request.etp, plan.etp, usual_etp(plan, model));
  unless(request.dp, plan.dp, usual_dp(plan, devices));
  unless(request.sequence_parallel, plan.sequence_parallel, model.has_experts() && plan.tp > 1);
  unless(request.zero, plan.zero, serves ? 0 : 1);
  unless(request.schedule, plan.schedule, usual_schedule);
  unless(request.dp_overlap, plan.dp_overlap, stack.overlap.gradient_reduce);
  if (model.is_recommender() && !gives_sharding(request)) { plan.tables.sharding = usual_sharding(plan, model); }
  return plan;
}

}  // namespace

Result<SettledPlan> settle(const Request& request, const workload::Model& model, const hardware::Cluster& cluster,
                           const hardware::Stack& stack) {
  const parallel::Job job = job_of(request, model);
  parallel::Plan plan = plan_of(request, model, cluster.devices, stack);
  auto found = parallel::problems(model, job, plan, cluster.devices);
  for (auto& problem : parallel::problems(cluster, plan)) { found.push_back(std::move(problem)); }
  for (auto& problem : idle_flags(request)) { found.push_back(std::move(problem)); }
  if (!found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  Settling settling(request, model, cluster, stack, plan);
  const bool fits = settling.run();
  return SettledPlan{settling.plan(), chosen_fields(request, job, settling.plan(), model.has_experts(), fits)};
}

}  // namespace orrery::estimate
