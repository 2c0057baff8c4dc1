// A deployment that can run: pools of engines with their prices, caches and limits.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/results/serving.hpp"
#include "orrery/serving/program_price.hpp"
#include "orrery/serving/scenario.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::serving {

// What one pool runs on and with.
struct PoolInputs {
  std::string name;  // "engine", "prefill", "decode"
  const workload::Model* model = nullptr;
  hardware::Cluster cluster;  // of one engine
  hardware::Stack stack;
  EngineSettings settings;
  parallel::Job job;  // precision and formats
  Degrees degrees;
  bool prefill_only = false;
  // Tiers of the prefix cache, of each accelerator: host, remote. Rates that are not given are the cluster's.
  struct Tier {
    Bytes size;
    std::optional<BytesPerSecond> bandwidth;
    Seconds latency;
  };
  std::array<Tier, kTiers> tiers = {};
};

// Owns what its engines share. Not movable: prices refer to its parts.
class BuiltPool {
 public:
  // Errors: degrees that the model does not allow, weights that do not fit.
  [[nodiscard]] static Result<std::unique_ptr<BuiltPool>> build(PoolInputs inputs);

  BuiltPool(const BuiltPool&) = delete;
  BuiltPool& operator=(const BuiltPool&) = delete;

  [[nodiscard]] Pool pool() { return {&inputs_.settings, shape_, price_.get(), inputs_.degrees.replicas}; }
  [[nodiscard]] results::ServingPool described() const;
  [[nodiscard]] const PoolInputs& inputs() const { return inputs_; }
  [[nodiscard]] ProgramPrice& price() { return *price_; }
  [[nodiscard]] EngineShape& shape() { return shape_; }
  [[nodiscard]] const EngineMemory& memory() const { return memory_; }
  [[nodiscard]] std::optional<EngineLimits> limits() const { return engine_limits(inputs_.settings, shape_); }
  void set_replicas(std::int64_t replicas) { inputs_.degrees.replicas = replicas; }

 private:
  explicit BuiltPool(PoolInputs inputs) : inputs_(std::move(inputs)) {}
  Result<void> finish();
  Result<void> add_tiers();
  [[nodiscard]] parallel::Plan plan() const;

  PoolInputs inputs_;
  std::unique_ptr<ProgramPrice> price_;
  EngineMemory memory_;
  EngineShape shape_;
};

struct Deployment {
  workload::Model model;
  std::vector<std::unique_ptr<BuiltPool>> pools;  // one, or prefill and decode
  FleetOptions fleet;
  std::vector<Stage> stages;  // of `fleet.stations`, with the rates of their machines
  double request_overhead_s = 0;
  AutoscaleOptions autoscale;  // of the last pool

  [[nodiscard]] std::vector<Pool> fleet_pools() const;
  [[nodiscard]] std::int64_t gpus() const;
};

// How keys and values travel from prefill engines to decode engines.
[[nodiscard]] TransferPolicy transfer_of(const BuiltPool& prefill, const BuiltPool& decode, bool by_layer);

// Simulates a load. `result.slo` is taken from `slo`.
[[nodiscard]] Result<results::Serving> simulate(const Deployment& deployment, Workload& load,
                                                const std::vector<results::ServiceLevel>& slo, double warm_up,
                                                bool each = false);

// A run that may have been stopped, because it missed the service level for certain: no result then.
struct WatchedRun {
  std::optional<results::Serving> result;
  std::vector<Headroom> headroom;  // [pool]
};

[[nodiscard]] Result<WatchedRun> simulate_watched(const Deployment& deployment, Workload& load,
                                                  const std::vector<results::ServiceLevel>& slo, double warm_up,
                                                  bool stops_when_missed);

}  // namespace orrery::serving
