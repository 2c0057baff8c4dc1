// The network of a cluster that is described by a topology (`orrery describe`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/topology.hpp"

namespace orrery::api {

// A network file of ASTRA-sim as the `topology` of a cluster file, in YAML.
[[nodiscard]] Result<std::string> describe_astra_network(const std::string& file);

struct ClusterNetwork {
  hardware::Topology topology;
  hardware::TopologyFigures figures;
  std::vector<hardware::NetworkDimension> dimensions;  // of the closed form
};

// Nothing for a cluster without a topology, and for what is no cluster.
[[nodiscard]] std::optional<ClusterNetwork> network_of(const std::string& data_directory, const std::string& cluster);

}  // namespace orrery::api
