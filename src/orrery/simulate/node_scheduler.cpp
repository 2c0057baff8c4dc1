#include "orrery/simulate/node_scheduler.hpp"

#include <algorithm>
#include <functional>

namespace orrery::simulate {

NodeScheduler::NodeScheduler(const SimulationJob& job, const EventQueue& events)
    : job_(job), events_(events), ranks_(job.rank_graphs.size()) {
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    RankState& rank = ranks_[i];
    const RankGraph& rank_graph = job.rank_graphs[i];
    if (job.spans) { rank.starts.assign(rank_graph.nodes.size(), 0); }
    if (job.tables) { rank.departures.assign(rank_graph.nodes.size(), 0); }
    rank.parents.reserve(rank_graph.nodes.size());
    for (const NodeTask& task : rank_graph.nodes) { rank.parents.push_back(task.parents); }
  }
}

void NodeScheduler::free_roots(std::uint32_t rank) {
  const RankGraph& rank_graph = job_.rank_graphs[rank];
  for (std::uint32_t node = 0; node < rank_graph.nodes.size(); ++node) {
    if (rank_graph.nodes[node].parents == 0) { make_ready(rank, node); }
  }
}

void NodeScheduler::make_ready(std::uint32_t number, std::uint32_t node) {
  auto& heap = ranks_[number].ready[static_cast<std::size_t>(job_.rank_graphs[number].nodes[node].slot)];
  heap.push_back(node);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

// Removes the ready node with the smallest id whose slot is free; kNone if there is none.
std::uint32_t NodeScheduler::take_ready(RankState& rank) {
  std::uint32_t best = kNone;
  std::size_t from = 0;
  for (std::size_t slot = 0; slot < rank.ready.size(); ++slot) {
    if (rank.ready[slot].empty() || (slot < kSlots && rank.slots[slot] != kNone)) { continue; }
    if (rank.ready[slot].front() < best) {
      best = rank.ready[slot].front();
      from = slot;
    }
  }
  if (best != kNone) {
    std::pop_heap(rank.ready[from].begin(), rank.ready[from].end(), std::greater<>());
    rank.ready[from].pop_back();
  }
  return best;
}

std::uint32_t NodeScheduler::next(std::uint32_t number) {
  RankState& rank = ranks_[number];
  const std::uint32_t node = take_ready(rank);
  if (node == kNone) {
    for (const std::uint32_t late : rank.ready_next_pass) { make_ready(number, late); }
    rank.ready_next_pass.clear();
    return kNone;
  }
  const NodeTask& task = job_.rank_graphs[number].nodes[node];
  const auto slot = static_cast<std::size_t>(task.slot);
  if (slot < kSlots) { rank.slots[slot] = node; }
  ++rank.running;
  if (task.act != Act::receive) { become_active(number); }
  if (task.act == Act::memory) { rank.memory_ns -= events_.now(); }  // free_slot() adds the time of its end
  if (job_.spans) { rank.starts[node] = events_.now(); }
  return node;
}

void NodeScheduler::free_children(std::uint32_t number, std::uint32_t node, bool in_this_pass) {
  RankState& rank = ranks_[number];
  for (const std::uint32_t child : job_.rank_graphs[number].children_of(node)) {
    if (--rank.parents[child] != 0) { continue; }
    if (in_this_pass) {
      make_ready(number, child);
    } else {
      rank.ready_next_pass.push_back(child);
    }
  }
}

void NodeScheduler::free_slot(std::uint32_t number, std::uint32_t node) {
  RankState& rank = ranks_[number];
  const NodeTask& task = job_.rank_graphs[number].nodes[node];
  if (task.slot != Slot::none) { rank.slots[static_cast<std::size_t>(task.slot)] = kNone; }
  if (task.act == Act::memory) { rank.memory_ns += events_.now(); }
  --rank.running;
  if (--rank.active == 0) { rank.busy_ns += events_.now() - rank.busy_since; }
  if (job_.spans) {
    spans_.push_back({number, node, rank.starts[node], events_.now(), job_.tables ? rank.departures[node] : 0});
  }
}

void NodeScheduler::end_in_pass(std::uint32_t number, std::uint32_t node) {
  free_slot(number, node);
  free_children(number, node, job_.rank_graphs[number].nodes[node].act == Act::metadata);
}

void NodeScheduler::end(std::uint32_t number, std::uint32_t node) {
  free_slot(number, node);
  free_children(number, node, true);
}

void NodeScheduler::check_finish(std::uint32_t number) {
  RankState& rank = ranks_[number];
  if (rank.finished || rank.running != 0) { return; }
  for (const auto& ready : rank.ready) {
    if (!ready.empty()) { return; }
  }
  rank.finished = true;
  rank.finish_ns = events_.now();
  rank.exposed_ns = events_.now() - rank.compute_ns;  // may wrap around, as in ASTRA-sim
}

}  // namespace orrery::simulate
