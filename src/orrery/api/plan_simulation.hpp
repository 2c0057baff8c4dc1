// Running a plan on a simulated cluster: its graphs are made in memory, nothing is written.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/generate/job_graphs.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/results/plan_simulation.hpp"
#include "orrery/simulate/class_job.hpp"

namespace orrery::api {

struct PlanSimulationOptions {
  simulate::Folding folding = simulate::Folding::automatic;
  generate::Options graphs;
  std::vector<simulate::Straggler> stragglers = {};     // every rank is simulated then
  std::optional<network::ChunkOrder> chunk_order = {};  // see simulate::SimulationJob
  bool by_message = false;                              // likewise
  std::vector<simulate::LinkChange> link_changes = {};  // likewise
  bool spans = false, tables = false, explain = false, roofline = false, energy = false;  // see simulate::SimulationJob
  bool memory = false;                                                                    // results::MemoryOverTime
  // Of class_job(): kernels take their time on these nodes (Cluster::nodes); not given: those of a class' first rank.
  std::optional<std::size_t> nodes_entry = {};
};

// `request`: physical semantics. A plan that does not fit in memory is simulated with a warning.
[[nodiscard]] Result<results::PlanSimulation> simulate_plan(const std::string& data_directory,
                                                            const estimate::Request& request,
                                                            const PlanSimulationOptions& options);

// The graphs of a program as a job of the simulator, one class of ranks for each pipeline stage.
[[nodiscard]] Result<simulate::ClassJob> class_job(const generate::JobGraphs& graphs, const hardware::Cluster& cluster,
                                                   const PlanSimulationOptions& options);

// The job with one rank for each class, or every rank where ranks differ (stragglers, changes of links). On nodes of
// several kinds, kernels take the time of the node of their rank, and classes are found by comparing all ranks.
// `graphs`: of the cluster; `classes`: of class_job().
[[nodiscard]] Result<simulate::FoldedJob> folded_job(const hardware::Cluster& cluster,
                                                     const generate::JobGraphs& graphs,
                                                     const simulate::ClassJob& classes,
                                                     const PlanSimulationOptions& options);

// How much earlier than in the closed form a step may end because a stage starts its optimizer when its own gradients
// are synchronized, not those of all stages: at most the difference between the stages' optimizers.
[[nodiscard]] Seconds optimizer_slack(const parallel::Program& program, hardware::Cluster cluster,
                                      network::NodeEgress egress);

// What the simulated job does otherwise than the closed form, apart from sharing ports.
[[nodiscard]] std::vector<std::string> differences(const parallel::Program& program, const hardware::Cluster& cluster,
                                                   const hardware::Stack& stack, const generate::JobGraphs& graphs,
                                                   const simulate::ClassJob& job);

}  // namespace orrery::api
