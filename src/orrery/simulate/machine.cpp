#include "orrery/simulate/machine.hpp"

#include "orrery/engine/prefetch.hpp"

namespace orrery::simulate {

Machine::Machine(const SimulationJob& job)
    : job_(job),
      events_(job.rank_graphs.size()),
      network_(job, events_),
      nodes_(job, events_),
      messenger_(job.system.rendezvous, events_, network_, nodes_),
      endpoints_(job, events_, *this),
      chunks_(job),
      runner_(job, events_, chunks_, endpoints_, network_, messenger_),
      customs_(job, events_, messenger_),
      collectives_(job, chunks_, runner_, customs_),
      servers_(job.memory.servers(job.network.ranks())) {}

void Machine::run() {
  if (job_.explain) { events_.set_observer(log_.emplace()); }
  start_all();
  log_ ? events_.run(LoggedHandler{*this}) : events_.run(Handler{*this});
  runner_.end_run();
}

void Machine::run_folded(OrderCertificate& certificate) {
  certificate_ = &certificate;
  events_.set_certificate(certificate);
  start_all();
  events_.run(FoldedHandler{*this});
  certificate.end();
}

void Machine::start_all() {
  for (std::uint32_t rank = 0; rank < job_.rank_graphs.size(); ++rank) {
    nodes_.free_roots(rank);
    issue(rank);
    nodes_.check_finish(rank);
  }
}

// The label of the event is in place of its rank, which is 0.
void Machine::handle_folded(Event event) {
  using Touches = OrderCertificate::Touches;
  OrderCertificate::Handled handled{events_.now(), event.rank, false, Touches::everything, 0};
  const auto of_chunk = [&](bool in_lane, Touches touches) {
    const Chunk& chunk = chunks_[event.ref];
    const bool is_exchange = chunk.current->method == CollectiveAlgorithm::halving_doubling;
    handled.in_lane = in_lane;
    handled.chunk = chunk.id;
    // Reductions of halving and doubling differ from slot to slot.
    if (touches != Touches::nothing || !is_exchange) { handled.touches = touches; }
  };
  switch (event.kind) {
    case EventKind::endpoint_passed: of_chunk(true, event.flag != 0 ? Touches::nothing : Touches::sends); break;
    case EventKind::reduced: of_chunk(true, Touches::sends); break;
    case EventKind::late_chunk_receive: of_chunk(false, Touches::receives); break;
    case EventKind::arrival:
    case EventKind::hop:
      handled.touches = Touches::receives;
      handled.chunk = static_cast<std::uint32_t>(network_[event.ref].tag);
      break;
    case EventKind::link_free: handled.touches = Touches::link; break;
    case EventKind::node_end:
    case EventKind::memory_end: handled.in_lane = true; break;
    case EventKind::slots_passed:
    case EventKind::slots_reduced:
    case EventKind::late_chunk_receives:
    case EventKind::direct_arrivals:
    case EventKind::late_receive:
    case EventKind::rendezvous_send:
    case EventKind::server_free:
    case EventKind::custom_step_end:
    case EventKind::switch_reduced:
    case EventKind::bus_step: throw_internal_error("no event of a folded run", __FILE__, __LINE__);
  }
  certificate_->begin(handled);
  event.rank = 0;
  handle(event);
}

void Machine::handle(const Event& event) {
  switch (event.kind) {
    case EventKind::endpoint_passed:
      if (runner_.endpoint_passed(event.ref, event.extra, event.flag != 0)) { end_phase(event.ref); }
      return;
    case EventKind::reduced:
      if (runner_.proceed(event.ref, event.extra)) { end_phase(event.ref); }
      return;
    case EventKind::slots_passed:
    case EventKind::slots_reduced:
    case EventKind::late_chunk_receives:
    case EventKind::direct_arrivals: return handle_together(event);
    case EventKind::arrival: return arrive(event.ref);
    case EventKind::hop:
      if (network_.hop(event.ref)) { arrive(event.ref); }
      return;
    case EventKind::link_free: return network_.free_link(event.ref);
    case EventKind::late_chunk_receive: return runner_.receive(event.ref, event.extra);
    case EventKind::late_receive:
      return resume({static_cast<Continuation::Kind>(event.flag), event.rank, event.ref, event.extra});
    case EventKind::rendezvous_send: return messenger_.depart(event.ref);
    case EventKind::switch_reduced: return runner_.answer_from_switch(event.ref);
    case EventKind::node_end:
    case EventKind::memory_end: return end_node(event.rank, event.ref);
    case EventKind::server_free:
      if (const auto next = servers_[event.ref].leave()) { serve(*next, event.ref); }
      return;
    case EventKind::custom_step_end: return end_custom_step(event.ref, event.extra);
    case EventKind::bus_step: return endpoints_.bus_step(event.rank, static_cast<Step>(event.extra), event.flag);
  }
}

// One event for `extra` equal ones.
void Machine::handle_together(const Event& event) {
  const std::uint32_t count = event.extra;
  events_.count(count - 1);
  if (event.kind == EventKind::late_chunk_receives) { return runner_.receive_late(event.ref, count); }
  if (event.kind == EventKind::direct_arrivals) {
    network_.note_arrivals(count);
    return runner_.arrive_together(event.ref, event.rank, count);
  }
  const bool reduces = event.kind == EventKind::slots_passed && event.flag != 0;
  if (runner_.slots_passed(event.ref, count, reduces)) { end_phase(event.ref); }
}

// ---- nodes ---------------------------------------------------------------------------------------------------------

void Machine::issue(std::uint32_t rank) {
  for (std::uint32_t node = nodes_.next(rank); node != kNone; node = nodes_.next(rank)) { start(rank, node); }
}

void Machine::start(std::uint32_t rank, std::uint32_t node) {
  const NodeTask& task = job_.rank_graphs[rank].nodes[node];
  const Continuation self{Continuation::Kind::node, rank, node, 0};
  switch (task.act) {
    case Act::busy:
      if (task.counts_as_compute) { nodes_.count_compute(rank, task.amount); }
      return events_.after(rank, task.amount, {EventKind::node_end, 0, rank, node, 0});
    case Act::collective: return collectives_.start(rank, node, events_.now());
    case Act::send: return messenger_.send({task.amount, task.tag, rank, task.peer, self});
    case Act::receive: return messenger_.receive(self, {task.tag, task.amount, task.peer, rank});
    case Act::memory: return start_memory(rank, node);
    case Act::no_op:
    case Act::metadata: return nodes_.end_in_pass(rank, node);
  }
}

void Machine::end_node(std::uint32_t rank, std::uint32_t node) {
  if (certificate_ != nullptr) { certificate_->note_shared_state(); }
  if (log_) { log_->end_node(rank, node); }
  nodes_.end(rank, node);
  issue(rank);
  nodes_.check_finish(rank);
}

void Machine::start_memory(std::uint32_t rank, std::uint32_t node) {
  const std::uint64_t bytes = job_.rank_graphs[rank].nodes[node].amount;
  const auto server = job_.memory.server(rank);
  if (!server) { return events_.after(rank, job_.memory.service_ns(bytes), {EventKind::memory_end, 0, rank, node, 0}); }
  if (const auto served = servers_[*server].arrive({rank, node, bytes})) { serve(*served, *server); }
}

// The end of the node is handled first: the next request of its rank is queued behind the requests that wait already.
void Machine::serve(const memory::Request& request, std::uint32_t server) {
  const std::uint64_t service = job_.memory.service_ns(request.bytes);
  events_.after(request.rank, service, {EventKind::memory_end, 0, request.rank, request.node, 0});
  events_.after(request.rank, service, {EventKind::server_free, 0, request.rank, server, 0});
}

// ---- collectives ---------------------------------------------------------------------------------------------------

void Machine::end_phase(std::uint32_t chunk) {
  if (certificate_ != nullptr) { certificate_->note_shared_state(); }
  if (const auto ended = collectives_.end_phase(chunk)) { end_node(ended->rank, ended->node); }
  collectives_.leave_phase(chunk);
}

void Machine::end_custom_step(std::uint32_t run, std::uint32_t step) {
  if (const auto chunk = customs_.end_step(run, step)) { end_phase(*chunk); }
}

// ---- messages ------------------------------------------------------------------------------------------------------

// The sender continues before the receiver.
void Machine::arrive(std::uint32_t id) {
  Message message = network_.remove(id);
  if (certificate_ != nullptr) {  // of its image
    message.source = source_of_image(message);
    message.target = 0;
  }
  if ((message.tag & kReadyTag) != 0) { return arrive_ready(message); }
  if ((message.tag & kChunkTag) != 0) { return arrive_for_chunk(message); }
  const Continuation receiver = messenger_.arrive(message);
  resume(message.owner);
  resume(receiver);
}

void Machine::arrive_for_chunk(const Message& message) {
  if (const std::uint32_t ended = runner_.arrive(message); ended != kNone) { end_phase(ended); }
}

// The receive is posted before its message departs.
void Machine::arrive_ready(const Message& ready) {
  const std::uint32_t released = messenger_.release(ready);
  const Continuation& receiver = ready.owner;
  if (receiver.kind == Continuation::Kind::chunk) {
    runner_.post(receiver.ref, receiver.extra, ready.expected_bytes);
  } else {
    messenger_.post(receiver, {ready.tag & ~kReadyTag, ready.expected_bytes, ready.target, ready.source});
  }
  if (released != kNone) { messenger_.depart(released); }
}

void Machine::resume(const Continuation& who) {
  switch (who.kind) {
    case Continuation::Kind::none: return;
    case Continuation::Kind::chunk: return runner_.receive(who.ref, who.extra);
    case Continuation::Kind::node: return end_node(who.rank, who.ref);
    case Continuation::Kind::custom_step: return end_custom_step(who.ref, who.extra);
  }
}

// ---- the shared bus ------------------------------------------------------------------------------------------------

void Machine::later(std::uint32_t rank, std::uint64_t delay_ns, Step step, std::uint8_t port) {
  events_.after(rank, delay_ns, {EventKind::bus_step, port, rank, 0, static_cast<std::uint32_t>(step)});
}

void Machine::delivered(const BusRequest& request) {
  if (runner_.endpoint_passed(request.chunk, request.step, request.reduce)) { end_phase(request.chunk); }
}

// ---- speed ---------------------------------------------------------------------------------------------------------

// Most of the state of a large machine is not cached when the next event is handled.
void Machine::prefetch(const Event& event) const {
  const auto fetch = [&](std::uint32_t chunk) {
    const Chunk* const begin = &chunks_[chunk];
    engine::prefetch(begin);
    engine::prefetch(reinterpret_cast<const char*>(begin) + 64);  // NOLINT(*-reinterpret-cast)
  };
  if (event.kind <= EventKind::late_chunk_receives || event.kind == EventKind::late_chunk_receive) {
    return fetch(event.ref);
  }
  if (event.kind != EventKind::arrival) { return; }
  network_.prefetch(event.ref);
  if (event.extra == kNone) { return; }
  fetch(event.extra);
  events_.prefetch_lane(event.rank);
}

}  // namespace orrery::simulate
