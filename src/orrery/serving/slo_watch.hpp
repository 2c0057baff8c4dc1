// Whether a run that is not over misses its service level for certain.
//
// A percentile of n values exceeds its limit as soon as more values do than lie above its rank, whatever the others
// are. A mean exceeds it as soon as the sum of the values so far, all of which are positive, is more than n times the
// limit. A run that is stopped then is one that would have missed the service level.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/results/serving.hpp"
#include "orrery/serving/request.hpp"

namespace orrery::serving {

class SloWatch {
 public:
  // `warm_up` and `overhead_s` as summaries have them. Every request must end in a complete run, as one sequence:
  // none is refused, and none has branches.
  SloWatch(const std::vector<results::ServiceLevel>& slo, const Workload& load, double warm_up, double overhead_s);

  // Counts a request that has ended; true if the service level is missed for certain.
  [[nodiscard]] bool is_missed_with(std::int64_t request, const Outcome& outcome);

 private:
  struct Level {
    std::string metric;
    double limit = 0;
    bool is_mean = false;
    std::int64_t allowed = 0, above = 0;  // percentiles: values above the limit
    double most = 0, sum = 0;             // means
  };

  const Workload& load_;
  std::int64_t skipped_ = 0;
  double overhead_s_ = 0;
  std::vector<Level> levels_;
};

}  // namespace orrery::serving
