// Matches messages and receives under physical rules: the k-th message with an envelope with the k-th receive with it,
// in any order of arrival. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>

#include "orrery/simulate/continuation.hpp"
#include "orrery/simulate/pool.hpp"

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
    const auto waiting = match(envelope, true, {{}, message, kNone});
    return waiting ? std::optional(waiting->receiver) : std::nullopt;
  }

  // The message that waits for the receive; none: the receive waits for its message.
  [[nodiscard]] std::optional<std::uint32_t> receive(const Envelope& envelope, const Continuation& receiver) {
    const auto waiting = match(envelope, false, {receiver, kNone, kNone});
    return waiting ? std::optional(waiting->message) : std::nullopt;
  }

  // `sender_of`: of a message. Messages of custom collectives are left out: their check has warned of them.
  template <class SenderOf>
  [[nodiscard]] std::optional<Unreceived> unreceived(SenderOf&& sender_of) const {
    std::optional<Unreceived> all;
    for (const auto& [envelope, queue] : queues_) {
      if (envelope.scope != 0 || !queue.is_of_messages) { continue; }
      for (std::uint32_t at = queue.first; at != kNone; at = waiting_[at].next) {
        const Continuation& sender = sender_of(waiting_[at].message);
        const std::uint64_t messages = all ? all->messages + 1 : 1;
        const bool is_first = !all || std::pair(sender.rank, sender.ref) < std::pair(all->rank, all->node);
        all = is_first ? Unreceived{sender.rank, sender.ref, messages} : Unreceived{all->rank, all->node, messages};
      }
    }
    return all;
  }

 private:
  struct Waiting {  // a message or a receive
    Continuation receiver;
    std::uint32_t message = kNone;
    std::uint32_t next = kNone;  // of the same envelope
  };
  // Of one envelope: messages, or receives. Never empty.
  struct Queue {
    bool is_of_messages = false;
    std::uint32_t first = kNone, last = kNone;  // in waiting_
  };

  // What waits for `own`; none: `own` waits.
  std::optional<Waiting> match(const Envelope& envelope, bool is_message, const Waiting& own) {
    const auto [found, is_new] = queues_.try_emplace(envelope);
    Queue& queue = found->second;
    if (!is_new && queue.is_of_messages != is_message) {
      const Waiting other = waiting_[queue.first];
      waiting_.give_back(queue.first);
      queue.first = other.next;
      if (queue.first == kNone) { queues_.erase(found); }
      return other;
    }
    queue.is_of_messages = is_message;
    const std::uint32_t number = waiting_.take();
    waiting_[number] = own;
    (is_new ? queue.first : waiting_[queue.last].next) = number;
    queue.last = number;
    return std::nullopt;
  }

  std::unordered_map<Envelope, Queue, EnvelopeHash> queues_;
  Pool<Waiting> waiting_;
};

}  // namespace orrery::simulate
