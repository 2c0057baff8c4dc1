// A pool of memory as ports: each level of the way to it (hardware::PoolLevel) has one for each block of neighbours
// that share it, in each direction. An access is striped over the units of a level, so it has a part of the whole
// capacity. Private to the room.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/simulate/flow_job.hpp"

namespace orrery::simulate {

class PoolLevels {
 public:
  explicit PoolLevels(const FlowJob& job);

  [[nodiscard]] std::uint32_t ports() const { return ports_; }

  // What an access of `bytes` needs of each level while it has the level to itself: its port (0 .. ports() - 1) and
  // time.
  struct Need {
    std::uint32_t port = 0;
    std::uint32_t copies = 1;  // accesses like it on the port, in a folded job
    Seconds time;
  };
  [[nodiscard]] std::vector<Need> needs(std::uint32_t rank, const NodeTask& task) const;

  // The level, or the device's own link, that limits an access without others, and the time of its bytes.
  [[nodiscard]] std::pair<std::string, Seconds> slowest(std::uint32_t rank, const NodeTask& task) const;

 private:
  [[nodiscard]] std::uint32_t device(std::uint32_t rank) const { return devices_.empty() ? rank : devices_[rank]; }
  [[nodiscard]] PoolPlaces::Place place(std::uint32_t rank, std::size_t level) const;
  [[nodiscard]] double members_near(std::uint32_t rank, const NodeTask& task, std::size_t level) const;

  [[nodiscard]] double count_near(std::uint32_t group, std::int64_t block, std::int64_t devices) const;

  const FlowJob& job_;
  const std::vector<std::uint32_t>& devices_;  // by rank; empty: the ranks
  mutable std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t>, double> members_;  // by group, block, devices
  std::vector<std::uint32_t> first_;                                                         // port of each level
  std::uint32_t ports_ = 0;
};

}  // namespace orrery::simulate
