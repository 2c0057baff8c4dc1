#include "orrery/simulate/physical.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "orrery/simulate/physical_deadlock.hpp"
#include "orrery/simulate/physical_machine.hpp"
#include "orrery/simulate/stop.hpp"
#include "orrery/simulate/tables.hpp"

namespace orrery::simulate {

namespace {

std::uint64_t up_to_ns(std::uint64_t picoseconds) {
  return picoseconds / kPicosecondsPerNs + (picoseconds % kPicosecondsPerNs != 0 ? 1 : 0);
}

// Times by activity, from the times by set of concurrent activities.
results::RankTimes times_of(const PhysicalRank& rank) {
  results::RankTimes times;
  times.finish_ps = rank.finish;
  constexpr auto bit = [](Activity activity) { return std::size_t{1} << static_cast<std::size_t>(activity); };
  for (std::size_t set = 0; set < rank.time.size(); ++set) {
    const std::uint64_t length = rank.time[set];
    const bool compute = (set & bit(Activity::compute)) != 0, comm = (set & bit(Activity::comm)) != 0;
    const bool memory = (set & bit(Activity::memory)) != 0, host = (set & bit(Activity::host)) != 0;
    if (compute) { times.compute_ps += length; }
    if (comm) { times.comm_ps += length; }
    if (memory) { times.memory_ps += length; }
    if (host) { times.host_ps += length; }
    if (compute) { continue; }
    if (comm) {
      times.exposed_comm_ps += length;
    } else if (memory) {
      times.exposed_memory_ps += length;
    } else if (host) {
      times.exposed_host_ps += length;
    } else {
      times.idle_ps += length;
      if ((set & bit(Activity::waiting)) != 0) { times.waiting_ps += length; }
    }
  }
  return times;
}

results::SimulatedRank result_of(const results::RankTimes& times) {
  results::SimulatedRank result;
  result.finish_ns = up_to_ns(times.finish_ps);
  result.exposed_comm_ns = up_to_ns(times.exposed_comm_ps);
  result.compute_ns = up_to_ns(times.compute_ps);
  result.memory_ns = up_to_ns(times.memory_ps);
  result.idle_ns = up_to_ns(times.idle_ps);
  return result;
}

// Sorted by end, start, rank and node, which does not depend on the order of handling.
std::vector<PhysicalSpan> in_order(const PhysicalMachine& machine) {
  std::vector<PhysicalSpan> spans = machine.nodes().spans();
  std::sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
    return std::tie(a.end, a.start, a.rank, a.node) < std::tie(b.end, b.start, b.rank, b.node);
  });
  return spans;
}

results::SimulatedSpan::Row row_of(const NodeTask& task) {
  using Row = results::SimulatedSpan::Row;
  if (task.act == Act::receive) { return Row::receive; }
  if (task.act != Act::busy) { return Row::communication; }
  return task.slot == Slot::cpu ? Row::host : task.slot == Slot::gpu ? Row::accelerator : Row::communication;
}

std::string kind_of(const NodeTask& task) {
  switch (task.act) {
    case Act::busy: return task.slot == Slot::cpu ? "host" : task.slot == Slot::gpu ? "compute" : "communication";
    case Act::collective: return std::string(name_of(task.collective));
    case Act::send: return "send";
    case Act::receive: return "receive";
    case Act::memory: return "memory";
    case Act::no_op:
    case Act::metadata: break;
  }
  return "mark";
}

std::vector<results::SimulatedCollective> collectives_of(const SimulationJob& job, const PhysicalMachine& machine) {
  std::vector<results::SimulatedCollective> rows;
  std::vector<const PhysicalCollective*> all;
  for (const PhysicalCollective& collective : machine.collectives().all()) { all.push_back(&collective); }
  std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return std::tie(a->end, a->first_start, a->task.group) < std::tie(b->end, b->first_start, b->task.group);
  });
  for (const PhysicalCollective* one : all) {
    results::SimulatedCollective row;
    row.op = name_of(one->task.collective);
    row.algorithm = !one->custom.empty()       ? "custom " + one->custom
                    : one->schedule != nullptr ? one->schedule->algorithm
                                               : "";
    row.bytes = one->task.amount;
    row.ranks = one->ranks;
    row.whole_machine = one->task.group == kWholeMachine;
    if (!row.whole_machine) { row.group = job.groups[one->task.group - 1].name; }
    row.first_start_ns = up_to_ns(one->first_start);
    row.last_start_ns = up_to_ns(one->last_start);
    row.end_ns = up_to_ns(one->end);
    rows.push_back(std::move(row));
  }
  return rows;
}

void add_spans(const SimulationJob& job, const PhysicalMachine& machine, results::Simulation& simulation) {
  for (const auto& span : in_order(machine)) {
    const RankGraph& rank_graph = job.rank_graphs[span.rank];
    const NodeTask& task = rank_graph.nodes[span.node];
    const std::string name = rank_graph.names.empty() ? std::string() : rank_graph.names[span.node];
    simulation.spans.push_back({span.rank, row_of(task), task.id, up_to_ns(span.start), up_to_ns(span.end), name});
    if (!simulation.tables) { continue; }
    const bool moves = task.act != Act::busy && task.act != Act::no_op && task.act != Act::metadata;
    simulation.tables->operators.push_back(
        {span.rank, task.id, kind_of(task), moves ? task.amount : 0, up_to_ns(span.start), up_to_ns(span.end), name});
  }
}

results::Simulation result_of(const SimulationJob& job, const PhysicalMachine& machine) {
  results::Simulation simulation;
  simulation.semantics = "physical";
  simulation.backend = "congestion-aware";
  simulation.warnings = job.warnings;
  if (job.system.bus) { simulation.warnings.emplace_back("model-shared-bus has no effect in physical semantics"); }
  std::vector<results::RankTimes> times;
  for (const PhysicalRank& rank : machine.nodes().ranks()) {
    times.push_back(times_of(rank));
    simulation.ranks.push_back(result_of(times.back()));
  }
  for (const RankGraph& rank_graph : job.rank_graphs) { simulation.nodes += rank_graph.nodes.size(); }
  if (job.tables) {
    simulation.tables.emplace();
    simulation.tables->ranks = std::move(times);
    simulation.tables->links = machine.links().counts();
    simulation.tables->dimensions = dimensions_of(job.network, simulation.tables->links);
    simulation.tables->collectives = collectives_of(job, machine);
  }
  add_spans(job, machine, simulation);
  simulation.events = machine.rounds().events();
  simulation.messages = machine.delivered();
  simulation.simulated_ranks = machine.nodes().ranks().size();
  return simulation;
}

tl::unexpected<Failure> unmatched(const SimulationJob& job, const PhysicalMessages::Unreceived& unreceived) {
  const NodeTask& send = job.rank_graphs[unreceived.rank].nodes[unreceived.node];
  return fail(place_of(job, unreceived.rank, send.id),
              fmt::format("sends {} B with tag {} to rank {}, which has no matching receive ({} such {})", send.amount,
                          send.tag, send.peer, unreceived.messages, unreceived.messages == 1 ? "message" : "messages"));
}

}  // namespace

Result<results::Simulation> simulate_physical(const SimulationJob& job) {
  std::uint64_t now = 0;
  try {
    PhysicalMachine machine(job);
    try {
      machine.run();
    } catch (const TooLong&) {
      now = machine.rounds().now();
      throw;
    }
    for (std::uint32_t rank = 0; rank < machine.nodes().ranks().size(); ++rank) {
      if (!machine.nodes().finished(rank)) {
        return tl::make_unexpected(explained(job, physical_deadlock(job, machine)));
      }
    }
    if (const auto unreceived = machine.messages().unreceived()) { return unmatched(job, *unreceived); }
    return result_of(job, machine);
  } catch (const TooLong&) {
    return fail(fmt::format(
        "after {} ns: an event is later than the clock can count (53 days): check latencies, sizes and bandwidths",
        up_to_ns(now)));
  } catch (const Stop& stop) { return fail(place_of(job, stop.rank, stop.node), stop.why); }
}

}  // namespace orrery::simulate
