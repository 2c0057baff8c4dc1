// Counts that follow from the description of a topology. Private to the builders.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/hardware/topology.hpp"

namespace orrery::hardware {

// Of an extended generalized fat tree, by level: children of a switch, parents of a child, cables to each parent.
struct Tree {
  std::vector<std::int64_t> down, up, cables;
};

inline constexpr std::array<std::string_view, 3> kTreeNames = {"leaf", "spine", "core"};

struct Shape {
  std::int64_t devices = 0;
  Tree tree;                          // fat_tree, switch_tree
  std::int64_t spines = 0;            // rails
  std::vector<TopologyLevel> levels;  // the scale-up domain first, if there is one; sizes may be 1
};

// Of a description with all figures that its kind needs.
[[nodiscard]] Shape shape_of(const TopologySpec& spec);

}  // namespace orrery::hardware
