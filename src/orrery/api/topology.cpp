#include "orrery/api/topology.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "orrery/config/node.hpp"
#include "orrery/hardware/astra_network.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/hardware/topology_records.hpp"

namespace orrery::api {

namespace {

// Files of link classes need them, whatever their values.
bool is_required(std::string_view key) {
  constexpr std::array<std::string_view, 6> kKeys = {"efficiency", "latency",   "ring_base",
                                                     "ring_step",  "tree_base", "tree_step"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

// Without the members that are as in `usual`.
config::Node without_defaults(const config::Node& node, const config::Node& usual) {
  config::Node kept = config::mapping_node();
  for (const config::Member& member : node.members) {
    const config::Node* other = usual.find(member.key);
    if (!is_required(member.key) && other != nullptr &&
        config::print_yaml(member.value) == config::print_yaml(*other)) {
      continue;
    }
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

Result<std::string> describe_astra_network(const std::string& file) {
  std::vector<std::string> warnings;
  ORRERY_TRY(spec, hardware::read_astra_topology(file, warnings));
  config::Node document = config::mapping_node();
  config::add(document, "topology", written(spec));
  return "# for a cluster file, with a name and an accelerator; 1 GB is 10^9 bytes\n" + config::print_yaml(document) +
         "\n";
}

std::optional<ClusterNetwork> network_of(const std::string& data_directory, const std::string& cluster) {
  const auto read = hardware::Catalogue(data_directory).network(cluster, 0);
  if (!read || !read->topology) { return std::nullopt; }
  ClusterNetwork network;
  network.topology = hardware::build(*read->topology);
  network.dimensions = read->dimensions;
  network.figures = hardware::figures_of(*read->topology, network.topology);
  return network;
}

}  // namespace orrery::api
