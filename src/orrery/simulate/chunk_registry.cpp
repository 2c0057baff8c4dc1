#include "orrery/simulate/chunk_registry.hpp"

#include <algorithm>

namespace orrery::simulate {

std::uint32_t GroupMembers::position(std::uint32_t rank) const {
  if (ranks == nullptr) { return rank; }
  return std::lower_bound(places.begin(), places.end(), std::pair{rank, 0U})->second;
}

std::size_t GroupMembers::ascending_position(std::uint32_t rank) const {
  if (!small) { return rank; }
  return static_cast<std::size_t>(std::lower_bound(places.begin(), places.end(), std::pair{rank, 0U}) - places.begin());
}

ChunkRegistry::ChunkRegistry(const SimulationJob& job) : groups_(job.groups.size() + 1) {
  const std::uint32_t count = job.network.ranks();
  groups_[kWholeMachine].ranges.resize(job.rank_graphs.size());
  for (std::uint32_t i = 0; i < job.groups.size(); ++i) {
    GroupMembers& group = groups_[i + 1];
    group.ranks = &job.groups[i].ranks;
    group.small = group.ranks->size() < count;
    for (std::uint32_t place = 0; place < group.ranks->size(); ++place) {
      group.places.emplace_back((*group.ranks)[place], place);
    }
    std::sort(group.places.begin(), group.places.end());
    group.ranges.resize(group.ranks->size());
  }
}

std::uint32_t ChunkRegistry::take_numbers(std::uint32_t rank, std::uint32_t group, std::uint32_t count) {
  ChunkRange& range = this->range(rank, group);
  const std::uint32_t first = range.next;
  range.next += count;
  return first;
}

std::uint32_t ChunkRegistry::find_or_make(std::uint32_t rank, std::uint32_t group, std::uint32_t number) {
  ChunkRange& range = this->range(rank, group);
  if (range.live == 0) {
    range.chunks.clear();
    range.base = number;
  }
  if (number < range.base) {
    range.chunks.insert(range.chunks.begin(), range.base - number, kNone);
    range.base = number;
  }
  const std::uint32_t at = number - range.base;
  if (at >= range.chunks.size()) { range.chunks.resize(at + 1, kNone); }
  if (range.chunks[at] != kNone) { return range.chunks[at]; }
  const std::uint32_t id = chunks_.take();
  Chunk& chunk = chunks_[id];
  chunk.rank = rank;
  chunk.group = group;
  chunk.id = number;
  chunk.collective = kNone;
  chunk.before = chunk.after = chunk.queue = kNone;
  chunk.not_created = 0;
  chunk.started = false;
  chunk.exchange = kNone;
  chunk.channels.clear();
  range.chunks[at] = id;
  ++range.live;
  return id;
}

std::uint32_t ChunkRegistry::find(std::uint32_t rank, std::uint32_t group, std::uint32_t number) const {
  const ChunkRange& range = groups_[group].ranges[groups_[group].position(rank)];
  if (number < range.base || number - range.base >= range.chunks.size()) { return kNone; }
  const std::uint32_t id = range.chunks[number - range.base];
  return id == kChunkDone ? kNone : id;
}

void ChunkRegistry::forget(std::uint32_t id) {
  const Chunk& chunk = chunks_[id];
  ChunkRange& range = this->range(chunk.rank, chunk.group);
  range.chunks[chunk.id - range.base] = kChunkDone;
  --range.live;
  chunks_[id].exchange = kNone;
  chunks_[id].rank = kNone;  // so that Chunk::to_chunk of another chunk does not match it
  chunks_.give_back(id);
  // Done entries at the front are erased once they are half of all, so that a range that is never empty stays short.
  if (chunk.id != range.base + range.chunks.size() / 2) { return; }
  std::size_t done = 0;
  while (done < range.chunks.size() && range.chunks[done] == kChunkDone) { ++done; }
  range.chunks.erase(range.chunks.begin(), range.chunks.begin() + static_cast<std::ptrdiff_t>(done));
  range.base += static_cast<std::uint32_t>(done);
}

}  // namespace orrery::simulate
