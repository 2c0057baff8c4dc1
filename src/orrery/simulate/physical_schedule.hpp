// How the physical machine runs a collective: the ranks' positions as a grid, and per dimension of it a schedule of
// network/moves.hpp, one after the other. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/network/moves.hpp"
#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

struct PhysicalPhase {
  network::Steps steps;          // with forward rings
  std::uint32_t dimension = 0;   // of the network; members do not differ in dimensions before it
  std::uint32_t stride = 1;      // in positions, between neighbours
  std::uint32_t first_step = 0;  // of the collective
  std::uint32_t step_count = 0;
  std::uint64_t block = 0;         // bytes
  std::uint32_t first_switch = 0;  // seat of the first line's switch, where it takes part
  bool rooted = false;             // only lines of the root's coordinates further in take part
  std::uint32_t root_rest = 0;     // the root's position modulo the stride

  [[nodiscard]] std::uint32_t coordinate(std::uint32_t position) const { return position / stride % steps.members; }
  [[nodiscard]] bool takes_part(std::uint32_t position) const { return !rooted || position % stride == root_rest; }
  // Lines along the phase, numbered by the position of their first member less this dimension.
  [[nodiscard]] std::uint32_t line(std::uint32_t position) const {
    return position / (stride * steps.members) * stride + position % stride;
  }
  [[nodiscard]] std::uint32_t first_of_line(std::uint32_t line) const {
    return line / stride * (stride * steps.members) + line % stride;
  }
};

struct PhysicalSchedule {
  std::vector<PhysicalPhase> phases;
  std::uint32_t step_count = 0;
  std::uint32_t seats = 0;  // positions, and switches that take part
  std::string algorithm;    // one per phase's dimension, inner first

  [[nodiscard]] const PhysicalPhase& phase_of(std::uint32_t step) const {
    std::size_t i = phases.size() - 1;
    while (phases[i].first_step > step) { --i; }
    return phases[i];
  }
};

// A dimension of the grid that positions form.
struct Extent {
  std::uint32_t dimension = 0;  // of the network
  std::uint32_t members = 1;
  std::uint32_t stride = 1;  // in positions
  DimensionAlgorithm algorithm;
};

// The grid of a list of ranks (all ranks: nullptr) with the dimensions in which they differ; a list that is no grid in
// the network's order is one line, in the list's order.
[[nodiscard]] std::vector<Extent> extents_of(const Network& network, const std::vector<std::uint32_t>* ranks);

// How many dimensions the ranks of a list differ in.
[[nodiscard]] std::uint32_t differing_dimensions(const Network& network, const std::vector<std::uint32_t>& ranks);

struct PhysicalRequest {
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;  // of the chunk: as Chakra counts, of an all-gather one rank's
  std::uint32_t ranks = 1;
  std::vector<Extent> extents;  // with their algorithms; inner first
  std::uint32_t root = 0;       // position
};

// Fails where an algorithm does not have the operation.
[[nodiscard]] Result<PhysicalSchedule> physical_schedule(const PhysicalRequest& request);

}  // namespace orrery::simulate
