#include "orrery/api/simulate.hpp"

#include <utility>

#include <fmt/format.h>

#include "orrery/api/faster.hpp"
#include "orrery/api/inputs.hpp"
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
Result<results::Simulation> simulate_links(const simulate::SimulationJob& job, simulate::Folding folding,
                                           const std::function<double()>& clock) {
  if (folding == simulate::Folding::off) { return simulate::simulate(job); }
  ORRERY_TRY(run, simulate::simulate_folded(job, clock));
  if (!run.unfolded_because.empty()) { run.simulation.warnings.push_back(unfolded_warning(run.unfolded_because)); }
  return std::move(run.simulation);
}

}  // namespace

Result<results::Simulation> simulate(const simulate::SimulationFiles& files, simulate::Folding folding,
                                     const std::function<double()>& clock) {
  ORRERY_TRY(job, simulate::read_job(files));
  if (auto slowed = simulate::slow_ranks(job, files.stragglers); !slowed) {
    return tl::make_unexpected(std::move(slowed).error());
  }
  ORRERY_TRY(simulation, simulate_links(job, folding, clock));
  if (!simulation.path) { return simulation; }
  simulate::SimulationFiles plain = files;
  plain.spans = plain.tables = plain.explain = plain.roofline = plain.energy = plain.memory_over_time = false;
  for (const FasterMachine& faster : faster_machines(job)) {
    ORRERY_TRY(machine, simulate::read_machine(plain));
    faster.apply(machine);
    ORRERY_TRY(changed, simulate::add_graphs(std::move(machine), plain));
    if (auto slowed = simulate::slow_ranks(changed, files.stragglers); !slowed) {
      return tl::make_unexpected(std::move(slowed).error());
    }
    ORRERY_TRY(again, simulate_links(changed, folding, clock));
    simulation.path->savings.push_back({faster.resource, faster.factor, again.makespan_ns()});
  }
  return simulation;
}

namespace {

// Why every rank is simulated, as a warning.
Result<results::Simulation> simulate_folded(const simulate::FoldedJob& folded) {
  ORRERY_TRY(simulation, simulate::simulate_flows(folded.job));
  if (!folded.unfolded_because.empty()) { simulation.warnings.push_back(unfolded_warning(folded.unfolded_because)); }
  return simulation;
}

// The classes that the file names, if `files` suits them.
Result<simulate::ClassFiles> class_files(const std::string& file, const simulate::SimulationFiles& files) {
  if (files.backend != simulate::Backend::flow) {
    return fail(Place{{}, 0, 0, "--backend"},
                fmt::format("{} needs flow; congestion-aware simulates graphs of all ranks", file));
  }
  if (!files.groups.empty()) {
    return fail(Place{{}, 0, 0, "--comm-group-configuration"},
                fmt::format("is not valid with {}, which has groups", file));
  }
  return simulate::read_class_files(file);
}

// As simulate_on_cluster(), on a cluster of as many devices as there are graphs.
Result<results::Simulation> simulate_graphs(const hardware::Cluster& cluster, const simulate::SimulationFiles& files,
                                            const FoldingOptions& options) {
  ORRERY_TRY(job, simulate::read_job_on(cluster, files));
  if (auto slowed = simulate::slow_ranks(job, files.stragglers); !slowed) {
    return tl::make_unexpected(std::move(slowed).error());
  }
  if (job.backend != simulate::Backend::flow) {
    return simulate_links(job, options.folding.value_or(simulate::Folding::off), options.clock);
  }
  simulate::FlowJob flow = simulate::unfolded(cluster, std::move(job));
  if (auto changed = simulate::change_links(flow, files.link_changes); !changed) {
    return tl::make_unexpected(std::move(changed).error());
  }
  if (options.folding != simulate::Folding::automatic) { return simulate::simulate_flows(flow); }
  const double start = options.clock ? options.clock() : 0;
  const simulate::FoldedJob folded = simulate::fold(std::move(flow));
  const double end = options.clock ? options.clock() : 0;
  ORRERY_TRY(simulation, simulate_folded(folded));
  if (options.clock) { simulation.comparison_wall_s = end - start; }
  return simulation;
}

using SimulateOn =
    std::function<Result<results::Simulation>(const hardware::Cluster&, const simulate::SimulationFiles&)>;

// Runs the simulation, and again for each resource if it is to be explained.
Result<results::Simulation> explained(const hardware::Cluster& cluster, simulate::SimulationFiles files,
                                      const SimulateOn& simulate_on) {
  ORRERY_TRY(simulation, simulate_on(cluster, files));
  if (!simulation.path) { return simulation; }
  files.spans = files.tables = files.explain = files.roofline = files.energy = files.memory_over_time = false;
  const auto makespan_on = [&](const hardware::Cluster& faster) -> Result<std::uint64_t> {
    ORRERY_TRY(again, simulate_on(faster, files));
    return again.makespan_ns();
  };
  auto saved = add_savings(cluster, makespan_on, *simulation.path);
  if (!saved) { return tl::make_unexpected(std::move(saved).error()); }
  return simulation;
}

}  // namespace

Result<results::Simulation> simulate_on_cluster(const std::string& data_directory, const std::string& cluster,
                                                const std::vector<std::string>& workload,
                                                simulate::SimulationFiles files, const FoldingOptions& options) {
  const hardware::Catalogue catalogue(data_directory);
  if (const auto file = simulate::classes_file_of(workload)) {
    if (files.copies > 1) {
      return fail(Place{{}, 0, 0, "--copies"}, fmt::format("{}: needs graphs of single ranks", *file));
    }
    ORRERY_TRY(classes, class_files(*file, files));
    ORRERY_TRY(scaled, catalogue.cluster(cluster, static_cast<std::int64_t>(classes.ranks()),
                                         hardware::UnlikeNodes{"a simulation of classes of graphs"}));
    if (auto routed = require_routes(scaled, files.by_message); !routed) {
      return tl::make_unexpected(std::move(routed).error());
    }
    const auto simulate_on = [&](const hardware::Cluster& machine,
                                 const simulate::SimulationFiles& how) -> Result<results::Simulation> {
      ORRERY_TRY(job, simulate::read_class_job(machine, classes, how));
      const bool ranks_differ = !how.stragglers.empty() || !how.link_changes.empty();
      const auto folding = options.folding.value_or(simulate::Folding::automatic);
      simulate::FoldedJob folded = simulate::folded(machine, job, ranks_differ ? simulate::Folding::off : folding);
      if (auto slowed = simulate::slow_ranks(folded.job.job, how.stragglers); !slowed) {
        return tl::make_unexpected(std::move(slowed).error());
      }
      if (auto changed = simulate::change_links(folded.job, how.link_changes); !changed) {
        return tl::make_unexpected(std::move(changed).error());
      }
      return simulate_folded(folded);
    };
    return explained(scaled, std::move(files), simulate_on);
  }
  ORRERY_TRY(graphs, simulate::graphs_of(workload));
  const auto ranks = static_cast<std::int64_t>(graphs.size()) * files.copies;
  ORRERY_TRY(scaled, catalogue.cluster(cluster, ranks, hardware::UnlikeNodes::modelled));
  if (auto routed = require_routes(scaled, files.by_message); !routed) {
    return tl::make_unexpected(std::move(routed).error());
  }
  files.graphs = std::move(graphs);
  return explained(scaled, std::move(files),
                   [&](const hardware::Cluster& machine, const simulate::SimulationFiles& how) {
                     return simulate_graphs(machine, how, options);
                   });
}

}  // namespace orrery::api
