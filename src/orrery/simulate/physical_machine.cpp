#include "orrery/simulate/physical_machine.hpp"

#include "orrery/engine/prefetch.hpp"

#include <span>

namespace orrery::simulate {

PhysicalMachine::PhysicalMachine(const SimulationJob& job, Counting counting)
    : job_(job),
      links_(job.network, job.system.local_memory_gb, job.tables),
      nodes_(job, rounds_),
      memory_(job, rounds_, nodes_),
      collectives_(job, rounds_, links_, nodes_),
      messages_(job.system.rendezvous, job.images, rounds_, links_, nodes_),
      customs_(rounds_, messages_),
      counting_(counting),
      endpoint_(job.system.endpoint_delay_ns * kPicosecondsPerNs) {
  if (job.explain && !is_folded(job)) { links_.set_log(log_.emplace()); }
}

void PhysicalMachine::run() {
  for (std::uint32_t rank = 0; rank < job_.rank_graphs.size(); ++rank) { nodes_.free_roots(rank); }
  rounds_.run(Handler{*this}, [this] { end_round(); });
}

void PhysicalMachine::handle(const PhysicalEvent& event) {
  switch (event.kind) {
    case PhysicalEventKind::request: return links_.request(event.ref, rounds_.now());
    case PhysicalEventKind::delivered: return deliver(event.ref);
    case PhysicalEventKind::reduced: return collectives_.count(event.ref);
    case PhysicalEventKind::wake: return links_.wake(event.ref, rounds_.now());
    case PhysicalEventKind::step_end: return collectives_.end_step(event.ref, event.extra);
    case PhysicalEventKind::sent: return collectives_.end_chunk(event.ref, event.extra);
    case PhysicalEventKind::node_end: return nodes_.end_later(event.ref, event.extra);
    case PhysicalEventKind::custom_step_end: return messages_.end_step(event.ref, event.extra);
    case PhysicalEventKind::memory_request: return memory_.arrive(event.ref);
    case PhysicalEventKind::memory_end: return memory_.leave(event.ref, event.extra);
    case PhysicalEventKind::flow_end:
    case PhysicalEventKind::kernel_end:
    case PhysicalEventKind::rank_start:
    case PhysicalEventKind::link_change:
    case PhysicalEventKind::departure: break;
  }
  throw_internal_error("event of links", __FILE__, __LINE__);
}

void PhysicalMachine::deliver(std::uint32_t transfer) {
  ++delivered_;
  links_[transfer].of_collective ? collectives_.deliver(transfer) : messages_.deliver(transfer);
}

// ---- the end of a round --------------------------------------------------------------------------------------------

// Ranks first: the transfers that they send in this round request their links in this round.
void PhysicalMachine::end_round() {
  while (messages_.has_ended_steps() || nodes_.has_touched()) {
    for (const auto& [run, step] : messages_.take_ended_steps()) { end_custom_step(run, step); }
    while (nodes_.has_touched()) {
      for (const std::uint32_t rank : nodes_.take_touched()) { advance(rank); }
    }
  }
  register_notices();
}

// Ends the nodes that have ended in the round, then starts the nodes that can start, until none can.
void PhysicalMachine::advance(std::uint32_t rank) {
  do {
    nodes_.end_all(rank);
    for (const std::uint32_t node : nodes_.take_startable(rank)) { start(rank, node); }
  } while (nodes_.has_ended_nodes(rank));
}

void PhysicalMachine::start(std::uint32_t rank, std::uint32_t node) {
  if (!nodes_.begin(rank, node)) { return; }
  const NodeTask& task = job_.rank_graphs[rank].nodes[node];
  const Continuation self{Continuation::Kind::node, rank, node, 0};
  switch (task.act) {
    case Act::busy:
      if (task.amount > kMostTime - rounds_.now()) { throw TooLong{}; }
      return rounds_.at(rounds_.now() + task.amount, {PhysicalEventKind::node_end, rank, node});
    case Act::collective: return start_collective(rank, node);
    case Act::send: {
      Order order;
      order.priority = nodes_.next_priority(rank, task);
      order.node = node;
      return messages_.send({task.tag, task.amount, rank, task.peer, 0}, self, order);
    }
    case Act::receive: return messages_.receive({task.tag, task.amount, task.peer, rank, 0}, self, node);
    case Act::memory: return memory_.start(rank, node);
    case Act::no_op:
    case Act::metadata: return;
  }
}

void PhysicalMachine::start_collective(std::uint32_t rank, std::uint32_t node) {
  const std::int32_t priority = nodes_.next_priority(rank, job_.rank_graphs[rank].nodes[node]);
  const std::uint32_t number = collectives_.note_start(rank, node);
  const PhysicalCollective& collective = collectives_.all()[number];
  if (collective.custom.empty()) { return collectives_.join(number, rank, node, priority); }
  customs_.start(
      {rank, node, number, priority, &collectives_.group(collective.task.group), &job_.customs.at(collective.custom)});
}

void PhysicalMachine::end_custom_step(std::uint32_t run, std::uint32_t step) {
  const auto ended = customs_.end_step(run, step);
  if (!ended) { return; }
  collectives_.end_custom(ended->collective);
  nodes_.end_later(ended->rank, ended->node);
}

void PhysicalMachine::register_notices() {
  constexpr std::size_t kAhead = 6;  // notices
  const std::span<const LinkNotice> notices = links_.grant(rounds_.now());
  const bool ahead = counting_ == Counting::ahead;
  for (std::size_t i = 0; i < notices.size(); ++i) {
    const LinkNotice& notice = notices[i];
    if (i + kAhead < notices.size() && notices[i + kAhead].kind == LinkNotice::Kind::leaves) {
      collectives_.prefetch_source(links_[notices[i + kAhead].id]);
    }
    switch (notice.kind) {
      case LinkNotice::Kind::requests: rounds_.at(notice.time, {PhysicalEventKind::request, notice.id, 0}); break;
      case LinkNotice::Kind::arrives: {  // transfers of collectives pass the endpoint before their data is used
        const Transfer& transfer = links_[notice.id];
        const bool has_endpoint_delay = transfer.of_collective && !transfer.to_switch;
        const std::uint64_t time = notice.time + (has_endpoint_delay ? endpoint_ : 0);
        if (ahead && collectives_.deliver_ahead(notice.id, time)) {
          ++delivered_;
        } else {
          rounds_.at(time, {PhysicalEventKind::delivered, notice.id, 0});
        }
        break;
      }
      case LinkNotice::Kind::reduced:
        if (!ahead || !collectives_.count_ahead(notice.id, notice.time)) {
          rounds_.at(notice.time, {PhysicalEventKind::reduced, notice.id, 0});
        }
        break;
      case LinkNotice::Kind::leaves: collectives_.leave(notice.id, notice.time); break;
      case LinkNotice::Kind::wakes: rounds_.at(notice.time, {PhysicalEventKind::wake, notice.id, 0}); break;
    }
  }
}

// ---- speed ---------------------------------------------------------------------------------------------------------

// Most of the state of a large machine is not cached when an event is handled.
void PhysicalMachine::prefetch(const PhysicalEvent& event, int distance) const {
  if (event.kind == PhysicalEventKind::wake) { return prefetch_wake(event.ref, distance); }
  if (event.kind == PhysicalEventKind::step_end) {
    if (distance > 2) { return collectives_.prefetch_progress(event.ref, event.extra); }
    return distance > 1 ? collectives_.prefetch_step(event.ref, event.extra) : void();
  }
  if (event.kind > PhysicalEventKind::reduced) { return; }
  const Transfer& transfer = links_[event.ref];
  if (distance > 2) {
    engine::prefetch(&transfer);
  } else if (distance > 1) {
    if (transfer.reduces && event.kind == PhysicalEventKind::delivered && links_.reductions_take_time()) {
      links_.prefetch_reducer(transfer);
    } else {
      links_.prefetch_next(transfer);
    }
    if (transfer.of_collective && event.kind != PhysicalEventKind::request) { collectives_.prefetch_target(transfer); }
  }
}

void PhysicalMachine::prefetch_wake(std::uint32_t link, int distance) const {
  if (distance > 2) { return links_.prefetch(link); }
  if (distance > 1) { return links_.prefetch_first(link); }
  const std::uint32_t id = links_.first(link);
  if (id != kNone && links_[id].of_collective && !links_[id].has_left_source) {
    collectives_.prefetch_source(links_[id]);
    if (!links_[id].to_switch) { collectives_.prefetch_target(links_[id]); }
  }
}

}  // namespace orrery::simulate
