#include "orrery/simulate/physical_result.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "orrery/simulate/rate.hpp"

namespace orrery::simulate {

std::uint64_t up_to_ns(std::uint64_t picoseconds) {
  return picoseconds / kPicosecondsPerNs + (picoseconds % kPicosecondsPerNs != 0 ? 1 : 0);
}

namespace {

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
std::vector<PhysicalSpan> in_order(const PhysicalNodes& nodes) {
  std::vector<PhysicalSpan> spans = nodes.spans();
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

void add_spans(const SimulationJob& job, const PhysicalNodes& nodes, results::Simulation& simulation) {
  for (const auto& span : in_order(nodes)) {
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

results::Roofline roofline_of(const SimulationJob& job, const PhysicalNodes& nodes) {
  results::Roofline roofline;
  for (std::uint32_t rank = 0; rank < nodes.ranks().size(); ++rank) {
    const KernelTotals& totals = job.rank_graphs[rank].kernels;
    const KernelRates rates = job.kernel_rates.empty() ? KernelRates{job.system.local_memory_gb, job.system.peak_tflops}
                                                       : job.kernel_rates[real_rank(job, rank)];
    roofline.ranks.push_back({totals.operations, totals.bytes, totals.kernels, totals.time, totals.memory_bound,
                              totals.without_figures, totals.time_without_figures, nodes.ranks()[rank].finish,
                              rates.peak_tflops * 1e12, rates.local_memory_gb * 1e9});
  }
  return roofline;
}

}  // namespace

results::Simulation physical_result(const SimulationJob& job, const PhysicalNodes& nodes) {
  results::Simulation simulation;
  simulation.semantics = "physical";
  simulation.warnings = job.warnings;
  std::vector<results::RankTimes> times;
  for (const PhysicalRank& rank : nodes.ranks()) {
    times.push_back(times_of(rank));
    simulation.ranks.push_back(result_of(times.back()));
  }
  for (const RankGraph& rank_graph : job.rank_graphs) { simulation.nodes += rank_graph.nodes.size(); }
  simulation.simulated_ranks = nodes.ranks().size();
  if (job.roofline) { simulation.roofline = roofline_of(job, nodes); }
  if (job.tables) {
    simulation.tables.emplace();
    simulation.tables->ranks = std::move(times);
  }
  add_spans(job, nodes, simulation);
  return simulation;
}

results::SimulatedCollective collective_row(const SimulationJob& job, const NodeTask& task, std::uint32_t ranks,
                                            std::uint64_t first_start, std::uint64_t last_start, std::uint64_t end) {
  results::SimulatedCollective row;
  row.op = name_of(task.collective);
  row.bytes = task.amount;
  row.ranks = ranks;
  row.whole_machine = task.group == kWholeMachine;
  if (!row.whole_machine) { row.group = job.groups[task.group - 1].name; }
  row.first_start_ns = up_to_ns(first_start);
  row.last_start_ns = up_to_ns(last_start);
  row.end_ns = up_to_ns(end);
  return row;
}

tl::unexpected<Failure> unmatched(const SimulationJob& job, const Unreceived& unreceived) {
  const NodeTask send = job.rank_graphs.task(unreceived.rank, unreceived.node);
  return fail(place_of(job, unreceived.rank, send.id),
              fmt::format("sends {} B with tag {} to rank {}, which has no matching receive ({} such {})", send.amount,
                          send.tag, real_rank(job, send.peer), unreceived.messages,
                          unreceived.messages == 1 ? "message" : "messages"));
}

}  // namespace orrery::simulate
