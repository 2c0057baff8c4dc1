// Direct collectives whose messages all take the same time: the messages that a rank sends at once are one event.
//
// On a switch or a full mesh without congestion, the messages of a member arrive in the order in which it sent them. So
// a number for each member, how many of its messages have arrived, says for every pair of members whether the receiver
// has its message: slot i of a member sends to the member at distance 1 + i % (n - 1), whose own slot i receives it. A
// collective of n ranks has n numbers instead of n^2 messages and balances (channels.hpp).
//
// That needs members that run the same phase. ASTRA-sim matches messages by chunk number, sender and size only, so that
// a message of another collective can take the place of one of these. As soon as a member does something else with a
// chunk of the same number, dissolve() turns the numbers into the balances of every pair, and the messages are handled
// one by one. The results are the same in both ways, which direct_exchanges_test.cpp asserts. Private to the room.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "orrery/simulate/chunk_registry.hpp"
#include "orrery/simulate/message_network.hpp"

namespace orrery::simulate {

class DirectExchanges {
 public:
  DirectExchanges(const SimulationJob& job, EventQueue& events, ChunkRegistry& chunks, MessageNetwork& network);
  DirectExchanges(const DirectExchanges&) = delete;
  DirectExchanges& operator=(const DirectExchanges&) = delete;

  // A chunk starts the phase. Afterwards Chunk::exchange is the number of its exchange, or kNone: then its messages are
  // handled one by one.
  void start(std::uint32_t chunk, const ChunkPhase& phase, bool clockwise);

  // The chunk, which has an exchange, sends its next `count` messages and expects as many.
  void send(std::uint32_t chunk, std::uint32_t count);

  // `count` messages of a member have arrived. Calls `expected(chunk)` for each receiver that expects its message, in
  // order; the others have it when they expect it. In an exchange that was dissolved: calls `any(message)` for all.
  template <class Expected, class Any>
  void arrive(std::uint32_t exchange, std::uint32_t position, std::uint32_t count, Expected&& expected, Any&& any);

  // From now on every message of the exchange is handled on its own.
  void dissolve(std::uint32_t exchange);
  void dissolve_all();

 private:
  struct Member {
    std::uint32_t chunk = kNone;
    std::uint32_t arrived = 0;  // of the messages that it sent
  };
  struct Exchange {
    const ChunkPhase* phase = nullptr;
    bool clockwise = true;
    bool dissolved = false;
    std::uint32_t group = 0, number = 0;
    std::uint32_t first_rank = 0;  // the rank at position 0
    std::uint64_t flight_ns = 0;
    std::uint64_t to_arrive = 0;  // messages
    std::uint32_t in_flight = 0;  // events
    std::vector<Member> members;  // by position
  };

  [[nodiscard]] static std::uint64_t key(std::uint32_t group, std::uint32_t number) {
    return (std::uint64_t{group} << 32) | number;
  }
  [[nodiscard]] bool can_hold(const ChunkPhase& phase) const;
  [[nodiscard]] bool is_unused(const ChunkPhase& phase, const Chunk& own) const;
  [[nodiscard]] std::uint32_t make(const Chunk& chunk, const ChunkPhase& phase, bool clockwise);
  [[nodiscard]] std::uint32_t late_messages(const Exchange& exchange, const Chunk& chunk, std::uint32_t end) const;
  [[nodiscard]] Message message(const Exchange& exchange, std::uint32_t position, std::uint32_t slot) const;
  void move_balances(std::uint32_t exchange, std::uint32_t receiver);
  void release(std::uint32_t exchange);

  // The member to which slot `slot` of a member sends, and whose message it receives in that slot.
  [[nodiscard]] static std::uint32_t target(const Exchange& exchange, std::uint32_t position, std::uint32_t slot) {
    const auto n = static_cast<std::uint32_t>(exchange.members.size());
    const std::uint32_t step = 1 + slot % (n - 1);
    const std::uint32_t at = position + (exchange.clockwise ? step : n - step);
    return at < n ? at : at - n;
  }
  [[nodiscard]] static std::uint32_t source(const Exchange& exchange, std::uint32_t position, std::uint32_t slot) {
    const auto n = static_cast<std::uint32_t>(exchange.members.size());
    const std::uint32_t step = 1 + slot % (n - 1);
    const std::uint32_t at = position + (exchange.clockwise ? n - step : step);
    return at < n ? at : at - n;
  }

  const SimulationJob& job_;
  EventQueue& events_;
  ChunkRegistry& chunks_;
  MessageNetwork& network_;
  bool possible_;  // with this job's network and system
  Pool<Exchange> exchanges_;
  std::unordered_map<std::uint64_t, std::uint32_t> running_;  // by group and number; not dissolved
};

template <class Expected, class Any>
void DirectExchanges::arrive(std::uint32_t number, std::uint32_t position, std::uint32_t count, Expected&& expected,
                             Any&& any) {
  Exchange& exchange = exchanges_[number];
  Member& sender = exchange.members[position];
  const std::uint32_t first = sender.arrived;
  --exchange.in_flight;
  exchange.to_arrive -= count;
  sender.arrived += count;
  if (exchange.dissolved) {
    for (std::uint32_t i = 0; i < count; ++i) { any(message(exchange, position, first + i)); }
  } else {
    const auto n = static_cast<std::uint32_t>(exchange.members.size());
    const std::uint32_t step = exchange.clockwise ? 1 : n - 1;
    std::uint32_t at = target(exchange, position, first);
    for (std::uint32_t i = first; i < first + count; ++i) {
      if (at == position) { at = at + step < n ? at + step : at + step - n; }
      const std::uint32_t chunk = exchange.members[at].chunk;
      if (chunk != kNone && chunks_[chunk].sent > i) { expected(chunk); }
      at = at + step < n ? at + step : at + step - n;
    }
  }
  if (exchange.to_arrive == 0 || (exchange.dissolved && exchange.in_flight == 0)) { release(number); }
}

}  // namespace orrery::simulate
