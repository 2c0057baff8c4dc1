#include "orrery/api/expanded_search.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/api/plan_evaluator.hpp"
#include "orrery/api/planning.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/explore/search.hpp"

namespace orrery::api {

namespace {

// Prices plans of one job with expansion.
class Expander {
 public:
  Expander(const Inputs& inputs, const parallel::Job& job, study::ExpansionRule rule)
      : inputs_(inputs), job_(job), rule_(rule), roomy_(with_both_tiers(inputs.cluster, inputs.stack.memory_reserve)) {
    both_ = std::make_unique<estimate::Estimator>(inputs_.model, roomy_, inputs_.stack, job_);
  }

  [[nodiscard]] Expanded price(const parallel::Plan& plan, std::int64_t global_batch) {
    job_.global_batch = global_batch;
    both_->set_global_batch(global_batch);
    const Bytes capacity = inputs_.cluster.accelerator.memory * (1.0 - inputs_.stack.memory_reserve);
    return expanded(both_->estimate(plan), inputs_.cluster, capacity, rule_, [&](BytesPerSecond rate) {
      hardware::Cluster slower = roomy_;
      slower.accelerator.memory_bandwidth = rate;
      return estimate::Estimator(inputs_.model, slower, inputs_.stack, job_).estimate(plan);
    });
  }

 private:
  const Inputs& inputs_;
  parallel::Job job_;
  study::ExpansionRule rule_;
  hardware::Cluster roomy_;
  std::unique_ptr<estimate::Estimator> both_;
};

// Open choices of a plan depend on how much memory there is: those of the first tier with 0, 1, 2, 4, … GiB and all of
// the second one. Each plan once.
Result<std::vector<parallel::Plan>> plans_with_expansion(const estimate::Request& request, const Inputs& in,
                                                         const parallel::Job& job) {
  std::vector<Bytes> extras{Bytes(0)};
  for (Bytes extra = 1_GiB; extra < in.cluster.second_tier.memory; extra *= 2.0) { extras.push_back(extra); }
  extras.push_back(in.cluster.second_tier.memory);
  std::vector<parallel::Plan> plans;
  for (const Bytes extra : extras) {
    hardware::Cluster cluster = in.cluster;
    cluster.second_tier.memory = extra;
    cluster = with_both_tiers(cluster, in.stack.memory_reserve);
    estimate::Estimator estimator(in.model, cluster, in.stack, job);
    ORRERY_TRY(resolved, estimate::resolve(request, in.model, cluster, in.stack, estimator));
    if (std::find(plans.begin(), plans.end(), resolved.plan) == plans.end()) { plans.push_back(resolved.plan); }
  }
  return plans;
}

bool is_better(const Expanded& one, const std::optional<Expanded>& best) {
  const auto rank = [](const Expanded& e) { return std::pair(!e.estimate.feasible, e.estimate.step_time); };
  return !best || rank(one) < rank(*best);
}

// The machine of the bound. Rates of a kernel: at most the faster tier's if its data are read one after the other, and
// at most both together.
hardware::Cluster fastest_machine(const Inputs& inputs, study::ExpansionRule rule) {
  hardware::Cluster cluster = with_both_tiers(inputs.cluster, inputs.stack.memory_reserve);
  auto& accelerator = cluster.accelerator;
  const BytesPerSecond second = cluster.second_tier.bandwidth / accelerator.memory_efficiency;
  accelerator.memory_bandwidth = rule == study::ExpansionRule::serial ? max(accelerator.memory_bandwidth, second)
                                                                      : accelerator.memory_bandwidth + second;
  cluster.second_tier.memory = Bytes(0);
  return cluster;
}

// The K best plans of the bound, K = 16, 64, 256, …, until no other plan can be better.
constexpr std::size_t kFirstPlans = 16;
constexpr std::size_t kMorePlans = 4;

}  // namespace

Result<Expanded> expanded_plan(const estimate::Request& request, const Inputs& inputs, study::ExpansionRule rule) {
  const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
  ORRERY_TRY(plans, plans_with_expansion(request, inputs, job));
  Expander expander(inputs, job, rule);
  std::optional<Expanded> best;
  for (const parallel::Plan& plan : plans) {
    auto found = expander.price(plan, job.global_batch);
    if (is_better(found, best)) { best = std::move(found); }
  }
  return std::move(*best);
}

Result<Expanded> best_expanded(const std::string& data_directory, const PlanRequest& request, Inputs inputs,
                               study::ExpansionRule rule) {
  ORRERY_TRY(problem, problem_of(data_directory, request, std::move(inputs)));
  const Inputs in = problem.inputs;
  problem.inputs.cluster = fastest_machine(in, rule);
  ORRERY_TRY(space, space_of(request, problem));
  if (space.points() == 0) {
    if (auto mistakes = fixed_problems(request, problem); !mistakes.empty()) {
      return tl::make_unexpected(Failure{std::move(mistakes)});
    }
  }
  explore::SearchOptions options = search_options(request);
  options.among = explore::Among::plans;
  Expander expander(in, space.job(), rule);
  std::optional<Expanded> best;
  std::size_t priced = 0;
  for (options.top = kFirstPlans;; options.top *= kMorePlans) {
    const auto found = explore::search(
        explore::walks_of(space), [&] { return std::make_unique<PlanEvaluator>(problem.inputs, space); }, options);
    for (; priced < found.best.size(); ++priced) {
      const auto& candidate = found.best[priced];
      if (best && best->estimate.feasible && !(candidate.price.step_time < best->estimate.step_time)) {
        return std::move(*best);
      }
      auto one = expander.price(candidate.point.plan, candidate.point.global_batch);
      if (is_better(one, best)) { best = std::move(one); }
    }
    if (found.best.size() < options.top) { break; }
  }
  if (best && best->estimate.feasible) { return std::move(*best); }
  const std::string why = fmt::format("{} on {} devices of {}: no plan fits in both tiers", in.model.name,
                                      in.cluster.devices, in.cluster.name);
  return tl::make_unexpected(Failure{{{{}, why}}, true});
}

}  // namespace orrery::api
