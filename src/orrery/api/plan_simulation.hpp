// Running a plan on a simulated cluster: its graphs are made in memory, nothing is written.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/generate/job_graphs.hpp"
#include "orrery/results/plan_simulation.hpp"
#include "orrery/simulate/class_job.hpp"

namespace orrery::api {

struct PlanSimulationOptions {
  simulate::Folding folding = simulate::Folding::automatic;
  generate::Options graphs;
  bool spans = false, tables = false;  // see simulate::SimulationJob
};

// `request`: physical semantics. A plan that does not fit in memory is simulated with a warning.
[[nodiscard]] Result<results::PlanSimulation> simulate_plan(const std::string& data_directory,
                                                            const estimate::Request& request,
                                                            const PlanSimulationOptions& options);

// The graphs of a program as a job of the simulator, one class of ranks for each pipeline stage.
[[nodiscard]] Result<simulate::ClassJob> class_job(const generate::JobGraphs& graphs, const hardware::Cluster& cluster,
                                                   const hardware::Stack& stack,
                                                   const PlanSimulationOptions& options);

// What the simulated job does otherwise than the closed form, without the effect of shared ports.
[[nodiscard]] std::vector<std::string> differences(const parallel::Program& program, const hardware::Cluster& cluster,
                                                   const generate::JobGraphs& graphs, const simulate::ClassJob& job);

}  // namespace orrery::api
