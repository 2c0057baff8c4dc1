#include "orrery/api/topology.hpp"

#include <filesystem>

#include "orrery/config/node.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/hardware/records.hpp"
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

// Without the members that are as in `usual`.
config::Node without_defaults(const config::Node& node, const config::Node& usual) {
  config::Node kept = config::mapping_node();
  for (const config::Member& member : node.members) {
    const config::Node* other = usual.find(member.key);
    if (other != nullptr && config::print_yaml(member.value) == config::print_yaml(*other)) { continue; }
    config::add(kept, member.key, member.value);
  }
  return kept;
}

// As a user would write it.
config::Node written(const hardware::TopologySpec& spec) {
  const auto tree_of = [](const hardware::LinkClass& link) {
    const auto& links = config::Described<hardware::LinkClass>::record();
    const auto& protocols = config::Described<hardware::Protocol>::record();
    config::Node node = without_defaults(links.to_node(link), links.to_node({}));
    for (config::Node& protocol : node.find("protocols")->items) {
      protocol = without_defaults(protocol, protocols.to_node({}));
    }
    return node;
  };
  const auto& specs = config::Described<hardware::TopologySpec>::record();
  config::Node node = without_defaults(specs.to_node(spec), specs.to_node({}));
  *node.find("link") = tree_of(spec.link);
  for (std::size_t i = 0; i < spec.axis_links.size(); ++i) {
    node.find("axis_links")->items[i] = tree_of(spec.axis_links[i]);
  }
  return node;
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
  config::add(document, "topology", written(spec));
  return "# for a cluster file, with a name and an accelerator; 1 GB is 10^9 bytes\n" + config::print_yaml(document) +
         "\n";
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
