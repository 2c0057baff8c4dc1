#include "orrery/api/topology.hpp"

#include "orrery/hardware/catalogue.hpp"

namespace orrery::api {

std::optional<ClusterNetwork> network_of(const std::string& data_directory, const std::string& cluster) {
  const auto read = hardware::Catalogue(data_directory).cluster(cluster, 0, hardware::UnlikeNodes::modelled);
  if (!read || !read->topology) { return std::nullopt; }
  ClusterNetwork network;
  network.topology = hardware::build(*read->topology);
  network.figures = hardware::figures_of(*read->topology, network.topology);
  network.dimensions = read->dimensions;
  return network;
}

}  // namespace orrery::api
