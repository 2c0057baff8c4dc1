// What a serving simulation found: plain values. Times in seconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/core/units.hpp"

namespace orrery::results {

struct Distribution {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0, p95 = 0;

  // measure: "mean", "p50", "p90", "p95" or "p99".
  [[nodiscard]] double at(std::string_view measure) const {
    return measure == "mean" ? mean : measure == "p50" ? p50 : measure == "p90" ? p90 : measure == "p95" ? p95 : p99;
  }
};

// A limit on a percentile of a metric: ttft, tpot or e2e.
struct ServiceLevel {
  std::string metric;   // "ttft"
  std::string measure;  // "p99", "mean"
  double limit_s = 0;
  double reached_s = 0;
  double attained = 0;              // part of requests within the limit; refused ones are not
  bool missed_by_refusals = false;  // too few requests are within the limit, with those that are refused

  [[nodiscard]] bool holds() const { return !missed_by_refusals && reached_s <= limit_s; }
};

struct ServedRequest {
  double arrival_s = 0, scheduled_s = 0, first_token_s = 0, last_token_s = 0;
  double ready_s = 0;     // after the stages before the engines and tokenisation
  double answered_s = 0;  // after the stages that follow the last token
  std::int64_t input = 0, cached = 0, engine = 0;
  std::optional<std::int64_t> prefilled_by;  // engine of a prefill pool
  double prefilled_s = 0;                    // when it had computed the prompt
  double asked_s = 0, placed_s = 0;          // for a place on the other engine; when it had one
  std::int64_t output = 0, preemptions = 0;  // of all branches; tokens that were generated
  // Of the branch that ends last, whose TPOT is that of the request: its first token, and its tokens.
  double last_branch_first_token_s = 0;
  std::int64_t last_branch_output = 0;
  bool refused = false;       // never scheduled
  std::int64_t priority = 0;  // smaller is served first
  std::optional<std::int64_t> session;
  std::vector<double> stage_s;  // [stage], time in it; below 0: it does not pass it
};

// Of a pool whose number of engines follows the load.
struct ServingAutoscale {
  std::int64_t least = 0, most = 0, peak = 0;  // engines; peak: on at a time
  double mean_engines = 0;                     // from the first arrival to the last token
  std::int64_t starts = 0, stops = 0;
};

struct ServingPool {
  std::string name;  // "engine", "prefill", "decode"
  std::string engine, plan, accelerator;
  std::int64_t replicas = 1, gpus = 1;
  std::int64_t redundant_experts = 0;         // extra copies of experts of a layer
  bool overlaps_batches = false;              // two-batch overlap
  std::int64_t blocks = 0, block_tokens = 1;  // of the cache of one engine
  // Tokens of the longest request that the engine accepts. Blocks of one sequence for layers with sliding windows, at
  // most, besides those of its positions; 0: all positions are kept.
  std::int64_t longest = 0;
  std::int64_t window_blocks = 0;
  double fitting = 0;               // requests of the load's mean length for which the cache of one engine has room
  std::int64_t max_sequences = 0;   // of a rank of attention dp, that run at a time
  double memory_use = 0;            // part of memory, as the engine has it
  double kv_peak = 0, kv_mean = 0;  // part of the cache
  double utilisation = 0;           // part of the time in which an iteration runs
  double prefill_share = 0;         // of that, iterations with parts of prompts
  double mean_batch = 0;
  double tokenising = 0, streaming = 0;  // part of the time in which an engine's server does so
  double transferring = 0;               // in which its links send or receive keys and values of requests
  std::int64_t iterations = 0;
  double gpu_hours = 0;       // of engines that are on, from the first arrival to the last token
  std::optional<double> usd;  // of these
  std::optional<ServingAutoscale> autoscale;
};

// A tier of the prefix cache below the device.
struct ServingTier {
  std::string name;            // "host", "remote"
  std::int64_t tokens = 0;     // found there and loaded, by all engines
  double links_in_use_s = 0;   // for them, sum over links
  std::optional<double> peak;  // of a store that engines share: the largest part that was in use
  std::optional<double> busy;  // part of the time in which its own links read or write, if they have a limit
};

// A stage of requests outside the engines. Distributions are over requests that pass it.
struct ServingStage {
  std::string name, kind;
  std::string place;         // "before-prefill", "after-answer", "between-turns"
  std::int64_t servers = 0;  // 0: no queue
  std::int64_t passed = 0;   // requests, after the warm-up
  double utilisation = 0;    // part of the time in which a server is busy
  double mean_batch = 0, mean_inside = 0;
  std::optional<double> share;                         // of the mean E2E; none: E2E does not include it
  Distribution wait = {}, time = {};                   // wait: for a server; time: in the stage
  std::optional<std::int64_t> hits, retrieved_tokens;  // of a store: requests, tokens of their prompts
  std::optional<double> usd_per_second, watts;         // of its servers, if they are known
};

// Branches of reasoning: sequences over the prompt of each request.
struct ServingBranches {
  std::int64_t count = 1, join = 1;      // of a request; join: those that its answer waits for
  std::int64_t generated_tokens = 0;     // of all branches
  std::int64_t cut = 0, cut_tokens = 0;  // branches that no answer waited for; generated by them
  std::int64_t cached_tokens = 0;        // of prompts, that branches but the first did not compute
};

// Interval of measured / predicted of a metric, of measured deployments that were left out.
struct ServingRange {
  std::string metric;  // "ttft", "tpot", "throughput"
  double p10 = 1, p90 = 1;
};

// Whether the number of requests in the system grows as long as requests arrive. A service level need not show it: a
// batch fills slowly, and a limit on the time per token is met while a queue of prompts grows. Of sessions, their
// number.
struct ServingGrowth {
  double part = 0;        // of the requests that arrive, that are not completed but pile up
  double chance = 0;      // standard deviation of `part` if nothing grows
  bool is_burst = false;  // all arrive in less time than the first ones take: nothing can be said about their rate
  bool is_short = false;  // they arrive for less than eight times that: it is not known whether anything grows
  double stay_s = 0;      // mean time in the system; of sessions, from the first turn to the last answer
  double left = 0;        // part of the requests that wait for an engine when the last one arrives

  // Beyond chance, and by more than 2 %; where no longer run can be looked at, by more of both, as queues vary more
  // than `chance` says.
  [[nodiscard]] bool is_certain(bool can_look_again = true) const {
    const double least = can_look_again ? 0.02 : 0.05, deviations = can_look_again ? 3.0 : 5.0;
    return is_burst || (part > least && part > deviations * chance);
  }
};

// Requests of one priority, after the warm-up.
struct ServingClass {
  std::int64_t priority = 0;  // smaller is served first
  std::int64_t answered = 0;
  Distribution ttft = {}, tpot = {}, e2e = {};
};

// A part of a mean time, in seconds.
struct TimePart {
  const char* name;
  double s = 0;
  const Distribution* times = nullptr;  // over requests, if it is known
};

// Where the time between two tokens of a sequence goes: means over all tokens after the first one of each sequence,
// which add up to `mean_s`.
struct TokenTime {
  double mean_s = 0;
  double gemms_s = 0;        // of decode steps, experts included: mostly the time to read weights
  double attention_s = 0;    // mostly the time to read the cache
  double others_s = 0;       // norms, activations, sampling
  double collectives_s = 0;  // and transfers between pipeline stages
  double drafts_s = 0;       // the draft model of speculation
  double host_s = 0;         // that the device waits for
  double prompts_s = 0;      // prompts that are computed in the same iterations, or between them
  double waits_s = 0;        // preemption; tokens that the server has not sent yet

  [[nodiscard]] std::vector<TimePart> parts() const;
};

// A run in equal intervals from the first arrival to the last answer. Of requests that are not refused, but for
// arrivals.
struct ServingSeries {
  struct Engines {
    std::string pool;
    std::vector<double> on;  // mean number, those that start or drain included
  };

  double interval_s = 0;  // 0: the run takes no time, and there are no values
  std::vector<double> arrivals_per_s;
  std::vector<double> waiting;                                // mean number, for an engine or a place to decode
  std::vector<double> in_system;                              // mean number, from arrival to answer
  std::vector<double> output_tokens_per_s;                    // of all branches
  std::vector<std::optional<double>> ttft_p50_s, ttft_max_s;  // of requests that arrive in it; none: none do
  std::vector<Engines> engines;                               // of pools that scale
};

struct Serving {
  std::string model, cluster, load;
  std::string precision;                                                 // of GEMM inputs
  std::string weight_format, kv_format, attention_precision, quantized;  // empty: not given, all layers
  bool sessions = false;                                                 // a rate counts sessions
  double requests_per_session = 1;
  std::vector<ServingPool> pools;
  std::vector<ServingStage> stages;
  std::vector<ServingTier> tiers;  // if some are given
  std::int64_t loads = 0;          // of requests that waited for blocks of tiers
  double load_wait_s = 0;          // sum of these waits
  std::optional<ServingBranches> branches;
  std::int64_t gpus = 0;
  std::int64_t requests = 0, measured = 0;  // measured: after the warm-up
  double duration_s = 0;                    // from the first arrival to the last answer
  Distribution ttft, tpot, e2e, queue, prefill;
  // With two pools: the wait for a place on a decode engine, and from the prompt's end to the first decode step.
  std::optional<Distribution> place, transfer;
  std::optional<Distribution> sending;                // the first token waits for the server, if that matters
  double request_overhead_s = 0, tokenisation_s = 0;  // parts of the mean TTFT, as are stages before the engines
  std::optional<TokenTime> token_time;                // none: no sequence has a second token
  double output_tokens_per_s = 0, total_tokens_per_s = 0, requests_per_s = 0, goodput_rps = 0;
  std::vector<ServiceLevel> slo;
  std::vector<ServingClass> classes;  // by priority, if requests have several
  double mean_in_system = 0;
  ServingGrowth growth;     // of an open loop
  bool overloaded = false;  // requests arrive faster than they are completed, or all before the first ones are
  double kv_peak = 0, prefix_hit_rate = 0;      // hits: of the tokens of prompts
  std::optional<double> prefix_block_hit_rate;  // of the blocks of a trace with block ids, partial last ones included
  std::int64_t preemptions = 0, recomputed_tokens = 0, events = 0;
  std::optional<std::int64_t> refused;                             // requests, under an admission limit
  std::optional<double> usd_per_million_tokens, joules_per_token;  // of output
  std::string price_basis, power_basis;                            // "rent"; "rated power of nodes"
  std::vector<ServingRange> ranges;                                // may be empty
  std::vector<std::string> not_modelled, warnings;
  std::vector<ServedRequest> each;  // if asked for
  std::optional<ServingSeries> series;
  double wall_s = 0;  // set by the caller

  // Of the mean TTFT, in the order of a request; they add up to it.
  [[nodiscard]] std::vector<TimePart> ttft_parts() const;
  // Whether the service level is met, and requests that come at a rate (`is_open`) are completed as fast as they
  // arrive: the queue in front of a full stage after the answer grows, though no first token waits for it, and a batch
  // or a queue may grow within the service level. Without a service level nothing else says that a load is too high, so
  // that a run that is too short to tell, or that refuses requests, does not sustain it.
  [[nodiscard]] bool is_sustained(bool is_open) const {
    if (!is_open) { return meets_slo(); }
    const bool is_known = !slo.empty() || !(growth.is_short || growth.is_burst || refused.value_or(0) > 0);
    return meets_slo() && is_known && full_stage() == nullptr && !overloaded;
  }

  // How near the nearest limit of the service level is: 1 is at the limit.
  [[nodiscard]] double tightest() const {
    double most = 0;
    for (const ServiceLevel& level : slo) { most = std::max(most, level.reached_s / level.limit_s); }
    return most;
  }

  // A stage whose servers are busy all the time: requests come faster than it serves them, or it is what limits a
  // closed loop.
  [[nodiscard]] const ServingStage* full_stage() const {
    constexpr double kFull = 0.98;
    for (const ServingStage& stage : stages) {
      if (stage.servers > 0 && stage.utilisation > kFull) { return &stage; }
    }
    return nullptr;
  }
  [[nodiscard]] bool meets_slo() const {
    for (const auto& level : slo) {
      if (!level.holds()) { return false; }
    }
    return true;
  }
};

// One point of an operating curve, or a probe of a search for goodput.
struct ServingPoint {
  double load = 0;  // requests per second, or clients
  Serving result;
};

struct ServingCurve {
  std::string axis;  // "rate", "concurrency"
  std::vector<ServingPoint> points;
  std::optional<std::size_t> best;  // the highest load that meets the SLO
  double wall_s = 0;
};

}  // namespace orrery::results
