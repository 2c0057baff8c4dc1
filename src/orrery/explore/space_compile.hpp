// Compiles a space file, a model, a job and a cluster to levels for the walk. Private to Space.
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

// Sets everything except CompiledSpace::count.
[[nodiscard]] Result<CompiledSpace> compile(const SpaceSource& source);

}  // namespace orrery::explore
