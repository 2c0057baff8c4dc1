#include "orrery/api/topology.hpp"

#include <filesystem>

#include "orrery/config/node.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/hardware/topology_records.hpp"
#include "orrery/simulate/network_topology.hpp"
#include "orrery/simulate/read_inputs.hpp"

namespace orrery::api {

namespace {

Result<hardware::TopologySpec> spec_of_astra_network(const std::string& file) {
  simulate::Warnings warnings;
  ORRERY_TRY(network, simulate::read_network(file, simulate::Semantics::physical, warnings));
  hardware::TopologySpec spec = simulate::topology_of(network);
  if (auto mistake = hardware::mistake_in(spec)) { return fail(Place{file, 0, 0, ""}, mistake->message); }
  return spec;
}

}  // namespace

bool is_astra_network(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) { return false; }
  const auto text = config::read_text_file(file);
  if (!text) { return false; }
  const auto node = config::parse_yaml(*text, file);
  return node && node->kind == config::Kind::mapping && node->find("npus_count") != nullptr;
}

Result<std::string> describe_astra_network(const std::string& file) {
  ORRERY_TRY(spec, spec_of_astra_network(file));
  config::Node document = config::mapping_node();
  config::add(document, "topology", config::Described<hardware::TopologySpec>::record().to_node(spec));
  return "# for a cluster file, with a name and an accelerator; 1 GB is 10^9 bytes\n" + config::print_yaml(document);
}

std::optional<ClusterNetwork> network_of(const std::string& data_directory, const std::string& cluster) {
  ClusterNetwork network;
  hardware::TopologySpec spec;
  if (is_astra_network(cluster)) {
    auto read = spec_of_astra_network(cluster);
    if (!read) { return std::nullopt; }
    spec = std::move(*read);
    network.topology = hardware::build(spec);
    network.dimensions = hardware::dimensions_of(spec, network.topology);
  } else {
    const auto read = hardware::Catalogue(data_directory).cluster(cluster, 0, hardware::UnlikeNodes::modelled);
    if (!read || !read->topology) { return std::nullopt; }
    spec = *read->topology;
    network.topology = hardware::build(spec);
    network.dimensions = read->dimensions;
  }
  network.figures = hardware::figures_of(spec, network.topology);
  return network;
}

}  // namespace orrery::api
