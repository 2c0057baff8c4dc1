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
#include "orrery/simulate/envelope_matcher.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_links.hpp"
#include "orrery/simulate/physical_nodes.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

class PhysicalMessages {
 public:
  // `images`: of SimulationJob.
  PhysicalMessages(bool rendezvous, std::span<const std::uint32_t> images, const PhysicalRounds& rounds, Links& links,
                   PhysicalNodes& nodes)
      : rendezvous_(rendezvous), images_(images), rounds_(rounds), links_(links), nodes_(nodes) {}
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

  [[nodiscard]] std::optional<Unreceived> unreceived() const {
    return matcher_.unreceived([this](std::uint32_t id) -> const Continuation& { return messages_[id].sender; });
  }

 private:
  struct Message {
    Envelope envelope;
    Continuation sender, receiver;
    Order order;
    bool has_departed = false;
    bool has_arrived = false;
  };
  // For one envelope: messages that wait for a ready-to-receive message, and the number of ready-to-receive messages
  // that arrived before their message was sent.
  struct Rendezvous {
    std::deque<std::uint32_t> waiting;
    std::uint32_t ready = 0;

    [[nodiscard]] bool empty() const { return waiting.empty() && ready == 0; }
  };

  // With the ranks that are simulated in place of its ends: what messages and receives are matched by.
  [[nodiscard]] Envelope folded(Envelope envelope) const {
    if (images_.empty()) { return envelope; }
    envelope.source = images_[envelope.source];
    envelope.target = images_[envelope.target];
    return envelope;
  }
  [[nodiscard]] bool is_awaited(const Envelope& envelope, std::uint32_t message);
  void depart(std::uint32_t message);
  void announce(const Envelope& envelope, const Continuation& receiver, std::uint32_t node);
  void match(std::uint32_t message, const Continuation& receiver);
  void arrive(std::uint32_t message);
  void arrive_ready(std::uint32_t message);
  void resume(const Continuation& who);
  void start_receiving(const Continuation& who);

  bool rendezvous_;
  std::span<const std::uint32_t> images_;
  const PhysicalRounds& rounds_;
  Links& links_;
  PhysicalNodes& nodes_;
  Pool<Message> messages_;
  EnvelopeMatcher matcher_;
  std::unordered_map<Envelope, Rendezvous, EnvelopeHash> rendezvous_of_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ended_steps_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> taken_steps_;  // returned by take_ended_steps()
};

}  // namespace orrery::simulate
