// What the events of a machine under ASTRA-sim's rules end, for its log.
#include <tuple>

#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

namespace {

using Kind = EventWork::Kind;

EventWork of_chunk(Kind kind, const Chunk& chunk) {
  return {kind, chunk.rank, chunk.node, chunk.ordinal, chunk.phase, chunk.rank, chunk.rank, 0};
}

}  // namespace

// A message of a chunk belongs to the chunk of its target, which waits for it, or else to that of its sender.
EventWork Machine::work_of_message(const Message& message) const {
  EventWork work{Kind::flight, message.source, kNone, kNone, 0, message.source, message.target, message.bytes};
  if ((message.tag & kChunkTag) != 0) {
    const auto group = static_cast<std::uint32_t>((message.tag & ~kChunkTag) >> 32U);
    const auto number = static_cast<std::uint32_t>(message.tag);
    for (const std::uint32_t rank : {message.target, message.source}) {
      const GroupMembers& members = chunks_.group(group);
      const bool is_switch = members.small && message.owner.extra != 0 && rank == message.target;
      const bool is_source_switch = members.small && rank + 1 == job_.network.ranks() && rank == message.source;
      if (is_switch || is_source_switch) { continue; }
      const std::uint32_t id = chunks_.find(rank, group, number);
      if (id == kNone || chunks_[id].collective == kNone) { continue; }
      work.rank = chunks_[id].rank;
      work.node = chunks_[id].node;
      work.chunk = chunks_[id].ordinal;
      work.phase = chunks_[id].phase;
      break;
    }
    return work;
  }
  const Continuation& owner = message.owner;
  work.rank = owner.rank;
  if (owner.kind == Continuation::Kind::node) { work.node = owner.ref; }
  if (owner.kind == Continuation::Kind::custom_step) { work.node = chunks_[customs_.chunk_of(owner.ref)].node; }
  if (owner.kind == Continuation::Kind::chunk) { work.node = chunks_[owner.ref].node; }
  return work;
}

EventWork Machine::work_of(const Event& event) const {
  switch (event.kind) {
    case EventKind::endpoint_passed: return of_chunk(Kind::endpoint, chunks_[event.ref]);
    case EventKind::reduced: return of_chunk(Kind::reduction, chunks_[event.ref]);
    case EventKind::switch_reduced: return of_chunk(Kind::reduction_in_switch, chunks_[event.ref]);
    case EventKind::arrival: return work_of_message(network_[event.ref]);
    case EventKind::hop: {
      EventWork work = work_of_message(network_[event.ref]);
      work.kind = Kind::link;
      std::tie(work.from, work.to) = network_.ends_of_hop(event.ref);
      return work;
    }
    case EventKind::link_free: {
      const auto [from, to] = network_.ends_of_link(event.ref);
      return {Kind::link, from == MessageNetwork::kHub ? to : from, kNone, kNone, 0, from, to, 0};
    }
    case EventKind::node_end: return {Kind::node, event.rank, event.ref, kNone, 0, 0, 0, 0};
    case EventKind::memory_end:
    case EventKind::server_free: {
      const bool is_own = event.kind == EventKind::memory_end;
      return {Kind::memory, event.rank, is_own ? event.ref : kNone, kNone, 0, 0, 0, 0};
    }
    case EventKind::custom_step_end:
      return {Kind::node, event.rank, chunks_[customs_.chunk_of(event.ref)].node, kNone, 0, 0, 0, 0};
    case EventKind::bus_step: return {Kind::endpoint, event.rank, kNone, kNone, 0, 0, 0, 0};
    case EventKind::slots_passed:
    case EventKind::slots_reduced:
    case EventKind::late_chunk_receives:
    case EventKind::direct_arrivals:
    case EventKind::late_chunk_receive:
    case EventKind::late_receive:
    case EventKind::rendezvous_send: break;
  }
  return {};
}

}  // namespace orrery::simulate
