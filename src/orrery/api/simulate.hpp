// Running execution graphs on a simulated machine.
//
//   orrery::simulate::SimulationFiles files;
//   files.workload = "traces/llama";       // traces/llama.0.et, …
//   files.system = "system.json"; …
//   auto simulation = orrery::api::simulate(files);
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/class_job.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::api {

// ASTRA-sim's inputs under ASTRA-sim's rules, or physical ones. `clock`: see FoldingOptions.
[[nodiscard]] Result<results::Simulation> simulate(const simulate::SimulationFiles& files,
                                                   simulate::Folding folding = simulate::Folding::off,
                                                   const std::function<double()>& clock = {});

struct FoldingOptions {
  // Nothing: graphs of classes (PREFIX.classes.json) are folded; those of single ranks, which have to be compared for
  // it, are not.
  std::optional<simulate::Folding> folding = {};
  std::function<double()> clock = {};  // seconds; with it, the result has the time that the comparison took
};

// Graphs (a prefix, a folder, or files) on a cluster of the catalogue or of a file, with as many devices as there are
// graphs, under physical rules. Of `files`, groups, spans, tables and threads are used.
[[nodiscard]] Result<results::Simulation> simulate_on_cluster(const std::string& data_directory,
                                                              const std::string& cluster,
                                                              const std::vector<std::string>& workload,
                                                              simulate::SimulationFiles files,
                                                              const FoldingOptions& options = {});

}  // namespace orrery::api
