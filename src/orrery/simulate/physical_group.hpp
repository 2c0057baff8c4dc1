// A group of ranks, and the grid of network dimensions that they form. Private to the room.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/simulate/physical_schedule.hpp"

namespace orrery::simulate {

struct PhysicalGroup {
  const std::vector<std::uint32_t>* ranks = nullptr;            // nullptr: all
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // rank, position; ascending
  std::vector<Extent> extents;
  bool is_line = false;               // not a grid of the network's dimensions
  std::vector<std::uint32_t> images;  // of SimulationJob::images: by position, that of the rank simulated in its place
  std::uint32_t simulated = 0;        // ranks

  [[nodiscard]] std::uint32_t rank(std::uint32_t position) const {
    return ranks == nullptr ? position : (*ranks)[position];
  }
  [[nodiscard]] std::uint32_t position(std::uint32_t rank) const;
};

}  // namespace orrery::simulate
