// What a simulation says: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/results/simulation_tables.hpp"

namespace orrery::results {

struct SimulatedRank {
  std::uint64_t finish_ns = 0;
  std::uint64_t exposed_comm_ns = 0;  // finish less computing; may wrap around in astra-sim semantics, see its page
  std::uint64_t compute_ns = 0;       // of the accelerator, whatever ran beside it
  std::uint64_t memory_ns = 0;        // of nodes that reach for memory elsewhere, waiting included
  // Until the finish, with nothing running but receives that nobody has sent to yet.
  std::uint64_t idle_ns = 0;

  friend bool operator==(const SimulatedRank&, const SimulatedRank&) = default;
};

// A node, from its start to its end.
struct SimulatedSpan {
  enum class Row : std::uint8_t { host, accelerator, communication, receive };
  std::uint32_t rank = 0;
  Row row = Row::host;
  std::uint64_t node = 0;  // id
  std::uint64_t start_ns = 0, end_ns = 0;
  std::string name;
};

struct Simulation {
  std::string semantics;  // "astra-sim"
  std::string backend;    // "congestion-unaware", "congestion-aware"
  std::vector<SimulatedRank> ranks;
  std::vector<std::string> warnings;
  std::vector<SimulatedSpan> spans;        // in the order of their ends, where they were asked for
  std::optional<SimulationTables> tables;  // where they were asked for
  std::uint64_t nodes = 0;                 // of all graphs
  std::uint64_t events = 0;
  std::uint64_t messages = 0;  // that arrived
  std::uint64_t simulated_ranks = 0;
  double wall_s = 0;             // of the caller
  std::uint64_t peak_rss_B = 0;  // of the caller

  [[nodiscard]] std::uint64_t makespan_ns() const {
    std::uint64_t last = 0;
    for (const SimulatedRank& rank : ranks) { last = rank.finish_ns > last ? rank.finish_ns : last; }
    return last;
  }
};

}  // namespace orrery::results
