// Messages of nodes and of custom collectives under physical rules. A message departs when it is sent or, under
// rendezvous, when the ready-to-receive message of its receiver has arrived. The k-th message with an envelope is
// matched with the k-th receive with it. Private to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/simulate/continuation.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_links.hpp"
#include "orrery/simulate/physical_nodes.hpp"
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

class PhysicalMessages {
 public:
  PhysicalMessages(bool rendezvous, const PhysicalRounds& rounds, Links& links, PhysicalNodes& nodes)
      : rendezvous_(rendezvous), rounds_(rounds), links_(links), nodes_(nodes) {}
  PhysicalMessages(const PhysicalMessages&) = delete;
  PhysicalMessages& operator=(const PhysicalMessages&) = delete;

  void send(const Envelope& envelope, const Continuation& sender, const Order& order);
  // `node`: the receiving node of the receiver's rank.
  void receive(const Envelope& envelope, const Continuation& receiver, std::uint32_t node);

  // The transfer of a message has arrived.
  void deliver(std::uint32_t transfer);

  // Takes the steps of custom collectives (run, step) whose message has arrived or been received, in ascending order.
  // Valid until the next call.
  [[nodiscard]] std::span<const std::pair<std::uint32_t, std::uint32_t>> take_ended_steps();
  void end_step(std::uint32_t run, std::uint32_t step) { ended_steps_.emplace_back(run, step); }
  [[nodiscard]] bool has_ended_steps() const { return !ended_steps_.empty(); }

  // Messages of SEND nodes that have arrived and that no RECV node matches: how many, and the first sender.
  struct Unreceived {
    std::uint32_t rank = 0, node = 0;
    std::uint64_t messages = 0;
  };
  [[nodiscard]] std::optional<Unreceived> unreceived() const;

 private:
  struct Message {
    Envelope envelope;
    Continuation sender, receiver;
    Order order;
    bool has_departed = false;
    bool has_arrived = false;
  };
  // For one envelope: messages without a receive, receives without a message. Under rendezvous also messages that wait
  // for a ready-to-receive message, and the number of ready-to-receive messages that arrived before their message was
  // sent.
  struct Unmatched {
    std::deque<std::uint32_t> messages;
    std::deque<Continuation> receivers;
    std::deque<std::uint32_t> waiting;
    std::uint32_t ready = 0;

    [[nodiscard]] bool empty() const { return messages.empty() && receivers.empty() && waiting.empty() && ready == 0; }
  };

  void depart(std::uint32_t message);
  void announce(const Envelope& envelope, const Continuation& receiver, std::uint32_t node);
  void match(std::uint32_t message, const Continuation& receiver);
  void arrive(std::uint32_t message);
  void arrive_ready(std::uint32_t message);
  void resume(const Continuation& who);
  void start_receiving(const Continuation& who);

  bool rendezvous_;
  const PhysicalRounds& rounds_;
  Links& links_;
  PhysicalNodes& nodes_;
  Pool<Message> messages_;
  std::unordered_map<Envelope, Unmatched, EnvelopeHash> unmatched_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ended_steps_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> taken_steps_;  // returned by take_ended_steps()
};

}  // namespace orrery::simulate
