#include "orrery/api/serve.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/api/serve_run.hpp"
#include "orrery/core/error.hpp"

namespace orrery::api {

namespace {

// Accelerators of stages that are not known, each at its field.
Result<void> check_accelerators(ServingInputs& inputs, const std::vector<serving::Stage>& stages) {
  std::vector<Diagnostic> found;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    if (stages[k].accelerator.empty()) { continue; }
    const auto named = inputs.accelerator(stages[k].accelerator);
    if (named) { continue; }
    for (Diagnostic diagnostic : named.error().diagnostics) {
      if (diagnostic.place == Place{}) { diagnostic.place = serving::place_of(stages[k], k, "accelerator"); }
      found.push_back(std::move(diagnostic));
    }
  }
  if (!found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  return {};
}

// Settings that need experts on several ranks, where no pool has them.
Result<void> check_expert_settings(const serving::Deployment& deployment) {
  const auto any = [&](auto is_so) { return std::any_of(deployment.pools.begin(), deployment.pools.end(), is_so); };
  const std::string degrees = deployment.pools.size() > 1 ? "--ep or --prefill-ep" : "--ep";
  const serving::EngineSettings& settings = deployment.pools.front()->inputs().settings;  // pools have the same
  if (settings.redundant_experts > 0 && !any([](const auto& pool) { return pool->redundant_experts() > 0; })) {
    return fail({{}, 0, 0, "--redundant-experts"},
                fmt::format("extra copies of experts need a model with experts, and {} above 1", degrees));
  }
  std::int64_t most = 1;
  for (const auto& pool : deployment.pools) { most = std::max(most, pool->inputs().degrees.ep); }
  if (most > 1 && settings.expert_imbalance > static_cast<double>(most)) {
    return fail({{}, 0, 0, "--expert-imbalance"},
                fmt::format("{} is more than ep {}: one rank gets all tokens then", settings.expert_imbalance, most));
  }
  for (const bool decodes : {false, true}) {
    const std::int64_t least = decodes ? settings.two_batch_decodes : settings.two_batch_prompts;
    if (least == 0 || any([&](const auto& pool) { return pool->overlaps(decodes); })) { continue; }
    const std::int64_t longest = decodes ? settings.max_sequences : settings.max_batched_tokens;
    const Place place{{}, 0, 0, decodes ? "--two-batch-decodes" : "--two-batch-prompts"};
    if (settings.scheduler == serving::Scheduler::static_batch) {
      return fail(place, "static batches are not divided; choose --scheduler mixed or prefill-first");
    }
    if (least > longest) {
      return fail(place, fmt::format("must be at most {} ({}), not {}", longest,
                                     decodes ? "--max-sequences" : "--max-batched-tokens", least));
    }
    return fail(place,
                fmt::format("two batches need a model with experts, and {} and attention dp above 1 in the pool that "
                            "runs them: no iteration is divided",
                            degrees));
  }
  return {};
}

Result<PreparedServing> prepared(const std::string& data_directory, const ServeRequest& request) {
  auto wrong = serving::problems(request.scenario);
  if (!wrong.empty()) { return tl::make_unexpected(Failure{std::move(wrong)}); }
  ORRERY_TRY(inputs, ServingInputs::read(data_directory, request, uses_of(request.scenario)));
  if (auto ok = check_accelerators(*inputs, request.scenario.stages); !ok) { return tl::make_unexpected(ok.error()); }
  const auto& scenario = request.scenario;
  const auto shared_out = check_expert_degree(inputs->model(), scenario.ep, "--ep").and_then([&] {
    return check_expert_degree(inputs->model(), scenario.prefill_ep.value_or(1), "--prefill-ep");
  });
  if (!shared_out) { return tl::make_unexpected(shared_out.error()); }
  ORRERY_TRY(ready, prepare_serving(*inputs, request));
  if (auto ok = check_expert_settings(*ready.deployment); !ok) { return tl::make_unexpected(ok.error()); }
  return ready;
}

ServeRequest with_scenario(ServeRequest request, const serving::Scenario& scenario) {
  request.scenario = scenario;
  return request;
}

}  // namespace

Result<results::Serving> serve(const std::string& data_directory, const ServeRequest& request) {
  ORRERY_TRY(ready, prepared(data_directory, request));
  ORRERY_TRY(result, run_serving(ready, request.scenario, request.each));
  ORRERY_TRY(ranges, serving_ranges(data_directory));
  // An open loop below saturation has the throughput that arrives; measured ones are of closed loops.
  if (!request.scenario.concurrency) {
    std::erase_if(ranges, [](const auto& r) { return r.metric == "throughput"; });
  }
  result.ranges = std::move(ranges);
  return result;
}

Result<results::ServingCurve> serve_sweep(const std::string& data_directory, const ServeRequest& request) {
  ORRERY_TRY(scenario, with_own_rate(request.scenario));
  ORRERY_TRY(ready, prepared(data_directory, with_scenario(request, scenario)));
  results::ServingCurve curve;
  curve.axis = request.scenario.concurrency ? "concurrency" : "rate";
  constexpr int kBelow = 4, kAbove = 4;
  const double middle = load_of(scenario);
  for (int step = -kBelow; step <= kAbove; ++step) {
    double load = middle * std::exp2(step);
    if (request.scenario.concurrency) {
      load = std::clamp(std::round(load), 1.0, most_clients(scenario));
      if (!curve.points.empty() && curve.points.back().load == load) { continue; }
    }
    ORRERY_TRY(trial, load_trial(ready, scenario, load, Stops::at_the_end));
    if (!ready.slo.empty() && trial.meets_slo()) { curve.best = curve.points.size(); }
    curve.points.push_back({load, std::move(*trial.result)});
  }
  return curve;
}

Result<results::ServingCurve> serve_goodput(const std::string& data_directory, const ServeRequest& request) {
  ORRERY_TRY(scenario, with_own_rate(request.scenario));
  ORRERY_TRY(ready, prepared(data_directory, with_scenario(request, scenario)));
  if (ready.slo.empty() && scenario.concurrency) {
    return fail({{}, 0, 0, "--slo"},
                "is missing: without a service level no number of clients is too high; for example \"ttft_p99=2s "
                "tpot_p99=50ms\"");
  }
  return goodput_curve(ready, scenario);
}

}  // namespace orrery::api
