// A simulation job: all inputs, read and checked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/network/chunk_order.hpp"
#include "orrery/simulate/custom_program.hpp"
#include "orrery/simulate/inputs.hpp"
#include "orrery/simulate/link_changes.hpp"
#include "orrery/simulate/rank_graphs.hpp"
#include "orrery/simulate/read_inputs.hpp"
#include "orrery/simulate/stragglers.hpp"

namespace orrery::simulate {

enum class Backend : std::uint8_t { congestion_unaware, congestion_aware, flow };

struct SimulationJob {
  Semantics semantics = Semantics::astra_sim;
  Backend backend = Backend::congestion_unaware;
  Network network;
  System system;
  memory::Expansion memory;
  std::vector<Group> groups;
  std::vector<KernelRates> kernel_rates;  // by rank, on nodes of several kinds; empty: those of the system
  RankGraphs rank_graphs;                 // by rank
  std::vector<std::string> files;         // of the graphs, by rank
  std::vector<std::uint32_t>
      real_ranks;  // folded jobs (class_job.hpp): by rank, the number of the rank whose graph it is
  // Jobs on physical links of which one rank of each class is simulated (physical_classes.hpp): by rank, the rank that
  // is simulated in its place. The others have no nodes. Empty: every rank is simulated.
  std::vector<std::uint32_t> images;
  std::map<std::string, std::vector<CustomProgram>> customs;  // by prefix, then position
  Warnings warnings;
  // Why custom collectives would not end with their own messages only; messages of nodes may complete them.
  std::vector<Diagnostic> possible_deadlocks;
  bool spans = false;             // record the start and end of every node
  bool tables = false;            // collect results::SimulationTables; needs spans
  bool explain = false;           // find results::CriticalPath; needs spans
  bool roofline = false;          // find results::Roofline, under physical semantics
  bool energy = false;            // find results::SimulatedEnergy, back end flow
  bool memory_over_time = false;  // find results::MemoryOverTime from the tensors of graphs; needs spans
  std::optional<network::ChunkOrder> chunk_order = {};  // of collectives over several dimensions, back end flow
  bool by_message = false;  // collectives on a topology as messages (stepped_calls.hpp), back end flow
};

// Where the inputs are, as on ASTRA-sim's command line.
struct SimulationFiles {
  std::string workload;             // PREFIX of PREFIX.<rank>.et
  std::vector<std::string> graphs;  // by rank, instead
  std::string system, network, memory;
  std::string groups;  // empty: none
  SystemFlags flags;
  Semantics semantics = Semantics::astra_sim;
  Backend backend = Backend::congestion_unaware;
  bool spans = false, tables = false, explain = false, roofline = false, energy = false;  // see SimulationJob
  bool memory_over_time = false;                        // the same; every rank is simulated then
  std::vector<Straggler> stragglers;                    // physical semantics; every rank is simulated then
  std::vector<LinkChange> link_changes;                 // back end flow; every rank is simulated then
  std::uint32_t copies = 1;                             // of graphs on a cluster: see copy_ranks
  std::optional<network::ChunkOrder> chunk_order = {};  // see SimulationJob
  bool by_message = false;                              // see SimulationJob
  std::vector<std::string> grown;                       // process groups that all copies join
  int threads = 0;                                      // for reading graphs; the result does not depend on it
};

[[nodiscard]] Result<SimulationJob> read_job(const SimulationFiles& files);

// The same without graphs: network, system, memory (none without a file) and groups. The caller adds rank graphs and
// then calls complete().
[[nodiscard]] Result<SimulationJob> read_machine(const SimulationFiles& files);

// Adds rank graphs, from the graphs of `files`.
[[nodiscard]] Result<SimulationJob> add_graphs(SimulationJob machine, const SimulationFiles& files);

// Checks that the parts of a job are consistent and reads the graphs of custom collectives.
[[nodiscard]] Result<void> complete(SimulationJob& job);

// What compile() needs for the graphs of a job whose network, system, memory and semantics are set.
[[nodiscard]] CompileContext compile_context(const SimulationJob& job, const GroupIndex& groups);

// Whether rank 0 is simulated for all ranks of the network (one_rank.hpp).
[[nodiscard]] inline bool is_folded(const SimulationJob& job) { return job.rank_graphs.size() < job.network.ranks(); }

// The number of a rank in messages.
[[nodiscard]] inline std::uint32_t real_rank(const SimulationJob& job, std::uint32_t rank) {
  return job.real_ranks.empty() ? rank : job.real_ranks[rank];
}

// For errors and warnings: the file of a rank, and the node by its id.
[[nodiscard]] Place place_of(const SimulationJob& job, std::uint32_t rank, std::uint64_t node_id);

// Why a job does not end: the possible deadlocks of its custom collectives if there are any, otherwise `stalled`.
[[nodiscard]] Failure explained(const SimulationJob& job, Failure stalled);

}  // namespace orrery::simulate
