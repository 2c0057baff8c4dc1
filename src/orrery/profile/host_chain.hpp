// The threads of the host as chains of segments and calls, with the wake-ups between them and the borders of steps.
// Private to the room.
#pragma once

#include <vector>

#include "orrery/profile/device_work.hpp"
#include "orrery/profile/operators.hpp"
#include "orrery/profile/rank_plan.hpp"

namespace orrery::profile {

// Calls that touch the device, by start: launches, copies, waits, records, synchronizations, and polls.
[[nodiscard]] std::vector<const Event*> calls_that_matter(const Profile& profile, const DeviceWork& work,
                                                          const std::vector<Event>& polls);

struct HostChain {
  SortedTable<const Event*, PlanNode> before_call;  // node that ends when the call starts
  SortedTable<const Event*, PlanNode> return_of;    // of calls that may block: the node after them
};

// Adds the nodes of all threads with calls (or with steps) to the plan.
[[nodiscard]] HostChain build_host(const Profile& profile, const std::vector<const Event*>& calls,
                                   const OperatorIndex& operators, const DeviceWork& work, RankPlan& plan);

}  // namespace orrery::profile
