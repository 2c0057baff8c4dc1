#include "orrery/simulate/tables.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "orrery/simulate/one_collective.hpp"

namespace orrery::simulate {

namespace {

constexpr std::uint64_t kPicoseconds = 1000;  // of a nanosecond

// At most 213 days.
std::uint64_t picoseconds(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0} / kPicoseconds;
  return std::min(nanoseconds, kMost) * kPicoseconds;
}

// ---- ranks ---------------------------------------------------------------------------------------------------------

// The activities of a rank. A moment counts as the first of the concurrent ones.
enum BusyKind : std::size_t { kCompute, kComm, kMemory, kHost, kWaiting, kBusyKinds };

BusyKind kind_of_time(const NodeTask& task) {
  if (task.slot == Slot::cpu) { return kHost; }
  if (task.slot == Slot::gpu) { return kCompute; }
  return task.act == Act::memory ? kMemory : kComm;
}

struct Change {
  std::uint64_t at = 0;
  BusyKind kind = kCompute;
  std::int32_t by = 1;
};

// Sums over the intervals between the times at which an activity starts or ends.
results::RankTimes times_of(std::vector<Change>& changes, std::uint64_t finish_ns) {
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) { return a.at < b.at; });
  std::array<std::int64_t, kBusyKinds> running{};
  std::array<std::uint64_t, kBusyKinds> all{}, exposed{};
  std::uint64_t idle = 0, last = 0;
  const auto pass = [&](std::uint64_t now) {
    bool is_first = true;
    for (std::size_t b = 0; b < kBusyKinds; ++b) {
      if (running[b] == 0) { continue; }
      all[b] += now - last;
      if (is_first) { exposed[b] += now - last; }
      is_first = is_first && b == kWaiting;  // waiting also counts as idle
    }
    if (is_first) { idle += now - last; }
    last = now;
  };
  for (const Change& change : changes) {
    if (change.at > finish_ns) { break; }
    pass(change.at);
    running[change.kind] += change.by;
  }
  if (last < finish_ns) { pass(finish_ns); }
  results::RankTimes times;
  times.finish_ps = picoseconds(finish_ns);
  times.compute_ps = picoseconds(all[kCompute]);
  times.comm_ps = picoseconds(all[kComm]);
  times.memory_ps = picoseconds(all[kMemory]);
  times.host_ps = picoseconds(all[kHost]);
  times.exposed_comm_ps = picoseconds(exposed[kComm]);
  times.exposed_memory_ps = picoseconds(exposed[kMemory]);
  times.exposed_host_ps = picoseconds(exposed[kHost]);
  times.idle_ps = picoseconds(idle);
  times.waiting_ps = picoseconds(exposed[kWaiting]);
  return times;
}

// The departures of the messages of sends by key; the k-th receive of a key gets the k-th message.
class Departures {
 public:
  Departures(const SimulationJob& job, const std::vector<NodeSpan>& spans) : job_(job) {
    for (const NodeSpan& span : spans) {
      const NodeTask& task = job.rank_graphs[span.rank].nodes[span.node];
      if (task.act == Act::send) { at_[key_of(span, task)].sends.push_back(span.departure_ns); }
      if (task.act == Act::receive) { at_[key_of(span, task)].receives.emplace_back(span.start_ns, span.node); }
    }
    for (auto& [where, matched] : at_) {
      std::sort(matched.sends.begin(), matched.sends.end());
      std::sort(matched.receives.begin(), matched.receives.end());
    }
  }

  [[nodiscard]] std::uint64_t of(const NodeSpan& receive) const {
    const Matched& matched = at_.at(key_of(receive, job_.rank_graphs[receive.rank].nodes[receive.node]));
    const auto found =
        std::lower_bound(matched.receives.begin(), matched.receives.end(), std::pair{receive.start_ns, receive.node});
    const auto number = static_cast<std::size_t>(found - matched.receives.begin());
    return number < matched.sends.size() ? matched.sends[number] : receive.start_ns;
  }

 private:
  struct Matched {
    std::vector<std::uint64_t> sends;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> receives;
  };
  static MessageKey key_of(const NodeSpan& span, const NodeTask& task) {
    const bool sends = task.act == Act::send;
    return {task.tag, task.amount, sends ? span.rank : task.peer, sends ? task.peer : span.rank};
  }

  const SimulationJob& job_;
  std::unordered_map<MessageKey, Matched, MessageKeyHash> at_;
};

std::vector<results::RankTimes> ranks_of(const SimulationJob& job, const Machine& machine) {
  const Departures departures(job, machine.nodes().spans());
  std::vector<std::vector<Change>> changes(machine.nodes().ranks().size());
  for (const NodeSpan& span : machine.nodes().spans()) {
    const NodeTask& task = job.rank_graphs[span.rank].nodes[span.node];
    auto& list = changes[span.rank];
    std::uint64_t start = span.start_ns;
    if (task.act == Act::receive) {
      start = std::clamp(departures.of(span), span.start_ns, span.end_ns);
      list.push_back({span.start_ns, kWaiting, 1});
      list.push_back({start, kWaiting, -1});
    }
    const BusyKind kind = task.act == Act::receive ? kComm : kind_of_time(task);
    list.push_back({start, kind, 1});
    list.push_back({span.end_ns, kind, -1});
  }
  std::vector<results::RankTimes> ranks;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ranks.push_back(times_of(changes[i], machine.nodes().ranks()[i].finish_ns));
  }
  return ranks;
}

// ---- links and dimensions ------------------------------------------------------------------------------------------

std::vector<results::SimulatedLink> links_of(const Machine& machine) {
  std::vector<results::SimulatedLink> links;
  const auto& counts = machine.network().link_counts();
  for (std::uint32_t i = 0; i < counts.size(); ++i) {
    if (counts[i].messages == 0) { continue; }
    results::SimulatedLink link;
    std::tie(link.from, link.to) = machine.network().ends_of_link(i);
    link.bytes = counts[i].bytes;
    link.messages = counts[i].messages;
    link.busy_ps = picoseconds(counts[i].busy_ns);
    link.queued_ps = picoseconds(counts[i].queued_ns);
    links.push_back(link);
  }
  std::sort(links.begin(), links.end(),
            [](const auto& a, const auto& b) { return std::tie(a.from, a.to) < std::tie(b.from, b.to); });
  for (const auto& [ends, count] : machine.network().route_counts()) {
    links.push_back({ends.dimension, ends.from, ends.to, count.bytes, picoseconds(count.busy_ns), count.messages, 0});
  }
  return links;
}

std::vector<results::SimulatedDimension> dimensions_of(const SimulationJob& job, const Machine& machine,
                                                       const std::vector<results::SimulatedLink>& links) {
  std::vector<results::SimulatedDimension> dimensions = dimensions_of(job.network, links);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    dimensions[i].messages = machine.network().dimension_counts()[i].messages;
    dimensions[i].bytes = machine.network().dimension_counts()[i].bytes;
  }
  return dimensions;
}

// ---- collectives ---------------------------------------------------------------------------------------------------

// The algorithm that CollectiveEngine::sequence_of() chooses.
std::string algorithm_of(const SimulationJob& job, const NodeTask& task) {
  const auto own = job.system.custom_of_node.find(task.id);
  if (own != job.system.custom_of_node.end()) { return "custom " + own->second; }
  const Choice& choice = job.system.algorithms[static_cast<std::size_t>(task.collective)];
  const auto* list = std::get_if<std::vector<DimensionAlgorithm>>(&choice);
  const bool small = task.group != kWholeMachine && job.groups[task.group - 1].ranks.size() < job.network.ranks();
  if (list != nullptr && small && list->size() != 1) { return name_of(DimensionAlgorithm{}); }
  return algorithm_text(job.system, task.collective);
}

// The k-th collectives that the ranks of a group start are one collective.
std::vector<results::SimulatedCollective> collectives_of(const SimulationJob& job, const Machine& machine) {
  std::vector<NodeSpan> spans;
  for (const NodeSpan& span : machine.nodes().spans()) {
    if (job.rank_graphs[span.rank].nodes[span.node].act == Act::collective) { spans.push_back(span); }
  }
  std::sort(spans.begin(), spans.end(), [](const NodeSpan& a, const NodeSpan& b) {
    return std::tie(a.rank, a.start_ns, a.node) < std::tie(b.rank, b.start_ns, b.node);
  });
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> started;               // rank, group
  std::map<std::pair<std::uint32_t, std::uint32_t>, results::SimulatedCollective> found;  // group, k
  for (const NodeSpan& span : spans) {
    const NodeTask& task = job.rank_graphs[span.rank].nodes[span.node];
    const std::uint32_t number = started[{span.rank, task.group}]++;
    auto [place, is_new] = found.try_emplace({task.group, number});
    results::SimulatedCollective& collective = place->second;
    if (is_new) {
      collective.op = name_of(task.collective);
      collective.algorithm = algorithm_of(job, task);
      collective.bytes = task.amount;
      collective.whole_machine = task.group == kWholeMachine;
      if (!collective.whole_machine) { collective.group = job.groups[task.group - 1].name; }
      collective.first_start_ns = span.start_ns;
    }
    ++collective.ranks;
    collective.first_start_ns = std::min(collective.first_start_ns, span.start_ns);
    collective.last_start_ns = std::max(collective.last_start_ns, span.start_ns);
    collective.end_ns = std::max(collective.end_ns, span.end_ns);
  }
  std::vector<results::SimulatedCollective> collectives;
  for (auto& [key, collective] : found) { collectives.push_back(std::move(collective)); }
  std::stable_sort(collectives.begin(), collectives.end(),
                   [](const auto& a, const auto& b) { return a.end_ns < b.end_ns; });
  return collectives;
}

// ---- operators -----------------------------------------------------------------------------------------------------

std::string operator_kind(const NodeTask& task) {
  switch (task.act) {
    case Act::collective: return std::string(name_of(task.collective));
    case Act::send: return "send";
    case Act::receive: return "receive";
    case Act::memory: return "memory";
    case Act::metadata: return "metadata";
    case Act::no_op: return "nothing";
    case Act::busy: break;
  }
  return task.slot == Slot::cpu ? "host" : task.slot == Slot::gpu ? "compute" : "replayed";
}

std::vector<results::SimulatedOperator> operators_of(const SimulationJob& job, const Machine& machine) {
  std::vector<results::SimulatedOperator> operators;
  operators.reserve(machine.nodes().spans().size());
  for (const NodeSpan& span : machine.nodes().spans()) {
    const RankGraph& rank_graph = job.rank_graphs[span.rank];
    const NodeTask& task = rank_graph.nodes[span.node];
    const std::uint64_t bytes = task.act == Act::busy ? 0 : task.amount;
    operators.push_back({span.rank, task.id, operator_kind(task), bytes, span.start_ns, span.end_ns,
                         rank_graph.names.empty() ? std::string() : rank_graph.names[span.node]});
  }
  return operators;
}

}  // namespace

std::vector<results::SimulatedDimension> dimensions_of(const Network& network,
                                                       const std::vector<results::SimulatedLink>& links) {
  std::vector<results::SimulatedDimension> dimensions;
  for (const NetworkDimension& dimension : network.dimensions) {
    results::SimulatedDimension made;
    made.dimension = static_cast<std::uint32_t>(dimensions.size());
    made.topology = name_of(dimension.wiring);
    made.ranks = dimension.ranks;
    dimensions.push_back(std::move(made));
  }
  for (const results::SimulatedLink& link : links) {
    results::SimulatedDimension& dimension = dimensions.at(link.dimension);
    ++dimension.links;
    dimension.link_messages += link.messages;
    dimension.link_bytes += link.bytes;
    dimension.busy_ps += link.busy_ps;
    dimension.busiest_ps = std::max(dimension.busiest_ps, link.busy_ps);
    dimension.queued_ps += link.queued_ps;
  }
  return dimensions;
}

results::SimulationTables tables_of(const SimulationJob& job, const Machine& machine) {
  results::SimulationTables tables;
  tables.ranks = ranks_of(job, machine);
  tables.links = links_of(machine);
  tables.dimensions = dimensions_of(job, machine, tables.links);
  tables.collectives = collectives_of(job, machine);
  tables.operators = operators_of(job, machine);
  return tables;
}

}  // namespace orrery::simulate
