#include "orrery/simulate/simulate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/simulate/deadlock.hpp"
#include "orrery/simulate/event_path.hpp"
#include "orrery/simulate/machine.hpp"
#include "orrery/simulate/machine_result.hpp"
#include "orrery/simulate/physical.hpp"
#include "orrery/simulate/stop.hpp"
#include "orrery/simulate/tables.hpp"
#include "orrery/simulate/tensor_memory.hpp"

namespace orrery::simulate {

namespace {

bool has_collective_without_dimensions(const RankGraph& rank_graph) {
  return std::any_of(rank_graph.nodes.begin(), rank_graph.nodes.end(), [](const NodeTask& task) {
    return task.act == Act::collective && task.group == kWholeMachine && task.dimensions == kNoDimensionList;
  });
}

// Whether the double binary tree is the algorithm of a collective other than an all-reduce; it runs an all-reduce then.
// Groups of all ranks use the dimensions of the machine; smaller ones cannot use the tree.
bool has_tree_of_another_collective(const SimulationJob& job) {
  const auto is_wrong = [&](const NodeTask& task) {
    const bool whole = task.group == kWholeMachine || job.groups[task.group - 1].ranks.size() == job.network.ranks();
    if (task.act != Act::collective || task.collective == Collective::all_reduce || !whole) { return false; }
    const auto* list =
        std::get_if<std::vector<DimensionAlgorithm>>(&job.system.algorithms[static_cast<std::size_t>(task.collective)]);
    return list != nullptr && std::any_of(list->begin(), list->end(), [](const DimensionAlgorithm& algorithm) {
             return algorithm.method == CollectiveAlgorithm::tree;
           });
  };
  return std::any_of(job.rank_graphs.begin(), job.rank_graphs.end(), [&](const RankGraph& rank_graph) {
    return std::any_of(rank_graph.nodes.begin(), rank_graph.nodes.end(), is_wrong);
  });
}

// Messages of SEND nodes without a RECV node. ASTRA-sim does not report them.
void warn_of_unreceived_sends(const SimulationJob& job, const Machine& machine, std::vector<std::string>& warnings) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> senders;  // rank, node
  std::uint64_t messages = 0;
  for (const auto& [key, unmatched] : machine.messenger().unmatched()) {
    if (unmatched.messages == 0) { continue; }
    const auto& nodes = job.rank_graphs[key.source].nodes;
    const auto sender = std::find_if(nodes.begin(), nodes.end(), [&, where = key](const NodeTask& task) {
      return task.act == Act::send && task.peer == where.target && task.tag == where.tag && task.amount == where.bytes;
    });
    if (sender == nodes.end()) { continue; }  // of a custom collective, whose check has warned of it
    senders.emplace_back(key.source, sender - nodes.begin());
    messages += unmatched.messages;
  }
  if (senders.empty()) { return; }
  const auto [rank, node] = *std::min_element(senders.begin(), senders.end());
  const NodeTask& send = job.rank_graphs[rank].nodes[node];
  const std::string what = fmt::format(
      "sends {} B with tag {} to rank {}, which has no matching receive; ASTRA-sim does not wait for one ({} such {})",
      send.amount, send.tag, send.peer, messages, messages == 1 ? "message" : "messages");
  warnings.push_back(Diagnostic{place_of(job, rank, send.id), what}.text());
}

// Defects of ASTRA-sim that change the results of this run.
void warn_of_defects(const SimulationJob& job, const Machine& machine, std::vector<std::string>& warnings) {
  if (machine.network().skipped_dimensions()) {
    warnings.emplace_back("messages that cross several dimensions take time in the lowest one only, as in ASTRA-sim");
  }
  constexpr std::size_t kCutShort = 5;  // dimensions, of which ASTRA-sim uses four
  if (job.network.dimensions.size() == kCutShort &&
      std::any_of(job.rank_graphs.begin(), job.rank_graphs.end(), has_collective_without_dimensions)) {
    warnings.emplace_back("collectives without involved_dim do not use the fifth dimension, as in ASTRA-sim");
  }
  if (std::any_of(job.rank_graphs.begin(), job.rank_graphs.end(), [](const RankGraph& p) { return p.cut_durations; })) {
    warnings.emplace_back(
        "recorded durations are cut to whole microseconds, as in ASTRA-sim: duration_ns has no effect");
  }
  if (std::any_of(job.rank_graphs.begin(), job.rank_graphs.end(),
                  [](const RankGraph& p) { return p.replayed_broadcasts; })) {
    warnings.emplace_back(
        "BROADCAST nodes take their recorded duration, whatever their size, as in ASTRA-sim; --semantics physical "
        "sends their bytes");
  }
  warn_of_unreceived_sends(job, machine, warnings);
  if (has_tree_of_another_collective(job)) {
    warnings.emplace_back("doubleBinaryTree runs an all-reduce in place of other collectives, as in ASTRA-sim");
  }
  if (job.backend == Backend::congestion_unaware && machine.collectives().queues().overlapped()) {
    warnings.emplace_back(
        "concurrent chunks each get the full bandwidth of a link, as in ASTRA-sim: times can be shorter than the links "
        "allow");
  }
}

std::vector<results::SimulatedSpan> spans_of(const SimulationJob& job, const Machine& machine) {
  using Row = results::SimulatedSpan::Row;
  std::vector<results::SimulatedSpan> spans;
  spans.reserve(machine.nodes().spans().size());
  for (const NodeSpan& span : machine.nodes().spans()) {
    const RankGraph& rank_graph = job.rank_graphs[span.rank];
    const NodeTask& task = rank_graph.nodes[span.node];
    const Row row = task.slot == Slot::cpu    ? Row::host
                    : task.slot == Slot::gpu  ? Row::accelerator
                    : task.slot == Slot::comm ? Row::communication
                                              : Row::receive;
    spans.push_back({span.rank, row, task.id, span.start_ns, span.end_ns,
                     rank_graph.names.empty() ? std::string() : rank_graph.names[span.node]});
  }
  return spans;
}

results::SimulatedRank result_of(const RankState& rank) {
  results::SimulatedRank result;
  result.finish_ns = rank.finish_ns;
  result.exposed_comm_ns = rank.exposed_ns;
  result.compute_ns = rank.compute_ns;
  result.memory_ns = rank.memory_ns;
  result.idle_ns = rank.finish_ns - rank.busy_ns;
  return result;
}

}  // namespace

Result<results::Simulation> simulate(const SimulationJob& job) {
  if (job.semantics == Semantics::physical) { return simulate_physical(job); }
  Machine machine(job);
  try {
    machine.run();
  } catch (const TooLong&) {
    return fail(
        fmt::format("after {} ns: an event is later than the clock can count (30 years): check latencies, sizes "
                    "and bandwidths",
                    machine.events().now()));
  } catch (const Stop& stop) { return fail(place_of(job, stop.rank, stop.node), stop.why); }
  const auto& ranks = machine.nodes().ranks();
  if (!std::all_of(ranks.begin(), ranks.end(), [](const RankState& rank) { return rank.finished; })) {
    return tl::make_unexpected(explained(job, deadlock(job, machine)));
  }
  return result_of(job, machine);
}

results::Simulation result_of(const SimulationJob& job, const Machine& machine) {
  const auto& ranks = machine.nodes().ranks();
  results::Simulation simulation;
  simulation.semantics = "astra-sim";
  simulation.backend = job.backend == Backend::congestion_aware ? "congestion-aware" : "congestion-unaware";
  for (const RankState& rank : ranks) { simulation.ranks.push_back(result_of(rank)); }
  simulation.warnings = job.warnings;
  warn_of_defects(job, machine, simulation.warnings);
  for (const RankGraph& rank_graph : job.rank_graphs) { simulation.nodes += rank_graph.nodes.size(); }
  simulation.spans = spans_of(job, machine);
  if (job.tables) { simulation.tables = tables_of(job, machine); }
  if (job.explain) { simulation.path = event_path(job, machine); }
  if (job.memory_over_time) { simulation.memory = tensor_memory(job, simulation); }
  simulation.events = machine.events().events();
  simulation.messages = machine.network().delivered();
  simulation.simulated_ranks = ranks.size();
  return simulation;
}

}  // namespace orrery::simulate
