#include "orrery/simulate/collective_match.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

CollectiveMatch::GraphPart CollectiveMatch::add_graph(const RankGraph& graph) {
  GraphPart part{static_cast<std::uint32_t>(entries_.size()), 0, static_cast<std::uint32_t>(keys_.size()), 0};
  std::map<Key, std::uint32_t> known;
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    const NodeTask& task = graph.nodes[node];
    if (task.act != Act::collective) { continue; }
    const Key key{task.group, task.collective, task.amount, task.dimensions, task.custom};
    const auto [found, is_new] = known.try_emplace(key, part.keys);
    if (is_new) {
      keys_.push_back({key, 0});
      ++part.keys;
    }
    entries_.push_back({node, found->second, keys_[part.first_key + found->second].count++});
    ++part.entries;
  }
  return part;
}

// By rank. A graph that ranks share is read once.
std::vector<CollectiveMatch::GraphPart> CollectiveMatch::add_graphs(const RankGraphs& graphs) {
  std::unordered_map<const RankGraph*, std::uint32_t> first_rank;
  std::vector<GraphPart> parts;
  for (std::uint32_t rank = 0; rank < graphs.size(); ++rank) {
    const auto [known, is_new] = first_rank.try_emplace(&graphs[rank], rank);
    parts.push_back(is_new ? add_graph(graphs[rank]) : parts[known->second]);
  }
  return parts;
}

CollectiveMatch::CollectiveMatch(const SimulationJob& job) {
  struct Series {
    std::uint32_t count = 0;     // the most that a rank has
    std::uint32_t numbered = 0;  // have their numbers
    std::uint32_t first = 0;     // in numbers_
  };
  const RankGraphs& graphs = job.rank_graphs;
  const std::vector<GraphPart> parts = add_graphs(graphs);
  std::map<Key, std::uint32_t> known;
  std::vector<Series> all;
  for (std::uint32_t rank = 0; rank < graphs.size(); ++rank) {
    const GraphPart& part = parts[rank];
    ranks_.push_back({part.first_entry, part.entries, static_cast<std::uint32_t>(series_.size())});
    for (std::uint32_t i = part.first_key; i < part.first_key + part.keys; ++i) {
      Key key = keys_[i].key;
      key.group = graphs.group(rank, key.group);
      const auto [found, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(all.size()));
      if (is_new) { all.emplace_back(); }
      all[found->second].count = std::max(all[found->second].count, keys_[i].count);
      series_.push_back(found->second);
    }
  }
  std::uint32_t collectives = 0;
  for (Series& series : all) {
    series.first = collectives;
    collectives += series.count;
  }
  numbers_.assign(collectives, kNone);
  // Numbers are in the order of ranks, then of their nodes.
  for (std::uint32_t rank = 0; rank < graphs.size(); ++rank) {
    bool has_new = false;
    for (std::uint32_t i = 0; i < parts[rank].keys; ++i) {
      std::uint32_t& place = series_[ranks_[rank].first_series + i];
      Series& series = all[place];
      const std::uint32_t count = keys_[parts[rank].first_key + i].count;
      has_new = has_new || count > series.numbered;
      series.numbered = std::max(series.numbered, count);
      place = series.first;
    }
    if (has_new) { number(job, rank); }
  }
}

// Numbers the collectives of a rank that earlier ranks do not have.
void CollectiveMatch::number(const SimulationJob& job, std::uint32_t rank) {
  for (const Entry& entry : entries(rank)) {
    std::uint32_t& number = numbers_[series_[ranks_[rank].first_series + entry.key] + entry.k];
    if (number != kNone) { continue; }
    number = static_cast<std::uint32_t>(all_.size());
    const NodeTask task = job.rank_graphs.task(rank, entry.node);
    const auto own = job.system.custom_of_node.find(task.id);
    const auto* general = std::get_if<std::string>(&job.system.algorithms[static_cast<std::size_t>(task.collective)]);
    const std::size_t ranks =
        task.group == kWholeMachine ? job.rank_graphs.size() : job.groups[task.group - 1].ranks.size();
    all_.push_back({task, static_cast<std::uint32_t>(ranks),
                    own != job.system.custom_of_node.end() ? own->second
                    : general != nullptr                   ? *general
                                                           : ""});
  }
}

std::uint32_t CollectiveMatch::collective_of(std::uint32_t rank, std::uint32_t node) const {
  const auto list = entries(rank);
  const auto found =
      std::lower_bound(list.begin(), list.end(), node, [](const Entry& entry, auto at) { return entry.node < at; });
  return collective_of(rank, *found);
}

// Ranks reach their collectives nearly in the order of their ids, so that few entries are accessed.
std::uint32_t CollectiveMatch::collective_of(std::uint32_t rank, std::uint32_t node, std::uint32_t& place) const {
  const auto list = entries(rank);
  while (list[place].node < node) { ++place; }
  while (list[place].node > node) { --place; }
  return collective_of(rank, list[place]);
}

std::optional<std::uint32_t> CollectiveMatch::node_of(std::uint32_t rank, std::uint32_t collective) const {
  for (const Entry& entry : entries(rank)) {
    if (collective_of(rank, entry) == collective) { return entry.node; }
  }
  return std::nullopt;
}

}  // namespace orrery::simulate
