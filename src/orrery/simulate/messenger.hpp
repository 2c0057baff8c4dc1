// Messages of nodes and of custom collectives, and the rendezvous of all messages: their departures, and the sender or
// receiver that continues at their arrival. Private to the room.
#pragma once

#include "orrery/simulate/event.hpp"
#include "orrery/simulate/message_matcher.hpp"
#include "orrery/simulate/message_network.hpp"
#include "orrery/simulate/node_scheduler.hpp"

namespace orrery::simulate {

class Messenger {
 public:
  Messenger(bool rendezvous, EventQueue& events, MessageNetwork& network, NodeScheduler& nodes)
      : rendezvous_(rendezvous), events_(events), network_(network), nodes_(nodes) {}
  Messenger(const Messenger&) = delete;
  Messenger& operator=(const Messenger&) = delete;

  // The message departs at once or, under rendezvous, when its receiver is ready.
  void send(const Message& message);
  void depart(std::uint32_t message);

  // The receiver, which is not a chunk, continues when the message has arrived.
  void receive(const Continuation& receiver, const MessageKey& key);
  // Rendezvous: sends the ready-to-receive message of a receiver.
  void announce(const Continuation& receiver, const MessageKey& key);

  // The receiver waits from now on; if the message has arrived already, an event reports it.
  void post(const Continuation& receiver, const MessageKey& key);
  // A message that is not of a chunk has arrived. Returns its receiver, if it waits.
  [[nodiscard]] Continuation arrive(const Message& message) {
    return matcher_.arrive({message.tag, message.bytes, message.source, message.target});
  }
  // A ready-to-receive message has arrived. Returns the message that may depart now; kNone if it has not been sent.
  [[nodiscard]] std::uint32_t release(const Message& ready) {
    return matcher_.release({ready.tag, ready.bytes, ready.source, ready.target}).value_or(kNone);
  }

  [[nodiscard]] bool rendezvous() const { return rendezvous_; }
  [[nodiscard]] const MessageMatcher::Table& unmatched() const { return matcher_.unmatched(); }

 private:
  void note_departure(const Message& message);

  bool rendezvous_;
  EventQueue& events_;
  MessageNetwork& network_;
  NodeScheduler& nodes_;
  MessageMatcher matcher_;
};

}  // namespace orrery::simulate
