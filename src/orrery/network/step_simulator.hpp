// Simulates a composition, message by message, over ports with a per-step latency and a bandwidth. It checks the
// closed form: both have the same schedule and the same constants of a step, but different arithmetic.
//
// A member has one port per dimension and direction. A port serves one task after another, in the order of the
// composition. A task (the transfers of one phase through the port in one step) takes the step latency and then the
// time of the bytes of its transfers. A transfer starts when its data has arrived and the source's port is free. It
// passes the destination's port at the same time, or later if that port is busy. A switch has no ports of its own: it
// sends a sum while the last contribution arrives, and copies while the original arrives. A link of a tree has half of
// a port, also while the other half is idle; upward and downward transfers of different chunks are serialized. A round
// starts when the previous one has ended.
#pragma once

#include <cstddef>

#include "orrery/core/units.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/group.hpp"

namespace orrery::network {

// Time of the whole schedule under one protocol, base included. O(transfers), for groups that a test can afford.
[[nodiscard]] Seconds simulated_time(const Fabric& fabric, const Schedule& schedule, const Group& group,
                                     std::size_t protocol);

}  // namespace orrery::network
