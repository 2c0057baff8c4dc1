#include "orrery/simulate/collective_match.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace orrery::simulate {

CollectiveMatch::CollectiveMatch(const SimulationJob& job) : collective_of_(job.rank_graphs.size()) {
  using Key = std::tuple<std::uint32_t, Collective, std::uint64_t, std::uint16_t, std::uint16_t, std::uint32_t>;
  std::map<Key, std::uint32_t> known;
  std::map<Key, std::uint32_t> counts;
  for (std::uint32_t rank = 0; rank < job.rank_graphs.size(); ++rank) {
    counts.clear();
    const auto& nodes = job.rank_graphs[rank].nodes;
    for (std::uint32_t node = 0; node < nodes.size(); ++node) {
      const NodeTask& task = nodes[node];
      if (task.act != Act::collective) { continue; }
      Key key{task.group, task.collective, task.amount, task.dimensions, task.custom, 0};
      std::get<5>(key) = counts[key]++;
      const auto [found, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(all_.size()));
      if (is_new) {
        const auto own = job.system.custom_of_node.find(task.id);
        const auto* general =
            std::get_if<std::string>(&job.system.algorithms[static_cast<std::size_t>(task.collective)]);
        const std::size_t ranks =
            task.group == kWholeMachine ? job.rank_graphs.size() : job.groups[task.group - 1].ranks.size();
        all_.push_back({task, static_cast<std::uint32_t>(ranks),
                        own != job.system.custom_of_node.end() ? own->second
                        : general != nullptr                   ? *general
                                                               : ""});
      }
      collective_of_[rank].emplace_back(node, found->second);
    }
  }
}

std::uint32_t CollectiveMatch::collective_of(std::uint32_t rank, std::uint32_t node) const {
  const auto& list = collective_of_[rank];
  return std::lower_bound(list.begin(), list.end(), std::pair{node, 0U})->second;
}

// Ranks reach their collectives nearly in the order of their ids, so that few entries are accessed.
std::uint32_t CollectiveMatch::collective_of(std::uint32_t rank, std::uint32_t node, std::uint32_t& place) const {
  const auto& list = collective_of_[rank];
  while (list[place].first < node) { ++place; }
  while (list[place].first > node) { --place; }
  return list[place].second;
}

std::optional<std::uint32_t> CollectiveMatch::node_of(std::uint32_t rank, std::uint32_t collective) const {
  for (const auto& [node, number] : collective_of_[rank]) {
    if (number == collective) { return node; }
  }
  return std::nullopt;
}

}  // namespace orrery::simulate
