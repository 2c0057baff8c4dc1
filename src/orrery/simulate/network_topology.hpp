// A network of ASTRA-sim as the topology of a cluster (docs/models/topologies.md): the same links, with their latency
// in every step of a message between neighbours.
#pragma once

#include "orrery/hardware/topology_spec.hpp"
#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

[[nodiscard]] hardware::TopologySpec topology_of(const Network& network);

}  // namespace orrery::simulate
