#include "orrery/simulate/stragglers.hpp"

#include <cmath>

#include <fmt/format.h>

#include "orrery/simulate/job.hpp"
#include "orrery/simulate/rate.hpp"

namespace orrery::simulate {

Result<void> slow_ranks(SimulationJob& job, std::span<const Straggler> stragglers) {
  for (const Straggler& straggler : stragglers) {
    if (straggler.last >= job.rank_graphs.size()) {
      return fail(Place{"", 0, 0, "--slow"},
                  fmt::format("rank {}: the ranks are 0 to {}", straggler.last, job.rank_graphs.size() - 1));
    }
    for (std::uint32_t rank = straggler.first; rank <= straggler.last; ++rank) {
      for (NodeTask& task : job.rank_graphs.own(rank).nodes) {
        if (task.act != Act::busy || task.slot != Slot::gpu) { continue; }
        const double longer = std::round(static_cast<double>(task.amount) * straggler.slowdown);
        task.amount = longer < static_cast<double>(kMostTime) ? static_cast<std::uint64_t>(longer) : kMostTime;
      }
    }
  }
  return {};
}

}  // namespace orrery::simulate
