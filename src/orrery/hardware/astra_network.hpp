// Network files of ASTRA-sim: dimensions with a wiring, a size, and the bandwidth and latency of a link; and such a
// network as the topology of a cluster (docs/models/topologies.md): the same links, with their latency in every step of
// a message between neighbours.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/hardware/topology_spec.hpp"
#include "orrery/hardware/wiring.hpp"

namespace orrery::hardware {

inline constexpr std::uint64_t kMostAstraRanks = std::uint64_t{1} << 24;

struct AstraDimension {
  Wiring wiring = Wiring::ring;
  std::uint32_t ranks = 2;
  double bytes_per_second = 1e9;  // of a link, in one direction
  double latency_ns = 0;          // of a link

  [[nodiscard]] double bytes_per_ns() const { return bytes_per_second / 1e9; }
};

// `unit`: bytes per second of a `bandwidth` of 1. All errors of the file are reported together; keys without effect
// become warnings. The first dimension varies fastest.
[[nodiscard]] Result<std::vector<AstraDimension>> read_astra_network(const std::string& path, double unit,
                                                                     std::vector<std::string>& warnings);

// Whether a file is a network of ASTRA-sim: it has npus_count.
[[nodiscard]] bool is_astra_network(const config::Node& file);
[[nodiscard]] bool is_astra_network(const std::string& path);

// As its files spell it; rails, which they cannot say, as Switch.
[[nodiscard]] std::string_view astra_name(Wiring wiring);

[[nodiscard]] TopologySpec topology_of(const std::vector<AstraDimension>& dimensions);

// A file as a topology, with 10^9 bytes in 1 GB; fails where no network can be built of it.
[[nodiscard]] Result<TopologySpec> read_astra_topology(const std::string& path, std::vector<std::string>& warnings);

}  // namespace orrery::hardware
