// Folding on the levels of a pool of memory. Ranks of one colour see the same environment if their blocks on every
// level have as many ranks of every colour. Private to the room.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/layout.hpp"
#include "orrery/simulate/flow_job.hpp"

namespace orrery::simulate {

class PoolBlocks {
 public:
  // `devices`: by rank.
  PoolBlocks(const std::vector<hardware::PoolLevel>& levels, std::vector<std::uint32_t> devices);

  [[nodiscard]] std::size_t levels() const { return sizes_.size(); }

  // What a rank's block of a level consists of: the same number for blocks with as many ranks of every colour. By rank.
  [[nodiscard]] std::vector<std::uint32_t> contents(std::size_t level, std::span<const std::uint32_t> colours) const;

  // Whether the blocks of all ranks of a colour have the same contents, on every level.
  [[nodiscard]] bool are_alike(std::span<const std::uint32_t> colours) const;

  // By level and colour, if they are. Colours are numbered in the order of their first ranks.
  [[nodiscard]] std::vector<std::vector<PoolPlaces::Place>> places(std::span<const std::uint32_t> colours) const;

  [[nodiscard]] std::uint32_t block(std::size_t level, std::uint32_t rank) const {
    return devices_[rank] / sizes_[level];
  }

  // Members of a group in each block that has any, by block. In time in proportion to the members.
  [[nodiscard]] std::unordered_map<std::uint32_t, std::uint32_t> members_by_block(
      std::size_t level, std::span<const std::uint32_t> members) const;
  // The same for the block of one rank.
  [[nodiscard]] std::uint32_t near(std::size_t level, std::uint32_t rank, std::span<const std::uint32_t> members) const;

 private:
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> ranks_by_block(std::size_t level) const;

  std::vector<std::uint32_t> sizes_;  // of blocks, by level
  std::vector<std::uint32_t> devices_;
};

// By rank.
[[nodiscard]] std::vector<std::uint32_t> devices_on(const parallel::Layout& layout, std::uint32_t ranks);

}  // namespace orrery::simulate
