// The graphs of all ranks. Ranks whose graphs are equal can share one: a job of 65,536 ranks with one graph takes the
// memory of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "orrery/simulate/rank_graph.hpp"

namespace orrery::simulate {

class RankGraphs {
 public:
  [[nodiscard]] std::size_t size() const { return graphs_.size(); }
  [[nodiscard]] const RankGraph& operator[](std::size_t rank) const { return *graphs_[rank]; }

  void push_back(RankGraph graph) { graphs_.push_back(std::make_shared<RankGraph>(std::move(graph))); }
  // The next rank has the graph of `rank`.
  void share(std::size_t rank) { graphs_.push_back(graphs_[rank]); }
  void assign(std::size_t ranks, RankGraph graph) {
    graphs_.assign(ranks, std::make_shared<RankGraph>(std::move(graph)));
  }
  void clear() { graphs_.clear(); }

  // The graph of a rank, to be changed for this rank only: a copy if other ranks share it.
  [[nodiscard]] RankGraph& own(std::size_t rank) {
    std::shared_ptr<RankGraph>& graph = graphs_[rank];
    if (graph.use_count() > 1) { graph = std::make_shared<RankGraph>(*graph); }
    return *graph;
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
  std::vector<std::shared_ptr<RankGraph>> graphs_;  // by rank
};

}  // namespace orrery::simulate
