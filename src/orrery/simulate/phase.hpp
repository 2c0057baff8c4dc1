// A collective as the phases that each of its chunks goes through: one algorithm on one dimension after another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

// The ranks that a phase runs among, seen from one of them: every stride-th of the machine, or a group as it is listed.
struct Ring {
  std::uint32_t size = 1;
  std::uint32_t stride = 1;
  const std::vector<std::uint32_t>* members = nullptr;  // a group smaller than the machine; else nullptr

  [[nodiscard]] std::uint32_t position(std::uint32_t rank) const;
  // The rank at a position, for the one that `rank` (at position `here`) is part of.
  [[nodiscard]] std::uint32_t at(std::uint32_t position, std::uint32_t rank, std::uint32_t here) const {
    return members != nullptr ? (*members)[position] : rank - here * stride + position * stride;
  }
};

// Which of a dimension's queues the chunks of a phase use in turn (round robin).
enum class Turn : std::uint8_t { any, first, second };

struct ChunkPhase {
  Collective collective = Collective::all_reduce;
  CollectiveAlgorithm method = CollectiveAlgorithm::ring;
  Ring ring;
  std::uint32_t dimension = 0;  // whose queues it waits in
  Turn turn = Turn::any;
  // Chunks use queues, and the two trees, in turn. Of the phases of a sequence, so many share this phase's turns, and
  // it is number so-and-so among them.
  std::uint32_t turn_uses = 1, turn_number = 0;
  std::uint32_t tree_uses = 1, tree_number = 0;
  std::uint64_t size = 0;     // bytes of the chunk when the phase starts
  std::uint32_t window = 1;   // slots that are open at first
  std::uint32_t sends = 0;    // messages of each rank
  std::uint32_t period = 1;   // slots of a round
  std::uint64_t message = 0;  // bytes of a message, where all are equal
  std::uint64_t endpoint_ns = 0;
  bool uses_bus = false;  // messages reach memory over the shared bus
  // Nanoseconds to reduce a message; reduction_of() where messages differ.
  std::uint64_t reduction_ns = 0;
};

struct PhaseSequence {
  std::vector<ChunkPhase> phases;
  std::string custom;  // graphs instead of phases: their prefix
};

// A time that the clock cannot hold.
struct TooLong {};

// Cut to whole nanoseconds; throws TooLong.
[[nodiscard]] std::uint64_t whole_ns(double nanoseconds);

// 3 x the time to move the bytes through local memory (read, read, write), each cut to whole nanoseconds.
[[nodiscard]] std::uint64_t reduction_ns(const System& system, std::uint64_t bytes);

// The bytes of message number `slot` of a phase of halving and doubling, and how far away its partner is.
struct Exchange {
  std::uint64_t bytes = 0;
  std::uint32_t distance = 1;
};
[[nodiscard]] Exchange exchange(const ChunkPhase& phase, std::uint32_t slot);

// How a collective is split: chunks of equal size, the last one too, so that more bytes can be sent than the node has.
struct Split {
  std::uint64_t chunk = 0;
  std::uint64_t count = 0;
};
[[nodiscard]] Split split(Collective collective, std::uint64_t bytes, std::uint32_t splits, std::uint32_t ranks);

struct PhaseRequest {
  Collective collective = Collective::all_reduce;
  std::uint64_t chunk = 0;                              // bytes
  const std::vector<std::uint32_t>* members = nullptr;  // a group smaller than the machine
  std::uint16_t dimensions = 0xFFFF;                    // involved, a bit each
};

// Fails where an algorithm does not have the collective.
[[nodiscard]] Result<PhaseSequence> phase_sequence(const Network& network, const System& system,
                                                   const PhaseRequest& request);

}  // namespace orrery::simulate
