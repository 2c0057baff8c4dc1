#include "orrery/hardware/topology_shape.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::hardware {

namespace {

using Mistake = std::optional<TopologyMistake>;

double oversubscription(const TopologySpec& spec, std::size_t level) {
  if (spec.oversubscription.empty()) { return 1.0; }
  return spec.oversubscription[std::min(level, spec.oversubscription.size() - 1)];
}

// Ports of a switch that lead down, where `over` times as many do as lead up; 0: the radix does not divide.
std::int64_t ports_down(std::int64_t radix, double over) {
  const double down = static_cast<double>(radix) * over / (1 + over);
  const double whole = std::round(down);
  return std::abs(down - whole) < 1e-9 * static_cast<double>(radix) && whole < static_cast<double>(radix)
             ? static_cast<std::int64_t>(whole)
             : 0;
}

Tree tree_of(const TopologySpec& spec) {
  Tree tree{spec.down, spec.up, spec.cables};
  if (spec.radix > 0) {
    const auto levels = static_cast<std::size_t>(spec.levels);
    tree.up.assign(1, 1);
    for (std::size_t level = 0; level + 1 < levels; ++level) {
      tree.down.push_back(ports_down(spec.radix, oversubscription(spec, level)));
      tree.up.push_back(spec.radix - tree.down.back());
    }
    tree.down.push_back(spec.blocks > 0 ? spec.blocks : spec.radix);
  }
  tree.up.resize(tree.down.size(), 1);
  tree.cables.resize(tree.down.size(), 1);
  return tree;
}

std::int64_t product(const std::vector<std::int64_t>& factors) {
  std::int64_t all = 1;
  for (const std::int64_t factor : factors) {
    if (factor < 1 || factor > kMostRoutedDevices / all) { return 0; }
    all *= factor;
  }
  return all;
}

std::int64_t uplinks_of_rails(const TopologySpec& spec) {
  const double up = static_cast<double>(spec.nodes) / oversubscription(spec, 0);
  return std::abs(up - std::round(up)) < 1e-9 * up ? std::llround(up) : 0;
}

std::vector<std::int64_t> level_sizes(const TopologySpec& spec, const Tree& tree) {
  std::vector<std::int64_t> sizes;
  switch (spec.kind) {
    case TopologyKind::fat_tree:
    case TopologyKind::switch_tree: return tree.down;
    case TopologyKind::rails: return {spec.scale_up ? spec.scale_up->size : 0, spec.nodes, spec.pods};
    case TopologyKind::dragonfly: return {spec.hosts, spec.routers, spec.groups};
    case TopologyKind::hyperx:
      sizes = {spec.hosts};
      sizes.insert(sizes.end(), spec.sizes.begin(), spec.sizes.end());
      return sizes;
    case TopologyKind::torus:
    case TopologyKind::grid:
    case TopologyKind::mesh: return spec.sizes;
    case TopologyKind::list: return {static_cast<std::int64_t>(spec.devices.size())};
  }
  throw_internal_error("known kind of topology", __FILE__, __LINE__);
}

std::string level_name(const TopologySpec& spec, std::size_t i) {
  switch (spec.kind) {
    case TopologyKind::fat_tree:
    case TopologyKind::switch_tree:
      return i < kTreeNames.size() ? std::string(kTreeNames[i]) : fmt::format("level{}", i);
    case TopologyKind::rails: return i == 0 ? "scale-up" : i == 1 ? "rail" : "spine";
    case TopologyKind::dragonfly: return i == 0 ? "router" : i == 1 ? "group" : "global";
    case TopologyKind::hyperx: return i == 0 ? "router" : fmt::format("axis{}", i - 1);
    case TopologyKind::torus:
    case TopologyKind::grid:
    case TopologyKind::mesh: return fmt::format("axis{}", i);
    case TopologyKind::list: return "network";
  }
  throw_internal_error("known kind of topology", __FILE__, __LINE__);
}

// ---- mistakes ------------------------------------------------------------------------------------------------------

Mistake mistake_in_tree(const TopologySpec& spec) {
  if (spec.radix > 0 && !spec.down.empty()) { return {{"/down", "is not valid with radix, which defines it"}}; }
  if (spec.radix == 0 && spec.down.empty()) {
    return {{"", "a fat-tree or switch-tree needs radix, or down (children of a switch by level)"}};
  }
  if (spec.kind == TopologyKind::switch_tree && (spec.radix > 0 || !spec.up.empty())) {
    return {{spec.radix > 0 ? "/radix" : "/up",
             "is not valid in a switch-tree, whose switches have one way up; valid: down"}};
  }
  if (spec.radix > 0) {
    for (std::size_t level = 0; level + 1 < static_cast<std::size_t>(spec.levels); ++level) {
      const double over = oversubscription(spec, level);
      if (ports_down(spec.radix, over) > 0) { continue; }
      return {{"/radix", fmt::format("{} ports do not divide into {:g} down : 1 up; radix must be a multiple of {:g}",
                                     spec.radix, over, std::floor(over) == over ? over + 1 : 0)}};
    }
    if (spec.blocks > spec.radix) {
      return {{"/blocks",
               fmt::format("{} blocks, but a switch of the outermost level has {} ports", spec.blocks, spec.radix)}};
    }
    return std::nullopt;
  }
  for (const auto& [list, name] : {std::pair{&spec.up, "up"}, {&spec.cables, "cables"}}) {
    if (list->empty() || list->size() == spec.down.size()) { continue; }
    return {{fmt::format("/{}", name), fmt::format("{} levels, but down has {}", list->size(), spec.down.size())}};
  }
  if (!spec.up.empty() && spec.up.front() != 1) {
    return {{"/up/0", fmt::format("{}: a device has one port to its leaf switch; valid: 1", spec.up.front())}};
  }
  return std::nullopt;
}

Mistake mistake_in_rails(const TopologySpec& spec) {
  if (!spec.scale_up) { return {{"", "rails need scale_up: the devices of a node, each on its own rail"}}; }
  if (spec.nodes < 1) { return {{"/nodes", "is missing: nodes of a pod"}}; }
  if (spec.pods > 1 && uplinks_of_rails(spec) == 0) {
    return {{"/oversubscription", fmt::format("{:g}: does not divide the {} devices of a leaf switch",
                                              oversubscription(spec, 0), spec.nodes)}};
  }
  return std::nullopt;
}

Mistake mistake_in_dragonfly(const TopologySpec& spec) {
  for (const auto& [value, name, what] : {std::tuple{spec.groups, "groups", "groups"},
                                          {spec.routers, "routers", "routers of a group"},
                                          {spec.global_links, "global_links", "global links of a router"}}) {
    if (value < 1) { return {{fmt::format("/{}", name), fmt::format("is missing: {}", what)}}; }
  }
  if (spec.groups < 2) { return {{"/groups", "1: a dragonfly has at least 2 groups"}}; }
  const std::int64_t ports = spec.routers * spec.global_links;
  if (ports % (spec.groups - 1) != 0) {
    return {
        {"/groups", fmt::format("{} groups cannot be wired: the {} global links of a group ({} routers x {}) must be a "
                                "multiple of the {} other groups",
                                spec.groups, ports, spec.routers, spec.global_links, spec.groups - 1)}};
  }
  return std::nullopt;
}

Mistake mistake_in_grid(const TopologySpec& spec) {
  if (spec.sizes.empty()) { return {{"/sizes", "is missing: nodes along each axis"}}; }
  if (spec.wirings.size() != spec.sizes.size()) {
    return {{"/wirings", fmt::format("{} wirings, but sizes has {}", spec.wirings.size(), spec.sizes.size())}};
  }
  for (std::size_t i = 0; i < spec.wirings.size(); ++i) {
    if (!joins_nodes(spec.wirings[i])) { continue; }
    return {{fmt::format("/wirings/{}", i), "rails: valid along an axis: ring, mesh, switched"}};
  }
  if (!spec.axis_links.empty() && spec.axis_links.size() != spec.sizes.size()) {
    return {
        {"/axis_links", fmt::format("{} link classes, but sizes has {}", spec.axis_links.size(), spec.sizes.size())}};
  }
  return std::nullopt;
}

Mistake mistake_in_list(const TopologySpec& spec) {
  if (spec.devices.empty()) { return {{"/devices", "is missing: names of devices"}}; }
  std::vector<std::string> names = spec.devices;
  names.insert(names.end(), spec.switches.begin(), spec.switches.end());
  std::set<std::string> known;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (known.insert(names[i]).second) { continue; }
    const std::size_t devices = spec.devices.size();
    return {{i < devices ? fmt::format("/devices/{}", i) : fmt::format("/switches/{}", i - devices),
             fmt::format("{} occurs twice; names must differ", quote(names[i]))}};
  }
  for (std::size_t i = 0; i < spec.links.size(); ++i) {
    const CableSpec& cable = spec.links[i];
    for (const auto& [name, key] : {std::pair{&cable.from, "from"}, {&cable.to, "to"}}) {
      if (known.contains(*name)) { continue; }
      const auto near = nearest(*name, names);
      return {{fmt::format("/links/{}/{}", i, key),
               fmt::format("no device or switch {}{}", quote(*name),
                           near ? fmt::format("; did you mean {}?", quote(*near)) : "")}};
    }
    if (cable.from == cable.to) {
      return {{fmt::format("/links/{}/to", i), fmt::format("{}: a link joins two different nodes", quote(cable.to))}};
    }
  }
  return std::nullopt;
}

// Every node of a list is reachable from the first device.
Mistake disconnection_of(const TopologySpec& spec) {
  std::vector<std::string> reached = {spec.devices.front()};
  std::set<std::string> seen(reached.begin(), reached.end());
  for (std::size_t i = 0; i < reached.size(); ++i) {
    for (const CableSpec& cable : spec.links) {
      if (cable.from == reached[i] && seen.insert(cable.to).second) { reached.push_back(cable.to); }
      if (cable.to == reached[i] && seen.insert(cable.from).second) { reached.push_back(cable.from); }
    }
  }
  for (std::size_t i = 0; i < spec.devices.size(); ++i) {
    if (seen.contains(spec.devices[i])) { continue; }
    return {{fmt::format("/devices/{}", i), fmt::format("{} cannot be reached from {}: the network is not connected",
                                                        quote(spec.devices[i]), quote(spec.devices.front()))}};
  }
  return std::nullopt;
}

Mistake mistake_of_kind(const TopologySpec& spec) {
  switch (spec.kind) {
    case TopologyKind::fat_tree:
    case TopologyKind::switch_tree: return mistake_in_tree(spec);
    case TopologyKind::rails: return mistake_in_rails(spec);
    case TopologyKind::dragonfly: return mistake_in_dragonfly(spec);
    case TopologyKind::hyperx:
    case TopologyKind::torus:
    case TopologyKind::mesh:
      if (spec.sizes.empty()) { return {{"/sizes", "is missing: nodes along each axis"}}; }
      return std::nullopt;
    case TopologyKind::grid: return mistake_in_grid(spec);
    case TopologyKind::list: {
      const auto mistake = mistake_in_list(spec);
      return mistake ? mistake : disconnection_of(spec);
    }
  }
  throw_internal_error("known kind of topology", __FILE__, __LINE__);
}

// Keys of other kinds are mistakes, not ignored.
Mistake foreign_key(const TopologySpec& spec) {
  using K = TopologyKind;
  const auto is_one_of = [&](std::initializer_list<K> kinds) {
    return std::find(kinds.begin(), kinds.end(), spec.kind) != kinds.end();
  };
  struct Key {
    const char* name;
    bool is_given, is_valid;
  };
  for (const Key& key : {Key{"radix", spec.radix > 0, is_one_of({K::fat_tree, K::switch_tree})},
                         {"down", !spec.down.empty(), is_one_of({K::fat_tree, K::switch_tree})},
                         {"up", !spec.up.empty(), is_one_of({K::fat_tree, K::switch_tree})},
                         {"cables", !spec.cables.empty(), is_one_of({K::fat_tree, K::switch_tree})},
                         {"blocks", spec.blocks > 0, is_one_of({K::fat_tree})},
                         {"oversubscription", !spec.oversubscription.empty(), is_one_of({K::fat_tree, K::rails})},
                         {"nodes", spec.nodes > 0, is_one_of({K::rails})},
                         {"pods", spec.pods > 1, is_one_of({K::rails})},
                         {"groups", spec.groups > 0, is_one_of({K::dragonfly})},
                         {"routers", spec.routers > 0, is_one_of({K::dragonfly})},
                         {"global_links", spec.global_links > 0, is_one_of({K::dragonfly})},
                         {"hosts", spec.hosts > 1, is_one_of({K::dragonfly, K::hyperx})},
                         {"sizes", !spec.sizes.empty(), is_one_of({K::hyperx, K::torus, K::mesh, K::grid})},
                         {"wirings", !spec.wirings.empty(), is_one_of({K::grid})},
                         {"axis_links", !spec.axis_links.empty(), is_one_of({K::grid})},
                         {"devices", !spec.devices.empty(), is_one_of({K::list})},
                         {"switches", !spec.switches.empty(), is_one_of({K::list})},
                         {"links", !spec.links.empty(), is_one_of({K::list})},
                         {"scale_up", spec.scale_up.has_value(), !is_one_of({K::torus, K::mesh, K::grid, K::list})}}) {
    if (key.is_given && !key.is_valid) {
      return {{fmt::format("/{}", key.name), fmt::format("{} is not valid for this kind of topology", key.name)}};
    }
  }
  return std::nullopt;
}

}  // namespace

Shape shape_of(const TopologySpec& spec) {
  Shape shape;
  if (spec.kind == TopologyKind::fat_tree || spec.kind == TopologyKind::switch_tree) { shape.tree = tree_of(spec); }
  std::vector<std::int64_t> sizes = level_sizes(spec, shape.tree);
  shape.devices = product(sizes);
  if (spec.kind == TopologyKind::rails && spec.pods > 1) { shape.spines = uplinks_of_rails(spec); }
  const bool has_own_scale_up = spec.kind == TopologyKind::rails;
  if (spec.scale_up && !has_own_scale_up && spec.scale_up->size > 1) {
    shape.levels.push_back({"scale-up", spec.scale_up->size, Wiring::switched});
    sizes.front() /= spec.scale_up->size;
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool is_rail = has_own_scale_up && i == 1;
    shape.levels.push_back({level_name(spec, i), sizes[i],
                            spec.kind == TopologyKind::grid ? spec.wirings[i]
                            : is_grid(spec.kind)            ? Wiring::ring
                            : is_rail                       ? Wiring::rails
                                                            : Wiring::switched});
  }
  return shape;
}

std::int64_t device_count(const TopologySpec& spec) { return shape_of(spec).devices; }

Mistake mistake_in(const TopologySpec& spec) {
  if (auto mistake = foreign_key(spec)) { return mistake; }
  if (auto mistake = mistake_of_kind(spec)) { return mistake; }
  const Shape shape = shape_of(spec);
  const bool forwards = is_grid(spec.kind) || (spec.kind == TopologyKind::rails && spec.pods == 1) ||
                        (spec.kind == TopologyKind::list && spec.switches.empty());
  const std::int64_t most = forwards ? kMostForwardingDevices : kMostRoutedDevices;
  if (shape.devices == 0 || shape.devices > most) {
    return {{"", fmt::format("has more than {} devices, the most of this kind", most)}};
  }
  if (shape.devices < 2) { return {{"", "has 1 device; a network joins at least 2"}}; }
  if (spec.scale_up && spec.kind != TopologyKind::rails) {
    const std::int64_t first = level_sizes(spec, shape.tree).front();
    if (first % spec.scale_up->size != 0) {
      return {
          {"/scale_up/size", fmt::format("{} devices do not divide the {} on one switch", spec.scale_up->size, first)}};
    }
  }
  std::int64_t levels = 0;
  for (const TopologyLevel& level : shape.levels) { levels += level.size > 1 ? 1 : 0; }
  if (levels > kMaxDimensions) { return {{"", fmt::format("{} levels; at most {}", levels, kMaxDimensions)}}; }
  return std::nullopt;
}

}  // namespace orrery::hardware
