#include "orrery/report/topology.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/topology_ring.hpp"

namespace orrery::report {

namespace {

using hardware::NetworkDimension;
using hardware::Topology;

constexpr double kRow = 110, kMargin = 40;

std::vector<Point> on_circle(std::size_t nodes) {
  std::vector<Point> points;
  const double radius = std::max(80.0, kGap * static_cast<double>(nodes) / (2 * std::numbers::pi));
  for (std::size_t i = 0; i < nodes; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(nodes);
    points.push_back({radius * (1 + std::sin(angle)), radius * (1 - std::cos(angle))});
  }
  return points;
}

// The first axis to the right, the second downwards, the others as grids beside each other.
std::vector<Point> on_grid(const Topology& topology) {
  std::vector<Point> points;
  const auto columns = topology.levels[0].size;
  const auto rows = topology.levels.size() > 1 ? topology.levels[1].size : 1;
  for (std::int64_t i = 0; i < topology.devices; ++i) {
    const std::int64_t plane = i / (columns * rows);
    points.push_back({kGap * static_cast<double>(i % columns + plane * (columns + 1)),
                      kGap * static_cast<double>(i / columns % rows) + 15 * static_cast<double>(plane % 2)});
  }
  return points;
}

std::vector<Point> in_rows(const Topology& topology) {
  std::uint8_t top = 0;
  std::map<std::uint8_t, std::size_t> widths;
  for (const auto& node : topology.nodes) {
    top = std::max(top, node.height);
    ++widths[node.height];
  }
  std::size_t widest = 0;
  for (const auto& [height, width] : widths) { widest = std::max(widest, width); }
  const double row = std::max(kRow, kGap * static_cast<double>(widest) / 10);
  std::map<std::uint8_t, std::size_t> placed;
  std::vector<Point> points;
  for (const auto& node : topology.nodes) {
    const double step = kGap * static_cast<double>(widest) / static_cast<double>(widths[node.height]);
    points.push_back(
        {step * (0.5 + static_cast<double>(placed[node.height]++)), row * static_cast<double>(top - node.height)});
  }
  return points;
}

std::vector<Point> places_of(const Topology& topology) {
  if (topology.group_routers > 0) { return on_ring(topology); }
  const bool has_switches = topology.switches() > 0;
  if (has_switches) { return in_rows(topology); }
  const bool is_grid = !topology.levels.empty() && hardware::has_neighbours_only(topology.levels.front().wiring);
  return is_grid ? on_grid(topology) : on_circle(topology.nodes.size());
}

// Cables by their two nodes: how many, and of which level.
std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<int, int>> bundles_of(const Topology& topology) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<int, int>> bundles;
  for (std::size_t i = 0; i < topology.links.size(); i += 2) {
    const auto& link = topology.links[i];
    auto& [count, level] = bundles[std::minmax(link.from, link.to)];
    ++count;
    level = link.level;
  }
  return bundles;
}

constexpr const char* kGroupColours[] = {"#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2"};

// Of the curve of a cable: one that passes over other nodes of its row or column is bent.
Point control_of(const Point& a, const Point& b, bool is_level) {
  const bool is_straight = !is_level || std::hypot(b.x - a.x, b.y - a.y) <= 1.5 * kGap;
  const double bend = is_straight ? 0 : 0.15;
  return {(a.x + b.x) / 2 - bend * (b.y - a.y), (a.y + b.y) / 2 + bend * (b.x - a.x)};
}

std::string rate(double bytes_per_second) { return config::format_rate(BytesPerSecond(bytes_per_second)); }

}  // namespace

std::string topology_comment(const hardware::TopologyFigures& figures,
                             const std::vector<NetworkDimension>& dimensions) {
  const std::string devices = counted(figures.devices, "device"), cables = counted(figures.cables, "cable"),
                    diameter = counted(figures.diameter, "link");
  std::string text = figures.switches == 0
                         ? fmt::format("# network: {} with up to {}, {}, diameter {}\n", devices,
                                       counted(figures.most_ports, "port"), cables, diameter)
                         : fmt::format("# network: {}, {} of up to {}, {}, diameter {}\n", devices,
                                       figures.switches == 1 ? "1 switch" : grouped(figures.switches) + " switches",
                                       counted(figures.most_ports, "port"), cables, diameter);
  text += fmt::format("# from the first half of the devices to the second: {}\n", rate(figures.bisection));
  if (figures.all_to_all) { text += fmt::format("# all to all: {} of each device\n", rate(*figures.all_to_all)); }
  if (figures.switch_watts > 0) { text += fmt::format("# switches: {:g} W\n", figures.switch_watts); }
  if (figures.switch_price_usd > 0) { text += fmt::format("# switches: {:.0f} USD\n", figures.switch_price_usd); }
  for (const NetworkDimension& dimension : dimensions) {
    text += fmt::format("# dimension {}: {}, {} of each\n", dimension.name, counted(dimension.size, "device"),
                        rate(dimension.rate().value()));
  }
  return text;
}

config::Node topology_json(const hardware::TopologyFigures& figures, const std::vector<NetworkDimension>& dimensions) {
  using config::json_object;
  return json_object({{"devices", figures.devices},
                      {"switches", figures.switches},
                      {"cables", figures.cables},
                      {"most_ports", figures.most_ports},
                      {"diameter", figures.diameter},
                      {"bisection_Bps", figures.bisection},
                      {"all_to_all_Bps", figures.all_to_all},
                      {"switch_watts", figures.switch_watts},
                      {"switch_price_usd", figures.switch_price_usd},
                      {"dimensions", config::json_list(dimensions, [](const NetworkDimension& dimension) {
                         return json_object(
                             {{"name", dimension.name}, {"size", dimension.size}, {"bandwidth_Bps", dimension.rate()}});
                       })}});
}

std::string topology_svg(const Topology& topology) {
  const auto points = places_of(topology);
  double width = 0, height = 0;
  for (const Point& point : points) {
    width = std::max(width, point.x);
    height = std::max(height, point.y);
  }
  const std::optional<Ring> ring = topology.group_routers > 0 ? std::optional(ring_of(topology)) : std::nullopt;
  if (ring) { width = height = 2 * ring->edge; }  // with the names of groups
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{:.0f} {:.0f} {:.0f} {:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"10\" text-anchor=\"middle\">\n",
      -kMargin, -kMargin, width + 2 * kMargin, height + 2 * kMargin);
  for (const auto& [ends, bundle] : bundles_of(topology)) {
    const Point &a = points[ends.first], &b = points[ends.second];
    const bool is_level = topology.nodes[ends.first].height == topology.nodes[ends.second].height;
    const Point control = ring ? ring_control(*ring, points, ends) : control_of(a, b, is_level);
    svg += fmt::format(
        "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
        a.x, a.y, control.x, control.y, b.x, b.y,
        kGroupColours[static_cast<std::size_t>(bundle.second) % std::size(kGroupColours)], std::min(bundle.first, 6));
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool is_device = i < topology.devices;
    svg += is_device ? fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"14\" fill=\"#fff\" stroke=\"#333\"/>\n",
                                   points[i].x, points[i].y)
                     : fmt::format(
                           "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"44\" height=\"20\" rx=\"3\" fill=\"#eee\" "
                           "stroke=\"#333\"/>\n",
                           points[i].x - 22, points[i].y - 10);
    std::string name;
    for (const char c : topology.nodes[i].name) { name += c == '&' ? "&amp;" : c == '<' ? "&lt;" : std::string(1, c); }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", points[i].x, points[i].y + 3.5, name);
  }
  if (ring) { svg += ring_labels(*ring); }
  return svg + "</svg>\n";
}

std::string topology_dot(const Topology& topology) {
  std::string dot = "graph network {\n";
  const auto quoted = [](const std::string& name) {
    std::string text = "\"";
    for (const char c : name) { text += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c); }
    return text + "\"";
  };
  for (std::size_t i = 0; i < topology.nodes.size(); ++i) {
    dot += fmt::format("  {} [shape={}]\n", quoted(topology.nodes[i].name), i < topology.devices ? "circle" : "box");
  }
  for (const auto& [ends, bundle] : bundles_of(topology)) {
    dot += fmt::format("  {} -- {} [color=\"{}\"", quoted(topology.nodes[ends.first].name),
                       quoted(topology.nodes[ends.second].name),
                       kGroupColours[static_cast<std::size_t>(bundle.second) % std::size(kGroupColours)]);
    dot += bundle.first > 1 ? fmt::format(", label=\"{}\"]\n", bundle.first) : "]\n";
  }
  return dot + "}\n";
}

}  // namespace orrery::report
