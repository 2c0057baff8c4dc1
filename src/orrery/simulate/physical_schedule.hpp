// How the physical machine runs a collective: the positions of the ranks form a grid, and the dimensions of the grid
// run one network::MemberSchedule each, one after the other. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/engine/divisor.hpp"
#include "orrery/network/member_schedule.hpp"
#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

struct PhysicalPhase {
  network::MemberSchedule schedule;  // rings are forward
  std::uint32_t dimension = 0;       // of the network; members do not differ in dimensions before it
  std::uint32_t stride = 1;          // in positions, between neighbours
  std::uint32_t first_step = 0;      // of the collective
  std::uint32_t step_count = 0;
  std::uint64_t block = 0;         // bytes
  std::uint32_t first_switch = 0;  // participant number of the first line's switch, if switches take part
  bool rooted = false;             // only lines with the root's coordinates in the inner dimensions take part
  std::uint32_t root_rest = 0;     // the root's position modulo the stride

  engine::Divisor by_members, by_stride;

  [[nodiscard]] std::uint32_t coordinate(std::uint32_t position) const {
    return by_members.remainder(by_stride.quotient(position));
  }
  [[nodiscard]] bool takes_part(std::uint32_t position) const { return !rooted || position % stride == root_rest; }
  // The number of the line (positions that differ only along the phase) of a position, and its first position.
  [[nodiscard]] std::uint32_t line(std::uint32_t position) const {
    return position / (stride * schedule.members) * stride + position % stride;
  }
  [[nodiscard]] std::uint32_t first_of_line(std::uint32_t line) const {
    return line / stride * (stride * schedule.members) + line % stride;
  }
};

// A step, with its messages if they are the same for all members up to a translation: in rings and direct. The i-th
// message goes to the member at distance `distance` + i; of a backward ring, at that distance in the other direction.
struct PhysicalStep {
  std::uint64_t bytes = 0;     // of a message
  std::uint32_t messages = 0;  // that each member sends, and receives
  std::uint32_t distance = 0;
  std::uint16_t phase = 0;
  bool is_uniform = false;  // the figures above are valid
  bool reduces = false;
};

struct PhysicalSchedule {
  std::vector<PhysicalPhase> phases;
  std::vector<PhysicalStep> steps;
  std::uint32_t step_count = 0;
  std::uint32_t participant_count = 0;  // positions, and switches that take part
  std::string algorithm;                // one per phase's dimension, inner first

  [[nodiscard]] const PhysicalPhase& phase_of(std::uint32_t step) const { return phases[steps[step].phase]; }
};

// A dimension of the grid that positions form.
struct Extent {
  std::uint32_t dimension = 0;  // of the network
  std::uint32_t members = 1;
  std::uint32_t stride = 1;  // in positions
  DimensionAlgorithm algorithm;
};

// The dimensions of the grid that a list of ranks forms (all ranks: nullptr). A list that is not a grid in the order of
// the network is one line, in the order of the list.
[[nodiscard]] std::vector<Extent> extents_of(const Network& network, const std::vector<std::uint32_t>* ranks);

// The number of dimensions in which the ranks of a list differ.
[[nodiscard]] std::uint32_t differing_dimensions(const Network& network, const std::vector<std::uint32_t>& ranks);

struct PhysicalRequest {
  Collective collective = Collective::all_reduce;
  std::uint64_t bytes = 0;  // of the chunk, as Chakra counts: for an all-gather those of one rank
  std::uint32_t ranks = 1;
  std::vector<Extent> extents;  // with their algorithms; inner first
  std::uint32_t root = 0;       // position
};

// Fails if an algorithm does not support the collective.
[[nodiscard]] Result<PhysicalSchedule> physical_schedule(const PhysicalRequest& request);

}  // namespace orrery::simulate
