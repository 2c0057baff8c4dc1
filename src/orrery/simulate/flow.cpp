#include "orrery/simulate/flow.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "orrery/network/names.hpp"
#include "orrery/simulate/critical_path.hpp"
#include "orrery/simulate/flow_energy.hpp"
#include "orrery/simulate/flow_machine.hpp"
#include "orrery/simulate/physical_result.hpp"
#include "orrery/simulate/tables.hpp"
#include "orrery/simulate/tensor_memory.hpp"

namespace orrery::simulate {

namespace {

std::vector<results::SimulatedCollective> collectives_of(const SimulationJob& job, const FlowMachine& machine) {
  const auto& runs = machine.collectives();
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto key = [&](std::size_t i) {
    return std::tuple(runs[i].end, runs[i].first_start, machine.match().all()[i].task.group);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::vector<results::SimulatedCollective> rows;
  for (const std::size_t i : order) {
    const CollectiveMatch::One& one = machine.match().all()[i];
    rows.push_back(collective_row(job, one.task, one.ranks, runs[i].first_start, runs[i].last_start, runs[i].end));
    rows.back().algorithm = std::string(config::enum_name(runs[i].algorithm));
  }
  return rows;
}

// Means over all devices of the job.
std::vector<results::SimulatedContention> contention_of(const FlowJob& job, const FlowMachine& machine) {
  __extension__ using Wide = unsigned __int128;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::pair<Wide, Wide>> sums;
  for (const auto& [who, meeting] : machine.flows().meetings()) {
    const auto& [first, second, dimension] = who;
    const auto &kind = machine.flow_kinds()[first], &other = machine.flow_kinds()[second];
    auto& [together, lost] = sums[{kind.kind, other.kind, dimension}];
    together += Wide{meeting.together} * kind.devices;
    lost += Wide{meeting.lost} * kind.devices;
  }
  std::vector<results::SimulatedContention> rows;
  const Wide devices = job.simulated.size();
  for (const auto& [who, sum] : sums) {
    const auto& [kind, other, dimension] = who;
    const bool is_of_memory = dimension == job.cluster.dimensions.size();
    rows.push_back({job.kinds[kind], job.kinds[other],
                    is_of_memory ? job.kinds[kMemory] : job.cluster.dimensions[dimension].name,
                    static_cast<std::uint64_t>(sum.first / devices), static_cast<std::uint64_t>(sum.second / devices)});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.lost_ps > b.lost_ps; });
  return rows;
}

std::string activity_of(const FlowJob& flow, const NodeTask& task) {
  if (task.act == Act::collective) {
    return fmt::format("{} of {}", activity_name(task), flow.kinds[flow.groups[task.group].kind]);
  }
  return task.act == Act::memory ? flow.kinds[kMemory] : activity_name(task);
}

results::CriticalPath path_of(const FlowJob& flow, const FlowMachine& machine) {
  return critical_path({flow.job, machine.nodes().spans(), machine.match(),
                        [&](const NodeTask& task) { return activity_of(flow, task); },
                        [&](std::uint32_t rank, std::uint32_t node) { return machine.parts_of(rank, node); },
                        [&](std::uint32_t rank) { return flow.ranks_for(rank); },
                        [&](std::uint32_t link) { return machine.ends_of_link(link); }});
}

// Simulated ranks by the real ranks that they stand for.
void name_ranks(const FlowJob& flow, results::Simulation& simulation) {
  if (flow.job.real_ranks.empty()) { return; }
  const auto name = [&](std::uint32_t& rank) {
    if (rank != results::SimulatedLink::kSwitch) { rank = flow.job.real_ranks[rank]; }
  };
  for (auto& span : simulation.spans) { name(span.rank); }
  if (simulation.path) {
    for (auto& step : simulation.path->steps) { name(step.rank); }
  }
  simulation.representatives = flow.job.real_ranks;
  if (!simulation.tables) { return; }
  for (auto& row : simulation.tables->operators) { name(row.rank); }
  for (auto& link : simulation.tables->links) {
    name(link.from);
    name(link.to);
  }
}

results::Simulation result_of(const FlowJob& flow, const FlowMachine& machine) {
  results::Simulation simulation = physical_result(flow.job, machine.nodes());
  simulation.backend = "flow";
  if (flow.job.tables) {
    simulation.tables->links = machine.links();
    simulation.tables->dimensions = dimensions_of(flow.job.network, simulation.tables->links);
    simulation.tables->collectives = collectives_of(flow.job, machine);
  }
  simulation.contention = contention_of(flow, machine);
  if (flow.job.explain) { simulation.path = path_of(flow, machine); }
  if (flow.by_link) { simulation.link_uses = machine.link_uses(); }
  if (const SwitchCalls* switches = machine.switches()) {
    simulation.in_switch_calls = switches->served();
    for (std::string& refusal : switches->refusals()) { simulation.warnings.push_back(std::move(refusal)); }
  }
  if (flow.job.chunk_order && !machine.has_ordered()) {
    simulation.warnings.emplace_back(
        "--chunk-order has no effect: no all_reduce, reduce_scatter or all_gather is over several dimensions with "
        "ports "
        "of their own");
  }
  simulation.events = machine.rounds().events();
  simulation.messages = machine.messages();
  results::RankRuns<results::SimulatedRank> ranks;
  for (const auto& run : flow.simulated.runs()) { ranks.add(run.end - run.first, simulation.ranks[run.value]); }
  simulation.ranks = std::move(ranks);
  if (simulation.roofline) {
    results::RankRuns<results::RooflineRank> rows;
    for (const auto& run : flow.simulated.runs()) {
      rows.add(run.end - run.first, simulation.roofline->ranks[run.value]);
    }
    simulation.roofline->ranks = std::move(rows);
  }
  if (flow.job.memory_over_time) {
    simulation.memory = tensor_memory(flow.job, simulation);
    results::RankRuns<results::MemoryRank> rows;
    for (const auto& run : flow.simulated.runs()) {
      results::MemoryRank row = simulation.memory->ranks[run.value];
      row.capacity = flow.accelerator_of(static_cast<std::uint32_t>(run.first)).memory.value();
      rows.add(run.end - run.first, std::move(row));
    }
    simulation.memory->ranks = std::move(rows);
  }
  if (flow.job.energy) { simulation.energy = energy_of(flow, machine, simulation); }
  name_ranks(flow, simulation);
  return simulation;
}

}  // namespace

Result<results::Simulation> simulate_flows(const FlowJob& job, bool shared, std::optional<std::uint32_t> apart) {
  return run_physically<FlowMachine>(
      job.job, [&](std::optional<FlowMachine>& machine) { machine.emplace(job, shared, apart); },
      [&](const FlowMachine& machine) { return result_of(job, machine); });
}

}  // namespace orrery::simulate
