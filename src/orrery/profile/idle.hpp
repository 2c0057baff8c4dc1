// Why the devices of a rank stood idle: times in which no stream ran anything, split by what the next operation waited
// for. The parts add up to the span of the device's work less the union of its intervals.
#pragma once

#include <cstdint>

#include "orrery/profile/profile.hpp"
#include "orrery/profile/rank_plan.hpp"

namespace orrery::profile {

struct IdleFacts {
  std::int64_t host_ns = 0;          // the launching call came after the device ran dry: the host worked
  std::int64_t blocked_ns = 0;       // the same, while a thread was in a call that waited for the device
  std::int64_t profiler_ns = 0;      // the same, while the profiler stopped the host (overhead events)
  std::int64_t launch_ns = 0;        // from that call to the start of its operation
  std::int64_t gap_ns = 0;           // between operations that were launched in time
  std::int64_t graph_ns = 0;         // between operations of one graph launch
  std::int64_t without_call_ns = 0;  // before operations whose call is not in the file
  std::int64_t unexplained_ns = 0;   // longer than latencies and gaps explain

  [[nodiscard]] std::int64_t all_ns() const {
    return host_ns + blocked_ns + profiler_ns + launch_ns + gap_ns + graph_ns + without_call_ns + unexplained_ns;
  }
};

[[nodiscard]] IdleFacts idle_facts(const Profile& profile, const RankPlan& plan);

}  // namespace orrery::profile
