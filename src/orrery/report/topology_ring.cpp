#include "orrery/report/topology_ring.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include <fmt/format.h>

namespace orrery::report {

namespace {

using hardware::Topology;

constexpr double kDevice = 34, kOutwards = 80, kLabelRoom = 80;

double angle_of(const Ring& ring, std::uint32_t router) {
  const std::uint32_t number = router - ring.first;
  return 2 * std::numbers::pi * (number + number / ring.group_routers) / ring.slots;
}

Point at(const Ring& ring, double angle, double radius) {
  return {ring.edge + radius * std::sin(angle), ring.edge - radius * std::cos(angle)};
}

}  // namespace

Ring ring_of(const Topology& topology) {
  std::map<std::uint32_t, std::uint32_t> hosts;  // devices of a router
  Ring ring;
  ring.first = static_cast<std::uint32_t>(topology.nodes.size());
  for (const auto& link : topology.links) {
    if (link.level == 2) { ring.first = std::min(ring.first, link.from); }
  }
  // A router without a global link can come before those that have one.
  const auto routers = (static_cast<std::uint32_t>(topology.nodes.size()) - ring.first + topology.group_routers - 1) /
                       topology.group_routers * topology.group_routers;
  ring.first = static_cast<std::uint32_t>(topology.nodes.size()) - routers;
  ring.group_routers = topology.group_routers;
  ring.groups = routers / topology.group_routers;
  for (const auto& link : topology.links) {
    if (link.from < topology.devices && link.to >= ring.first) { ++hosts[link.to]; }
  }
  std::uint32_t most = 1;
  for (const auto& [router, count] : hosts) { most = std::max(most, count); }
  ring.slots = routers + ring.groups;
  const double gap = std::max(kGap, kDevice * most);
  ring.radius = std::max(120.0, ring.slots * gap / (2 * std::numbers::pi));
  ring.edge = ring.radius + (topology.has_scale_up ? 2 : 1) * kOutwards + kLabelRoom;
  return ring;
}

std::vector<Point> on_ring(const Topology& topology) {
  const Ring ring = ring_of(topology);
  std::vector<Point> points(topology.nodes.size());
  std::map<std::uint32_t, std::vector<std::uint32_t>> devices;  // by router
  for (const auto& link : topology.links) {
    if (link.from < topology.devices && link.to >= ring.first) { devices[link.to].push_back(link.from); }
  }
  std::vector<double> angles(topology.devices, 0.0);
  for (std::uint32_t router = ring.first; router < topology.nodes.size(); ++router) {
    const double angle = angle_of(ring, router);
    points[router] = at(ring, angle, ring.radius);
    const auto& own = devices[router];
    for (std::size_t i = 0; i < own.size(); ++i) {
      const double place = (static_cast<double>(i) + 0.5) / static_cast<double>(own.size()) - 0.5;
      angles[own[i]] = angle + 0.9 * 2 * std::numbers::pi * place / ring.slots;
      points[own[i]] = at(ring, angles[own[i]], ring.radius + kOutwards);
    }
  }
  // Switches of scale-up domains, outside their devices, which are neighbours.
  std::map<std::uint32_t, std::pair<double, double>> sums;
  for (const auto& link : topology.links) {
    if (link.from >= topology.devices || link.to >= ring.first || link.to < topology.devices) { continue; }
    sums[link.to].first += angles[link.from];
    sums[link.to].second += 1;
  }
  for (const auto& [node, sum] : sums) { points[node] = at(ring, sum.first / sum.second, ring.radius + 2 * kOutwards); }
  return points;
}

Point ring_control(const Ring& ring, const std::vector<Point>& points,
                   const std::pair<std::uint32_t, std::uint32_t>& ends) {
  const Point &a = points[ends.first], &b = points[ends.second];
  Point middle{(a.x + b.x) / 2, (a.y + b.y) / 2};
  if (ends.first < ring.first) { return middle; }  // to a device: straight
  const auto group = [&](std::uint32_t router) { return (router - ring.first) / ring.group_routers; };
  // Cables of a group pass its routers on the inner side; global ones are drawn to the middle of the ring.
  const double length = std::hypot(b.x - a.x, b.y - a.y);
  const double from_centre = std::hypot(middle.x - ring.edge, middle.y - ring.edge);
  const double to_centre = group(ends.first) == group(ends.second)
                               ? std::min(1.0, 0.35 * std::max(0.0, length - kGap) / std::max(from_centre, 1.0))
                               : 0.6;
  middle.x += to_centre * (ring.edge - middle.x);
  middle.y += to_centre * (ring.edge - middle.y);
  return middle;
}

std::string ring_labels(const Ring& ring) {
  std::string svg;
  for (std::uint32_t group = 0; group < ring.groups; ++group) {
    const std::uint32_t first = ring.first + group * ring.group_routers;
    const double angle = (angle_of(ring, first) + angle_of(ring, first + ring.group_routers - 1)) / 2;
    const Point place = at(ring, angle, ring.edge - 30);
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"13\" fill=\"#555\">group {}</text>\n", place.x,
                       place.y, group);
  }
  return svg;
}

}  // namespace orrery::report
