// From a space file, a model, a job and a cluster to levels that can be walked. Private to Space.
#pragma once

#include <cstdint>

#include "orrery/core/error.hpp"
#include "orrery/explore/space_compiled.hpp"

namespace orrery::explore {

struct SpaceSource {
  const SpaceFile& file;
  const workload::Model& model;
  const parallel::Job& job;
  const hardware::Cluster& cluster;
  const parallel::PartialPlan& fixed;
  bool dp_overlap = false;
};

// Everything but CompiledSpace::count.
[[nodiscard]] Result<CompiledSpace> compile(const SpaceSource& source);

}  // namespace orrery::explore
