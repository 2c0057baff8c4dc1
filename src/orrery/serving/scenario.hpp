// What `orrery serve` is asked: a deployment, a load and a service level. One record gives flags, files and errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/hardware/storage_format.hpp"
#include "orrery/serving/engine_settings.hpp"
#include "orrery/serving/fleet.hpp"
#include "orrery/serving/load.hpp"
#include "orrery/serving/stage.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::serving {

// Degrees of one engine, and the number of engines.
struct Degrees {
  std::int64_t tp = 1, pp = 1, ep = 1, attention_dp = 1, replicas = 1;

  [[nodiscard]] std::int64_t gpus_of_engine() const { return tp * pp * attention_dp; }
  [[nodiscard]] std::int64_t gpus() const { return gpus_of_engine() * replicas; }
};

struct Scenario {
  std::string model, as, cluster, prefill_cluster;
  hardware::Precision precision = hardware::Precision::bf16;
  std::optional<hardware::StorageFormat> weight_format;
  std::optional<hardware::CacheFormat> kv_format;
  std::optional<hardware::Precision> attention_precision;
  std::optional<workload::Quantized> quantized;
  std::string engine = "vllm-v1", stack;
  std::int64_t tp = 1, pp = 1, ep = 1, attention_dp = 1;
  std::optional<std::int64_t> replicas, devices;
  std::int64_t prefill_replicas = 0;  // 0: one pool for both
  std::optional<std::int64_t> prefill_tp, prefill_ep, prefill_attention_dp;

  std::optional<double> rate;
  std::optional<std::int64_t> concurrency;
  std::string trace;
  double cv = 1.0, trace_speed = 1.0;
  std::int64_t isl = 1024, osl = 128;
  double length_range = 1.0, length_cv = 0.0;
  std::int64_t prefix_groups = 0, prefix_tokens = 0, trace_block_tokens = 512;
  std::int64_t turns = 1;
  std::optional<std::int64_t> turn_tokens;
  std::int64_t branches = 1;
  std::optional<std::int64_t> join;  // none: all branches
  std::optional<std::int64_t> requests;
  Seconds think;
  double warm_up = 0.0;
  std::int64_t seed = 1;

  std::vector<Stage> stages;  // not a field of the record: lists of mappings are in files only

  std::optional<double> usd_per_device_hour;  // none: the cluster's
  std::string slo;
  Routing routing = Routing::least_outstanding;
  Seconds signal_age;
  std::int64_t admission_limit = 0;  // 0: none
  std::optional<double> admission_rate;
  std::optional<std::int64_t> admission_burst;
  std::optional<Seconds> admission_wait;
  // Tiers of the prefix cache: host memory of each accelerator, a store of all engines together.
  Bytes host_cache, remote_cache;
  std::optional<BytesPerSecond> host_cache_bandwidth, remote_cache_bandwidth, remote_store_bandwidth;
  Seconds host_cache_latency{50e-6}, remote_cache_latency{2e-3};
  std::optional<std::int64_t> autoscale_min;
  std::optional<double> autoscale_target;
  std::optional<ScaleSignal> autoscale_signal;  // none: requests
  std::optional<std::int64_t> prefill_autoscale_min;
  std::optional<double> prefill_autoscale_target;
  std::optional<ScaleSignal> prefill_autoscale_signal;
  Seconds autoscale_interval{15}, autoscale_start{90}, autoscale_hold{300};

  [[nodiscard]] bool disaggregated() const { return prefill_replicas > 0; }
  [[nodiscard]] Degrees degrees() const;  // of the only pool, or of decode
  [[nodiscard]] Degrees prefill_degrees() const;
  // Of the only pool, or of decode.
  [[nodiscard]] AutoscaleOptions autoscale() const;
  [[nodiscard]] AutoscaleOptions prefill_autoscale() const;
  [[nodiscard]] AdmissionOptions admission() const;
};

// Errors between fields: no load, two loads, devices that the degrees do not divide.
[[nodiscard]] std::vector<Diagnostic> problems(const Scenario& scenario);

inline constexpr std::int64_t kMostSequences = 100'000'000;  // requests x branches of a load

// Requests of the scenario's load. `block_tokens`: of the engines' caches; requests share whole blocks.
[[nodiscard]] Result<Workload> workload_of(const Scenario& scenario, std::int64_t block_tokens = kPrefixBlock);
// "8 requests/s (Poisson), 1024 tokens in (+ 1,280 from stages), 128 out".
[[nodiscard]] std::string load_text(const Scenario& scenario);

}  // namespace orrery::serving

namespace orrery::config {

template <>
struct Described<serving::Scenario> {
  static const Record<serving::Scenario>& record();
};

}  // namespace orrery::config
