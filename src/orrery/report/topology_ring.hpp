// Where the nodes of a dragonfly are drawn: its groups on a ring, devices outside, global cables inside. Private to the
// room.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "orrery/hardware/topology.hpp"

namespace orrery::report {

struct Point {
  double x = 0, y = 0;
};

inline constexpr double kGap = 60;  // between neighbours

struct Ring {
  std::uint32_t first = 0;  // router: the others follow
  std::uint32_t groups = 0, group_routers = 1;
  double slots = 0;   // of routers, and one between two groups
  double radius = 0;  // of the routers
  double edge = 0;    // of the drawing
};

[[nodiscard]] Ring ring_of(const hardware::Topology& topology);

// By node; no coordinate is negative.
[[nodiscard]] std::vector<Point> on_ring(const hardware::Topology& topology);

// The control point of the quadratic curve of a cable.
[[nodiscard]] Point ring_control(const Ring& ring, const std::vector<Point>& points,
                                 const std::pair<std::uint32_t, std::uint32_t>& ends);

// SVG: the names of the groups.
[[nodiscard]] std::string ring_labels(const Ring& ring);

}  // namespace orrery::report
