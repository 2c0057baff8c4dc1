// Nodes: which of those that are ready start, and what each does.
#include <algorithm>
#include <functional>

#include "orrery/simulate/physical_machine.hpp"

namespace orrery::simulate {

namespace {

// Computing has a slot of the host or of the accelerator; communication and memory go on side by side, and share links
// and memories instead.
constexpr std::size_t kNoSlot = 2;
std::size_t slot_of(const Work& work) {
  if (work.act != Act::hold || work.slot == Slot::comm || work.slot == Slot::none) { return kNoSlot; }
  return work.slot == Slot::cpu ? 0 : 1;
}

bool takes_no_time(Act act) { return act == Act::nothing || act == Act::mark; }

}  // namespace

void PhysicalMachine::touch(std::uint32_t number) {
  if (ranks_[number].is_dirty) { return; }
  ranks_[number].is_dirty = true;
  dirty_.push_back(number);
}

void PhysicalMachine::free(std::uint32_t number, std::uint32_t node) {
  PhysicalRank& rank = ranks_[number];
  const std::size_t slot = slot_of(job_.programs[number].nodes[node]);
  if (slot == kNoSlot) { return rank.free.push_back(node); }
  rank.ready[slot].push_back(node);
  std::push_heap(rank.ready[slot].begin(), rank.ready[slot].end(), std::greater<>());
}

void PhysicalMachine::end_later(std::uint32_t rank, std::uint32_t node) {
  ranks_[rank].ended.push_back(node);
  touch(rank);
}

// All that has ended in the round, then all that can start, until nothing does.
void PhysicalMachine::settle(std::uint32_t number) {
  PhysicalRank& rank = ranks_[number];
  rank.is_dirty = false;
  do {
    for (std::size_t i = 0; i < rank.ended.size(); ++i) { end(number, rank.ended[i]); }
    rank.ended.clear();
    issue(number);
  } while (!rank.ended.empty());
}

void PhysicalMachine::issue(std::uint32_t number) {
  PhysicalRank& rank = ranks_[number];
  std::sort(rank.free.begin(), rank.free.end());
  const std::vector<std::uint32_t> now = std::exchange(rank.free, {});
  for (const std::uint32_t node : now) { start(number, node); }
  for (std::size_t slot = 0; slot < rank.ready.size(); ++slot) {
    auto& heap = rank.ready[slot];
    if (rank.holds[slot] != kNone || heap.empty()) { continue; }
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    rank.holds[slot] = heap.back();
    heap.pop_back();
    start(number, rank.holds[slot]);
  }
}

Activity PhysicalMachine::activity_of(const Work& work) const {
  if (work.act == Act::memory) { return Activity::memory; }
  if (work.act == Act::receive) { return Activity::waiting; }
  if (work.act == Act::send || work.act == Act::collective) { return Activity::comm; }
  switch (work.slot) {
    case Slot::cpu: return Activity::host;
    case Slot::gpu: return Activity::compute;
    case Slot::comm:
    case Slot::none: break;
  }
  return Activity::comm;  // recorded communication
}

void PhysicalMachine::start(std::uint32_t number, std::uint32_t node) {
  PhysicalRank& rank = ranks_[number];
  const Work& work = job_.programs[number].nodes[node];
  rank.runs[node] = true;
  if (job_.spans) { rank.starts[node] = rounds_.now(); }
  if (takes_no_time(work.act)) { return rank.ended.push_back(node); }
  change(number, activity_of(work), 1);
  const Correspondent self{Correspondent::Kind::node, number, node, 0};
  switch (work.act) {
    case Act::hold:
      if (work.amount == 0) { return rank.ended.push_back(node); }
      if (work.amount > kMostTime - rounds_.now()) { throw TooLong{}; }
      return rounds_.at(rounds_.now() + work.amount, {PhysicalEvent::node_over, number, node});
    case Act::collective: return join(number, node);
    case Act::send: {
      Order order;
      order.priority = next_priority(number, work);
      order.node = node;
      return send({work.tag, work.amount, number, work.peer, 0}, self, order);
    }
    case Act::receive: return receive({work.tag, work.amount, work.peer, number, 0}, self);
    case Act::memory: return start_memory(number, node);
    case Act::nothing:
    case Act::mark: return;
  }
}

void PhysicalMachine::end(std::uint32_t number, std::uint32_t node) {
  PhysicalRank& rank = ranks_[number];
  const Work& work = job_.programs[number].nodes[node];
  rank.runs[node] = false;
  if (!takes_no_time(work.act)) {
    // A receive has turned from waiting into communication when its message set out.
    change(number, work.act == Act::receive ? Activity::comm : activity_of(work), -1);
  }
  if (const std::size_t slot = slot_of(work); slot != kNoSlot) { rank.holds[slot] = kNone; }
  if (job_.spans) { spans_.push_back({number, node, rank.starts[node], rounds_.now()}); }
  if (++rank.over == job_.programs[number].nodes.size()) { rank.finish = rounds_.now(); }
  for (const std::uint32_t child : job_.programs[number].children_of(node)) {
    if (--rank.parents[child] == 0) { free(number, child); }
  }
}

// The scheduling policy: the latest communication of a rank goes first, or the earliest, or what the graph says.
std::int32_t PhysicalMachine::next_priority(std::uint32_t number, const Work& work) {
  const std::int32_t ordinal = ++ranks_[number].started;
  switch (job_.system.scheduling) {
    case Scheduling::LIFO: return -ordinal;
    case Scheduling::FIFO: return ordinal;
    case Scheduling::EXPLICIT: return -work.priority;
  }
  return 0;
}

// ---- memory --------------------------------------------------------------------------------------------------------

void PhysicalMachine::start_memory(std::uint32_t number, std::uint32_t node) {
  const std::uint32_t id = requests_.take();
  MemoryRequest& request = requests_[id];
  request = {number, node, job_.memory.server(number).value_or(number), 0};
  constexpr std::uint64_t kBytesPerSecond = 1'000'000'000;
  if (job_.memory.bytes_per_ns > kMostTime / kBytesPerSecond) { throw TooLong{}; }
  request.alone =
      Rate(job_.memory.bytes_per_ns * kBytesPerSecond).picoseconds(job_.programs[number].nodes[node].amount);
  if (job_.memory.latency_ns > kMostTime / kPicosecondsPerNs - rounds_.now() / kPicosecondsPerNs) { throw TooLong{}; }
  rounds_.at(rounds_.now() + job_.memory.latency_ns * kPicosecondsPerNs, {PhysicalEvent::asks_memory, id, 0});
}

void PhysicalMachine::ask_memory(std::uint32_t id) {
  const MemoryRequest& request = requests_[id];
  servers_[request.server].server.arrive(rounds_.now(), id, request.alone);
  plan_memory(request.server);
}

// Only the event of the latest plan counts.
void PhysicalMachine::plan_memory(std::uint32_t number) {
  MemoryServer& server = servers_[number];
  ++server.plan;
  if (const auto next = server.server.next()) {
    if (*next > kMostTime) { throw TooLong{}; }
    rounds_.at(*next, {PhysicalEvent::memory, number, server.plan});
  }
}

void PhysicalMachine::leave_memory(std::uint32_t number, std::uint32_t plan) {
  if (servers_[number].plan != plan) { return; }
  for (const std::uint32_t id : servers_[number].server.leave(rounds_.now())) {
    end_later(requests_[id].rank, requests_[id].node);
    requests_.give_back(id);
  }
  plan_memory(number);
}

}  // namespace orrery::simulate
