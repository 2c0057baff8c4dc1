// Routes between the devices of a topology, by its routing policy.
//
// Shortest: the fewest links. Devices do not pass on traffic of others unless Topology::devices_forward; two devices of
// one scale-up domain use its switch. Distances to a switch (or a device that forwards) are searched once and kept.
// After close(), the policy chooses among the shortest routes that the other links leave.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "orrery/hardware/topology.hpp"

namespace orrery::hardware {

class Routes {
 public:
  explicit Routes(const Topology& topology);

  // The links of a message, in order. `seed`: another one may take another way (ecmp, valiant). spread: one of its
  // ways, by the seed. adaptive: see `charge`.
  [[nodiscard]] std::vector<std::uint32_t> route(std::uint32_t from, std::uint32_t to, std::uint64_t seed = 0);

  // Adds `amount` to load[link] for each link of the message; spread adds parts. adaptive chooses the way with the
  // least load / bandwidth so far, link by link.
  void charge(std::uint32_t from, std::uint32_t to, double amount, std::vector<double>& load);

  // The shortest route whose next link has the least load / bandwidth, link by link; `load`: by link.
  [[nodiscard]] std::vector<std::uint32_t> route_by_load(std::uint32_t from, std::uint32_t to,
                                                         std::span<const double> load);

  // No route uses the link from now on. One direction of a cable.
  void close(std::uint32_t link);
  // Whether a route is left; route() and charge() need one.
  [[nodiscard]] bool reaches(std::uint32_t from, std::uint32_t to) { return remaining(from, to) != kFar; }

  // Links on a shortest route.
  [[nodiscard]] std::uint32_t distance(std::uint32_t from, std::uint32_t to);

  [[nodiscard]] const Topology& topology() const { return topology_; }

 private:
  static constexpr std::uint16_t kFar = 0xFFFF;
  // Distances from all nodes to one, without passing devices that do not forward.
  const std::vector<std::uint16_t>& distances_to(std::uint32_t node);
  // Of `node` to the device `to`.
  [[nodiscard]] std::uint16_t remaining(std::uint32_t node, std::uint32_t to);
  void prepare(std::uint32_t to);
  [[nodiscard]] bool are_of_one_domain(std::uint32_t a, std::uint32_t b) const;
  [[nodiscard]] bool is_way(std::uint32_t link, std::uint32_t to);
  [[nodiscard]] std::span<const std::uint32_t> ways(std::uint32_t node, std::uint32_t to);
  [[nodiscard]] std::span<const std::uint32_t> ways_of_switch(std::uint32_t node, std::uint32_t to);
  [[nodiscard]] std::span<const std::uint32_t> scanned_ways(std::uint32_t node, std::uint32_t to);
  [[nodiscard]] std::uint32_t middle(std::uint32_t from, std::uint32_t to, std::uint64_t seed);
  template <class Choose, class Take>
  void walk(std::uint32_t from, std::uint32_t to, Choose&& choose, Take&& take);
  // The links of route(), one by one.
  template <class Take>
  void follow(std::uint32_t from, std::uint32_t to, std::uint64_t seed, Take&& take);
  void spread(std::uint32_t from, std::uint32_t to, double amount, std::vector<double>& load);

  const Topology& topology_;
  std::vector<std::uint32_t> first_, out_;  // links out of a node
  std::vector<std::uint8_t> closed_;        // by link
  bool has_closed_ = false;
  std::vector<std::vector<std::uint16_t>> tables_;  // by node; empty: not searched yet
  std::uint32_t target_;                            // the device of `ends_`
  std::vector<std::pair<std::uint32_t, const std::vector<std::uint16_t>*>>
      ends_;  // nodes that lead to it, their tables
  std::vector<std::uint32_t> ways_;
  struct Slice {
    std::uint32_t first = 0, count = 0;
  };
  std::vector<std::vector<Slice>> known_ways_;  // of known_links_, by switch of the device and switch; count 0: not yet
  std::vector<std::uint32_t> known_links_;
};

// Of a message on a route, beyond the latency of its link class, which has one switch: switch_latency for every node
// between the two devices, without one switch.
[[nodiscard]] Seconds added_latency(const Topology& topology, std::span<const std::uint32_t> route);

// The least bandwidth / load of a link with load.
[[nodiscard]] double least_rate(const Routes& routes, std::span<const double> load);

// Bytes/s of each device when devices send as `peers` lists them, all at once and at one rate: the peers of a device x
// the least bandwidth / messages of a link.
[[nodiscard]] double rate_of_pattern(Routes& routes,
                                     const std::function<std::vector<std::uint32_t>(std::uint32_t)>& peers);

}  // namespace orrery::hardware
