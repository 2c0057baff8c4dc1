// `orrery simulate --workload` of graphs that were imported from profiles: a replay with changes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.hpp"

namespace orrery::cli {

struct ReplayFlags {
  std::string scale_compute, scale_comm;
  std::vector<std::string> scale, late;
  bool common_start = false;

  [[nodiscard]] bool any() const {
    return !scale.empty() || !scale_compute.empty() || !scale_comm.empty() || !late.empty() || common_start;
  }
};

void declare_replay(Command& command, const std::shared_ptr<ReplayFlags>& flags);

// Whether the workload consists of imported profiles. Fails if only these have the flags and it does not.
[[nodiscard]] Result<bool> is_replay(const ReplayFlags& flags, const std::vector<std::string>& workload);

[[nodiscard]] Result<int> run_replay(const ReplayFlags& flags, const std::vector<std::string>& workload,
                                     const std::string& cluster, bool json);

}  // namespace orrery::cli
