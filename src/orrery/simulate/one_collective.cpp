#include "orrery/simulate/one_collective.hpp"

#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/simulate/on_cluster.hpp"

namespace orrery::simulate {

namespace {

constexpr std::uint16_t kAllDimensions = 0x7FFF;  // explicit involved_dim
constexpr std::size_t kDimensionsWithDefect = 5;  // without involved_dim, ASTRA-sim leaves out the fifth of five

RankGraph graph_of(Collective collective, std::uint64_t bytes) {
  NodeTask task;
  task.act = Act::collective;
  task.slot = Slot::comm;
  task.collective = collective;
  task.amount = bytes;
  RankGraph rank_graph;
  rank_graph.nodes = {task};
  rank_graph.child_begin = {0, 0};
  return rank_graph;
}

}  // namespace

std::string algorithm_text(const System& system, Collective collective) {
  const Choice& choice = system.algorithms[static_cast<std::size_t>(collective)];
  if (const auto* prefix = std::get_if<std::string>(&choice)) { return "custom " + *prefix; }
  std::vector<std::string> names;
  for (const DimensionAlgorithm& algorithm : std::get<std::vector<DimensionAlgorithm>>(choice)) {
    names.push_back(name_of(algorithm));
  }
  return join(names, ",");
}

Result<SimulationJob> one_collective(const SimulationJob& machine, Collective collective, std::uint64_t bytes) {
  SimulationJob job = machine;
  if (algorithm_text(job.system, collective).empty()) {
    return fail(fmt::format("the system file has no algorithm for {}", name_of(collective)));
  }
  if (collective == Collective::all_gather && bytes < job.system.splits) {
    return fail(fmt::format("a shard of {} B cannot be split into {} chunks (preferred-dataset-splits)", bytes,
                            job.system.splits));
  }
  RankGraph rank_graph = graph_of(collective, bytes);
  if (job.network.dimensions.size() == kDimensionsWithDefect) { rank_graph.nodes.front().dimensions = kAllDimensions; }
  const std::uint32_t ranks = job.network.ranks();
  job.rank_graphs.assign(ranks, rank_graph);
  job.files.assign(ranks, "");
  job.system.custom_of_node.clear();  // refers to nodes of graphs
  if (auto whole = complete(job); !whole) { return tl::make_unexpected(whole.error()); }
  return job;
}

FlowJob one_collective(const hardware::Cluster& cluster, Collective collective, std::uint64_t bytes,
                       CollectiveAlgorithm algorithm) {
  SimulationJob job = machine_on(cluster);
  job.backend = Backend::flow;
  job.rank_graphs.assign(static_cast<std::size_t>(cluster.devices), graph_of(collective, bytes));
  FlowJob flow = unfolded(cluster, std::move(job));
  flow.algorithm = algorithm;
  flow.whole_buffers = true;
  return flow;
}

}  // namespace orrery::simulate
