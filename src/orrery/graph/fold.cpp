#include "orrery/graph/fold.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "orrery/graph/statistics.hpp"
#include "orrery/graph/topology.hpp"

namespace orrery::graph {

namespace {

constexpr std::uint64_t kNoLevel = std::numeric_limits<std::uint64_t>::max();

// Dependencies on the longest path to each node.
std::vector<std::uint64_t> levels_of(const Graph& graph) {
  std::vector<std::uint64_t> levels(graph.node_count(), kNoLevel);
  for (const NodeIndex node : run_order(graph)) {
    std::uint64_t level = 0;
    for_each_parent(graph, node, [&](NodeIndex parent) {
      if (parent != node) { level = std::max(level, levels[parent] + 1); }
    });
    levels[node] = level;
  }
  return levels;
}

class Folder {
 public:
  Folder(const Graph& graph, const Fold& fold) : graph_(graph), fold_(fold) {
    if (fold.by == Fold::By::depth) { levels_ = levels_of(graph); }
  }

  Folded fold() {
    fold_nodes();
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      add_edges(node, graph_.data_deps(node), true);
      add_edges(node, graph_.ctrl_deps(node), false);
    }
    std::sort(edges_.begin(), edges_.end());
    for (const auto& [child, ctrl, parent] : edges_) {
      if (!result_.edges.empty()) {
        FoldedEdge& last = result_.edges.back();
        if (last.child == child && last.parent == parent && last.data != ctrl) {
          ++last.count;
          continue;
        }
      }
      result_.edges.push_back({parent, child, !ctrl, 1});
    }
    return std::move(result_);
  }

 private:
  void fold_nodes() {
    const auto tensor_size = graph_.find_key(keys::tensor_size);
    const auto comm_size = graph_.find_key(keys::comm_size);
    for (NodeIndex node = 0; node < graph_.node_count(); ++node) {
      const std::uint32_t index = folded_of(node);
      folded_.push_back(index);
      FoldedNode& into = result_.nodes[index];
      if (++into.count == 1) {
        into.type = graph_.type(node);
        into.id = graph_.id(node);
        into.name = fold_.by == Fold::By::depth ? level_name(node) : std::string(graph_.name(node));
      } else if (into.count == 2 && fold_.by == Fold::By::name) {
        into.name = without_numbers(graph_.name(node));
      }
      into.time_ns += graph_.duration_ns(node);
      auto size = graph_.value(node, comm_size);
      if (!size) { size = graph_.value(node, tensor_size); }
      into.bytes += size ? size->as_uint().value_or(0) : 0;
    }
  }

  std::uint32_t folded_of(NodeIndex node) {
    const auto next = static_cast<std::uint32_t>(result_.nodes.size());
    std::uint32_t index = next;
    if (fold_.by == Fold::By::name) {
      index = by_name_.try_emplace({graph_.type(node), without_numbers(graph_.name(node))}, next).first->second;
    } else if (fold_.by == Fold::By::depth) {
      const std::uint64_t level_range = levels_[node] == kNoLevel ? kNoLevel : levels_[node] / fold_.levels;
      index = by_level_range_.try_emplace({level_range, graph_.type(node)}, next).first->second;
    }
    if (index == next) { result_.nodes.emplace_back(); }
    return index;
  }

  [[nodiscard]] std::string level_name(NodeIndex node) const {
    if (levels_[node] == kNoLevel) { return "on a cycle, or after one"; }
    const std::uint64_t first = levels_[node] / fold_.levels * fold_.levels;
    if (fold_.levels == 1) { return fmt::format("level {}", first); }
    return fmt::format("level {} to {}", first, first + (fold_.levels - 1));
  }

  void add_edges(NodeIndex node, std::span<const NodeIndex> parents, bool data) {
    for (const NodeIndex parent : parents) {
      if (!graph_.present(parent)) {
        ++result_.missing;
      } else if (folded_[parent] != folded_[node] || fold_.by == Fold::By::none) {
        edges_.emplace_back(folded_[node], !data, folded_[parent]);
      }
    }
  }

  const Graph& graph_;
  const Fold& fold_;
  Folded result_;
  std::vector<std::uint64_t> levels_;
  std::vector<std::uint32_t> folded_;
  std::vector<std::tuple<std::uint32_t, bool, std::uint32_t>> edges_;  // child, control, parent
  std::map<std::pair<NodeType, std::string>, std::uint32_t> by_name_;
  std::map<std::pair<std::uint64_t, NodeType>, std::uint32_t> by_level_range_;
};

}  // namespace

Folded folded(const Graph& graph, const Fold& fold) { return Folder(graph, fold).fold(); }

}  // namespace orrery::graph
