#include "orrery/simulate/physical.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "orrery/simulate/critical_path.hpp"
#include "orrery/simulate/link_path.hpp"
#include "orrery/simulate/physical_machine.hpp"
#include "orrery/simulate/physical_result.hpp"
#include "orrery/simulate/tables.hpp"
#include "orrery/simulate/tensor_memory.hpp"

namespace orrery::simulate {

namespace {

std::vector<results::SimulatedCollective> collectives_of(const SimulationJob& job, const PhysicalMachine& machine) {
  std::vector<results::SimulatedCollective> rows;
  std::vector<const PhysicalCollective*> all;
  for (const PhysicalCollective& collective : machine.collectives().all()) { all.push_back(&collective); }
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return std::tie(a->end, a->first_start, a->task.group) < std::tie(b->end, b->first_start, b->task.group);
  });
  for (const PhysicalCollective* one : all) {
    results::SimulatedCollective row =
        collective_row(job, one->task, one->ranks, one->first_start, one->last_start, one->end);
    row.algorithm = !one->custom.empty()       ? "custom " + one->custom
                    : one->schedule != nullptr ? one->schedule->algorithm
                                               : "";
    rows.push_back(std::move(row));
  }
  return rows;
}

// Where the grants of links do not tell what led to the end of a collective or message (custom collectives, rendezvous,
// folded jobs), it is one step.
results::CriticalPath path_of(const SimulationJob& job, const PhysicalMachine& machine) {
  const auto activity = [&](const NodeTask& task) {
    const bool is_of_group = task.act == Act::collective && task.group != kWholeMachine;
    return is_of_group ? fmt::format("{} of group {}", activity_name(task), job.groups[task.group - 1].name)
                       : activity_name(task);
  };
  const auto parts = [&](std::uint32_t rank, std::uint32_t node) {
    return NodeParts{{}, activity_name(job.rank_graphs[rank].nodes[node])};
  };
  PathSource source{
      job, machine.nodes().spans(), machine.match(), activity, parts, [](std::uint32_t) { return std::uint64_t{1}; }};
  std::optional<LinkPath> links;
  if (machine.log() != nullptr) {
    links.emplace(job, machine);
    source.trace = [&](const PhysicalSpan& span) { return links->trace(span); };
  }
  return critical_path(source);
}

results::Simulation result_of(const SimulationJob& job, const PhysicalMachine& machine) {
  results::Simulation simulation = physical_result(job, machine.nodes());
  simulation.backend = "congestion-aware";
  if (job.system.bus) { simulation.warnings.emplace_back("model-shared-bus has no effect in physical semantics"); }
  if (job.tables) {
    simulation.tables->links = machine.links().counts();
    simulation.tables->dimensions = dimensions_of(job.network, simulation.tables->links);
    simulation.tables->collectives = collectives_of(job, machine);
  }
  if (job.explain) { simulation.path = path_of(job, machine); }
  if (job.memory_over_time) { simulation.memory = tensor_memory(job, simulation); }
  simulation.events = machine.rounds().events();
  simulation.messages = machine.delivered();
  return simulation;
}

}  // namespace

Result<results::Simulation> simulate_physical(const SimulationJob& job) {
  return run_physically<PhysicalMachine>(
      job, [&](std::optional<PhysicalMachine>& machine) { machine.emplace(job); },
      [&](const PhysicalMachine& machine) { return result_of(job, machine); });
}

}  // namespace orrery::simulate
