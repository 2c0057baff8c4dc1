// Runs the algorithm of a chunk's phase: which messages it sends and expects, and when the phase has ended.
//
// Direct on networks on which all messages take the same time is handled many messages at once (direct_exchanges.hpp).
// Ring, direct, halving and doubling are one state machine with three sets of parameters (phase.cpp). A chunk opens
// slots 0, 1, 2, …: `window` of them at the start, and one more for every message that it receives. An open slot adds a
// token after a delay; a token allows one send and one receive. The double binary tree is in phase_tree.cpp. Private to
// the room.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "orrery/simulate/chunk_registry.hpp"
#include "orrery/simulate/direct_exchanges.hpp"
#include "orrery/simulate/endpoints.hpp"
#include "orrery/simulate/message_network.hpp"
#include "orrery/simulate/messenger.hpp"

namespace orrery::simulate {

[[nodiscard]] inline std::uint64_t tag_of(const Chunk& chunk) {
  return kChunkTag | (std::uint64_t{chunk.group} << 32) | chunk.id;
}

class PhaseRunner {
 public:
  PhaseRunner(const SimulationJob& job, EventQueue& events, ChunkRegistry& chunks, Endpoints& endpoints,
              MessageNetwork& network, Messenger& messenger)
      : job_(job),
        events_(events),
        chunks_(chunks),
        endpoints_(endpoints),
        network_(network),
        messenger_(messenger),
        exchanges_(job, events, chunks, network),
        is_folded_(is_folded(job)) {}
  PhaseRunner(const PhaseRunner&) = delete;
  PhaseRunner& operator=(const PhaseRunner&) = delete;

  // `tree_ordinal`: even for the upper tree.
  void start(std::uint32_t chunk, const ChunkPhase& phase, bool clockwise, std::uint32_t tree_ordinal);

  // A message of a chunk has arrived: the chunk continues if it expects the message, otherwise counts it. Returns the
  // chunk whose phase has ended with it, or kNone.
  [[nodiscard]] std::uint32_t arrive(const Message& message);
  // The switch has reduced what the members of a group sent. `chunk`: of the first member.
  void answer_from_switch(std::uint32_t chunk);
  // The chunk expects a message from now on; if it has arrived already, an event reports it.
  void post(std::uint32_t chunk, std::uint32_t from, std::uint64_t bytes);
  void receive(std::uint32_t chunk, std::uint32_t from);

  // The chunk has passed the endpoint, or reduced, with a slot or step. True when its phase has ended.
  [[nodiscard]] bool endpoint_passed(std::uint32_t chunk, std::uint32_t step, bool reduces) {
    if (!reduces) { return proceed(chunk, step); }
    endpoints_.reduce(chunk, chunks_[chunk], step);
    return false;
  }
  [[nodiscard]] bool proceed(std::uint32_t chunk, std::uint32_t step);

  // The same for events about several slots or messages of a direct exchange.
  [[nodiscard]] bool slots_passed(std::uint32_t chunk, std::uint32_t count, bool reduces) {
    if (!reduces) { return add_tokens(chunk, count); }
    endpoints_.reduce_slots(chunk, chunks_[chunk], count);
    return false;
  }
  [[nodiscard]] bool add_tokens(std::uint32_t chunk, std::uint32_t count);
  void receive_late(std::uint32_t chunk, std::uint32_t count);
  void arrive_together(std::uint32_t exchange, std::uint32_t position, std::uint32_t count);

  // When no event is left: what a chunk waits for is in its channels.
  void end_run() { exchanges_.dissolve_all(); }

 private:
  void start_window(std::uint32_t chunk);
  void open_slots(std::uint32_t chunk, std::uint32_t count);
  void open_slot(std::uint32_t chunk);
  [[nodiscard]] bool add_token(std::uint32_t chunk);
  [[nodiscard]] bool use_slot(std::uint32_t chunk);
  void start_tree(std::uint32_t chunk);
  [[nodiscard]] bool tree_step(std::uint32_t chunk, std::uint32_t step);
  void tree_receive(std::uint32_t chunk, std::uint32_t from);

  struct Partners {
    std::uint32_t to = 0, from = 0;  // ranks
    std::uint32_t to_chunk = kNone;  // the chunk of the receiver if it is known, to avoid a search on arrival
    std::uint32_t extra = 0;         // of the message's Continuation
  };
  void start_in_switch(std::uint32_t chunk);
  [[nodiscard]] std::uint32_t arrive_in_switch_form(const Message& message, std::uint32_t group, std::uint32_t number);
  void arrive_at_switch(std::uint32_t group, std::uint32_t number);
  void send(const Chunk& chunk, const Partners& partners, std::uint64_t bytes, std::uint64_t flight_ns);
  void expect(std::uint32_t chunk, std::uint32_t from, std::uint64_t bytes);

  const SimulationJob& job_;
  EventQueue& events_;
  ChunkRegistry& chunks_;
  Endpoints& endpoints_;
  MessageNetwork& network_;
  Messenger& messenger_;
  DirectExchanges exchanges_;
  bool is_folded_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> in_switch_;  // group, number: messages in the switch
};

}  // namespace orrery::simulate
