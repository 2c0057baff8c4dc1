// A collective as the sequence of phases of each of its chunks. A phase is one algorithm on one dimension.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

// The ranks among which a phase runs: every stride-th rank of the machine, or a group in the order of its list.
struct Ring {
  std::uint32_t size = 1;
  std::uint32_t stride = 1;
  const std::vector<std::uint32_t>* members = nullptr;  // a group smaller than the machine; else nullptr

  [[nodiscard]] std::uint32_t position(std::uint32_t rank) const;
  // The rank at a position of the ring that contains `rank` at position `here`.
  [[nodiscard]] std::uint32_t at(std::uint32_t position, std::uint32_t rank, std::uint32_t here) const {
    return members != nullptr ? (*members)[position] : rank - here * stride + position * stride;
  }
};

// The queues of a dimension that the chunks of a phase use round-robin.
enum class QueueSet : std::uint8_t { all, first_half, second_half };

struct ChunkPhase {
  Collective collective = Collective::all_reduce;
  CollectiveAlgorithm method = CollectiveAlgorithm::ring;
  Ring ring;
  std::uint32_t dimension = 0;  // in whose queues the chunk waits
  QueueSet queue_set = QueueSet::all;
  // Chunks use queues, and the two trees, round-robin. queue_uses: the number of phases of the sequence that use the
  // same queues; queue_use: the index of this phase among them. Likewise for trees.
  std::uint32_t queue_uses = 1, queue_use = 0;
  std::uint32_t tree_uses = 1, tree_use = 0;
  std::uint64_t size = 0;      // bytes of the chunk when the phase starts
  std::uint32_t window = 1;    // slots that are open at the start
  std::uint32_t sends = 0;     // messages of each rank
  std::uint32_t period = 1;    // slots of a round
  std::uint64_t message = 0;   // bytes of a message, if all are equal; in a switch, of what a member sends
  std::uint64_t returned = 0;  // in a switch: of what a member gets back
  std::uint64_t endpoint_ns = 0;
  bool uses_bus = false;  // messages reach memory over the shared bus
  // Nanoseconds to reduce a message; reduction_ns() if sizes of messages differ.
  std::uint64_t reduction_ns = 0;
};

struct PhaseSequence {
  std::vector<ChunkPhase> phases;
  std::string custom;  // graphs instead of phases: their prefix
};

// Thrown for a time that the clock cannot represent.
struct TooLong {};

// Cut to whole nanoseconds; throws TooLong.
[[nodiscard]] std::uint64_t whole_ns(double nanoseconds);

// 3 x the time to move the bytes through local memory (read, read, write), each cut to whole nanoseconds.
[[nodiscard]] std::uint64_t reduction_ns(const System& system, std::uint64_t bytes);

// The bytes of message number `slot` of a phase of halving and doubling, and the distance of its partner.
struct Exchange {
  std::uint64_t bytes = 0;
  std::uint32_t distance = 1;
};
[[nodiscard]] Exchange exchange(const ChunkPhase& phase, std::uint32_t slot);

// The chunks of a collective, all of equal size. The last one too, so that more bytes can be sent than the node has.
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
  const std::vector<std::uint32_t>* order = nullptr;    // of dimensions, instead of the default one (themis.hpp)
};

// Of the whole machine: by dimension, whether a chunk has a phase there. `flat`: one phase over all ranks.
struct ActiveDimensions {
  std::vector<bool> involved;
  bool flat = false;
};
[[nodiscard]] ActiveDimensions active_dimensions_of(const Network& network, const System& system,
                                                    const PhaseRequest& request);

// Fails if an algorithm does not support the collective.
[[nodiscard]] Result<PhaseSequence> phase_sequence(const Network& network, const System& system,
                                                   const PhaseRequest& request);

}  // namespace orrery::simulate
