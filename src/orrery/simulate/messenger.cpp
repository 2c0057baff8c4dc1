#include "orrery/simulate/messenger.hpp"

namespace orrery::simulate {

void Messenger::send(const Message& message) {
  Message departing = message;
  departing.device = message.source;
  const std::uint32_t id = network_.add(departing);
  if (!rendezvous_) { return depart(id); }
  const MessageKey ready{message.tag | kReadyTag, kReadyBytes, message.target, message.source};
  if (matcher_.is_awaited(ready, id)) { events_.at(events_.now(), {EventKind::rendezvous_send, 0, 0, id, 0}); }
}

void Messenger::depart(std::uint32_t id) {
  const Message& message = network_[id];
  if ((message.tag & (kChunkTag | kReadyTag)) == 0) { note_departure(message); }
  network_.depart(id, network_.flight_ns(message.source, message.target, message.bytes));
}

// The rank of a receive that waits for the message is no longer idle.
void Messenger::note_departure(const Message& message) {
  if (message.owner.kind == Continuation::Kind::node) { nodes_.note_departure(message.source, message.owner.ref); }
  const Continuation receiver = matcher_.depart({message.tag, message.bytes, message.source, message.target});
  if (receiver.kind == Continuation::Kind::node) { nodes_.become_active(receiver.rank); }
}

void Messenger::receive(const Continuation& receiver, const MessageKey& key) {
  const bool has_departed = matcher_.await_departure(receiver, key);
  if (has_departed && receiver.kind == Continuation::Kind::node) { nodes_.become_active(receiver.rank); }
  if (rendezvous_) { return announce(receiver, key); }
  post(receiver, key);
}

void Messenger::announce(const Continuation& receiver, const MessageKey& key) {
  depart(
      network_.add({kReadyBytes, key.tag | kReadyTag, key.target, key.source, receiver, key.bytes, key.target, kNone}));
}

void Messenger::post(const Continuation& receiver, const MessageKey& key) {
  if (!matcher_.receive(receiver, key)) { return; }
  events_.at(events_.now(), {EventKind::late_receive, static_cast<std::uint8_t>(receiver.kind), receiver.rank,
                             receiver.ref, receiver.extra});
}

}  // namespace orrery::simulate
