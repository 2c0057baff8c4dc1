#include "orrery/api/simulate.hpp"

#include <utility>

#include <fmt/format.h>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/simulate/class_files.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/fold.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/one_rank.hpp"
#include "orrery/simulate/simulate.hpp"

namespace orrery::api {

namespace {

std::string unfolded_warning(const std::string& why) { return fmt::format("every rank is simulated: {}", why); }

// Of ASTRA-sim's rules, or on physical links.
Result<results::Simulation> simulate_links(const simulate::SimulationJob& job, simulate::Folding folding) {
  if (folding == simulate::Folding::off) { return simulate::simulate(job); }
  ORRERY_TRY(run, simulate::simulate_folded(job));
  if (!run.unfolded_because.empty()) { run.simulation.warnings.push_back(unfolded_warning(run.unfolded_because)); }
  return std::move(run.simulation);
}

}  // namespace

Result<results::Simulation> simulate(const simulate::SimulationFiles& files, simulate::Folding folding) {
  ORRERY_TRY(job, simulate::read_job(files));
  return simulate_links(job, folding);
}

namespace {

// Why every rank is simulated, as a warning.
Result<results::Simulation> simulate_folded(const simulate::FoldedJob& folded) {
  ORRERY_TRY(simulation, simulate::simulate_flows(folded.job));
  if (!folded.unfolded_because.empty()) { simulation.warnings.push_back(unfolded_warning(folded.unfolded_because)); }
  return simulation;
}

Result<results::Simulation> simulate_classes(const hardware::Catalogue& catalogue, const std::string& cluster,
                                             const std::string& file, const simulate::SimulationFiles& files,
                                             simulate::Folding folding) {
  if (files.backend != simulate::Backend::flow) {
    return fail(Place{{}, 0, 0, "--backend"},
                fmt::format("{} needs flow; congestion-aware simulates graphs of all ranks", file));
  }
  if (!files.groups.empty()) {
    return fail(Place{{}, 0, 0, "--comm-group-configuration"},
                fmt::format("is not valid with {}, which has groups", file));
  }
  ORRERY_TRY(classes, simulate::read_class_files(file));
  ORRERY_TRY(scaled, catalogue.cluster(cluster, static_cast<std::int64_t>(classes.ranks())));
  ORRERY_TRY(job, simulate::read_class_job(scaled, classes, files));
  return simulate_folded(simulate::folded(scaled, job, folding));
}

}  // namespace

Result<results::Simulation> simulate_on_cluster(const std::string& data_directory, const std::string& cluster,
                                                const std::vector<std::string>& workload,
                                                simulate::SimulationFiles files, const FoldingOptions& options) {
  if (const auto file = simulate::classes_file_of(workload)) {
    return simulate_classes(hardware::Catalogue(data_directory), cluster, *file, files,
                            options.folding.value_or(simulate::Folding::automatic));
  }
  ORRERY_TRY(graphs, simulate::graphs_of(workload));
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(scaled, catalogue.cluster(cluster, static_cast<std::int64_t>(graphs.size())));
  files.graphs = std::move(graphs);
  ORRERY_TRY(job, simulate::read_job_on(scaled, files));
  if (job.backend != simulate::Backend::flow) {
    return simulate_links(job, options.folding.value_or(simulate::Folding::off));
  }
  simulate::FlowJob flow = simulate::unfolded(scaled, std::move(job));
  if (options.folding != simulate::Folding::automatic) { return simulate::simulate_flows(flow); }
  const double start = options.clock ? options.clock() : 0;
  const simulate::FoldedJob folded = simulate::fold(std::move(flow));
  const double end = options.clock ? options.clock() : 0;
  ORRERY_TRY(simulation, simulate_folded(folded));
  if (options.clock) { simulation.comparison_wall_s = end - start; }
  return simulation;
}

}  // namespace orrery::api
