#include "orrery/serving/scenario.hpp"

#include <initializer_list>

#include <fmt/format.h>

#include "orrery/core/integers.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::config {

using serving::Scenario;

namespace {

constexpr std::int64_t kMostDegree = 100'000;
constexpr std::int64_t kMostRequests = 100'000'000;

void add_deployment(Record<Scenario>& record) {
  using S = Scenario;
  record
      .required("model", &S::model, "catalogue name, Hugging Face config.json, or Orrery model YAML",
                {.nonempty = true})
      .optional("as", &S::as, "family to read a config.json as, whatever its model_type")
      .required("cluster", &S::cluster, "catalogue name, or cluster YAML: the machine of each engine",
                {.nonempty = true})
      .optional("precision", &S::precision, "number format of GEMM inputs")
      .optional("weight_format", &S::weight_format, "format of stored weights; default: that of GEMM inputs")
      .optional("kv_format", &S::kv_format, "format of the KV cache; default: the stack's")
      .optional("attention_precision", &S::attention_precision, "number format of the inputs of attention's GEMMs")
      .optional(
          "quantized", &S::quantized,
          "which layers have the narrow format; the others keep 16 bits: all, but-qkv (without the projections to "
          "queries, keys and values), but-attention (without all projections of attention), both also of recurrent "
          "layers, or experts (routed experts alone); default: in 4 bits the model's quantized_4_bit, else all")
      .optional("engine", &S::engine, "profile of the inference engine, by name or YAML", {.nonempty = true})
      .optional("stack", &S::stack, "software-stack profile of its kernels; default: the engine's")
      .optional("tp", &S::tp, "tensor-parallel degree of an engine", {.min = 1, .max = kMostDegree})
      .optional("pp", &S::pp, "pipeline stages of an engine", {.min = 1, .max = kMostDegree})
      .optional("ep", &S::ep, "expert-parallel degree of an engine; 1: experts are sliced over its ranks",
                {.min = 1, .max = kMostDegree})
      .optional("attention_dp", &S::attention_dp,
                "degree of data-parallel attention; an engine has tp x pp x attention_dp accelerators. SGLang's --tp 8 "
                "--dp 8 "
                "--enable-dp-attention is tp 1, attention_dp 8",
                {.min = 1, .max = kMostDegree})
      .optional("replicas", &S::replicas, "engines; default: 1, or what --devices allows",
                {.min = 1, .max = kMostDegree})
      .optional("devices", &S::devices, "accelerators of all engines together", {.min = 1, .max = kMostRequests})
      .optional("prefill_replicas", &S::prefill_replicas,
                "engines that only prefill (disaggregation); the others then only decode; 0: every engine does both",
                {.min = 0, .max = kMostDegree})
      .optional("prefill_tp", &S::prefill_tp, "tp of a prefill engine; default: --tp", {.min = 1, .max = kMostDegree})
      .optional("prefill_ep", &S::prefill_ep, "ep of a prefill engine; default: --ep", {.min = 1, .max = kMostDegree})
      .optional("prefill_attention_dp", &S::prefill_attention_dp,
                "attention_dp of a prefill engine; default: --attention-dp", {.min = 1, .max = kMostDegree})
      .optional("prefill_cluster", &S::prefill_cluster, "machine of the prefill engines; default: --cluster");
}

// In front of engines and behind them: routing, admission, tiers of the cache.
void add_fleet(Record<Scenario>& record) {
  using S = Scenario;
  record.optional("routing", &S::routing, "how requests are distributed over engines")
      .optional("signal_age", &S::signal_age, "how old the router's view of the engines may be",
                {.max = Seconds(3600.0)})
      .optional("admission_limit", &S::admission_limit,
                "requests that wait or run at a time at most; others are refused; 0: no limit",
                {.min = 0, .max = kMostRequests})
      .optional("admission_rate", &S::admission_rate,
                "requests per second that a token bucket lets pass; others are refused; default: no bucket",
                {.max = 1e9, .positive = true})
      .optional("admission_burst", &S::admission_burst, "requests that the bucket lets pass at once; default: 1",
                {.min = 1, .max = kMostRequests})
      .optional("admission_wait", &S::admission_wait,
                "requests are refused while the wait in every queue is predicted to be longer; default: no limit",
                {.max = Seconds(1e5)})
      .optional("host_cache", &S::host_cache,
                "host memory of each accelerator for blocks that the prefix cache evicts; 0: they are lost",
                {.max = Bytes(1e18)})
      .optional("host_cache_bandwidth", &S::host_cache_bandwidth,
                "rate at which an accelerator loads blocks from host memory; default: the cluster's host link",
                {.max = BytesPerSecond(1e18), .positive = true})
      .optional("host_cache_latency", &S::host_cache_latency, "latency of a request's load from host memory",
                {.max = Seconds(100.0)})
      .optional("remote_cache", &S::remote_cache,
                "size of a remote store that all engines share; prompts are written to it when they are computed; "
                "0: no store",
                {.max = Bytes(1e18)})
      .optional("remote_cache_bandwidth", &S::remote_cache_bandwidth,
                "rate at which an accelerator loads blocks from the store; default: the cluster's outermost links",
                {.max = BytesPerSecond(1e18), .positive = true})
      .optional("remote_cache_latency", &S::remote_cache_latency, "latency of a request's load from the store",
                {.max = Seconds(100.0)})
      .optional("remote_store_bandwidth", &S::remote_store_bandwidth,
                "rate of the remote store itself, which reads and writes of all engines share; default: no limit",
                {.max = BytesPerSecond(1e18), .positive = true});
}

void add_scale(Record<Scenario>& record) {
  using S = Scenario;
  record
      .optional("autoscale_min", &S::autoscale_min,
                "engines (disaggregation: decode engines) that are always on; the number follows the load up to "
                "--replicas; default: all are on",
                {.min = 1, .max = kMostDegree})
      .optional("autoscale_target", &S::autoscale_target, "target value of the signal for each engine that is on",
                {.max = 1e6, .positive = true})
      .optional("autoscale_signal", &S::autoscale_signal,
                "what the number of engines follows: requests that wait or run (default), the queue (requests that "
                "wait), or kv (part of the cache that running requests hold)")
      .optional("prefill_autoscale_min", &S::prefill_autoscale_min,
                "prefill engines that are always on; the number follows their load up to --prefill-replicas; default: "
                "all are on",
                {.min = 1, .max = kMostDegree})
      .optional("prefill_autoscale_target", &S::prefill_autoscale_target,
                "target value of the signal for each prefill engine that is on", {.max = 1e6, .positive = true})
      .optional("prefill_autoscale_signal", &S::prefill_autoscale_signal,
                "what the number of prefill engines follows; default: requests")
      .optional("autoscale_interval", &S::autoscale_interval, "time between decisions of the autoscaler",
                {.min = Seconds(1e-3), .max = Seconds(1e5)})
      .optional("autoscale_start", &S::autoscale_start, "time from a decision to the first request of an engine",
                {.max = Seconds(1e5)})
      .optional("autoscale_hold", &S::autoscale_hold,
                "engines are switched off when fewer have been enough for this long", {.max = Seconds(1e5)});
}

void add_load(Record<Scenario>& record) {
  using S = Scenario;
  record
      .optional("rate", &S::rate, "requests per second; arrivals do not wait for answers",
                {.max = 1e9, .positive = true})
      .optional("concurrency", &S::concurrency, "clients, each of which sends a request when its last one is answered",
                {.min = 1, .max = kMostRequests})
      .optional("trace", &S::trace,
                "CSV with arrival_s, input_tokens, output_tokens, perhaps block_ids, priority, session; with --rate or "
                "--concurrency its arrivals have no effect")
      .optional("trace_speed", &S::trace_speed, "arrivals of the trace come so many times as fast",
                {.max = 1e6, .positive = true})
      .optional("trace_block_tokens", &S::trace_block_tokens, "tokens of a block of the trace's block_ids",
                {.min = 1, .max = serving::kMostTokens})
      .optional(
          "cv", &S::cv,
          "with --rate: coefficient of variation of the times between arrivals: 1 Poisson, 0 constant, else gamma",
          {.min = 0.0, .max = 100.0})
      .optional("isl", &S::isl, "tokens of a prompt", {.min = 1, .max = serving::kMostTokens})
      .optional("osl", &S::osl, "tokens of an answer", {.min = 1, .max = serving::kMostTokens})
      .optional("length_range", &S::length_range, "lengths are uniform from this part of isl and osl to the whole",
                {.max = 1.0, .positive = true})
      .optional("length_cv", &S::length_cv, "lengths are log-normal with means isl and osl; 0: by length_range",
                {.min = 0.0, .max = 10.0})
      .optional("prefix_groups", &S::prefix_groups, "prompts begin with one of so many shared prefixes",
                {.min = 0, .max = 1'000'000})
      .optional("prefix_tokens", &S::prefix_tokens, "tokens of a shared prefix",
                {.min = 0, .max = serving::kMostTokens})
      .optional("turns", &S::turns,
                "requests of a session; each prompt has all that was said before; --rate and --concurrency then count "
                "sessions",
                {.min = 1, .max = 10'000})
      .optional("turn_tokens", &S::turn_tokens, "new tokens of the prompt of a later turn; default: --isl",
                {.min = 1, .max = serving::kMostTokens})
      .optional("branches", &S::branches,
                "answers that a request generates at the same time over one prompt (reasoning in parallel); lengths "
                "of all are distributed as osl",
                {.min = 1, .max = 10'000})
      .optional("join", &S::join,
                "branches that an answer waits for; when these have ended, the others are cut; default: all",
                {.min = 1, .max = 10'000})
      .optional(
          "requests", &S::requests,
          "requests of the run; default: 1,000, or up to 20,000 so that they arrive in ten times the mean E2E; ten "
          "for each client; or the trace",
          {.min = 1, .max = kMostRequests})
      .optional("think", &S::think,
                "with --concurrency or --turns: time of a client between an answer and its next request, and between "
                "the turns of a session",
                {.max = Seconds(1e5)})
      .optional("warm_up", &S::warm_up, "fraction of the requests, the first ones, that statistics leave out",
                {.min = 0.0, .max = 0.99})
      .optional("seed", &S::seed, "of random numbers; the same seed gives the same requests at every rate")
      .optional("usd_per_device_hour", &S::usd_per_device_hour,
                "rent of an accelerator of any pool; default: the cluster's rent, or its price over four years",
                {.max = 1e6, .positive = true})
      .optional("slo", &S::slo,
                "service level: \"ttft_p99=2s tpot_p99=50ms\" (ttft, tpot, e2e; mean, p50, p90, p95, p99)");
}

}  // namespace

const Record<Scenario>& Described<Scenario>::record() {
  static const auto record = [] {
    Record<Scenario> made("serve", "A deployment of an inference engine and its load.");
    add_deployment(made);
    add_fleet(made);
    add_scale(made);
    add_load(made);
    return made;
  }();
  return record;
}

}  // namespace orrery::config

namespace orrery::serving {

Degrees Scenario::degrees() const {
  Degrees d{tp, pp, ep, attention_dp, 1};
  d.replicas = replicas.value_or(devices ? std::max<std::int64_t>(1, *devices / d.gpus_of_engine()) : 1);
  return d;
}

Degrees Scenario::prefill_degrees() const {
  return {prefill_tp.value_or(tp), pp, prefill_ep.value_or(ep), prefill_attention_dp.value_or(attention_dp),
          prefill_replicas};
}

AutoscaleOptions Scenario::autoscale() const {
  if (!autoscale_min) { return {}; }
  return {*autoscale_min,
          autoscale_target.value_or(1.0),
          ticks_of(autoscale_interval),
          ticks_of(autoscale_start),
          ticks_of(autoscale_hold),
          autoscale_signal.value_or(ScaleSignal::requests)};
}

AdmissionOptions Scenario::admission() const {
  AdmissionOptions options;
  options.limit = admission_limit;
  if (admission_rate) { options.period = std::max<Ticks>(1, ticks_of(Seconds(1.0 / *admission_rate))); }
  options.burst = admission_burst.value_or(1);
  if (admission_wait) { options.wait = ticks_of(*admission_wait); }
  return options;
}

AutoscaleOptions Scenario::prefill_autoscale() const {
  if (!prefill_autoscale_min) { return {}; }
  return {*prefill_autoscale_min,       prefill_autoscale_target.value_or(1.0),
          ticks_of(autoscale_interval), ticks_of(autoscale_start),
          ticks_of(autoscale_hold),     prefill_autoscale_signal.value_or(ScaleSignal::requests)};
}

namespace {

// The settings of one pool; `flag`: --autoscale or --prefill-autoscale.
struct PoolScale {
  std::string flag, replicas;
  std::int64_t most = 1;
  std::optional<std::int64_t> least;
  std::optional<double> target;
  std::optional<ScaleSignal> signal;
};

void check_autoscale(const PoolScale& pool, std::vector<Diagnostic>& found) {
  const auto wrong = [&](const char* setting, std::string message) {
    found.push_back({{{}, 0, 0, pool.flag + setting}, std::move(message)});
  };
  const bool by_cache = pool.signal == ScaleSignal::kv;
  if (pool.least && *pool.least > pool.most) {
    wrong("-min", fmt::format("{} is more than the {} engines of {}", *pool.least, pool.most, pool.replicas));
  }
  if (pool.least && !pool.target) {
    wrong("-target", fmt::format("is missing: {}-min needs the {} for each engine, for example {}", pool.flag,
                                 by_cache                            ? "part of the cache in use"
                                 : pool.signal == ScaleSignal::queue ? "requests that wait"
                                                                     : "requests",
                                 by_cache                            ? "0.7"
                                 : pool.signal == ScaleSignal::queue ? "4"
                                                                     : "32"));
  }
  if (pool.least && pool.target && by_cache && *pool.target > 1.0) {
    wrong("-target", fmt::format("{} is not a part of the cache: at most 1, for example 0.7", *pool.target));
  }
  if (!pool.least && pool.target) { wrong("-target", fmt::format("has an effect only with {}-min", pool.flag)); }
  if (!pool.least && pool.signal) { wrong("-signal", fmt::format("has an effect only with {}-min", pool.flag)); }
}

void check_autoscale(const Scenario& s, std::vector<Diagnostic>& found) {
  check_autoscale(
      {"--autoscale", "--replicas", s.degrees().replicas, s.autoscale_min, s.autoscale_target, s.autoscale_signal},
      found);
  if (!s.disaggregated() && (s.prefill_autoscale_min || s.prefill_autoscale_target || s.prefill_autoscale_signal)) {
    const char* flag = s.prefill_autoscale_min      ? "--prefill-autoscale-min"
                       : s.prefill_autoscale_target ? "--prefill-autoscale-target"
                                                    : "--prefill-autoscale-signal";
    found.push_back({{{}, 0, 0, flag}, "has an effect only with --prefill-replicas"});
    return;
  }
  check_autoscale({"--prefill-autoscale", "--prefill-replicas", s.prefill_replicas, s.prefill_autoscale_min,
                   s.prefill_autoscale_target, s.prefill_autoscale_signal},
                  found);
}

// What stages need of the load.
void check_stages(const Scenario& scenario, std::vector<Diagnostic>& found) {
  for (std::size_t i = 0; i < scenario.stages.size(); ++i) {
    const Stage& stage = scenario.stages[i];
    const auto wrong = [&](const char* field, std::string message) {
      found.push_back({place_of(stage, i, field), std::move(message)});
    };
    if (scenario.turns > 1) { continue; }
    const bool traced = !scenario.trace.empty();
    if (stage.place == StagePlace::between_turns) {
      wrong("place", traced ? "between-turns is not valid with --trace, which has an arrival for each turn"
                            : "between-turns needs sessions: give turns of at least 2");
    }
    if (stage.kind == StageKind::kv_retrieval && !stage.prefix_tokens) {
      wrong("prefix_tokens", traced ? "is missing: earlier turns of a session are not valid with --trace; give the "
                                      "tokens that a lookup finds, for example 1024"
                                    : "is missing: give the tokens that a lookup finds, for example 1024, or turns of "
                                      "at least 2");
    }
  }
}

// Of a run without a trace. If the number is not given: 1,000, or ten for each client and turn.
std::int64_t requests_of(const Scenario& scenario) {
  constexpr std::int64_t kUsual = 1000, kPerClient = 10;
  const std::int64_t clients = scenario.concurrency.value_or(0);
  return scenario.requests.value_or(clients > 0 ? kPerClient * clients * scenario.turns : kUsual);
}

void check_branches(const Scenario& scenario, std::vector<Diagnostic>& found) {
  const auto wrong = [&](const char* flag, std::string message) {
    found.push_back({{{}, 0, 0, flag}, std::move(message)});
  };
  if (scenario.branches == 1) { return; }
  if (scenario.join.value_or(1) > scenario.branches) {
    wrong("--join", fmt::format("{} is more than the {} branches", *scenario.join, scenario.branches));
  }
  if (!scenario.trace.empty()) {
    wrong("--branches", "is not valid with --trace, which has the length of one answer for each request");
  }
  if (scenario.disaggregated()) {
    wrong("--branches", "is not valid with --prefill-replicas: branches share the prompt in the cache of one engine");
  }
  const std::int64_t requests = requests_of(scenario);
  if (requests > kMostSequences / scenario.branches) {
    wrong("--branches", fmt::format("{} branches of {} requests are more than {} sequences", scenario.branches,
                                    grouped(requests), grouped(kMostSequences)));
  }
}

// A setting that another one makes useful.
struct Setting {
  const char* flag;
  bool is_given, has_effect;
  const char* with;
};

void check_effects(std::initializer_list<Setting> settings, std::vector<Diagnostic>& found) {
  for (const Setting& setting : settings) {
    if (!setting.is_given || setting.has_effect) { continue; }
    found.push_back({{{}, 0, 0, setting.flag}, fmt::format("has an effect only with {}", setting.with)});
  }
}

void check_deployment_effects(const Scenario& s, std::vector<Diagnostic>& found) {
  static const Scenario usual;
  const bool pools = s.disaggregated(), host = s.host_cache > Bytes(0), remote = s.remote_cache > Bytes(0);
  const bool scales = s.autoscale_min || s.prefill_autoscale_min;
  const bool looks = s.routing != Routing::round_robin && s.routing != Routing::random;
  const char* const prefill = "--prefill-replicas";
  const char* const scaling = "--autoscale-min or --prefill-autoscale-min";
  check_effects(
      {{"--prefill-tp", s.prefill_tp.has_value(), pools, prefill},
       {"--prefill-ep", s.prefill_ep.has_value(), pools, prefill},
       {"--prefill-attention-dp", s.prefill_attention_dp.has_value(), pools, prefill},
       {"--prefill-cluster", !s.prefill_cluster.empty(), pools, prefill},
       {"--signal-age", s.signal_age > Seconds(0), looks, "--routing other than round-robin and random"},
       {"--admission-burst", s.admission_burst.has_value(), s.admission_rate.has_value(), "--admission-rate"},
       {"--host-cache-bandwidth", s.host_cache_bandwidth.has_value(), host, "--host-cache"},
       {"--host-cache-latency", s.host_cache_latency != usual.host_cache_latency, host, "--host-cache"},
       {"--remote-cache-bandwidth", s.remote_cache_bandwidth.has_value(), remote, "--remote-cache"},
       {"--remote-cache-latency", s.remote_cache_latency != usual.remote_cache_latency, remote, "--remote-cache"},
       {"--remote-store-bandwidth", s.remote_store_bandwidth.has_value(), remote, "--remote-cache"},
       {"--autoscale-interval", s.autoscale_interval != usual.autoscale_interval, scales, scaling},
       {"--autoscale-start", s.autoscale_start != usual.autoscale_start, scales, scaling},
       {"--autoscale-hold", s.autoscale_hold != usual.autoscale_hold, scales, scaling}},
      found);
}

void check_load_effects(const Scenario& s, std::vector<Diagnostic>& found) {
  static const Scenario usual;
  const bool traced = !s.trace.empty(), closed = s.concurrency.has_value(), open = s.rate.has_value();
  check_effects({{"--trace-speed", s.trace_speed != usual.trace_speed, traced && !closed && !open,
                  traced ? "the arrivals of the trace: not with --rate or --concurrency" : "--trace"},
                 {"--trace-block-tokens", s.trace_block_tokens != usual.trace_block_tokens, traced, "--trace"},
                 {"--cv", s.cv != usual.cv, open, "--rate"},
                 {"--think", s.think > Seconds(0), closed || s.turns > 1, "--concurrency, or --turns of at least 2"},
                 {"--length-range", s.length_range != usual.length_range && !traced, s.length_cv == usual.length_cv,
                  "--length-cv 0"},
                 {"--turn-tokens", s.turn_tokens.has_value() && !traced, s.turns > 1, "--turns of at least 2"},
                 {"--join", s.join.has_value(), s.branches > 1, "--branches of at least 2"},
                 {"--prefix-tokens", s.prefix_tokens > 0 && !traced, s.prefix_groups > 0, "--prefix-groups"}},
                found);
}

// What a trace has itself.
void check_trace(const Scenario& s, std::vector<Diagnostic>& found) {
  static const Scenario usual;
  if (s.trace.empty()) { return; }
  const auto check = [&](bool is_given, const char* flag, const char* why) {
    if (is_given) { found.push_back({{{}, 0, 0, flag}, fmt::format("is not valid with --trace{}", why)}); }
  };
  check(s.length_range != usual.length_range, "--length-range", ", which has lengths");
  check(s.length_cv != usual.length_cv, "--length-cv", ", which has lengths");
  check(s.prefix_groups > 0, "--prefix-groups", ", whose column block_ids states what prompts share");
  check(s.prefix_tokens > 0, "--prefix-tokens", ", whose column block_ids states what prompts share");
  check(s.turn_tokens.has_value(), "--turn-tokens", ", which has lengths");
  check(s.turns > 1, "--turns", "; give the sessions as its column session");
}

// Loads that are larger than a simulation can hold, or that have less than their clients need.
void check_sizes(const Scenario& s, std::vector<Diagnostic>& found) {
  const auto wrong = [&](const char* flag, std::string message) {
    found.push_back({{{}, 0, 0, flag}, std::move(message)});
  };
  if (!s.trace.empty()) { return; }
  const std::int64_t clients = s.concurrency.value_or(0), requests = requests_of(s);
  if (requests > kMostSequences) {
    wrong("--requests", fmt::format("{} of {} clients and {} turns are more than {}; give fewer", grouped(requests),
                                    grouped(clients), s.turns, grouped(kMostSequences)));
    return;
  }
  if (s.requests && clients > ceil_div(*s.requests, s.turns)) {
    wrong("--requests", fmt::format("{} are fewer than one{} for each of the {} clients", grouped(*s.requests),
                                    s.turns > 1 ? " session" : "", grouped(clients)));
  }
  const double prefixes = real(s.prefix_groups) * real(s.prefix_tokens);
  const double turns = real(s.turns - 1) * real(s.turn_tokens.value_or(s.isl) + s.osl) / 2.0;
  const double prompts = s.turns > 1 ? real(requests) * (real(s.isl) + turns) : 0.0;
  constexpr double kMostBlocks = 1e9;
  if ((prefixes + prompts) / real(kPrefixBlock) > kMostBlocks) {
    wrong(prefixes > prompts ? "--prefix-tokens" : "--turns",
          fmt::format("prompts have {:.2g} shared blocks, more than the {:.2g} of a simulation",
                      (prefixes + prompts) / real(kPrefixBlock), kMostBlocks));
  }
  if (s.prefix_groups > 0 && s.length_cv == 0.0 && s.prefix_tokens > s.isl) {
    wrong("--prefix-tokens", fmt::format("{} are more than the {} of a prompt (--isl)", s.prefix_tokens, s.isl));
  }
}

// Tokens that stages of a place add to a prompt.
std::int64_t added_tokens(const Scenario& scenario, StagePlace place) {
  std::int64_t added = 0;
  for (const Stage& stage : scenario.stages) { added += stage.place == place ? stage.adds_tokens : 0; }
  return added;
}

}  // namespace

std::vector<Diagnostic> problems(const Scenario& scenario) {
  std::vector<Diagnostic> found;
  const auto wrong = [&](const char* flag, std::string message) {
    found.push_back({{{}, 0, 0, flag}, std::move(message)});
  };
  if (!scenario.rate && !scenario.concurrency && scenario.trace.empty()) {
    wrong("--rate", "is missing; give a load: --rate, --concurrency or --trace; for example --rate 8");
  }
  check_deployment_effects(scenario, found);
  const bool is_narrow = workload::narrowest_element(scenario.precision, scenario.weight_format) < 2.0;
  if (scenario.quantized && !is_narrow) {
    wrong("--quantized", "has no effect: no format has less than 16 bits; give --precision or --weight-format");
  }
  check_load_effects(scenario, found);
  check_trace(scenario, found);
  if (scenario.rate && scenario.concurrency) {
    wrong("--concurrency", "is not valid with --rate: arrivals either follow a rate or wait for answers");
  }
  const Degrees d = scenario.degrees();
  if (scenario.devices && !scenario.disaggregated() && *scenario.devices != d.gpus()) {
    const std::int64_t below = *scenario.devices / d.gpus_of_engine() * d.gpus_of_engine();
    wrong("--devices", scenario.replicas
                           ? fmt::format("{} is not {} replicas of {} accelerators", *scenario.devices, d.replicas,
                                         d.gpus_of_engine())
                           : fmt::format("{} is not a multiple of the {} accelerators of an engine (tp x pp x "
                                         "attention-dp); nearest: {}",
                                         *scenario.devices, d.gpus_of_engine(), std::max(below, d.gpus_of_engine())));
  }
  if (scenario.devices && scenario.disaggregated()) {
    wrong("--devices", "is not valid with --prefill-replicas; give --replicas, the number of decode engines");
  }
  check_sizes(scenario, found);
  if (scenario.prefix_groups > 0 && scenario.prefix_tokens == 0) {
    wrong("--prefix-tokens", "is missing: --prefix-groups needs the length of the prefixes");
  }
  if (scenario.admission().refuses() && scenario.concurrency) {
    wrong(scenario.admission_limit > 0 ? "--admission-limit"
          : scenario.admission_rate    ? "--admission-rate"
                                       : "--admission-wait",
          "is not valid with --concurrency: there are never more requests than clients");
  }
  check_autoscale(scenario, found);
  check_stages(scenario, found);
  check_branches(scenario, found);
  return found;
}

Result<Workload> workload_of(const Scenario& scenario, std::int64_t block_tokens) {
  const std::int64_t clients = scenario.concurrency.value_or(0);
  const std::int64_t added = added_tokens(scenario, StagePlace::before_prefill);
  if (!scenario.trace.empty()) {
    TraceOptions options;
    options.requests = scenario.requests;
    options.speed = scenario.trace_speed;
    options.block_tokens = scenario.trace_block_tokens;
    options.clients = clients;
    options.think = scenario.think;
    options.rate = scenario.rate;
    options.cv = scenario.cv;
    options.seed = static_cast<std::uint64_t>(scenario.seed);
    ORRERY_TRY(load, trace_of(scenario.trace, options));
    for (Request& request : load.requests) {
      if (added == 0) { break; }
      // What is added follows the prompt: its last block is shared only if it is full.
      request.blocks = std::min(request.blocks, static_cast<std::uint32_t>(request.input / load.block_tokens));
      request.input += added;
    }
    load.place.file = scenario.trace;
    return load;
  }
  LoadOptions options;
  options.requests = requests_of(scenario);
  options.rate = scenario.rate.value_or(0.0);
  options.cv = scenario.cv;
  options.clients = clients;
  options.think = scenario.think;
  options.input = scenario.isl;
  options.output = scenario.osl;
  options.range = scenario.length_range;
  options.length_cv = scenario.length_cv;
  options.prefix_groups = scenario.prefix_groups;
  options.prefix_tokens = scenario.prefix_tokens;
  options.turns = scenario.turns;
  options.added = added;
  options.block = (kPrefixBlock + block_tokens - 1) / block_tokens * block_tokens;
  options.branches = scenario.branches;
  options.join = scenario.join.value_or(scenario.branches);
  options.turn_added = added_tokens(scenario, StagePlace::between_turns);
  options.turn_input = scenario.turn_tokens.value_or(scenario.isl);
  options.seed = static_cast<std::uint64_t>(scenario.seed);
  Workload load = generated(options);
  load.place.path = scenario.turns > 1 ? "--turns" : scenario.osl > scenario.isl ? "--osl" : "--isl";
  return load;
}

namespace {

// " (+ 1,280 from stages)".
std::string added_text(std::int64_t added) {
  return added > 0 ? fmt::format(" (+ {} from stages)", grouped(added)) : "";
}

}  // namespace

std::string load_text(const Scenario& s) {
  std::string arrivals;
  if (s.concurrency) {
    arrivals = counted(*s.concurrency, "client");
  } else if (s.rate) {
    const std::string kind = s.cv == 1.0 ? "Poisson" : s.cv == 0.0 ? "constant" : fmt::format("gamma, cv {}", s.cv);
    arrivals = fmt::format("{} {}/s ({})", *s.rate, s.turns > 1 ? "sessions" : "requests", kind);
  } else {
    arrivals =
        s.trace_speed == 1.0 ? "arrivals of the trace" : fmt::format("arrivals of the trace x {}", s.trace_speed);
  }
  const std::int64_t added = added_tokens(s, StagePlace::before_prefill);
  if (!s.trace.empty()) {
    const std::string more = added > 0 ? fmt::format(", prompts + {} tokens from stages", grouped(added)) : "";
    return fmt::format("{}, lengths of {}{}", arrivals, s.trace, more);
  }
  const std::string range = s.length_cv > 0.0      ? fmt::format(", log-normal with cv {}", s.length_cv)
                            : s.length_range < 1.0 ? fmt::format(", uniform from {} of that", s.length_range)
                                                   : "";
  const std::string sessions = s.turns > 1 ? fmt::format(", sessions of {} turns with {} new tokens{} each", s.turns,
                                                         s.turn_tokens.value_or(s.isl),
                                                         added_text(added + added_tokens(s, StagePlace::between_turns)))
                                           : "";
  const std::string branches = s.branches > 1 ? fmt::format(", {} branches each", s.branches) : "";
  return fmt::format("{}, {} tokens in{}, {} out{}{}{}", arrivals, s.isl, added_text(added), s.osl, range, branches,
                     sessions);
}

}  // namespace orrery::serving
