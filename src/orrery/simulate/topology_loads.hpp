// What collectives and messages put on the links of a cluster's topology (docs/models/topologies.md). Private to the
// room.
//
// The messages are those of the schedule that the closed form chose: ring phases send to the next member of each line
// (both ways round where the line is a ring of links), all others as their member schedules say. A switch that takes
// part in a collective is not a node of the topology; its members' bytes count as on a ring. Bytes of a phase are those
// of its busiest member for all members.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/hardware/routes.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/schedule.hpp"
#include "orrery/parallel/layout.hpp"

namespace orrery::simulate {

class TopologyLoads {
 public:
  // The cluster has a topology. `devices`: by rank.
  TopologyLoads(const hardware::Cluster& cluster, const std::vector<std::uint32_t>& devices);

  struct Load {
    std::uint32_t link = 0;
    double bytes = 0;
  };
  // `ranks`: the members; their devices fill the shape as a grid, or it is irregular.
  [[nodiscard]] std::vector<Load> collective(const network::Schedule& schedule, const network::Group& shape,
                                             const std::vector<std::uint32_t>& ranks);
  [[nodiscard]] std::vector<Load> message(std::uint32_t from, std::uint32_t to, double bytes);

  // Of a message between two ranks on its route, see hardware::added_latency.
  [[nodiscard]] Seconds added_latency(std::uint32_t from, std::uint32_t to);

  // The link has failed for good: routes of later loads avoid it. Messages without another route keep theirs.
  void close(std::uint32_t link);
  [[nodiscard]] std::uint32_t failures() const { return failures_; }  // links that have failed

  [[nodiscard]] std::uint32_t device_of(std::uint32_t rank) const { return devices_[rank]; }
  // Between two devices: without the links that have failed, if that leaves a route.
  [[nodiscard]] hardware::Routes& routes(std::uint32_t from, std::uint32_t to) {
    return detours_ && detours_->reaches(from, to) ? *detours_ : routes_;
  }

  [[nodiscard]] const hardware::Topology& topology() const { return topology_; }

 private:
  using Line = std::vector<std::uint32_t>;  // devices, in the order of their positions
  [[nodiscard]] std::vector<Line> lines_along(int dimension, bool is_regular,
                                              const std::vector<std::uint32_t>& ranks) const;
  void add_phase(const network::Schedule& schedule, const network::SchedulePhase& phase, const Line& line);
  void add_ring(const Line& line, double bytes, bool both_ways);
  void send(std::uint32_t from, std::uint32_t to, double bytes);
  [[nodiscard]] std::vector<Load> taken();

  hardware::Topology topology_;
  hardware::Routes routes_;
  std::optional<hardware::Routes> detours_;  // without the links that have failed
  std::uint32_t failures_ = 0;
  std::vector<std::uint32_t> devices_;
  std::vector<std::int64_t> strides_;  // of the levels, in devices
  std::vector<double> bytes_;          // by link
};

// Of a rank on a topology: its position on each dimension of the (perhaps partly used) cluster.
[[nodiscard]] std::vector<std::uint32_t> devices_of(const hardware::Cluster& cluster, const parallel::Layout& layout,
                                                    std::uint32_t ranks);

}  // namespace orrery::simulate
