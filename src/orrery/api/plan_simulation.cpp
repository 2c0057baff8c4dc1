#include "orrery/api/plan_simulation.hpp"

#include <utility>

#include <fmt/format.h>

#include "orrery/api/inputs.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/generate/graph_sink.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/simulate/flow.hpp"
#include "orrery/simulate/on_cluster.hpp"

namespace orrery::api {

namespace {

simulate::GroupFamily family_of(const generate::ProcessGroups& groups, const generate::GroupFamily& family) {
  const generate::RankSet first = groups.group(family, 0);
  simulate::GroupFamily made;
  made.name = name_of(family);
  made.first_name = static_cast<std::uint64_t>(family.first_name);
  made.count = static_cast<std::uint64_t>(family.count);
  made.stride = static_cast<std::uint64_t>(first.stride);
  made.degree = static_cast<std::uint64_t>(first.degree);
  made.is_mirrored = family.kind == parallel::GroupKind::mirror;
  return made;
}

}  // namespace

Result<simulate::ClassJob> class_job(const generate::JobGraphs& graphs, const hardware::Cluster& cluster,
                                     const hardware::Stack& stack, const PlanSimulationOptions& options) {
  simulate::ClassJob job;
  job.machine = simulate::machine_on(cluster);
  job.machine.backend = simulate::Backend::flow;
  job.machine.tables = options.tables;
  job.machine.spans = options.spans || options.tables;
  job.egress = stack.transfers.ports == hardware::NodePorts::one ? network::NodeEgress::one_port
                                                                 : network::NodeEgress::all_ports;
  job.class_ranks = static_cast<std::uint32_t>(graphs.stage_ranks());
  for (const generate::GroupFamily& family : graphs.groups().families()) {
    job.families.push_back(family_of(graphs.groups(), family));
  }
  for (std::int64_t stage = 0; stage < graphs.stages(); ++stage) {
    generate::GraphSink sink;
    ORRERY_TRY(nodes, graphs.write(graphs.first_rank(stage), generate::Naming::classes, sink));
    (void)nodes;
    ORRERY_TRY(graph, sink.builder.finish());
    auto added = simulate::add_class(job, graph, fmt::format("stage {}", stage),
                                     static_cast<std::size_t>(graphs.stages()));
    if (!added) { return tl::make_unexpected(std::move(added).error()); }
  }
  return job;
}

std::vector<std::string> differences(const parallel::Program& program, const hardware::Cluster& cluster,
                                     const generate::JobGraphs& graphs, const simulate::ClassJob& job) {
  std::vector<std::string> notes = graphs.notes();
  const auto& families = graphs.groups().families();
  for (std::size_t i = 0; i < families.size(); ++i) {
    const auto shape = common_shape(cluster, job, job.families[i]);
    if (shape && *shape == program.mesh.group(families[i].kind)) { continue; }
    notes.push_back(fmt::format("{} groups do not fill the network dimensions evenly: simulate has the shape of every "
                                "group, estimate one shape for all",
                                job.families[i].name));
  }
  return notes;
}

Result<results::PlanSimulation> simulate_plan(const std::string& data_directory, const estimate::Request& request,
                                              const PlanSimulationOptions& options) {
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, request));
  ORRERY_TRY(resolved, estimate::resolve(request, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request, inputs.model);
  const auto program = parallel::lower(inputs.model, job, resolved.plan, inputs.cluster, inputs.stack);
  if (auto ok = generate::JobGraphs::writable(program, options.graphs); !ok) {
    return tl::make_unexpected(std::move(ok).error());
  }
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  results::PlanSimulation result;
  result.estimate = with_uncertainty(estimator.estimate(resolved.plan), inputs, job);
  result.chosen = resolved.chosen;
  const generate::JobGraphs graphs(program, inputs.cluster, inputs.stack, options.graphs);
  ORRERY_TRY(classes, class_job(graphs, inputs.cluster, inputs.stack, options));
  result.notes = differences(program, inputs.cluster, graphs, classes);
  simulate::FoldedJob folded = simulate::folded(inputs.cluster, classes, options.folding);
  ORRERY_TRY(simulation, simulate::simulate_flows(folded.job));
  result.simulation = std::move(simulation);
  folded.job.job.tables = folded.job.job.spans = false;
  ORRERY_TRY(unshared, simulate::simulate_flows(folded.job, false));
  result.unshared_ns = unshared.makespan_ns();
  auto& warnings = result.simulation.warnings;
  if (!folded.unfolded_because.empty()) {
    warnings.push_back(fmt::format("every rank is simulated: {}", folded.unfolded_because));
  }
  if (!result.estimate.memory.fits()) { warnings.emplace_back("the plan does not fit in memory"); }
  return result;
}

}  // namespace orrery::api
