#include "orrery/simulate/physical_messages.hpp"

#include <algorithm>

namespace orrery::simulate {

namespace {

constexpr std::uint64_t kReadyBytesOfRendezvous = 8192;

}  // namespace

void PhysicalMessages::send(const Envelope& envelope, const Continuation& sender, const Order& order) {
  const std::uint32_t id = messages_.take();
  messages_[id] = {envelope, sender, {}, order, false, false};
  if (const auto receiver = matcher_.send(folded(envelope), id)) { messages_[id].receiver = *receiver; }
  if (rendezvous_ && !is_awaited(envelope, id)) { return; }
  depart(id);
}

// Whether a ready-to-receive message has arrived; otherwise the message waits for one.
bool PhysicalMessages::is_awaited(const Envelope& envelope, std::uint32_t id) {
  Rendezvous& rendezvous = rendezvous_of_[envelope];
  if (rendezvous.ready == 0) {
    rendezvous.waiting.push_back(id);
    return false;
  }
  --rendezvous.ready;
  if (rendezvous.empty()) { rendezvous_of_.erase(envelope); }
  return true;
}

void PhysicalMessages::depart(std::uint32_t id) {
  Message& message = messages_[id];
  message.has_departed = true;
  start_receiving(message.receiver);
  const std::uint32_t number = links_.take();
  Transfer& transfer = links_[number];
  transfer = {};
  transfer.bytes = message.envelope.bytes;
  transfer.order = message.order;
  transfer.at = message.envelope.source;
  transfer.target = message.envelope.target;
  transfer.owner = id;
  links_.request(number, rounds_.now());
}

void PhysicalMessages::receive(const Envelope& envelope, const Continuation& receiver, std::uint32_t node) {
  if (const auto message = matcher_.receive(folded(envelope), receiver)) { match(*message, receiver); }
  if (rendezvous_) { announce(envelope, receiver, node); }
}

void PhysicalMessages::announce(const Envelope& envelope, const Continuation& receiver, std::uint32_t node) {
  const std::uint32_t ready = messages_.take();
  messages_[ready] = {envelope, {}, receiver, {}, false, false};
  const std::uint32_t number = links_.take();
  Transfer& transfer = links_[number];
  transfer = {};
  transfer.bytes = kReadyBytesOfRendezvous;
  transfer.order.node = node;
  transfer.at = envelope.target;
  transfer.target = envelope.source;
  transfer.owner = ready;
  transfer.is_ready = true;
  links_.request(number, rounds_.now());
}

void PhysicalMessages::match(std::uint32_t id, const Continuation& receiver) {
  Message& message = messages_[id];
  message.receiver = receiver;
  if (message.has_departed) { start_receiving(receiver); }
  if (!message.has_arrived) { return; }
  resume(receiver);
  messages_.give_back(id);
}

void PhysicalMessages::deliver(std::uint32_t transfer) {
  const std::uint32_t id = links_[transfer].owner;
  const bool is_ready = links_[transfer].is_ready;
  links_.give_back(transfer);
  is_ready ? arrive_ready(id) : arrive(id);
}

void PhysicalMessages::arrive(std::uint32_t id) {
  Message& message = messages_[id];
  message.has_arrived = true;
  resume(message.sender);
  if (message.receiver.kind == Continuation::Kind::none) { return; }
  resume(message.receiver);
  messages_.give_back(id);
}

void PhysicalMessages::arrive_ready(std::uint32_t id) {
  const Envelope envelope = messages_[id].envelope;
  messages_.give_back(id);
  Rendezvous& rendezvous = rendezvous_of_[envelope];
  if (rendezvous.waiting.empty()) {
    ++rendezvous.ready;
    return;
  }
  const std::uint32_t message = rendezvous.waiting.front();
  rendezvous.waiting.pop_front();
  if (rendezvous.empty()) { rendezvous_of_.erase(envelope); }
  depart(message);
}

void PhysicalMessages::start_receiving(const Continuation& who) {
  if (who.kind == Continuation::Kind::node) { nodes_.start_receiving(who.rank); }
}

void PhysicalMessages::resume(const Continuation& who) {
  switch (who.kind) {
    case Continuation::Kind::none:
    case Continuation::Kind::chunk: return;
    case Continuation::Kind::node: return nodes_.end_later(who.rank, who.ref);
    case Continuation::Kind::custom_step: return end_step(who.ref, who.extra);
  }
}

std::span<const std::pair<std::uint32_t, std::uint32_t>> PhysicalMessages::take_ended_steps() {
  taken_steps_.clear();
  if (ended_steps_.empty()) { return {}; }
  taken_steps_.swap(ended_steps_);
  std::sort(taken_steps_.begin(), taken_steps_.end());
  taken_steps_.erase(std::unique(taken_steps_.begin(), taken_steps_.end()), taken_steps_.end());
  return taken_steps_;
}

}  // namespace orrery::simulate
