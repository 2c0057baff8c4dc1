#include "orrery/simulate/physical_nodes.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "orrery/engine/prefetch.hpp"

namespace orrery::simulate {

namespace {

constexpr std::size_t kNoSlot = 2;
std::size_t slot_of(const NodeTask& task) {
  if (task.act != Act::busy || task.slot == Slot::comm || task.slot == Slot::none) { return kNoSlot; }
  return task.slot == Slot::cpu ? 0 : 1;
}

bool takes_no_time(Act act) { return act == Act::no_op || act == Act::metadata; }

Activity activity_of(const NodeTask& task) {
  if (task.act == Act::memory) { return Activity::memory; }
  if (task.act == Act::receive) { return Activity::waiting; }
  if (task.act == Act::send || task.act == Act::collective) { return Activity::comm; }
  switch (task.slot) {
    case Slot::cpu: return Activity::host;
    case Slot::gpu: return Activity::compute;
    case Slot::comm:
    case Slot::none: break;
  }
  return Activity::comm;  // recorded communication
}

}  // namespace

PhysicalNodes::PhysicalNodes(const SimulationJob& job, const PhysicalRounds& rounds)
    : job_(job), rounds_(rounds), ranks_(job.rank_graphs.size()) {
  for (std::uint32_t i = 0; i < ranks_.size(); ++i) {
    PhysicalRank& rank = ranks_[i];
    const RankGraph& rank_graph = job.rank_graphs[i];
    if (i > 0 && &rank_graph == &job.rank_graphs[i - 1]) {  // ranks that share a graph mostly follow each other
      rank.parents = ranks_[i - 1].parents;
    } else {
      rank.parents.reserve(rank_graph.nodes.size());
      for (const NodeTask& task : rank_graph.nodes) { rank.parents.push_back(task.parents); }
    }
    if (job.spans) { rank.starts.assign(rank_graph.nodes.size(), 0); }
  }
}

void PhysicalNodes::free_roots(std::uint32_t rank) {
  const RankGraph& rank_graph = job_.rank_graphs[rank];
  if (roots_of_ != &rank_graph) {
    roots_of_ = &rank_graph;
    roots_.clear();
    for (std::uint32_t node = 0; node < rank_graph.nodes.size(); ++node) {
      if (rank_graph.nodes[node].parents == 0) { roots_.push_back(node); }
    }
  }
  for (const std::uint32_t node : roots_) { make_ready(rank, node); }
  touch(rank);
}

void PhysicalNodes::touch(std::uint32_t rank) {
  if (ranks_[rank].is_touched) { return; }
  ranks_[rank].is_touched = true;
  touched_.push_back(rank);
}

std::span<const std::uint32_t> PhysicalNodes::take_touched() {
  for (const std::uint32_t rank : touched_) { ranks_[rank].is_touched = false; }
  taken_touched_.clear();
  taken_touched_.swap(touched_);
  return taken_touched_;
}

void PhysicalNodes::make_ready(std::uint32_t number, std::uint32_t node) {
  PhysicalRank& rank = ranks_[number];
  const std::size_t slot = slot_of(job_.rank_graphs[number].nodes[node]);
  if (slot == kNoSlot) { return rank.ready_without_slot.push_back(node); }
  rank.ready[slot].push_back(node);
  std::push_heap(rank.ready[slot].begin(), rank.ready[slot].end(), std::greater<>());
}

void PhysicalNodes::end_later(std::uint32_t rank, std::uint32_t node) {
  ranks_[rank].ended.push_back(node);
  touch(rank);
}

void PhysicalNodes::prefetch(std::uint32_t number, int step) const {
  const PhysicalRank& rank = ranks_[number];
  const RankGraph& graph = job_.rank_graphs[number];
  if (step == 0) {
    engine::prefetch(&graph.nodes);
    return engine::prefetch(&graph.children);
  }
  if (rank.ended.empty()) { return; }
  const std::uint32_t node = rank.ended.front();
  if (step == 1) {
    engine::prefetch(graph.nodes.data() + node);
    engine::prefetch(rank.parents.data() + node);
    return engine::prefetch(graph.child_begin.data() + node);
  }
  if (step == 2) { return engine::prefetch(graph.children.data() + graph.child_begin[node]); }
  constexpr std::size_t kMost = 4;  // children
  const auto children = graph.children_of(node);
  for (const std::uint32_t child : children.first(std::min(children.size(), kMost))) {
    engine::prefetch(graph.nodes.data() + child);
    engine::prefetch(rank.parents.data() + child);
  }
}

void PhysicalNodes::end_all(std::uint32_t number) {
  std::vector<std::uint32_t>& ended = ranks_[number].ended;
  for (const std::uint32_t node : ended) { end(number, node); }
  ended.clear();
}

std::span<const std::uint32_t> PhysicalNodes::take_startable(std::uint32_t number) {
  PhysicalRank& rank = ranks_[number];
  std::vector<std::uint32_t>& nodes = taken_startable_;
  nodes.assign(rank.ready_without_slot.begin(), rank.ready_without_slot.end());
  rank.ready_without_slot.clear();
  if (nodes.size() > 1) { std::sort(nodes.begin(), nodes.end()); }
  for (std::size_t slot = 0; slot < rank.ready.size(); ++slot) {
    auto& heap = rank.ready[slot];
    if (rank.slots[slot] != kNone || heap.empty()) { continue; }
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    rank.slots[slot] = heap.back();
    heap.pop_back();
    nodes.push_back(rank.slots[slot]);
  }
  return nodes;
}

bool PhysicalNodes::begin(std::uint32_t number, std::uint32_t node) {
  PhysicalRank& rank = ranks_[number];
  const NodeTask& task = job_.rank_graphs[number].nodes[node];
  rank.parents[node] = PhysicalRank::kRuns;
  if (job_.spans) { rank.starts[node] = rounds_.now(); }
  const bool ends = takes_no_time(task.act);
  if (!ends) { change(number, activity_of(task), 1); }
  if (!ends && (task.act != Act::busy || task.amount != 0)) { return true; }
  rank.ended.push_back(node);
  return false;
}

void PhysicalNodes::end(std::uint32_t number, std::uint32_t node) {
  PhysicalRank& rank = ranks_[number];
  const NodeTask& task = job_.rank_graphs[number].nodes[node];
  rank.parents[node] = 0;
  if (!takes_no_time(task.act)) {
    // start_receiving() has changed the activity of a receive from waiting to communication.
    change(number, task.act == Act::receive ? Activity::comm : activity_of(task), -1);
  }
  if (const std::size_t slot = slot_of(task); slot != kNoSlot) { rank.slots[slot] = kNone; }
  if (job_.spans) { spans_.push_back({number, node, rank.starts[node], rounds_.now()}); }
  if (++rank.ended_count == job_.rank_graphs[number].nodes.size()) { rank.finish = rounds_.now(); }
  for (const std::uint32_t child : job_.rank_graphs[number].children_of(node)) {
    if (--rank.parents[child] == 0) { make_ready(number, child); }
  }
}

std::int32_t PhysicalNodes::next_priority(std::uint32_t rank, const NodeTask& task) {
  const std::int32_t ordinal = ++ranks_[rank].started;
  switch (job_.system.scheduling) {
    case Scheduling::LIFO: return -ordinal;
    case Scheduling::FIFO: return ordinal;
    case Scheduling::EXPLICIT: return -task.priority;
  }
  return 0;
}

void PhysicalNodes::change(std::uint32_t number, Activity activity, int by) {
  PhysicalRank& rank = ranks_[number];
  rank.time[rank.activities()] += rounds_.now() - rank.since;
  rank.since = rounds_.now();
  rank.active[static_cast<std::size_t>(activity)] += static_cast<std::uint32_t>(by);
}

}  // namespace orrery::simulate
