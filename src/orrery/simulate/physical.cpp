#include "orrery/simulate/physical.hpp"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "orrery/simulate/critical_path.hpp"
#include "orrery/simulate/physical_machine.hpp"
#include "orrery/simulate/physical_result.hpp"
#include "orrery/simulate/tables.hpp"

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

// Messages of chunks are not told apart: a collective is one step.
results::CriticalPath path_of(const SimulationJob& job, const PhysicalMachine& machine) {
  const auto activity = [&](const NodeTask& task) {
    const bool is_of_group = task.act == Act::collective && task.group != kWholeMachine;
    return is_of_group ? fmt::format("{} of group {}", activity_name(task), job.groups[task.group - 1].name)
                       : activity_name(task);
  };
  const auto parts = [&](std::uint32_t rank, std::uint32_t node) {
    return NodeParts{{}, activity_name(job.rank_graphs[rank].nodes[node])};
  };
  return critical_path({job, machine.nodes(), machine.match(), activity, parts, [](std::uint32_t) { return 1; }});
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
