// The graphs of all ranks. Ranks whose graphs are equal can share one: a job of 65,536 ranks with one graph takes the
// memory of one. Ranks whose graphs differ in groups and peers only can share one too: the graph then has slots, and
// each rank has a binding, which says what is in them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "orrery/simulate/rank_graph.hpp"

namespace orrery::simulate {

// Of one rank: what the groups and peers of the nodes of a shared graph are.
struct RankBinding {
  struct Peer {
    std::uint32_t rank = 0;
    std::uint16_t dimensions = kNoDimensionList;  // of the messages

    friend bool operator==(const Peer&, const Peer&) = default;
  };
  std::vector<std::uint32_t> groups;  // by NodeTask::group; [0]: kWholeMachine. Slots differ in their groups
  std::vector<Peer> peers;            // by NodeTask::peer
};

class RankGraphs {
 public:
  [[nodiscard]] std::size_t size() const { return graphs_.size(); }
  // Groups and peers of its nodes may be slots: see group(), peer() and task().
  [[nodiscard]] const RankGraph& operator[](std::size_t rank) const { return *graphs_[rank]; }

  [[nodiscard]] bool has_slots() const {
    return std::any_of(bindings_.begin(), bindings_.end(), [](const RankBinding& one) { return !one.groups.empty(); });
  }
  // Of a NodeTask::group of the rank.
  [[nodiscard]] std::uint32_t group(std::size_t rank, std::uint32_t group_or_slot) const {
    return is_bound(rank) ? bindings_[rank].groups[group_or_slot] : group_or_slot;
  }
  // Of a message of the rank.
  [[nodiscard]] RankBinding::Peer peer(std::size_t rank, const NodeTask& task) const {
    return is_bound(rank) ? bindings_[rank].peers[task.peer] : RankBinding::Peer{task.peer, task.dimensions};
  }
  // A node of the rank, with its group and peer.
  [[nodiscard]] NodeTask task(std::size_t rank, std::size_t node) const {
    return is_bound(rank) ? bound(graphs_[rank]->nodes[node], bindings_[rank]) : graphs_[rank]->nodes[node];
  }

  void push_back(RankGraph graph) { graphs_.push_back(std::make_shared<RankGraph>(std::move(graph))); }
  // The next rank has the graph of `rank`.
  void share(std::size_t rank) {
    graphs_.push_back(graphs_[rank]);
    if (is_bound(rank)) { bind_last(RankBinding(bindings_[rank])); }
  }
  // The same for graphs with slots.
  void push_back(RankGraph graph, RankBinding binding) {
    push_back(std::move(graph));
    bind_last(std::move(binding));
  }
  void share(std::size_t rank, RankBinding binding) {
    graphs_.push_back(graphs_[rank]);
    bind_last(std::move(binding));
  }
  void assign(std::size_t ranks, RankGraph graph) {
    graphs_.assign(ranks, std::make_shared<RankGraph>(std::move(graph)));
    bindings_.clear();
  }
  void clear() {
    graphs_.clear();
    bindings_.clear();
  }

  // The graph of a rank, to be changed for this rank only: a copy if other ranks share it, without slots.
  [[nodiscard]] RankGraph& own(std::size_t rank) {
    std::shared_ptr<RankGraph>& graph = graphs_[rank];
    if (graph.use_count() > 1) { graph = std::make_shared<RankGraph>(*graph); }
    if (!is_bound(rank)) { return *graph; }
    for (NodeTask& task : graph->nodes) { task = bound(task, bindings_[rank]); }
    bindings_[rank] = {};
    return *graph;
  }

  // The graph of ranks that share one, to be changed for these ranks only. Groups and peers may be slots.
  [[nodiscard]] RankGraph& own_together(std::span<const std::uint32_t> ranks) {
    const auto changed = std::make_shared<RankGraph>(*graphs_[ranks.front()]);
    for (const std::uint32_t rank : ranks) { graphs_[rank] = changed; }
    return *changed;
  }

  // The rank has an empty graph from now on.
  void remove_nodes(std::size_t rank) {
    RankGraph empty;
    empty.child_begin = {0};
    graphs_[rank] = std::make_shared<RankGraph>(std::move(empty));
    if (is_bound(rank)) { bindings_[rank] = {}; }
  }

  class Iterator {
   public:
    using difference_type = std::ptrdiff_t;
    using value_type = RankGraph;
    using pointer = const RankGraph*;
    using reference = const RankGraph&;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;
    explicit Iterator(const std::shared_ptr<RankGraph>* at) : at_(at) {}
    [[nodiscard]] reference operator*() const { return **at_; }
    [[nodiscard]] pointer operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const std::shared_ptr<RankGraph>* at_ = nullptr;
  };
  [[nodiscard]] Iterator begin() const { return Iterator(graphs_.data()); }
  [[nodiscard]] Iterator end() const { return Iterator(graphs_.data() + graphs_.size()); }

 private:
  [[nodiscard]] bool is_bound(std::size_t rank) const {
    return rank < bindings_.size() && !bindings_[rank].groups.empty();
  }
  void bind_last(RankBinding binding) {
    bindings_.resize(graphs_.size() - 1);
    bindings_.push_back(std::move(binding));
  }
  [[nodiscard]] static NodeTask bound(NodeTask task, const RankBinding& binding) {
    task.group = binding.groups[task.group];
    if (task.act != Act::send && task.act != Act::receive) { return task; }
    const RankBinding::Peer& peer = binding.peers[task.peer];
    task.peer = peer.rank;
    task.dimensions = peer.dimensions;
    return task;
  }

  std::vector<std::shared_ptr<RankGraph>> graphs_;  // by rank
  std::vector<RankBinding> bindings_;               // by rank, up to the last one that has one; empty: none
};

}  // namespace orrery::simulate
