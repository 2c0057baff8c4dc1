// A network as text, as JSON, and as a drawing (SVG, Graphviz).
#pragma once

#include <string>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/hardware/topology.hpp"

namespace orrery::report {

// Lines that begin with `#`, so that they can stand above a YAML document.
[[nodiscard]] std::string topology_comment(const hardware::TopologyFigures& figures,
                                           const std::vector<hardware::NetworkDimension>& dimensions);
[[nodiscard]] config::Node topology_json(const hardware::TopologyFigures& figures,
                                         const std::vector<hardware::NetworkDimension>& dimensions);

// Switches above their devices, by height; a dragonfly as a ring of groups, with its global cables inside; networks
// without levels of switches on a grid or a circle. Cables between the same two nodes are one line with their number.
[[nodiscard]] std::string topology_svg(const hardware::Topology& topology);
[[nodiscard]] std::string topology_dot(const hardware::Topology& topology);

}  // namespace orrery::report
