// A communicator (process group) for the network: how many members it has along each dimension.
#pragma once

#include <cstdint>

#include "orrery/hardware/cluster.hpp"
#include "orrery/network/inline_list.hpp"

namespace orrery::network {

inline constexpr int kMaxExtents = hardware::kMaxDimensions;  // dimensions that one group may span

// Members of the group that differ only in their coordinate along one dimension.
struct Extent {
  int dimension = 0;         // index into Cluster::dimensions
  std::int64_t members = 1;  // at least 2

  friend bool operator==(const Extent&, const Extent&) = default;
};

// Extents innermost first; empty for a group of one. size = product of members.
struct Group {
  InlineList<Extent, kMaxExtents> extents;
  bool regular = true;  // false: nodes have unequal member counts; all traffic is charged to the outermost dimension

  [[nodiscard]] std::int64_t size() const {
    std::int64_t product = 1;
    for (const auto& extent : extents) { product *= extent.members; }
    return product;
  }
  friend bool operator==(const Group&, const Group&) = default;
};

}  // namespace orrery::network
