// Memory expansion: what does not fit in device memory is in a second tier and used in place, as memory attached by CXL
// is. Nothing is copied ahead of its use, so kernels are as fast as both memories together (hardware/tier_use.hpp).
// What is in the second tier is found (estimate/memory_split.hpp): the split with the shortest step among the one with
// the least time of kernels, and the uniform one.
//
// Rates: of the first tier what kernels reach, memory_bandwidth x memory_efficiency; of the second one as its
// description states it.
#pragma once

#include <memory>
#include <string>

#include "orrery/api/inputs.hpp"
#include "orrery/core/units.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/memory_split.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::api {

struct ExpansionOptions {
  hardware::ExpansionRule rule = hardware::ExpansionRule::serial;
  hardware::ByClass<bool> classes;  // that may be in the second tier
};

// Of a request with an expansion; its classes must be valid (estimate::problems).
[[nodiscard]] ExpansionOptions expansion_of(const estimate::Request& request);

// The same machine with both tiers as device memory, at the rate of the first.
[[nodiscard]] hardware::Cluster with_both_tiers(const hardware::Cluster& cluster, double reserve);

// Prices plans of one job with expansion. Keeps a reference: the inputs must outlive it.
class Expander {
 public:
  Expander(const Inputs& inputs, const parallel::Job& job, const ExpansionOptions& options);

  // Not feasible: it fits in neither tier, or what may not be in the second tier does not fit in the first one. Memory
  // is that of the first tier; Estimate::expansion has what is in the second one, if anything is.
  [[nodiscard]] results::Estimate price(const parallel::Plan& plan, std::int64_t global_batch,
                                        estimate::Detail detail = {});

 private:
  [[nodiscard]] results::Estimate divided(const parallel::Plan& plan, const hardware::ByClass<double>& shares,
                                          estimate::Detail detail) const;

  const Inputs& inputs_;
  parallel::Job job_;
  ExpansionOptions options_;
  hardware::Cluster roomy_;
  std::unique_ptr<estimate::Estimator> both_;
};

}  // namespace orrery::api
