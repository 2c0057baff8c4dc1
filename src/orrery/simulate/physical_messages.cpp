#include "orrery/simulate/physical_messages.hpp"

#include <algorithm>

namespace orrery::simulate {

namespace {

constexpr std::uint64_t kReadyBytesOfRendezvous = 8192;

}  // namespace

void PhysicalMessages::send(const Envelope& envelope, const Continuation& sender, const Order& order) {
  const std::uint32_t id = messages_.take();
  messages_[id] = {envelope, sender, {}, order, false, false};
  Unmatched& unmatched = unmatched_[envelope];
  if (unmatched.receivers.empty()) {
    unmatched.messages.push_back(id);
  } else {
    messages_[id].receiver = unmatched.receivers.front();
    unmatched.receivers.pop_front();
  }
  if (rendezvous_ && unmatched.ready == 0) { return unmatched.waiting.push_back(id); }
  if (rendezvous_) { --unmatched.ready; }
  if (unmatched.empty()) { unmatched_.erase(envelope); }
  depart(id);
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
  Unmatched& unmatched = unmatched_[envelope];
  if (unmatched.messages.empty()) {
    unmatched.receivers.push_back(receiver);
  } else {
    const std::uint32_t id = unmatched.messages.front();
    unmatched.messages.pop_front();
    if (unmatched.empty()) { unmatched_.erase(envelope); }
    match(id, receiver);
  }
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
  Unmatched& unmatched = unmatched_[envelope];
  if (unmatched.waiting.empty()) {
    ++unmatched.ready;
    return;
  }
  const std::uint32_t message = unmatched.waiting.front();
  unmatched.waiting.pop_front();
  if (unmatched.empty()) { unmatched_.erase(envelope); }
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

std::optional<PhysicalMessages::Unreceived> PhysicalMessages::unreceived() const {
  std::optional<Unreceived> all;
  for (const auto& [envelope, unmatched] : unmatched_) {
    if (envelope.scope != 0) { continue; }  // of a custom collective, whose check has warned of it
    for (const std::uint32_t id : unmatched.messages) {
      const Continuation& sender = messages_[id].sender;
      const std::uint64_t messages = all ? all->messages + 1 : 1;
      const bool is_first = !all || std::pair(sender.rank, sender.ref) < std::pair(all->rank, all->node);
      all = is_first ? Unreceived{sender.rank, sender.ref, messages} : Unreceived{all->rank, all->node, messages};
    }
  }
  return all;
}

}  // namespace orrery::simulate
