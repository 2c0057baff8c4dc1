#include "orrery/api/serve_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "orrery/api/inputs.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/spread.hpp"
#include "orrery/serving/growth.hpp"
#include "orrery/serving/summary.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::api {

namespace {

using serving::BuiltPool;
using serving::Deployment;
using serving::Scenario;

template <class T>
Result<T> at_flag(Result<T> result, const char* flag) {
  if (result) { return result; }
  for (auto& diagnostic : result.error().diagnostics) {
    if (diagnostic.place == Place{}) { diagnostic.place = {"", 0, 0, flag}; }
  }
  return result;
}

Result<std::unique_ptr<BuiltPool>> pool_of(ServingInputs& shared, const Scenario& s, const Deployment& deployment,
                                           const serving::Degrees& degrees, const char* name,
                                           const serving::EngineSettings& settings) {
  serving::PoolInputs inputs;
  inputs.name = name;
  inputs.model = &deployment.model;
  inputs.degrees = degrees;
  inputs.prefill_only = inputs.name == "prefill";
  inputs.sends = s.disaggregated();
  inputs.has_own_tp = inputs.prefill_only && s.prefill_tp;
  inputs.has_own_ep = inputs.prefill_only && s.prefill_ep;
  inputs.has_own_attention_dp = inputs.prefill_only && s.prefill_attention_dp;
  const bool has_own_cluster = inputs.prefill_only && !s.prefill_cluster.empty();
  ORRERY_TRY(machine, at_flag(shared.cluster(has_own_cluster ? s.prefill_cluster : s.cluster, degrees.gpus_of_engine()),
                              has_own_cluster ? "--prefill-cluster" : "--cluster"));
  inputs.settings = settings;
  // An answer is one message at least.
  if (s.trace.empty()) { inputs.settings.stream_interval = std::min(settings.stream_interval, s.osl); }
  inputs.stack = shared.stack();
  inputs.cluster = std::move(machine);
  if (s.usd_per_device_hour) { inputs.cluster.usd_per_device_hour = *s.usd_per_device_hour; }
  inputs.tiers = {{{s.host_cache, s.host_cache_bandwidth, s.host_cache_latency},
                   {s.remote_cache, s.remote_cache_bandwidth, s.remote_cache_latency}}};
  inputs.job.precision = s.precision;
  inputs.job.formats = {s.weight_format, s.kv_format, s.attention_precision};
  inputs.job.formats.quantized =
      workload::quantized_layers(*inputs.model, s.quantized, s.precision, inputs.job.formats);
  return BuiltPool::build(std::move(inputs));
}

// How long requests must arrive so that a load that cannot be sustained shows: the queue of a load r times too high
// grows by r - 1 seconds a second, and reaches a limit on TTFT after limit / (r - 1). Of the times of answers: twenty
// times.
double horizon_s(const std::vector<results::ServiceLevel>& slo, double output_tokens) {
  constexpr double kQueues = 40, kAnswers = 20;
  double horizon = 0;
  for (const auto& level : slo) {
    const double of_level = level.metric == "tpot" ? kAnswers * output_tokens * level.limit_s : kQueues * level.limit_s;
    horizon = std::max(horizon, of_level);
  }
  return horizon;
}

constexpr double kFewestRequests = 1000, kMostOfProbe = 200'000;

// Requests of a probe whose number is not given.
std::int64_t requests_of_probe(const Scenario& scenario, const std::vector<results::ServiceLevel>& slo, double load) {
  const double wanted = load * horizon_s(slo, static_cast<double>(scenario.osl));
  const std::int64_t sequences = serving::kMostSequences / scenario.branches;
  const double most = std::min(kMostOfProbe, static_cast<double>(sequences));
  return std::llround(std::clamp(wanted, std::min(kFewestRequests, most), most));
}

}  // namespace

Result<std::unique_ptr<ServingInputs>> ServingInputs::read(const std::string& data_directory,
                                                           const ServeRequest& request, const EngineUses& uses) {
  const Scenario& s = request.scenario;
  std::unique_ptr<ServingInputs> inputs(new ServingInputs(data_directory));
  ORRERY_TRY(profile, serving::load_engine(data_directory, s.engine));
  ORRERY_TRY(engine,
             config::Described<serving::EngineSettings>::record().read_over(std::move(profile), request.engine));
  ORRERY_TRY(stack, at_flag(inputs->catalogue_.stack(s.stack.empty() ? engine.stack : s.stack), "--stack"));
  ORRERY_TRY(model, at_flag(workload::load_model(data_directory, s.model, s.as), "--model"));
  EngineUses used = uses;
  used.experts = model.has_experts();
  used.ep = uses.ep && used.experts;
  const bool has_tiers = s.host_cache > Bytes(0) || s.remote_cache > Bytes(0);
  used.windows = uses.single && !has_tiers && model.sliding_window > 0 && model.global_every > 0;
  if (auto ok = check_effects(engine, request.engine, used); !ok) { return tl::make_unexpected(ok.error()); }
  inputs->engine_ = std::move(engine);
  inputs->stack_ = std::move(stack);
  inputs->model_ = std::move(model);
  return inputs;
}

Result<hardware::Accelerator> ServingInputs::accelerator(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return catalogue_.accelerator(name);
}

constexpr hardware::UnlikeNodes kUnlike{"serving"};

Result<hardware::Cluster> ServingInputs::cluster(const std::string& name, std::int64_t devices) {
  const std::lock_guard lock(mutex_);
  if (const auto known = clusters_.find({name, devices}); known != clusters_.end()) { return known->second; }
  // An engine takes the first devices, but together engines may use all: the whole cluster must have nodes of one kind.
  if (auto whole = catalogue_.cluster(name, 0, kUnlike); !whole) { return tl::make_unexpected(whole.error()); }
  ORRERY_TRY(cluster, catalogue_.cluster(name, devices, kUnlike));
  clusters_.emplace(std::pair{name, devices}, cluster);
  return cluster;
}

namespace {

// Stages outside the engines, on the machines that they name.
Result<void> add_stages(ServingInputs& inputs, const Scenario& scenario, Deployment& deployment) {
  for (const serving::Stage& stage : scenario.stages) {
    if (stage.accelerator.empty()) {
      serving::add_stage(deployment, stage, nullptr);
      continue;
    }
    ORRERY_TRY(named, inputs.accelerator(stage.accelerator));
    serving::add_stage(deployment, stage, &named);
  }
  return {};
}

}  // namespace

Result<PreparedServing> prepare_serving(ServingInputs& inputs, const ServeRequest& request,
                                        const serving::EngineSettings* settings) {
  const Scenario& s = request.scenario;
  auto wrong = serving::problems(s);
  if (!wrong.empty()) { return tl::make_unexpected(Failure{std::move(wrong)}); }
  const serving::EngineSettings& engine = settings != nullptr ? *settings : inputs.engine();
  if (s.disaggregated() && engine.scheduler == serving::Scheduler::static_batch) {
    return fail({{}, 0, 0, "--prefill-replicas"},
                "is not valid with the static scheduler: a batch generates where its prompts were computed");
  }
  if (s.branches > 1 && engine.scheduler == serving::Scheduler::static_batch) {
    return fail({{}, 0, 0, "--branches"},
                "is not valid with the static scheduler: branches need blocks of the prefix cache");
  }
  PreparedServing result;
  if (!s.slo.empty()) {
    ORRERY_TRY(slo, serving::read_slo(s.slo));
    result.slo = std::move(slo);
  }
  result.deployment = std::make_unique<Deployment>();
  Deployment& deployment = *result.deployment;
  deployment.model = inputs.model();
  if (s.disaggregated()) {
    ORRERY_TRY(prefill, pool_of(inputs, s, deployment, s.prefill_degrees(), "prefill", engine));
    deployment.pools.push_back(std::move(prefill));
  }
  ORRERY_TRY(pool, pool_of(inputs, s, deployment, s.degrees(), s.disaggregated() ? "decode" : "engine", engine));
  deployment.pools.push_back(std::move(pool));
  deployment.fleet.routing = s.routing;
  deployment.autoscale = s.autoscale();
  deployment.prefill_autoscale = s.prefill_autoscale();
  deployment.fleet.admission = s.admission();
  const Bytes token = serving::whole_token_bytes(*deployment.pools.front());
  deployment.fleet.store_tokens = static_cast<std::int64_t>(s.remote_cache / token);
  if (s.remote_store_bandwidth) { deployment.fleet.store_token = serving::ticks_of(token / *s.remote_store_bandwidth); }
  deployment.fleet.signal_age = serving::ticks_of(s.signal_age);
  deployment.fleet.seed = static_cast<std::uint64_t>(s.seed);
  deployment.fleet.keep_going = request.keep_going;
  if (s.disaggregated()) {
    deployment.fleet.transfer = serving::transfer_of(*deployment.pools.front(), *deployment.pools.back());
  }
  if (auto done = add_stages(inputs, s, deployment); !done) { return tl::make_unexpected(done.error()); }
  deployment.request_overhead_s = deployment.pools.front()->inputs().settings.request_overhead.value();
  return result;
}

namespace {

// Of what arrives, in a run that is not repeated with more requests: less may be chance.
constexpr double kMuch = 0.15;

// Of stages in which requests wait much longer than they are served.
void warn_of_waits(results::Serving& result) {
  constexpr double kTimes = 10;
  for (const results::ServingStage& stage : result.stages) {
    const double served = stage.time.mean - stage.wait.mean;
    if (stage.servers == 0 || stage.wait.mean <= kTimes * served) { continue; }
    result.warnings.push_back(fmt::format("stage {}: requests wait {} for a server on average, which then takes {}",
                                          stage.name, config::format_seconds(Seconds(stage.wait.mean)),
                                          config::format_seconds(Seconds(served))));
  }
}

// What a run of an open loop does not reach; empty: nothing is missing. `many_left`: requests wait when the last
// arrives.
std::string overload_warning(const results::Serving& result, bool has_rate, bool many_left) {
  const results::ServingGrowth& growth = result.growth;
  const char* const what = result.sessions ? "sessions" : "requests";
  if (many_left) {
    return fmt::format(
        "{:.0f} % of the requests wait for an engine when the last one arrives: {}, and the times below "
        "depend on how many are simulated",
        100.0 * growth.left,
        has_rate ? "they arrive faster than they are completed"
                 : "the trace ends in a peak, or arrives faster than it is completed");
  }
  if (!result.overloaded) { return {}; }
  if (growth.is_burst) {
    return fmt::format(
        "all {} arrive before the first ones are completed: give more --requests to see the times at "
        "this rate",
        what);
  }
  return fmt::format(
      "{} arrive faster than they are completed: {:.0f} % of them pile up, and times depend on how many "
      "are simulated",
      what, 100.0 * growth.part);
}

// Requests that are longer than what the model is made for.
void warn_of_length(results::Serving& result, const workload::Model& model, const serving::Workload& load) {
  std::int64_t longest = 0, count = 0;
  for (std::int64_t i = 0; i < load.arriving(); ++i) {
    const serving::Request& request = load.requests[static_cast<std::size_t>(i)];
    longest = std::max(longest, request.input + request.output);
    count += request.input + request.output > model.max_seq ? 1 : 0;
  }
  for (const results::ServingPool& pool : result.pools) {
    if (pool.window_blocks == 0 || longest <= pool.longest) { continue; }
    result.warnings.push_back(
        fmt::format("the longest request has {} tokens, and vLLM starts with a --max-model-len of at most {}: layers "
                    "with sliding windows need room for a chunk of --max-batched-tokens; give a smaller one",
                    grouped(longest), grouped(pool.longest)));
  }
  if (model.max_seq <= 0 || count == 0) { return; }
  result.warnings.push_back(fmt::format("{} longer than the {} tokens that the model is made for; the longest has {}",
                                        count == 1 ? "a request is" : fmt::format("{} requests are", grouped(count)),
                                        grouped(model.max_seq), grouped(longest)));
}

// Sessions of a trace that says nothing of prefixes.
void warn_of_sessions(results::Serving& result, const serving::Deployment& deployment, const serving::Workload& load,
                      const Scenario& scenario) {
  if (scenario.trace.empty()) { return; }
  const bool has_cache = std::any_of(deployment.pools.begin(), deployment.pools.end(),
                                     [](const auto& pool) { return pool->inputs().settings.prefix_cache; });
  const bool has_blocks = std::any_of(load.requests.begin(), load.requests.end(),
                                      [](const serving::Request& request) { return request.blocks > 0; });
  const bool has_sessions = std::any_of(load.requests.begin(), load.requests.end(),
                                        [](const serving::Request& request) { return request.session >= 0; });
  if (!has_sessions || !has_cache || has_blocks) { return; }
  result.warnings.emplace_back(
      "the trace has sessions and no block_ids: no request finds earlier turns in the prefix cache");
}

// Clients of a closed loop whose requests all take equally long stay in lockstep: their prompts wait for each other.
void warn_of_lockstep(results::Serving& result, const Scenario& scenario) {
  const bool are_alike = scenario.trace.empty() && scenario.length_range == 1.0 && scenario.length_cv == 0.0 &&
                         scenario.stages.empty() && scenario.turns == 1;
  const std::int64_t clients = scenario.concurrency.value_or(1);
  const auto has_room = [&](const results::ServingPool& pool) {
    return real(clients) <= real(pool.replicas) * std::min(pool.fitting, real(pool.max_sequences));
  };
  const bool fits = std::all_of(result.pools.begin(), result.pools.end(), has_room) && result.preemptions == 0;
  const bool comes_again = clients > 1 && result.requests >= 2 * clients;
  if (!comes_again || !are_alike || !fits || result.queue.mean <= result.prefill.mean) { return; }
  result.warnings.emplace_back(
      "all requests have the same length, so that the clients are in lockstep and their prompts wait for each other; "
      "spread them with --length-range 0.8 --warm-up 0.2");
}

void warn_of_age(results::Serving& result, const serving::Deployment& deployment) {
  for (const auto& pool : deployment.pools) {
    const serving::EngineSettings& settings = pool->inputs().settings;
    if (!(settings.software_age > 0.0)) { continue; }
    if (!deployment.model.has_experts()) {
      result.warnings.push_back(fmt::format("software_age has no effect: {} has no experts", deployment.model.name));
      return;
    }
    if (settings.age_slowdown == 0.0) {
      result.warnings.push_back(
          fmt::format("software_age has no effect: age_slowdown of engine {} is 0", settings.name));
      return;
    }
  }
}

// The load in words, and warnings of what it does not reach. `least`: part of the arrivals that must pile up for an
// overload. Of a trace with its own times this is not known.
void add_load(results::Serving& result, const Scenario& scenario, double least, bool can_look_again = true) {
  result.load = serving::load_text(scenario);
  if (scenario.concurrency) { return; }
  const results::ServingGrowth& growth = result.growth;
  const bool is_enough = growth.is_certain(can_look_again) && (growth.is_burst || growth.part > least);
  const bool many_left = least > 0 && !growth.is_burst && growth.left > least;
  result.overloaded = scenario.rate && (is_enough || many_left);
  if (const auto* full = result.full_stage()) {
    result.warnings.push_back(fmt::format(
        "stage {}: requests come faster than its {} serve{} them; its queue grows as long as they do", full->name,
        full->servers == 1 ? "server" : fmt::format("{} servers", full->servers), full->servers == 1 ? "s" : ""));
    return;
  }
  if (least > 0) { warn_of_waits(result); }
  std::string warning = overload_warning(result, scenario.rate.has_value(), many_left);
  if (!warning.empty()) { result.warnings.push_back(std::move(warning)); }
}

}  // namespace

namespace {

// The requests of a run.
Result<serving::Workload> requests_of(const PreparedServing& prepared, const Scenario& scenario) {
  const std::int64_t block_tokens = prepared.deployment->pools.front()->inputs().settings.block_tokens;
  ORRERY_TRY(load, serving::workload_of(scenario, block_tokens));
  if (auto ok = check_service_level(prepared.slo, load); !ok) { return tl::make_unexpected(ok.error()); }
  return load;
}

}  // namespace

Result<void> check_service_level(const std::vector<results::ServiceLevel>& slo, const serving::Workload& load) {
  const bool limits_tpot =
      std::any_of(slo.begin(), slo.end(), [](const results::ServiceLevel& level) { return level.metric == "tpot"; });
  const bool has_tpot = std::any_of(load.requests.begin(), load.requests.end(),
                                    [](const serving::Request& request) { return request.output > 1; });
  if (limits_tpot && !has_tpot) {
    return fail({{}, 0, 0, "--slo"}, "tpot has no meaning here: every answer has one token");
  }
  return {};
}

Result<void> check_expert_degree(const workload::Model& model, std::int64_t ep, const char* flag) {
  if (ep == 1 || model.has_experts()) { return {}; }
  return fail({{}, 0, 0, flag}, fmt::format("has no effect: {} has no experts", model.name));
}

namespace {

// Requests come at a rate, and their number is not given.
bool is_free(const Scenario& scenario) {
  return scenario.rate && !scenario.concurrency && !scenario.requests && scenario.trace.empty();
}

Result<results::Serving> run_of(const PreparedServing& prepared, const Scenario& scenario, bool each) {
  ORRERY_TRY(load, requests_of(prepared, scenario));
  ORRERY_TRY(result, serving::simulate(*prepared.deployment, load, prepared.slo, scenario.warm_up, each));
  add_load(result, scenario, kMuch);
  warn_of_length(result, prepared.deployment->model, load);
  warn_of_sessions(result, *prepared.deployment, load, scenario);
  warn_of_lockstep(result, scenario);
  warn_of_age(result, *prepared.deployment);
  return result;
}

}  // namespace

// By default requests arrive in ten times the time that one takes, so that filling and draining the system are a small
// part of the run; not at rates that are far too high, and at most 20,000.
Result<results::Serving> run_serving(const PreparedServing& prepared, const Scenario& scenario, bool each) {
  ORRERY_TRY(result, run_of(prepared, scenario, each));
  if (!is_free(scenario)) { return result; }
  constexpr double kStays = 10, kWorthIt = 1.25, kHopeless = 0.4, kTooFast = 3, kMostOfRun = 20'000;
  const results::ServingGrowth& growth = result.growth;  // a system that fills is like one that is overloaded
  const bool piles_up = growth.is_short || std::max(growth.part, growth.left) > kHopeless;
  const double turns = real(scenario.turns), completed = result.requests_per_s / turns;  // drained, too
  const bool is_hopeless = growth.is_burst ? *scenario.rate > kTooFast * completed : result.overloaded && piles_up;
  const double wanted = std::min(kStays * growth.stay_s * *scenario.rate * turns, kMostOfRun);
  if (is_hopeless || wanted <= kWorthIt * static_cast<double>(result.requests)) { return result; }
  Scenario longer = scenario;
  longer.requests = std::llround(wanted);
  auto again = run_of(prepared, longer, each);
  if (again) { result = std::move(*again); }  // else its end is beyond the longest simulation
  return result;
}

namespace {

// At another rate or number of clients.
Scenario with_load(Scenario scenario, double load) {
  if (scenario.concurrency) {
    scenario.concurrency = std::max<std::int64_t>(1, std::llround(load));
  } else {
    scenario.rate = load;
  }
  return scenario;
}

}  // namespace

Result<std::vector<results::ServingRange>> serving_ranges(const std::string& data_directory) {
  ORRERY_TRY(spreads, estimate::load_spreads(data_directory));
  std::vector<results::ServingRange> ranges;
  for (const std::string_view metric : {"ttft", "tpot", "throughput"}) {
    const auto range = estimate::uncertainty_of(spreads, {fmt::format("serving {}", metric)}, Seconds(1.0));
    if (range) { ranges.push_back({std::string(metric), range->p10.value(), range->p90.value()}); }
  }
  return ranges;
}

Result<results::ServingPoint> serving_probe(const PreparedServing& prepared, const Scenario& scenario, double load) {
  ORRERY_TRY(result, run_serving(prepared, with_load(scenario, load), false));
  return results::ServingPoint{load, std::move(result)};
}

Result<Scenario> with_own_rate(Scenario scenario) {
  if (scenario.trace.empty()) { return scenario; }
  ORRERY_TRY(load, serving::workload_of(scenario));
  if (!scenario.rate && !scenario.concurrency) {
    scenario.rate = mean_rate(load);
    scenario.trace_speed = 1.0;  // the rate has it
  }
  scenario.requests = load.arriving();
  return scenario;
}

double mean_rate(const serving::Workload& load) {
  const double span = serving::seconds_of(load.requests.back().arrival - load.requests.front().arrival);
  return span > 0.0 ? static_cast<double>(load.arriving() - 1) / span : 1.0;
}

double load_of(const Scenario& scenario) {
  if (scenario.concurrency) { return static_cast<double>(*scenario.concurrency); }
  return scenario.rate.value_or(1.0);
}

double most_clients(const Scenario& scenario) {
  return scenario.requests ? real(ceil_div(*scenario.requests, scenario.turns)) : kMostOfProbe;
}

LoadBisection bisection_of(const Scenario& scenario) {
  constexpr double kLowest = 1.0 / 4096;
  const double start = load_of(scenario), lowest = kLowest * start;
  if (scenario.concurrency) { return {start, lowest, true, most_clients(scenario)}; }
  // Requests that arrive over more time than a simulation may take cannot be tried.
  const double requests = static_cast<double>(scenario.requests.value_or(static_cast<std::int64_t>(kFewestRequests)));
  return {start, std::max(lowest, requests / (0.9 * serving::kLongestSeconds)), false};
}

namespace {

double offered_tokens(const serving::Workload& load) {
  double tokens = 0;
  serving::Ticks first = serving::kNever, last = 0;
  for (const auto& one : load.requests) {
    tokens += static_cast<double>(one.output);
    first = std::min(first, one.arrival);
    last = std::max(last, one.arrival);
  }
  return last > first ? tokens / serving::seconds_of(last - first) : std::numeric_limits<double>::infinity();
}

Result<LoadTrial> run_trial(const PreparedServing& prepared, const Scenario& probed, double load, Stops stops,
                            bool can_look_again) {
  ORRERY_TRY(work, requests_of(prepared, probed));
  LoadTrial trial;
  trial.is_open = !probed.concurrency;
  trial.load = load;
  trial.offered = offered_tokens(work);
  ORRERY_TRY(run, serving::simulate_watched(*prepared.deployment, work, prepared.slo, probed.warm_up,
                                            stops == Stops::when_missed));
  trial.result = std::move(run.result);
  trial.headroom = std::move(run.headroom);
  if (trial.result) {
    add_load(*trial.result, probed, 0.0, can_look_again);
    warn_of_length(*trial.result, prepared.deployment->model, work);
    warn_of_sessions(*trial.result, *prepared.deployment, work, probed);
    warn_of_age(*trial.result, *prepared.deployment);
  }
  return trial;
}

// Requests of another run that says more: where answers take so long that too few end while requests arrive, or where
// few requests pile up, which may be chance. Without a service level the highest load is near to what the engines can
// do, where it takes long until as many requests are in the system as will be, and their number varies much: so many
// that three standard deviations of its growth are 1 % of the arrivals (growth_of: 5.7 n / N^1.5 for n in the system).
double requests_to_judge(const results::Serving& result, const Scenario& probed, double load) {
  constexpr double kStays = 10, kMore = 4, kSure = 3.0 * 5.7 / 0.01, kEnough = 8000;
  const bool has_slo = !result.slo.empty();
  const double certain = has_slo ? 0.25 : 0.4;
  const auto now = static_cast<double>(*probed.requests);
  const double inside = result.growth.stay_s * load * static_cast<double>(probed.turns);
  double needed = now;
  if (result.growth.is_burst || !result.overloaded) {
    needed = std::max(kStays * inside, has_slo ? 0.0 : std::pow(kSure * inside, 2.0 / 3.0));
  } else if (result.growth.part < certain && (has_slo || now < kEnough * real(result.pools.back().replicas))) {
    needed = kMore * now;
  }
  const std::int64_t sequences = serving::kMostSequences / probed.branches;
  const auto most = static_cast<double>(sequences);
  return std::min({kMostOfProbe, most, needed});
}

// A run of a load; of as many requests as it takes to judge it, if their number is not given.
Result<LoadTrial> judged_trial(const PreparedServing& prepared, Scenario probed, double load, Stops stops) {
  if (!is_free(probed)) { return run_trial(prepared, probed, load, stops, false); }
  probed.requests = requests_of_probe(probed, prepared.slo, load);
  ORRERY_TRY(trial, run_trial(prepared, probed, load, stops, true));
  constexpr int kRounds = 4;
  for (int round = 1; round < kRounds && trial.result && trial.result->meets_slo(); ++round) {
    constexpr double kWorthIt = 1.25;
    const double needed = requests_to_judge(*trial.result, probed, load);
    if (needed <= kWorthIt * static_cast<double>(*probed.requests)) { break; }
    probed.requests = std::llround(needed);
    auto longer = run_trial(prepared, probed, load, stops, true);
    if (!longer) { break; }  // one of the further requests does not fit in a cache
    trial = std::move(*longer);
  }
  return trial;
}

}  // namespace

Result<LoadTrial> load_trial(const PreparedServing& prepared, const Scenario& scenario, double load, Stops stops) {
  return judged_trial(prepared, with_load(scenario, load), load, stops);
}

Result<results::Serving> serve_traffic(const PreparedServing& prepared, const Scenario& scenario) {
  if (!is_free(scenario)) { return run_serving(prepared, scenario, false); }
  ORRERY_TRY(trial, judged_trial(prepared, scenario, *scenario.rate, Stops::at_the_end));
  return std::move(*trial.result);
}

Failure no_load_failure(const results::ServingPoint& lowest, bool counts) {
  std::string reached;
  for (const auto& level : lowest.result.slo) {
    if (level.holds()) { continue; }
    reached +=
        fmt::format("{}{}_{} {} (limit {})", reached.empty() ? "" : ", ", level.metric, level.measure,
                    config::format_seconds(Seconds(level.reached_s)), config::format_seconds(Seconds(level.limit_s)));
  }
  if (const auto* full = counts ? nullptr : lowest.result.full_stage()) {
    reached += fmt::format("{}stage {} is full", reached.empty() ? "" : ", ", full->name);
  } else if (reached.empty() && !counts && lowest.result.overloaded) {
    reached = lowest.result.growth.is_burst
                  ? "all requests arrive before the first ones are completed; give a lower --rate or more --requests"
                  : "requests arrive faster than they are completed; give a lower --rate";
  } else if (reached.empty() && !counts) {
    reached = lowest.result.refused.value_or(0) > 0
                  ? "requests are refused (--admission-limit, --admission-rate, --admission-wait)"
                  : "too few requests to tell; give more --requests";
  }
  const char* const unit = counts ? "clients" : lowest.result.sessions ? "sessions/s" : "requests/s";
  const bool has_slo = !lowest.result.slo.empty();
  Failure failure{{{{{}, 0, 0, has_slo ? "--slo" : "--goodput"},
                    fmt::format("no load {}; nearest, at {:.4g} {}: {}", has_slo ? "meets it" : "is sustained",
                                lowest.load, unit, reached)}}};
  failure.answer_is_no = true;
  return failure;
}

Result<results::ServingCurve> goodput_curve(const PreparedServing& prepared, const Scenario& scenario) {
  results::ServingCurve curve;
  const bool counts = scenario.concurrency.has_value();
  curve.axis = counts ? "concurrency" : "rate";
  LoadBisection bisection = bisection_of(scenario);
  while (const auto load = bisection.next()) {
    ORRERY_TRY(trial, load_trial(prepared, scenario, *load, Stops::at_the_end));
    bisection.tell(trial.meets_slo());
    curve.points.push_back({*load, std::move(*trial.result)});
  }
  if (bisection.good() == 0) { return tl::make_unexpected(no_load_failure(curve.points.back(), counts)); }
  std::sort(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) { return a.load < b.load; });
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    if (curve.points[i].load == bisection.good()) { curve.best = i; }
  }
  results::Serving& best = curve.points[*curve.best].result;
  if (bisection.bad() == 0) {
    best.warnings.emplace_back(best.slo.empty() ? "no load that was tried is too high"
                                                : "no load that was tried is too high: more may be within the SLO");
  }
  if (best.growth.is_short && !counts) { best.warnings.emplace_back(serving::kTooFewRequests); }
  return curve;
}

}  // namespace orrery::api
