// What a serving simulation found: plain values. Times in seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/core/units.hpp"

namespace orrery::results {

struct Distribution {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
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
  std::int64_t input = 0, output = 0, cached = 0, preemptions = 0, engine = 0;
  bool refused = false;  // never scheduled
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
  std::int64_t blocks = 0, block_tokens = 1;  // of the cache of one engine
  double kv_peak = 0, kv_mean = 0;            // part of the cache
  double utilisation = 0;                     // part of the time in which an iteration runs
  double prefill_share = 0;                   // of that, iterations with parts of prompts
  double mean_batch = 0;
  std::int64_t iterations = 0;
  double gpu_hours = 0;       // of engines that are on, from the first arrival to the last token
  std::optional<double> usd;  // of these
  std::optional<ServingAutoscale> autoscale;
};

// A tier of the prefix cache below the device.
struct ServingTier {
  std::string name;         // "host", "remote"
  std::int64_t tokens = 0;  // found there and loaded, by all engines
  double load_s = 0;        // that iterations waited for them, sum over engines
};

// A stage of requests before the engines.
struct ServingStage {
  std::string name, kind;
  std::int64_t servers = 0;  // 0: no queue
  double utilisation = 0;    // part of the time in which a server is busy
  double mean_batch = 0, mean_inside = 0;
  double share = 0;                   // of the mean E2E
  Distribution wait = {}, time = {};  // wait: for a server; time: in the stage
};

// Interval of measured / predicted of a metric, of measured deployments that were left out.
struct ServingRange {
  std::string metric;  // "ttft", "tpot", "throughput"
  double p10 = 1, p90 = 1;
};

struct Serving {
  std::string model, cluster, load;
  std::vector<ServingPool> pools;
  std::vector<ServingStage> stages;
  std::vector<ServingTier> tiers;  // if some are given
  std::int64_t gpus = 0;
  std::int64_t requests = 0, measured = 0;  // measured: after the warm-up
  double duration_s = 0;                    // from the first arrival to the last token
  Distribution ttft, tpot, e2e, queue, prefill;
  double request_overhead_s = 0, transfer_s = 0;  // parts of the mean TTFT
  double output_tokens_per_s = 0, total_tokens_per_s = 0, requests_per_s = 0, goodput_rps = 0;
  std::vector<ServiceLevel> slo;
  double mean_in_system = 0;
  double kv_peak = 0, prefix_hit_rate = 0;      // hits: of the tokens of prompts
  std::optional<double> prefix_block_hit_rate;  // of the blocks of a trace with block ids, partial last ones included
  std::int64_t preemptions = 0, recomputed_tokens = 0, events = 0;
  std::optional<std::int64_t> refused;                             // requests, under an admission limit
  std::optional<double> usd_per_million_tokens, joules_per_token;  // of output
  std::vector<ServingRange> ranges;                                // may be empty
  std::vector<std::string> chosen, not_modelled, warnings;
  std::vector<ServedRequest> each;  // if asked for
  double wall_s = 0;                // set by the caller

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
