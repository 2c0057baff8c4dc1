// What a search over deployments found: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/results/serving.hpp"

namespace orrery::results {

// Degrees of the engines of one pool.
struct ServingDegrees {
  std::int64_t tp = 1, pp = 1, ep = 1, attention_dp = 1, replicas = 1;
};

// One deployment at the highest load that meets the service level.
struct ServingCandidate {
  ServingDegrees engine;                  // of the only pool, or of decode
  std::optional<ServingDegrees> prefill;  // disaggregated
  std::int64_t max_batched_tokens = 0, max_sequences = 0, stream_interval = 1;
  std::int64_t drafts = 0, two_batch_decodes = 0, two_batch_prompts = 0;
  double memory_use = 0.0;  // part of all memory; 0: it is of what weights leave, or a number of blocks
  std::int64_t units = 1;   // copies of a pair of pools (disaggregated) in the fleet; the replicas are of all of them
  std::int64_t gpus = 0;    // that it uses
  double load = 0;          // requests per second of the whole fleet
  double value = 0;         // what is compared; more is better
  std::string text;         // "4 x (tp 2)"
  std::string settings;     // after it, those that were varied: ", 1 draft"
  std::optional<double> usd_per_hour, watts;  // of the whole fleet
  Serving result;                             // at that load
};

// A probe of the search that no other one beats in both.
struct ServingTrade {
  double tokens_per_s_per_gpu = 0, tokens_per_s_per_user = 0;
  bool meets_slo = false;
  std::string text;
};

// A given traffic, of which the smallest deployment is wanted.
struct ServingTraffic {
  double rate = 0;   // requests per second
  std::string text;  // "8 requests/s (Poisson), 1024 tokens in, 128 out"
};

struct ServingPlan {
  std::string model, cluster, engine, objective;
  std::int64_t devices = 0;
  std::int64_t candidates = 0, infeasible = 0, missed = 0, simulated_runs = 0;
  std::int64_t matched_out = 0;  // pairs of pools that rate matching left out
  std::optional<ServingTraffic> traffic;
  std::vector<ServingCandidate> best;
  std::vector<ServingTrade> front;  // by tokens per second and user
  std::vector<std::string> explanation, not_searched;
  std::string nothing;  // why there is no best
  double wall_s = 0;    // set by the caller
};

}  // namespace orrery::results
