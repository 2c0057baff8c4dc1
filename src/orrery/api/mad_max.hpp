// MAD-Max's semantics of inputs that are read.
#pragma once

#include <cstddef>

#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/madmax/system.hpp"
#include "orrery/madmax/work.hpp"
#include "orrery/results/mad_max.hpp"

namespace orrery::api {

struct MadMaxInputs {
  madmax::SampleWork work;
  madmax::System system;
};

[[nodiscard]] Result<results::MadMaxEstimate> mad_max_estimate(const MadMaxInputs& named,
                                                               const estimate::Request& request,
                                                               bool with_events = false);
[[nodiscard]] Result<results::MadMaxSearch> mad_max_plan(const MadMaxInputs& named, const estimate::Request& request,
                                                         std::size_t top);

}  // namespace orrery::api
