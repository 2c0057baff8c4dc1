#include "orrery/api/serve.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/serving/deployment.hpp"
#include "orrery/serving/summary.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::api {

namespace {

using serving::BuiltPool;
using serving::Deployment;
using serving::Scenario;

struct Prepared {
  std::unique_ptr<Deployment> deployment;
  std::vector<results::ServiceLevel> slo;
};

template <class T>
Result<T> at_flag(Result<T> result, const char* flag) {
  if (result) { return result; }
  for (auto& diagnostic : result.error().diagnostics) {
    if (diagnostic.place == Place{}) { diagnostic.place = {"", 0, 0, flag}; }
  }
  return result;
}

Result<serving::EngineSettings> engine_of(const std::string& data_directory, const ServeRequest& request) {
  ORRERY_TRY(profile, serving::load_engine(data_directory, request.scenario.engine));
  return config::Described<serving::EngineSettings>::record().read_over(std::move(profile), request.engine);
}

Result<std::unique_ptr<BuiltPool>> pool_of(const std::string& data_directory, const ServeRequest& request,
                                           const Deployment& deployment, const serving::Degrees& degrees,
                                           const char* name) {
  const Scenario& s = request.scenario;
  const hardware::Catalogue catalogue(data_directory);
  serving::PoolInputs inputs;
  inputs.name = name;
  inputs.model = &deployment.model;
  inputs.degrees = degrees;
  inputs.prefill_only = inputs.name == "prefill";
  ORRERY_TRY(settings, engine_of(data_directory, request));
  ORRERY_TRY(stack, at_flag(catalogue.stack(s.stack.empty() ? settings.stack : s.stack), "--stack"));
  const std::string& cluster = inputs.prefill_only && !s.prefill_cluster.empty() ? s.prefill_cluster : s.cluster;
  ORRERY_TRY(machine, at_flag(catalogue.cluster(cluster, degrees.gpus_of_engine()), "--cluster"));
  inputs.settings = std::move(settings);
  inputs.stack = std::move(stack);
  inputs.cluster = std::move(machine);
  inputs.job.precision = s.precision;
  inputs.job.formats = {s.weight_format, s.kv_format, s.attention_precision};
  return BuiltPool::build(std::move(inputs));
}

Result<Prepared> prepared(const std::string& data_directory, const ServeRequest& request) {
  const Scenario& s = request.scenario;
  auto wrong = serving::problems(s);
  if (!wrong.empty()) { return tl::make_unexpected(Failure{std::move(wrong)}); }
  Prepared result;
  if (!s.slo.empty()) {
    ORRERY_TRY(slo, serving::read_slo(s.slo));
    result.slo = std::move(slo);
  }
  result.deployment = std::make_unique<Deployment>();
  Deployment& deployment = *result.deployment;
  ORRERY_TRY(model, at_flag(workload::load_model(data_directory, s.model, s.as), "--model"));
  deployment.model = std::move(model);
  if (s.disaggregated()) {
    ORRERY_TRY(prefill, pool_of(data_directory, request, deployment, s.prefill_degrees(), "prefill"));
    deployment.pools.push_back(std::move(prefill));
  }
  ORRERY_TRY(pool, pool_of(data_directory, request, deployment, s.degrees(), s.disaggregated() ? "decode" : "engine"));
  deployment.pools.push_back(std::move(pool));
  deployment.fleet.routing = s.routing;
  deployment.fleet.signal_age = serving::ticks_of(s.signal_age);
  deployment.fleet.seed = static_cast<std::uint64_t>(s.seed);
  deployment.fleet.keep_going = request.keep_going;
  if (s.disaggregated()) {
    deployment.fleet.transfer =
        serving::transfer_of(*deployment.pools.front(), *deployment.pools.back(), s.transfer_by_layer);
  }
  deployment.request_overhead_s = deployment.pools.front()->inputs().settings.request_overhead.value();
  return result;
}

Result<results::Serving> run(const Prepared& prepared, const Scenario& scenario, bool each) {
  ORRERY_TRY(load, serving::workload_of(scenario));
  ORRERY_TRY(result, serving::simulate(*prepared.deployment, load, prepared.slo, scenario.warm_up, each));
  result.load = serving::load_text(scenario);
  return result;
}

// A probe of a search at another load.
Result<results::ServingPoint> probe(const Prepared& prepared, Scenario scenario, double load) {
  if (scenario.concurrency) {
    scenario.concurrency = std::max<std::int64_t>(1, std::llround(load));
  } else {
    scenario.rate = load;
  }
  ORRERY_TRY(result, run(prepared, scenario, false));
  return results::ServingPoint{load, std::move(result)};
}

double load_of(const Scenario& scenario) {
  if (scenario.concurrency) { return static_cast<double>(*scenario.concurrency); }
  return scenario.rate.value_or(1.0);
}

}  // namespace

Result<results::Serving> serve(const std::string& data_directory, const ServeRequest& request) {
  ORRERY_TRY(ready, prepared(data_directory, request));
  return run(ready, request.scenario, request.each);
}

Result<results::ServingCurve> serve_sweep(const std::string& data_directory, const ServeRequest& request) {
  ORRERY_TRY(ready, prepared(data_directory, request));
  results::ServingCurve curve;
  curve.axis = request.scenario.concurrency ? "concurrency" : "rate";
  constexpr int kBelow = 4, kAbove = 4;
  const double middle = load_of(request.scenario);
  for (int step = -kBelow; step <= kAbove; ++step) {
    double load = middle * std::exp2(step);
    if (request.scenario.concurrency) {
      load = std::max(1.0, std::round(load));
      if (!curve.points.empty() && curve.points.back().load == load) { continue; }
    }
    ORRERY_TRY(point, probe(ready, request.scenario, load));
    if (!ready.slo.empty() && point.result.meets_slo()) { curve.best = curve.points.size(); }
    curve.points.push_back(std::move(point));
  }
  return curve;
}

Result<results::ServingCurve> serve_goodput(const std::string& data_directory, const ServeRequest& request) {
  ORRERY_TRY(ready, prepared(data_directory, request));
  if (ready.slo.empty()) {
    return fail({{}, 0, 0, "--slo"},
                "is missing: --goodput needs a service level, for example \"ttft_p99=2s tpot_p99=50ms\"");
  }
  results::ServingCurve curve;
  const bool counts = request.scenario.concurrency.has_value();
  curve.axis = counts ? "concurrency" : "rate";
  const auto holds = [&](double load) -> Result<bool> {
    ORRERY_TRY(point, probe(ready, request.scenario, load));
    const bool good = point.result.meets_slo();
    curve.points.push_back(std::move(point));
    return good;
  };
  constexpr double kResolution = 1.01, kLowest = 1.0 / 4096, kHighest = 4096;
  const double start = load_of(request.scenario);
  double good = 0, bad = 0, load = start;
  // Doubles or halves until one load is good and twice that is not.
  while (good == 0 || bad == 0) {
    ORRERY_TRY(is_good, holds(load));
    (is_good ? good : bad) = load;
    load = is_good ? load * 2 : load / 2;
    if (counts) { load = std::max(1.0, std::round(load)); }
    const bool lowest = load < start * kLowest || (counts && bad == 1.0);
    if ((good == 0 && lowest) || (bad == 0 && load > start * kHighest)) { break; }
  }
  if (good == 0) {
    const auto& lowest = curve.points.back();
    std::string reached;
    for (const auto& level : lowest.result.slo) {
      if (level.holds()) { continue; }
      reached +=
          fmt::format("{}{}_{} {} (limit {})", reached.empty() ? "" : ", ", level.metric, level.measure,
                      config::format_seconds(Seconds(level.reached_s)), config::format_seconds(Seconds(level.limit_s)));
    }
    Failure failure{{{{{}, 0, 0, "--slo"},
                      fmt::format("no load meets it; nearest, at {} {}: {}", fmt::format("{:.4g}", lowest.load),
                                  counts ? "clients" : "requests/s", reached)}}};
    failure.answer_is_no = true;
    return tl::make_unexpected(std::move(failure));
  }
  while (bad > 0 && (counts ? bad - good > 1.0 : bad / good > kResolution)) {
    const double middle = counts ? std::floor((good + bad) / 2) : std::sqrt(good * bad);
    ORRERY_TRY(is_good, holds(middle));
    (is_good ? good : bad) = middle;
  }
  std::sort(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) { return a.load < b.load; });
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (curve.points[i].load == good) { curve.best = i; }
  }
  return curve;
}

}  // namespace orrery::api
