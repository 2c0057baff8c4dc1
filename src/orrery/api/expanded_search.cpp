#include "orrery/api/expanded_search.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/api/not_searched.hpp"
#include "orrery/api/plan_evaluator.hpp"
#include "orrery/api/planning.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/explore/search.hpp"

namespace orrery::api {

namespace {

// Open choices of a plan depend on how much memory there is: those of the first tier with 0, 1, 2, 4, … GiB and all of
// the second one. Each plan once.
Result<std::vector<estimate::ResolvedPlan>> plans_with_expansion(const estimate::Request& request, const Inputs& in,
                                                                 const parallel::Job& job) {
  std::vector<Bytes> extras{Bytes(0)};
  for (Bytes extra = 1_GiB; extra < in.cluster.second_tier.memory; extra *= 2.0) { extras.push_back(extra); }
  extras.push_back(in.cluster.second_tier.memory);
  std::vector<estimate::ResolvedPlan> plans;
  for (const Bytes extra : extras) {
    hardware::Cluster cluster = in.cluster;
    cluster.second_tier.memory = extra;
    cluster = with_both_tiers(cluster, in.stack.memory_reserve);
    estimate::Estimator estimator(in.model, cluster, in.stack, job);
    ORRERY_TRY(resolved, estimate::resolve(request, in.model, cluster, in.stack, estimator));
    const auto is_same = [&](const auto& other) { return other.plan == resolved.plan; };
    if (std::none_of(plans.begin(), plans.end(), is_same)) { plans.push_back(std::move(resolved)); }
  }
  return plans;
}

bool is_better(const results::Estimate& one, const results::Estimate& other) {
  const auto rank = [](const results::Estimate& e) { return std::pair(!e.feasible, e.step_time); };
  return rank(one) < rank(other);
}

// The machine of the bound. Rates of a kernel: at most the faster tier's if its data are read one after the other, and
// at most both together.
hardware::Cluster fastest_machine(const Inputs& inputs, hardware::ExpansionRule rule) {
  hardware::Cluster cluster = with_both_tiers(inputs.cluster, inputs.stack.memory_reserve);
  auto& accelerator = cluster.accelerator;
  const BytesPerSecond second = cluster.second_tier.bandwidth / accelerator.memory_efficiency;
  accelerator.memory_bandwidth = rule == hardware::ExpansionRule::serial ? max(accelerator.memory_bandwidth, second)
                                                                         : accelerator.memory_bandwidth + second;
  cluster.second_tier.memory = Bytes(0);
  return cluster;
}

// The K best plans of the bound, K = 16, 64, 256, …, until no other plan can be better.
constexpr std::size_t kFirstPlans = 16;
constexpr std::size_t kMorePlans = 4;

}  // namespace

estimate::Request without_expansion(estimate::Request request) {
  request.expansion.reset();
  request.expansion_classes.clear();
  return request;
}

Result<EstimateAnswer> expanded_plan(const estimate::Request& request, const Inputs& inputs, estimate::Detail detail) {
  const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
  ORRERY_TRY(plans, plans_with_expansion(request, inputs, job));
  Expander expander(inputs, job, expansion_of(request));
  std::optional<EstimateAnswer> best;
  for (auto& one : plans) {
    auto found = expander.price(one.plan, job.global_batch, detail);
    if (!best || is_better(found, best->estimate)) { best = EstimateAnswer{std::move(found), std::move(one.chosen)}; }
  }
  return std::move(*best);
}

std::vector<Diagnostic> not_with_expansion(const PlanRequest& request) {
  std::vector<Diagnostic> found;
  const auto refuse = [&](bool is_asked, const char* flag, const char* why) {
    if (is_asked) { found.push_back({{"", 0, 0, flag}, fmt::format("is not valid with --expansion, {}", why)}); }
  };
  refuse(request.objective != results::Objective::step_time, "--objective", "which finds the shortest step");
  refuse(request.device_counts.size() > 1, "--device-counts", "which takes one number of devices");
  refuse(request.within.has_value(), "--within", "which finds the shortest step");
  refuse(request.explain, "--explain", "whose neighbouring plans are not priced");
  refuse(request.what_if, "--what-if", "whose other machines are not priced");
  return found;
}

namespace {

// Devices' degrees: plans with the same ones are one layout.
std::string layout_of(const parallel::Plan& p) {
  return fmt::format("{} {} {} {} {} {}", p.tp, p.cp, p.pp, p.ep, p.etp, p.dp);
}

// Plans with expansion in the order of their times; of each layout the best one, unless all variants are asked for.
class Ranking {
 public:
  explicit Ranking(const PlanRequest& request) : top_(request.top), variants_(request.variants) {}

  void add(const parallel::Plan& plan, results::Estimate one) {
    if (!one.feasible) { return; }
    const std::string layout = layout_of(plan);
    const auto same = std::find_if(list_.begin(), list_.end(), [&](const auto& e) { return e.layout == layout; });
    if (!variants_ && same != list_.end()) {
      if (!is_better(one, same->estimate)) { return; }
      list_.erase(same);
    }
    const auto place = std::upper_bound(list_.begin(), list_.end(), one,
                                        [](const auto& a, const auto& b) { return is_better(a, b.estimate); });
    list_.insert(place, {layout, std::move(one)});
  }
  // Whether no plan of this bound, or of a later one, belongs to the best.
  [[nodiscard]] bool is_complete(Seconds bound) const {
    return list_.size() >= top_ && !(bound < list_[top_ - 1].estimate.step_time);
  }
  [[nodiscard]] std::vector<results::Estimate> best() {
    std::vector<results::Estimate> best;
    for (std::size_t i = 0; i < std::min(top_, list_.size()); ++i) { best.push_back(std::move(list_[i].estimate)); }
    return best;
  }

 private:
  struct Entry {
    std::string layout;
    results::Estimate estimate;
  };
  std::size_t top_;
  bool variants_;
  std::vector<Entry> list_;
};

}  // namespace

Result<results::PlanSearch> expanded_search(const std::string& data_directory, const PlanRequest& request,
                                            Inputs inputs) {
  if (auto wrong = not_with_expansion(request); !wrong.empty()) {
    return tl::make_unexpected(Failure{std::move(wrong)});
  }
  const ExpansionOptions expansion = expansion_of(request.job);
  ORRERY_TRY(problem, problem_of(data_directory, request, std::move(inputs)));
  const Inputs in = problem.inputs;
  problem.inputs.cluster = fastest_machine(in, expansion.rule);
  ORRERY_TRY(space, space_of(request, problem));
  if (space.points() == 0) {
    if (auto mistakes = fixed_problems(request, problem); !mistakes.empty()) {
      return tl::make_unexpected(Failure{std::move(mistakes)});
    }
  }
  explore::SearchOptions options = search_options(request);
  options.among = explore::Among::plans;
  options.front = false;
  Expander expander(in, space.job(), expansion);
  Ranking ranking(request);
  results::PlanSearch answer;
  std::size_t priced = 0;
  bool is_complete = false;
  for (options.top = kFirstPlans; !is_complete; options.top *= kMorePlans) {
    const auto found = explore::search(
        explore::walks_of(space), [&] { return std::make_unique<PlanEvaluator>(problem.inputs, space); }, options);
    answer.space = found.space;
    for (; priced < found.best.size(); ++priced) {
      const auto& candidate = found.best[priced];
      is_complete = ranking.is_complete(candidate.price.step_time);
      if (is_complete) { break; }
      ranking.add(candidate.point.plan, expander.price(candidate.point.plan, candidate.point.global_batch));
    }
    if (found.best.size() < options.top) { break; }
  }
  answer.without_effect = space.without_effect();
  answer.not_searched = not_searched(in, space.job(), request, space);
  for (auto& one : ranking.best()) { answer.best.push_back(with_uncertainty(std::move(one), in, space.job())); }
  if (request.front) { answer.front = answer.best; }
  if (answer.best.empty()) {
    answer.nothing_fits = fmt::format("{} on {} devices of {}: no plan fits in both tiers", in.model.name,
                                      in.cluster.devices, in.cluster.name);
  }
  return answer;
}

}  // namespace orrery::api
