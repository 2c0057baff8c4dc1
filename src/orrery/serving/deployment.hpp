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
  bool sends = false;  // keys and values go from one pool to another
  bool has_own_tp = false, has_own_ep = false, has_own_attention_dp = false;  // --prefill-tp and so on are given
  // Tiers of the prefix cache: host memory of each accelerator, and a remote store of all engines together. Rates, of
  // each accelerator, that are not given are the cluster's.
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
  [[nodiscard]] std::vector<std::string> memory_warnings() const;
  // Slices of experts that checkpoints with scales for blocks of weights do not have; empty: none.
  [[nodiscard]] std::string slice_warning() const;
  // Copies of experts that the ranks of an engine hold, besides one each.
  [[nodiscard]] std::int64_t redundant_experts() const { return redundant_experts_; }
  // Whether some of its decode iterations (else of those with prompts) are two batches whose computation and transfers
  // overlap.
  [[nodiscard]] bool overlaps(bool decodes) const;
  // Of a prefill engine for each prompt that it sends, before its next iteration.
  [[nodiscard]] Seconds transfer_host() const {
    return inputs_.settings.transfer_layer_host * static_cast<double>(inputs_.model->layers);
  }
  [[nodiscard]] std::optional<EngineLimits> limits() const { return engine_limits(inputs_.settings, shape_); }
  // That fit if every layer keeps all positions, as in pools of prefill and decode, though this pool may free windows.
  [[nodiscard]] double whole_positions() const;
  // Of the cache: what layers with windows keep of the prompt chunks of an iteration until it ends.
  [[nodiscard]] double part_of_prompts() const;
  void set_replicas(std::int64_t replicas) { inputs_.degrees.replicas = replicas; }

 private:
  explicit BuiltPool(PoolInputs inputs) : inputs_(std::move(inputs)) {}
  [[nodiscard]] Result<void> check() const;
  Result<void> finish();
  Result<void> add_price();
  Result<void> settle_memory_use();
  Bytes reserve_states(Bytes room);
  Bytes token_in_blocks();
  [[nodiscard]] std::int64_t accepted_tokens() const;
  Result<void> add_cache();
  void place_experts();
  [[nodiscard]] Diagnostic in_terms_of_pool(Diagnostic problem) const;
  Result<void> add_tiers();
  [[nodiscard]] parallel::Plan plan() const;

  PoolInputs inputs_;
  std::optional<workload::Model> placed_;  // the model with the copies of its experts, if it has some
  std::unique_ptr<ProgramPrice> price_;
  std::int64_t redundant_experts_ = 0;
  EngineMemory memory_;
  Bytes block_token_;                 // keys and values of a token for which blocks are counted
  bool derives_memory_use_ = false;   // from other settings
  std::int64_t asked_sequences_ = 0;  // more than run at a time: no room for their states
  EngineShape shape_;
};

// One accelerator of a stage's servers. 0: not known.
struct StageMachine {
  std::string accelerator;
  double usd_per_second = 0, watts = 0;
};

struct Deployment {
  workload::Model model;
  std::vector<std::unique_ptr<BuiltPool>> pools;  // one, or prefill and decode
  FleetOptions fleet;
  std::vector<Stage> stages;                                // of `fleet.stations`, with the rates of their machines
  std::vector<std::optional<StageMachine>> stage_machines;  // [stage]; none: it names no accelerator
  double request_overhead_s = 0;
  AutoscaleOptions autoscale, prefill_autoscale;  // of the last pool; of the first of two

  [[nodiscard]] std::vector<Pool> fleet_pools() const;
  [[nodiscard]] std::int64_t gpus() const;
};

// Keys and values of a token in the caches of all ranks of an engine together, each once.
[[nodiscard]] Bytes whole_token_bytes(const BuiltPool& pool);

// Adds a stage. `named`: the accelerator that it names; none: that of the first pool.
void add_stage(Deployment& deployment, Stage stage, const hardware::Accelerator* named);

// How keys and values travel from prefill engines to decode engines.
[[nodiscard]] TransferPolicy transfer_of(const BuiltPool& prefill, const BuiltPool& decode);

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
