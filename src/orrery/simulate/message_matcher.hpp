// Matching of messages and receives: the k-th message of a key with the k-th receive of that key, in any order of
// arrival. Under rendezvous a receive first sends a ready-to-receive message, and the sender waits for it. Messages of
// chunks are matched within their chunk (channels.hpp); this class matches those of nodes and of custom collectives,
// and all ready-to-receive messages. Private to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "orrery/simulate/event.hpp"

namespace orrery::simulate {

class MessageMatcher {
 public:
  // Messages without a receive, and receivers without a message, of one key; one of the two is empty.
  struct Unmatched {
    std::uint32_t messages = 0;
    std::deque<Continuation> receivers;
  };
  using Table = std::unordered_map<MessageKey, Unmatched, MessageKeyHash>;

  // The message has arrived. Returns its receiver, if there is one yet.
  [[nodiscard]] Continuation arrive(const MessageKey& key) { return match_message(arrivals_, key); }
  // True if the message of the receive has arrived already.
  [[nodiscard]] bool receive(const Continuation& receiver, const MessageKey& key) {
    return match_receiver(arrivals_, receiver, key);
  }
  // Arrived messages without a receive, and receives whose message has not arrived.
  [[nodiscard]] const Table& unmatched() const { return arrivals_; }

  // The message departs. Returns the receiver that waits for its departure, if there is one.
  [[nodiscard]] Continuation depart(const MessageKey& key) { return match_message(departures_, key); }
  // True if the message of the receive has departed already.
  [[nodiscard]] bool await_departure(const Continuation& receiver, const MessageKey& key) {
    return match_receiver(departures_, receiver, key);
  }

  // Rendezvous. True if the message may depart at once; otherwise it waits for its receiver.
  [[nodiscard]] bool is_awaited(const MessageKey& ready, std::uint32_t message);
  // A ready-to-receive message has arrived. Returns the message that may depart, if it has been sent.
  [[nodiscard]] std::optional<std::uint32_t> release(const MessageKey& ready);

 private:
  struct Rendezvous {
    std::uint32_t ready = 0;            // ready-to-receive messages that arrived before their message was sent
    std::deque<std::uint32_t> waiting;  // messages that wait for a ready-to-receive message
  };

  [[nodiscard]] static Continuation match_message(Table& table, const MessageKey& key);
  [[nodiscard]] static bool match_receiver(Table& table, const Continuation& receiver, const MessageKey& key);

  Table arrivals_;
  Table departures_;
  std::unordered_map<MessageKey, Rendezvous, MessageKeyHash> rendezvous_;
};

}  // namespace orrery::simulate
