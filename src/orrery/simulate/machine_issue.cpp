// Nodes: which of those that are ready start, and what each does.
#include <algorithm>
#include <functional>

#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

void Machine::make_ready(std::uint32_t number, std::uint32_t node) {
  auto& heap = ranks_[number].ready[static_cast<std::size_t>(job_.programs[number].nodes[node].slot)];
  heap.push_back(node);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

// Of the nodes whose slot is free, the one with the smallest id; kNone when there is none.
std::uint32_t Machine::next_to_issue(Rank& rank) {
  std::uint32_t best = kNone;
  std::size_t from = 0;
  for (std::size_t slot = 0; slot < rank.ready.size(); ++slot) {
    if (rank.ready[slot].empty() || (slot < kSlots && rank.holds[slot] != kNone)) { continue; }
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

void Machine::issue(std::uint32_t number) {
  Rank& rank = ranks_[number];
  for (std::uint32_t node = next_to_issue(rank); node != kNone; node = next_to_issue(rank)) {
    const auto slot = static_cast<std::size_t>(job_.programs[number].nodes[node].slot);
    if (slot < kSlots) { rank.holds[slot] = node; }
    ++rank.running;
    if (job_.programs[number].nodes[node].act != Act::receive) { become_active(number); }
    if (job_.spans) { rank.starts[node] = kernel_.now(); }
    start(number, node);
  }
  // What became ready by nodes that were over at once was not seen by this pass. It waits for the next.
  for (const std::uint32_t node : rank.late) { make_ready(number, node); }
  rank.late.clear();
}

void Machine::become_active(std::uint32_t number) {
  Rank& rank = ranks_[number];
  if (rank.active++ == 0) { rank.busy_since = kernel_.now(); }
}

void Machine::start(std::uint32_t number, std::uint32_t node) {
  Rank& rank = ranks_[number];
  const Work& work = job_.programs[number].nodes[node];
  switch (work.act) {
    case Act::hold:
      if (work.counts_as_compute) { rank.compute_ns += work.amount; }
      return kernel_.after(number, work.amount, {Happening::node_over, 0, number, node, 0});
    case Act::collective: return start_collective(number, node);
    case Act::send: return send({work.amount, work.tag, number, work.peer, {Party::Kind::node, number, node, 0}});
    case Act::receive: return expect({Party::Kind::node, number, node, 0}, {work.tag, work.amount, work.peer, number});
    case Act::memory: return start_memory(number, node);
    case Act::nothing:
    case Act::mark: return over_at_once(number, node);
  }
}

void Machine::start_memory(std::uint32_t number, std::uint32_t node) {
  const std::uint64_t bytes = job_.programs[number].nodes[node].amount;
  ranks_[number].memory_ns -= kernel_.now();  // made good when it is over
  const auto server = job_.memory.server(number);
  if (!server) {
    return kernel_.after(number, job_.memory.service_ns(bytes), {Happening::memory_over, 0, number, node, 0});
  }
  if (const auto served = servers_[*server].arrive({number, node, bytes})) { serve(*served, *server); }
}

// Completion first: what the rank asks for next comes behind those who wait already.
void Machine::serve(const memory::Request& request, std::uint32_t server) {
  const std::uint64_t service = job_.memory.service_ns(request.bytes);
  kernel_.after(request.rank, service, {Happening::memory_over, 0, request.rank, request.node, 0});
  kernel_.after(request.rank, service, {Happening::server_free, 0, request.rank, server, 0});
}

void Machine::free_children(std::uint32_t number, std::uint32_t node, bool into_this_pass) {
  Rank& rank = ranks_[number];
  for (const std::uint32_t child : job_.programs[number].children_of(node)) {
    if (--rank.parents[child] != 0) { continue; }
    if (into_this_pass) {
      make_ready(number, child);
    } else {
      rank.late.push_back(child);
    }
  }
}

void Machine::leave_slot(std::uint32_t number, std::uint32_t node) {
  Rank& rank = ranks_[number];
  const Work& work = job_.programs[number].nodes[node];
  if (work.slot != Slot::none) { rank.holds[static_cast<std::size_t>(work.slot)] = kNone; }
  if (work.act == Act::memory) { rank.memory_ns += kernel_.now(); }
  --rank.running;
  if (--rank.active == 0) { rank.busy_ns += kernel_.now() - rank.busy_since; }
  ++rank.over;
  if (job_.spans) {
    spans_.push_back({number, node, rank.starts[node], kernel_.now(), job_.tables ? rank.set_out[node] : 0});
  }
}

void Machine::over_at_once(std::uint32_t number, std::uint32_t node) {
  const Work& work = job_.programs[number].nodes[node];
  leave_slot(number, node);
  free_children(number, node, work.act == Act::mark);
}

void Machine::complete(std::uint32_t number, std::uint32_t node) {
  leave_slot(number, node);
  free_children(number, node, true);
  issue(number);
  end_check(number);
}

void Machine::end_check(std::uint32_t number) {
  Rank& rank = ranks_[number];
  if (rank.finished || rank.running != 0) { return; }
  for (const auto& ready : rank.ready) {
    if (!ready.empty()) { return; }
  }
  rank.finished = true;
  rank.finish_ns = kernel_.now();
  rank.exposed_ns = kernel_.now() - rank.compute_ns;  // may wrap, as the original's does
}

}  // namespace orrery::simulate
