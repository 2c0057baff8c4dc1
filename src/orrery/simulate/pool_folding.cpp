#include "orrery/simulate/pool_folding.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace orrery::simulate {

PoolBlocks::PoolBlocks(const std::vector<hardware::PoolLevel>& levels, std::vector<std::uint32_t> devices)
    : devices_(std::move(devices)) {
  for (const hardware::PoolLevel& level : levels) { sizes_.push_back(static_cast<std::uint32_t>(level.devices)); }
}

std::vector<std::vector<std::uint32_t>> PoolBlocks::ranks_by_block(std::size_t level) const {
  std::vector<std::vector<std::uint32_t>> blocks;
  for (std::uint32_t rank = 0; rank < devices_.size(); ++rank) {
    const std::uint32_t number = block(level, rank);
    if (number >= blocks.size()) { blocks.resize(number + 1); }
    blocks[number].push_back(rank);
  }
  return blocks;
}

std::vector<std::uint32_t> PoolBlocks::contents(std::size_t level, std::span<const std::uint32_t> colours) const {
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers;
  std::vector<std::uint32_t> of(devices_.size());
  for (const auto& ranks : ranks_by_block(level)) {
    std::vector<std::uint32_t> words;
    for (const std::uint32_t rank : ranks) { words.push_back(colours[rank]); }
    std::sort(words.begin(), words.end());
    const auto next = static_cast<std::uint32_t>(numbers.size());
    const std::uint32_t number = numbers.try_emplace(std::move(words), next).first->second;
    for (const std::uint32_t rank : ranks) { of[rank] = number; }
  }
  return of;
}

bool PoolBlocks::are_alike(std::span<const std::uint32_t> colours) const {
  for (std::size_t level = 0; level < levels(); ++level) {
    const std::vector<std::uint32_t> all = contents(level, colours);
    std::map<std::uint32_t, std::uint32_t> of_colour;
    for (std::uint32_t rank = 0; rank < devices_.size(); ++rank) {
      if (of_colour.try_emplace(colours[rank], all[rank]).first->second != all[rank]) { return false; }
    }
  }
  return true;
}

std::vector<std::vector<PoolPlaces::Place>> PoolBlocks::places(std::span<const std::uint32_t> colours) const {
  std::vector<std::vector<PoolPlaces::Place>> made;
  for (std::size_t level = 0; level < levels(); ++level) {
    std::vector<PoolPlaces::Place>& of = made.emplace_back();
    for (const auto& ranks : ranks_by_block(level)) {
      std::map<std::uint32_t, std::uint32_t> count;
      for (const std::uint32_t rank : ranks) { ++count[colours[rank]]; }
      for (const auto& [colour, copies] : count) {
        if (colour >= of.size()) { of.resize(colour + 1); }
        of[colour] = {count.begin()->first, copies};  // blocks of the same contents have the same first colour
      }
    }
  }
  return made;
}

std::unordered_map<std::uint32_t, std::uint32_t> PoolBlocks::members_by_block(
    std::size_t level, std::span<const std::uint32_t> members) const {
  std::unordered_map<std::uint32_t, std::uint32_t> counts;
  for (const std::uint32_t member : members) { ++counts[block(level, member)]; }
  return counts;
}

std::uint32_t PoolBlocks::near(std::size_t level, std::uint32_t rank, std::span<const std::uint32_t> members) const {
  return static_cast<std::uint32_t>(std::count_if(members.begin(), members.end(), [&](std::uint32_t member) {
    return block(level, member) == block(level, rank);
  }));
}

std::vector<std::uint32_t> devices_on(const parallel::Layout& layout, std::uint32_t ranks) {
  std::vector<std::uint32_t> devices;
  devices.reserve(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    devices.push_back(static_cast<std::uint32_t>(parallel::device_of(layout, rank)));
  }
  return devices;
}

}  // namespace orrery::simulate
