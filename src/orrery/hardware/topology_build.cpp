// Builders: the networks of the kinds of topologies.
#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "orrery/core/error.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/hardware/topology_shape.hpp"

namespace orrery::hardware {

namespace {

class Builder {
 public:
  explicit Builder(const TopologySpec& spec) : spec_(spec), shape_(shape_of(spec)) {
    made_.routing = spec.routing;
    made_.switch_latency = spec.switch_latency;
    made_.devices = static_cast<std::uint32_t>(shape_.devices);
    for (std::uint32_t i = 0; i < made_.devices; ++i) { made_.nodes.push_back({fmt::format("d{}", i)}); }
    for (const TopologyLevel& level : shape_.levels) {
      if (level.size > 1) { made_.levels.push_back(level); }
    }
    made_.has_scale_up = spec.scale_up && spec.scale_up->size > 1;
    if (made_.has_scale_up) { add_scale_up(); }
  }

  Topology build() {
    switch (spec_.kind) {
      case TopologyKind::fat_tree:
      case TopologyKind::switch_tree: add_tree(); break;
      case TopologyKind::rails: add_rails(); break;
      case TopologyKind::dragonfly: add_dragonfly(); break;
      case TopologyKind::hyperx: add_hyperx(); break;
      case TopologyKind::torus:
      case TopologyKind::mesh: add_neighbours(); break;
      case TopologyKind::grid: add_axes(); break;
      case TopologyKind::list: add_list(); break;
    }
    return std::move(made_);
  }

 private:
  // The bandwidth of links above those of the devices: bandwidths[level].
  [[nodiscard]] double bandwidth(std::size_t level) const {
    if (spec_.bandwidths.empty()) { return spec_.bandwidth.value(); }
    return spec_.bandwidths[std::min(level, spec_.bandwidths.size() - 1)].value();
  }

  std::uint32_t add_switch(std::string name, int height, std::int64_t stride = 1) {
    made_.nodes.push_back({std::move(name), static_cast<std::uint8_t>(height),
                           static_cast<std::uint32_t>(std::max<std::int64_t>(stride, 1))});
    return static_cast<std::uint32_t>(made_.nodes.size() - 1);
  }

  // `level` counts from the first above the scale-up domain; levels of size 1 do not exist.
  void join(std::uint32_t a, std::uint32_t b, double rate, std::size_t level) {
    std::size_t real = made_.has_scale_up ? 1 : 0;
    const std::size_t first = made_.has_scale_up ? 1 : 0;
    for (std::size_t i = first; i < first + level && i < shape_.levels.size(); ++i) {
      real += shape_.levels[i].size > 1;
    }
    const auto last = made_.levels.empty() ? 0 : made_.levels.size() - 1;
    const auto which = static_cast<std::uint8_t>(std::min(real, last));
    made_.links.push_back({a, b, rate, which});
    made_.links.push_back({b, a, rate, which});
  }

  void add_scale_up() {
    const auto size = static_cast<std::uint32_t>(spec_.scale_up->size);
    for (std::uint32_t first = 0; first < made_.devices; first += size) {
      const std::uint32_t hub = add_switch(fmt::format("scale-up{}", first / size), 1);
      for (std::uint32_t i = first; i < first + size; ++i) {
        made_.links.push_back({i, hub, spec_.scale_up->bandwidth.value(), 0});
        made_.links.push_back({hub, i, spec_.scale_up->bandwidth.value(), 0});
      }
    }
  }

  // Extended generalized fat tree (S. Ohring and others, 1995): a node of level l is named by its digits: x_i below
  // down[i] for the blocks above it, y_i below up[i] for its copies. It has a parent for each value of the next y.
  void add_tree() {
    const Tree& tree = shape_.tree;
    std::vector<std::uint32_t> below(made_.devices);
    std::iota(below.begin(), below.end(), 0U);
    std::int64_t blocks = shape_.devices, copies = 1, ways = 1;  // of the level below; ways up to it from a device
    for (std::size_t level = 0; level < tree.down.size(); ++level) {
      const std::int64_t down = tree.down[level], up = tree.up[level], wires = tree.cables[level];
      const std::int64_t next_blocks = blocks / down, next_copies = copies * up;
      ways *= up * wires;
      std::vector<std::uint32_t> here;
      for (std::int64_t i = 0; i < next_blocks * next_copies; ++i) {
        here.push_back(add_switch(fmt::format("{}{}", kTreeNames[std::min(level, kTreeNames.size() - 1)], i),
                                  static_cast<int>(level) + (made_.has_scale_up ? 2 : 1), ways));
      }
      for (std::int64_t block = 0; block < blocks; ++block) {
        for (std::int64_t copy = 0; copy < copies; ++copy) {
          for (std::int64_t way = 0; way < up * wires; ++way) {
            const std::int64_t parent = block / down * next_copies + copy * up + way / wires;
            join(below[static_cast<std::size_t>(block * copies + copy)], here[static_cast<std::size_t>(parent)],
                 level == 0 ? spec_.bandwidth.value() : bandwidth(level - 1), level);
          }
        }
      }
      below = std::move(here);
      blocks = next_blocks;
      copies = next_copies;
    }
  }

  void add_rails() {
    const std::int64_t rails = spec_.scale_up->size, spines = shape_.spines;
    std::vector<std::uint32_t> leaves, tops;
    for (std::int64_t i = 0; i < rails * spec_.pods; ++i) {
      leaves.push_back(add_switch(fmt::format("leaf{}", i), 2, rails));
    }
    for (std::int64_t i = 0; i < spines; ++i) { tops.push_back(add_switch(fmt::format("spine{}", i), 3)); }
    for (std::uint32_t device = 0; device < made_.devices; ++device) {
      const std::int64_t pod = device / (rails * spec_.nodes);
      join(device, leaves[static_cast<std::size_t>(pod * rails + device % rails)], spec_.bandwidth.value(), 0);
    }
    for (const std::uint32_t leaf : leaves) {
      for (const std::uint32_t top : tops) { join(leaf, top, bandwidth(0), 1); }
    }
    made_.devices_forward = spines == 0;
  }

  void add_dragonfly() {
    const std::int64_t routers = spec_.routers, groups = spec_.groups, ports = routers * spec_.global_links;
    made_.group_routers = static_cast<std::uint32_t>(routers);
    std::vector<std::uint32_t> all;
    for (std::int64_t i = 0; i < groups * routers; ++i) {
      all.push_back(add_switch(fmt::format("r{}.{}", i / routers, i % routers), made_.has_scale_up ? 2 : 1));
    }
    for (std::uint32_t device = 0; device < made_.devices; ++device) {
      join(device, all[static_cast<std::size_t>(device / spec_.hosts)], spec_.bandwidth.value(), 0);
    }
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t a = 0; a < routers; ++a) {
        for (std::int64_t b = a + 1; b < routers; ++b) {
          join(all[static_cast<std::size_t>(group * routers + a)], all[static_cast<std::size_t>(group * routers + b)],
               bandwidth(0), 1);
        }
      }
    }
    // Port j of a group leads to the group (j mod (groups - 1)) + 1 further on; the port back is its mirror.
    for (std::int64_t group = 0; group < groups; ++group) {
      for (std::int64_t port = 0; port < ports; ++port) {
        const std::int64_t ahead = port % (groups - 1) + 1, other = (group + ahead) % groups;
        if (other < group) { continue; }
        const std::int64_t back = port / (groups - 1) * (groups - 1) + (groups - 1 - ahead);
        join(all[static_cast<std::size_t>(group * routers + port / spec_.global_links)],
             all[static_cast<std::size_t>(other * routers + back / spec_.global_links)], bandwidth(1), 2);
      }
    }
  }

  void add_hyperx() {
    const std::int64_t routers = shape_.devices / spec_.hosts;
    std::vector<std::uint32_t> all;
    for (std::int64_t i = 0; i < routers; ++i) {
      all.push_back(add_switch(fmt::format("r{}", i), made_.has_scale_up ? 2 : 1));
    }
    for (std::uint32_t device = 0; device < made_.devices; ++device) {
      join(device, all[static_cast<std::size_t>(device / spec_.hosts)], spec_.bandwidth.value(), 0);
    }
    std::int64_t stride = 1;
    for (std::size_t d = 0; d < spec_.sizes.size(); ++d) {
      for (std::int64_t i = 0; i < routers; ++i) {
        for (std::int64_t x = i / stride % spec_.sizes[d] + 1, to = i + stride; x < spec_.sizes[d]; ++x, to += stride) {
          join(all[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(to)], bandwidth(d), d + 1);
        }
      }
      stride *= spec_.sizes[d];
    }
  }

  void add_neighbours() {
    made_.devices_forward = true;
    std::int64_t stride = 1;
    for (std::size_t d = 0; d < spec_.sizes.size(); ++d) {
      const std::int64_t size = spec_.sizes[d];
      for (std::int64_t i = 0; i < shape_.devices; ++i) {
        const std::int64_t x = i / stride % size;
        const bool wraps = x + 1 == size;
        if (wraps && (spec_.kind == TopologyKind::mesh || size <= 2)) { continue; }
        join(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(wraps ? i - x * stride : i + stride),
             spec_.bandwidths.empty() ? spec_.bandwidth.value() : bandwidth(d), d);
      }
      stride *= size;
    }
  }

  // Lines of devices along each axis: a ring, a cable for every pair, or a switch for each line.
  void add_axes() {
    made_.devices_forward = true;
    std::int64_t stride = 1;
    for (std::size_t d = 0; d < spec_.sizes.size(); ++d) {
      for (std::int64_t first = 0; first < shape_.devices; ++first) {
        if (first / stride % spec_.sizes[d] == 0) { add_line(d, first, stride); }
      }
      stride *= spec_.sizes[d];
    }
  }

  void add_line(std::size_t axis, std::int64_t first, std::int64_t stride) {
    const std::int64_t size = spec_.sizes[axis];
    const double rate = spec_.bandwidths.empty() ? spec_.bandwidth.value() : bandwidth(axis);
    const auto device = [&](std::int64_t i) { return static_cast<std::uint32_t>(first + i * stride); };
    if (size < 2) { return; }
    if (has_switch(spec_.wirings[axis])) {
      const std::uint32_t hub = add_switch(fmt::format("axis{}.{}", axis, first), static_cast<int>(axis) + 1);
      for (std::int64_t i = 0; i < size; ++i) { join(device(i), hub, rate, axis); }
      return;
    }
    const bool pairs = has_pair_links(spec_.wirings[axis]);
    for (std::int64_t i = 0; i < size; ++i) {
      for (std::int64_t j = i + 1; j < size; ++j) {
        const bool neighbours = j == i + 1 || (i == 0 && j == size - 1);
        if (pairs || neighbours) { join(device(i), device(j), rate, axis); }
      }
    }
  }

  void add_list() {
    std::map<std::string, std::uint32_t, std::less<>> nodes;
    for (std::uint32_t i = 0; i < made_.devices; ++i) { nodes[made_.nodes[i].name = spec_.devices[i]] = i; }
    for (const std::string& name : spec_.switches) { nodes[name] = add_switch(name, 1); }
    for (const CableSpec& cable : spec_.links) {
      for (std::int64_t i = 0; i < cable.count; ++i) {
        join(nodes.at(cable.from), nodes.at(cable.to), cable.bandwidth.value_or(spec_.bandwidth).value(), 0);
      }
    }
    made_.devices_forward = spec_.switches.empty();
  }

  const TopologySpec& spec_;
  Shape shape_;
  Topology made_;
};

}  // namespace

Topology build(const TopologySpec& spec) {
  ORRERY_ASSERT(!mistake_in(spec));
  return Builder(spec).build();
}

}  // namespace orrery::hardware
