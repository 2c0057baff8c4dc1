// Matching of messages and receives: the k-th message of a key with the k-th receive of it, whichever comes first.
// Under rendezvous a receive first sends a ready-to-receive message, and its sender waits for it. Messages of chunks
// are matched within their chunk (chunk_registry.hpp); here are those of nodes and of custom collectives, and every
// ready-to-receive message. Private to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "orrery/simulate/event.hpp"

namespace orrery::simulate {

class MessageMatcher {
 public:
  // Arrived messages without a receive, and receives without a message.
  struct Unmatched {
    std::uint32_t arrived = 0;
    std::deque<Continuation> receivers;
  };
  using Table = std::unordered_map<MessageKey, Unmatched, MessageKeyHash>;

  // The message is at its target; its receiver, if there is one yet.
  [[nodiscard]] Continuation arrive(const MessageKey& key);
  // True when the message of the receive has arrived already.
  [[nodiscard]] bool receive(const Continuation& receiver, const MessageKey& key);
  [[nodiscard]] const Table& unmatched() const { return unmatched_; }

  // A message departs; the receiver that has waited for that, if there is one.
  [[nodiscard]] Continuation depart(const MessageKey& key);
  // True when the message of the receive has departed already.
  [[nodiscard]] bool await_departure(const Continuation& receiver, const MessageKey& key);

  // Rendezvous. True when the message may depart at once; else it waits for its receiver.
  [[nodiscard]] bool is_awaited(const MessageKey& ready, std::uint32_t message);
  // A ready-to-receive message has arrived: the message that may depart, if it has been sent.
  [[nodiscard]] std::optional<std::uint32_t> release(const MessageKey& ready);

 private:
  struct Departures {
    std::uint32_t departed = 0;          // that no receive has awaited
    std::deque<Continuation> receivers;  // whose message has not departed
  };
  struct Rendezvous {
    std::uint32_t ready = 0;            // ready-to-receive messages that no message has used
    std::deque<std::uint32_t> waiting;  // messages
  };

  Table unmatched_;
  std::unordered_map<MessageKey, Departures, MessageKeyHash> departures_;
  std::unordered_map<MessageKey, Rendezvous, MessageKeyHash> rendezvous_;
};

}  // namespace orrery::simulate
