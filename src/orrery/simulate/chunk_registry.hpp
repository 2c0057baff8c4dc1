// The chunks of a machine, found by rank, group and number. Private to the room.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/simulate/chunk.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

inline constexpr std::uint32_t kChunkDone = kNone - 1;

// The chunks of one rank in collectives over all ranks or in a group.
struct ChunkRange {
  std::uint32_t base = 0;             // number of chunks[0]
  std::uint32_t next = 0;             // groups: the number of the next chunk
  std::uint32_t live = 0;             // number of entries that are chunks
  std::vector<std::uint32_t> chunks;  // kNone: none; kChunkDone
};

struct GroupMembers {
  const std::vector<std::uint32_t>* ranks = nullptr;            // nullptr: all
  bool small = false;                                           // fewer ranks than the machine
  std::vector<std::pair<std::uint32_t, std::uint32_t>> places;  // rank, position in the list; ascending
  std::vector<ChunkRange> ranges;                               // by position

  [[nodiscard]] std::uint32_t position(std::uint32_t rank) const;
  // The position in the ascending order of ranks, whatever the order of the list.
  [[nodiscard]] std::size_t ascending_position(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t rank_at(std::uint32_t position) const {
    return ranks != nullptr ? (*ranks)[position] : position;
  }
};

class ChunkRegistry {
 public:
  explicit ChunkRegistry(const SimulationJob& job);

  [[nodiscard]] Chunk& operator[](std::uint32_t chunk) { return chunks_[chunk]; }
  [[nodiscard]] const Chunk& operator[](std::uint32_t chunk) const { return chunks_[chunk]; }
  [[nodiscard]] std::uint32_t made() const { return chunks_.made(); }

  // The chunk, which is created if there is none; kChunkDone if it is done.
  [[nodiscard]] std::uint32_t find_or_make(std::uint32_t rank, std::uint32_t group, std::uint32_t number);
  // kNone if there is none or it is done.
  [[nodiscard]] std::uint32_t find(std::uint32_t rank, std::uint32_t group, std::uint32_t number) const;
  void forget(std::uint32_t chunk);

  // An entry of a queue that represents chunks that are created later.
  [[nodiscard]] std::uint32_t add_placeholder() { return chunks_.take(); }
  void remove_placeholder(std::uint32_t chunk) { chunks_.give_back(chunk); }

  // Reserves the numbers of `count` chunks of a group on one of its ranks. Returns the first.
  [[nodiscard]] std::uint32_t take_numbers(std::uint32_t rank, std::uint32_t group, std::uint32_t count);

  [[nodiscard]] const GroupMembers& group(std::uint32_t number) const { return groups_[number]; }

 private:
  [[nodiscard]] ChunkRange& range(std::uint32_t rank, std::uint32_t group) {
    return groups_[group].ranges[groups_[group].position(rank)];
  }

  Pool<Chunk> chunks_;
  std::vector<GroupMembers> groups_;  // [kWholeMachine]: all ranks
};

}  // namespace orrery::simulate
