// Trials of deployments that differ only in limits that neither of them reached: one run is that of both. Private to
// the room.
//
// Figures that count parts of a limit (the peak of the cache) are those of the deployment that ran.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "orrery/api/serve_run.hpp"

namespace orrery::api {

// Limits of the engines of each pool; none if trials are not to be shared.
using PoolLimits = std::optional<std::vector<serving::EngineLimits>>;

[[nodiscard]] PoolLimits limits_of(const PreparedServing& prepared);

// Several threads may ask at a time.
class SharedTrials {
 public:
  // `kind`: the same for deployments that differ only in their limits.
  [[nodiscard]] std::optional<LoadTrial> find(std::size_t kind, double load, Stops stops, const PoolLimits& limits);
  void add(std::size_t kind, Stops stops, const PoolLimits& limits, const LoadTrial& trial);

 private:
  struct Known {
    std::vector<serving::EngineLimits> limits;
    LoadTrial trial;
  };

  std::mutex mutex_;
  std::map<std::tuple<std::size_t, double, Stops>, std::vector<Known>> known_;
};

}  // namespace orrery::api
