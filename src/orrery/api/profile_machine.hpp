// A replay on another machine: collectives by the schedules of its network, kernels by the cost model. Private to the
// room.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/profile/replay.hpp"

namespace orrery::api {

// Gives `job` the times of a cluster, and says what keeps its recorded time, and why.
//
// A kernel of an operator with recorded shapes takes its recorded time x (time of the operator's work on the cluster's
// accelerator / on the recorded one), both of cost::kernel_cost: how far a library is from the model stays as recorded.
// Kernels without shapes, copies and memsets keep their time.
[[nodiscard]] Result<std::vector<std::string>> set_machine(const std::string& data_directory, const std::string& name,
                                                           profile::ReplayJob& job);

}  // namespace orrery::api
