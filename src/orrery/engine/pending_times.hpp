// The pending times of lanes that have many of them: (lane, time) to the link of its events. A hash table with open
// addressing and linear probing; erase() moves later entries up, so that there are no tombstones. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "orrery/engine/wheel_clock.hpp"

namespace orrery::engine {

using Link = std::uint32_t;
inline constexpr Link kNoLink = std::numeric_limits<Link>::max();

class PendingTimes {
 public:
  void insert(std::uint32_t lane, Time time, Link link) {
    if (2 * (size_ + 1) > cells_.size()) { grow(); }
    std::size_t at = slot(lane, time);
    while (cells_[at].link != kNoLink) { at = (at + 1) & (cells_.size() - 1); }
    cells_[at] = {time, lane, link};
    ++size_;
  }

  [[nodiscard]] Link find(std::uint32_t lane, Time time) const {
    for (std::size_t at = slot(lane, time); cells_[at].link != kNoLink; at = (at + 1) & (cells_.size() - 1)) {
      if (cells_[at].time == time && cells_[at].lane == lane) { return cells_[at].link; }
    }
    return kNoLink;
  }

  // The entry must exist.
  void erase(std::uint32_t lane, Time time) {
    const std::size_t mask = cells_.size() - 1;
    std::size_t hole = slot(lane, time);
    while (cells_[hole].time != time || cells_[hole].lane != lane) { hole = (hole + 1) & mask; }
    for (std::size_t at = (hole + 1) & mask; cells_[at].link != kNoLink; at = (at + 1) & mask) {
      const std::size_t home = slot(cells_[at].lane, cells_[at].time);
      if (((at - home) & mask) < ((at - hole) & mask)) { continue; }  // its home is behind the hole
      cells_[hole] = cells_[at];
      hole = at;
    }
    cells_[hole].link = kNoLink;
    --size_;
  }

 private:
  struct Cell {
    Time time = 0;
    std::uint32_t lane = 0;
    Link link = kNoLink;
  };

  [[nodiscard]] std::size_t slot(std::uint32_t lane, Time time) const {
    const std::uint64_t mixed = (time ^ (std::uint64_t{lane} << 40)) * 0x9E3779B97F4A7C15U;
    return (mixed >> 32) & (cells_.size() - 1);
  }

  void grow() {
    std::vector<Cell> old(cells_.empty() ? 64 : 2 * cells_.size());
    old.swap(cells_);
    size_ = 0;
    for (const Cell& cell : old) {
      if (cell.link != kNoLink) { insert(cell.lane, cell.time, cell.link); }
    }
  }

  std::vector<Cell> cells_;
  std::size_t size_ = 0;
};

}  // namespace orrery::engine
