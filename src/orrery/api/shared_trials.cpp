#include "orrery/api/shared_trials.hpp"

namespace orrery::api {

PoolLimits limits_of(const PreparedServing& prepared) {
  // Predicted waits, shares of the cache that scale a pool, and loads from tiers act before a limit is reached.
  const serving::Deployment& deployment = *prepared.deployment;
  for (const serving::Pool& pool : deployment.fleet_pools()) {
    if (pool.autoscale.signal == serving::ScaleSignal::kv) { return std::nullopt; }
  }
  if (deployment.fleet.admission.refuses()) { return std::nullopt; }
  std::vector<serving::EngineLimits> all;
  for (const auto& pool : deployment.pools) {
    const auto limits = pool->limits();
    if (!limits) { return std::nullopt; }
    all.push_back(*limits);
  }
  return all;
}

std::optional<LoadTrial> SharedTrials::find(std::size_t kind, double load, Stops stops, const PoolLimits& limits) {
  if (!limits) { return std::nullopt; }
  const std::lock_guard lock(mutex_);
  for (const Known& known : known_[{kind, load, stops}]) {
    bool is_same = true;
    for (std::size_t pool = 0; pool < limits->size(); ++pool) {
      is_same = is_same && known.trial.headroom[pool].allows(known.limits[pool], (*limits)[pool]);
    }
    if (is_same) { return known.trial; }
  }
  return std::nullopt;
}

void SharedTrials::add(std::size_t kind, Stops stops, const PoolLimits& limits, const LoadTrial& trial) {
  if (!limits) { return; }
  const std::lock_guard lock(mutex_);
  known_[{kind, trial.load, stops}].push_back({*limits, trial});
}

}  // namespace orrery::api
