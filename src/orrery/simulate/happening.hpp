// What can happen in a simulated machine, and what is told of it. Private to the room.
#pragma once

#include <cstdint>

#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// `rank`, `ref` and `extra` mean what is said beside each.
enum class Happening : std::uint8_t {
  endpoint,     // chunk `ref` has passed the endpoint; `extra`: with which slot or step; `flag`: it reduces next
  reduced,      // chunk `ref` has reduced; `extra` as before
  arrival,      // letter `ref` is where it goes to
  hop,          // letter `ref` is at the next device of its route
  link_free,    // link `ref`
  received,     // chunk `ref` learns of a message from `extra` that came before it was expected
  received_by,  // the party of `flag`, `ref` and `extra` learns of one
  begin,        // letter `ref` may start: its receiver is ready
  node_over,    // node `ref` of `rank`
  memory_over,  // node `ref` of `rank`
  server_free,  // memory server `ref`
  custom_over,  // step `extra` of custom run `ref`
  bus_step,     // `extra` at port `flag` of the bus of `rank`
};

struct Event {
  Happening what = Happening::arrival;
  std::uint8_t flag = 0;
  std::uint32_t rank = 0;
  std::uint32_t ref = 0;
  std::uint32_t extra = 0;
};

// Who sent a message and is told of its arrival, or waits for one.
struct Party {
  enum class Kind : std::uint8_t { nobody, chunk, node, custom };
  Kind kind = Kind::nobody;
  std::uint32_t rank = 0;
  std::uint32_t ref = 0;    // chunk; node; custom run
  std::uint32_t extra = 0;  // custom: its step
};

inline constexpr std::uint64_t kNativeTag = std::uint64_t{1} << 63;  // tags of collectives do not meet those of nodes
inline constexpr std::uint64_t kNoticeTag = std::uint64_t{1} << 62;  // and those of rendezvous neither of them
inline constexpr std::uint64_t kNoticeBytes = 8192;

// A message under way.
struct Letter {
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;
  std::uint32_t source = 0, target = 0;
  Party party;                 // who is told of the arrival; of a notice: who is ready to receive
  std::uint64_t about = 0;     // of a notice: the bytes of the message that is expected
  std::uint32_t device = 0;    // where it is
  std::uint32_t next = kNone;  // in the queue of a link
};

// What a message is matched by.
struct Address {
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint32_t source = 0, target = 0;

  friend bool operator==(const Address&, const Address&) = default;
};

struct AddressHash {
  std::size_t operator()(const Address& address) const {
    std::uint64_t mixed = address.tag * 0x9E3779B97F4A7C15U ^ (address.bytes + 0x7F4A7C15U);
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9U;
    mixed ^= (std::uint64_t{address.source} << 32) | address.target;
    return (mixed ^ (mixed >> 31)) * 0x94D049BB133111EBU;
  }
};

}  // namespace orrery::simulate
