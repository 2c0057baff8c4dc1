// A job as it is simulated: all inputs, read and checked.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/simulate/custom_program.hpp"
#include "orrery/simulate/inputs.hpp"
#include "orrery/simulate/rank_graph.hpp"
#include "orrery/simulate/read_inputs.hpp"

namespace orrery::simulate {

enum class Backend : std::uint8_t { congestion_unaware, congestion_aware };

struct SimulationJob {
  Semantics semantics = Semantics::astra_sim;
  Backend backend = Backend::congestion_unaware;
  Network network;
  System system;
  memory::Expansion memory;
  std::vector<Group> groups;
  std::vector<RankGraph> rank_graphs;                         // by rank
  std::vector<std::string> files;                             // of the graphs, by rank
  std::map<std::string, std::vector<CustomProgram>> customs;  // by prefix, then position
  Warnings warnings;
  std::vector<Diagnostic>
      suspicions;       // why custom collectives would not end by themselves; other messages may help them
  bool spans = false;   // keep when every node started and ended
  bool tables = false;  // count what results::SimulationTables holds; with spans
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
  bool spans = false, tables = false;  // see SimulationJob
  int threads = 0;                     // that read graphs; the result does not depend on it
};

[[nodiscard]] Result<SimulationJob> read_job(const SimulationFiles& files);

// The same without graphs: network, system, memory (none where no file is named) and groups. The programs are the
// caller's, who then calls complete().
[[nodiscard]] Result<SimulationJob> read_machine(const SimulationFiles& files);

// The programs of a machine, from the graphs of `files`.
[[nodiscard]] Result<SimulationJob> add_graphs(SimulationJob machine, const SimulationFiles& files);

// Makes a job of its parts: checks that they fit together and reads the graphs of custom collectives.
[[nodiscard]] Result<void> complete(SimulationJob& job);

// For errors and warnings: the file of a rank, and the node by its id.
[[nodiscard]] Place place_of(const SimulationJob& job, std::uint32_t rank, std::uint64_t node_id);

// Why a job does not end: what was suspected of its custom collectives, or else what was seen.
[[nodiscard]] Failure explained(const SimulationJob& job, Failure stalled);

}  // namespace orrery::simulate
