#include "orrery/api/simulate.hpp"

#include <utility>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/simulate/simulate.hpp"

namespace orrery::api {

Result<results::Simulation> simulate(const simulate::SimulationFiles& files) {
  ORRERY_TRY(job, simulate::read_job(files));
  return simulate::simulate(job);
}

Result<results::Simulation> simulate_on_cluster(const std::string& data_directory, const std::string& cluster,
                                                const std::vector<std::string>& workload,
                                                simulate::SimulationFiles files) {
  ORRERY_TRY(graphs, simulate::graphs_of(workload));
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(scaled, catalogue.cluster(cluster, static_cast<std::int64_t>(graphs.size())));
  files.graphs = std::move(graphs);
  ORRERY_TRY(job, simulate::read_job_on(scaled, files));
  if (job.backend != simulate::Backend::flow) { return simulate::simulate(job); }
  return simulate::simulate_flows(simulate::unfolded(scaled, std::move(job)));
}

}  // namespace orrery::api
