// Matches messages and receives under physical rules: the k-th message with an envelope with the k-th receive with it,
// in any order of arrival. Private to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "orrery/simulate/continuation.hpp"

namespace orrery::simulate {

// The fields by which messages and receives are matched.
struct Envelope {
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint32_t source = 0, target = 0;
  std::uint32_t scope = 0;  // 1 + the custom collective that it belongs to

  friend bool operator==(const Envelope&, const Envelope&) = default;
};

struct EnvelopeHash {
  std::size_t operator()(const Envelope& envelope) const {
    std::uint64_t mixed = envelope.tag * 0x9E3779B97F4A7C15U ^ (envelope.bytes + envelope.scope);
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9U;
    mixed ^= (std::uint64_t{envelope.source} << 32) | envelope.target;
    return (mixed ^ (mixed >> 31)) * 0x94D049BB133111EBU;
  }
};

// Messages of SEND nodes that no RECV node matches: how many, and the first sender.
struct Unreceived {
  std::uint32_t rank = 0, node = 0;
  std::uint64_t messages = 0;
};

class EnvelopeMatcher {
 public:
  // The receive that waits for the message; none: the message waits for its receive.
  [[nodiscard]] std::optional<Continuation> send(const Envelope& envelope, std::uint32_t message) {
    Unmatched& unmatched = unmatched_[envelope];
    if (unmatched.receivers.empty()) {
      unmatched.messages.push_back(message);
      return std::nullopt;
    }
    const Continuation receiver = unmatched.receivers.front();
    unmatched.receivers.pop_front();
    if (unmatched.receivers.empty()) { unmatched_.erase(envelope); }
    return receiver;
  }

  // The message that waits for the receive; none: the receive waits for its message.
  [[nodiscard]] std::optional<std::uint32_t> receive(const Envelope& envelope, const Continuation& receiver) {
    Unmatched& unmatched = unmatched_[envelope];
    if (unmatched.messages.empty()) {
      unmatched.receivers.push_back(receiver);
      return std::nullopt;
    }
    const std::uint32_t message = unmatched.messages.front();
    unmatched.messages.pop_front();
    if (unmatched.messages.empty()) { unmatched_.erase(envelope); }
    return message;
  }

  // `sender_of`: of a message. Messages of custom collectives are left out: their check has warned of them.
  template <class SenderOf>
  [[nodiscard]] std::optional<Unreceived> unreceived(SenderOf&& sender_of) const {
    std::optional<Unreceived> all;
    for (const auto& [envelope, unmatched] : unmatched_) {
      if (envelope.scope != 0) { continue; }
      for (const std::uint32_t message : unmatched.messages) {
        const Continuation& sender = sender_of(message);
        const std::uint64_t messages = all ? all->messages + 1 : 1;
        const bool is_first = !all || std::pair(sender.rank, sender.ref) < std::pair(all->rank, all->node);
        all = is_first ? Unreceived{sender.rank, sender.ref, messages} : Unreceived{all->rank, all->node, messages};
      }
    }
    return all;
  }

 private:
  // Of one envelope; one of the two is empty.
  struct Unmatched {
    std::deque<std::uint32_t> messages;
    std::deque<Continuation> receivers;
  };

  std::unordered_map<Envelope, Unmatched, EnvelopeHash> unmatched_;
};

}  // namespace orrery::simulate
