// The throughput of a plan on fewer or more devices, in whole data-parallel replicas.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "orrery/api/inputs.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::api {

// Tokens per second on a number of devices / on the plan's own, from the estimator: the plan with as many replicas as
// the devices have, or up to three fewer if that is faster, or the next lower number that the plan allows. The global
// batch is kept, so that the replica with most micro-batches decides, or lowered to a multiple of the replicas if that
// is faster. 0: no replica fits. Results are kept; calls from several threads are safe.
[[nodiscard]] std::function<double(std::int64_t devices)> plan_speed(const std::string& data_directory,
                                                                     const estimate::Request& request,
                                                                     const Inputs& inputs, const parallel::Plan& plan);

}  // namespace orrery::api
