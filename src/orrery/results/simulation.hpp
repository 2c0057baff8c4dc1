// The result of a simulation: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/results/critical_path.hpp"
#include "orrery/results/memory_time.hpp"
#include "orrery/results/rank_runs.hpp"
#include "orrery/results/simulation_tables.hpp"

namespace orrery::results {

struct SimulatedRank {
  std::uint64_t finish_ns = 0;
  std::uint64_t exposed_comm_ns = 0;  // finish - compute; can wrap around in astra-sim semantics (docs/models)
  std::uint64_t compute_ns = 0;       // of the accelerator, overlapped or not
  std::uint64_t memory_ns = 0;        // of accesses to remote memory, waiting included
  // Until the finish, with nothing running except receives whose message has not been sent.
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
  // Of a kernel of a plan's training step: the micro-batch, 0 to m - 1, and the chunk of its pipeline stage.
  std::optional<std::int64_t> micro_batch = {};
  std::int32_t chunk = 0;
};

// Kernels of a rank with their operations and bytes of device memory, and those without such figures. Times without
// what communication beside them costs.
struct RooflineRank {
  double operations = 0, bytes = 0;
  std::uint64_t kernels = 0, kernel_ps = 0;
  std::uint64_t memory_bound_ps = 0;  // of kernels whose bytes at the memory's peak take longer than their operations
  std::uint64_t without_figures = 0, without_figures_ps = 0;
  std::uint64_t finish_ps = 0;            // of the rank
  double peak_flops = 0, memory_Bps = 0;  // peaks of its accelerator; 0: not known

  friend bool operator==(const RooflineRank&, const RooflineRank&) = default;
};

struct FlopsPart {
  std::string name;
  double flops = 0;
};

struct Roofline {
  RankRuns<RooflineRank> ranks;
  double hfu_flops = 0;                    // of all ranks, as the estimate's HFU counts them; 0: not a training plan
  std::vector<FlopsPart> beyond_hfu = {};  // operations of all ranks less those

  [[nodiscard]] double operations() const {  // of all ranks
    double sum = 0;
    for (const auto& run : ranks.runs()) { sum += static_cast<double>(run.end - run.first) * run.value.operations; }
    return sum;
  }
};

struct EnergyPart {
  std::string name;   // "accelerators, kernels"
  double joules = 0;  // of the whole job
  std::string basis;  // figures and whether they are priors
};

struct SimulatedEnergy {
  std::vector<EnergyPart> parts;
  std::vector<std::string> missing;  // what is not counted, with the key of the figure

  [[nodiscard]] double joules() const {
    double sum = 0;
    for (const EnergyPart& part : parts) { sum += part.joules; }
    return sum;
  }
};

// Two kinds of traffic that shared full ports of a dimension. Sums over the calls of `kind` that a device takes part
// in, as means over all devices.
struct SimulatedContention {
  std::string kind, other;
  std::string dimension;
  std::uint64_t together_ps = 0;
  std::uint64_t lost_ps = 0;  // by which the calls of `kind` took longer

  friend bool operator==(const SimulatedContention&, const SimulatedContention&) = default;
};

// What the traffic of a kind had of a link of a topology.
struct LinkUse {
  std::string kind;
  std::uint32_t link = 0;  // number
  std::string from, to;    // names of nodes
  double bandwidth_Bps = 0;
  std::uint64_t busy_ps = 0;  // that it needed of the link, if alone
  std::uint64_t lost_ps = 0;  // by which its calls took longer because the link was full, summed over their devices
};

struct Simulation {
  std::string semantics;  // "astra-sim"
  std::string backend;    // "congestion-unaware", "congestion-aware", "flow"
  RankRuns<SimulatedRank> ranks;
  std::vector<std::string> warnings;
  std::vector<SimulatedSpan> spans;             // in the order of their ends, if requested
  std::optional<SimulationTables> tables;       // if requested
  std::vector<SimulatedContention> contention;  // backend "flow": the largest loss first
  std::vector<LinkUse> link_uses;               // backend "flow" on a topology, if requested
  std::optional<Roofline> roofline;             // physical semantics, if requested
  std::optional<SimulatedEnergy> energy;        // back end flow, if requested
  std::optional<MemoryOverTime> memory;         // plans, if requested
  std::optional<CriticalPath> path;             // physical semantics, if requested
  std::uint64_t nodes = 0;                      // of all simulated graphs
  std::uint64_t events = 0;
  std::uint64_t messages = 0;                    // delivered
  std::optional<std::uint64_t> in_switch_calls;  // on a topology whose switches reduce: collectives in switches
  std::uint64_t simulated_ranks = 0;
  // If one simulated rank stands for several: by simulated rank, the rank that spans and tables name. Rows of
  // SimulationTables::ranks are simulated ranks.
  std::vector<std::uint32_t> representatives;
  double wall_s = 0;                        // set by the caller
  std::optional<double> comparison_wall_s;  // of it, for comparing graphs to find ranks that fold
  std::uint64_t peak_rss_B = 0;             // set by the caller

  [[nodiscard]] std::uint64_t makespan_ns() const {
    std::uint64_t last = 0;
    for (const auto& run : ranks.runs()) { last = run.value.finish_ns > last ? run.value.finish_ns : last; }
    return last;
  }
};

}  // namespace orrery::results
