// Events of a simulated machine under ASTRA-sim's rules, and the messages that they are about. Private to the room.
#pragma once

#include <cstdint>
#include <utility>

#include "orrery/engine/kernel.hpp"
#include "orrery/simulate/continuation.hpp"
#include "orrery/simulate/order_certificate.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// The comment of each kind gives the meaning of `rank`, `ref` and `extra` of its events.
enum class EventKind : std::uint8_t {
  endpoint_passed,      // chunk `ref`, slot or step `extra`; `flag`: it reduces next
  reduced,              // chunk `ref`, slot or step `extra`
  slots_passed,         // chunk `ref`, `extra` slots of it; `flag`: they reduce next
  slots_reduced,        // chunk `ref`, `extra` slots of it
  late_chunk_receives,  // chunk `ref` expects `extra` messages that have arrived before
  direct_arrivals,      // `extra` messages of the member at position `rank` of exchange `ref` have arrived
  arrival,              // message `ref` has arrived at `rank`, probably for chunk `extra` (kNone: not known)
  hop,                  // message `ref` is at the next device of its route
  link_free,            // link `ref`
  late_chunk_receive,   // chunk `ref` expects a message from `extra` that has arrived before
  late_receive,         // the same for the continuation of `flag`, `rank`, `ref` and `extra`
  rendezvous_send,      // message `ref` departs: its receiver is ready
  node_end,             // node `ref` of `rank`
  memory_end,           // node `ref` of `rank`
  server_free,          // memory server `ref`
  custom_step_end,      // step `extra` of custom run `ref`
  switch_reduced,       // the switch has reduced the messages of the group of chunk `ref`
  bus_step,             // `extra` at port `flag` of the bus of `rank`
};

struct Event {
  EventKind kind = EventKind::arrival;
  std::uint8_t flag = 0;
  std::uint32_t rank = 0;
  std::uint32_t ref = 0;
  std::uint32_t extra = 0;
};

// Adds an event to the one before it in the queue, if together they are an event about more slots of the same chunk.
[[nodiscard]] inline bool join_slots(Event& last, const Event& next) {
  if (last.kind != next.kind || last.flag != next.flag || last.ref != next.ref) { return false; }
  last.extra += next.extra;
  return true;
}

// Is told of every event that is registered.
class EventObserver {
 public:
  EventObserver() = default;
  EventObserver(const EventObserver&) = delete;
  EventObserver& operator=(const EventObserver&) = delete;
  virtual ~EventObserver() = default;
  virtual void registered(engine::Time time, const Event& event) = 0;
};

// The event kernel. Of a folded run (is_folded(job)), Event::rank is a label of the certificate; of an event that is
// registered, the rank that registers it.
class EventQueue : public engine::Kernel<Event> {
 public:
  using Kernel::Kernel;

  // One of them, before the run.
  void set_certificate(OrderCertificate& certificate) { certificate_ = &certificate, is_watched_ = true; }
  void set_observer(EventObserver& observer) { observer_ = &observer, is_watched_ = true; }

  void at(engine::Time time, const Event& event) {
    if (is_watched_) [[unlikely]] { return Kernel::at(time, watched(time, event.rank, event)); }
    Kernel::at(time, event);
  }
  void after(std::uint32_t lane, engine::Time delay, const Event& event) {
    if (is_watched_) [[unlikely]] { return Kernel::after(lane, delay, watched(now() + delay, 0, event)); }
    Kernel::after(lane, delay, event);
  }
  // Neither in folded nor in observed runs.
  template <class Join>
  void after(std::uint32_t lane, engine::Time delay, const Event& event, Join&& join) {
    ORRERY_ASSERT(!is_watched_);
    Kernel::after(lane, delay, event, std::forward<Join>(join));
  }

 private:
  [[nodiscard]] Event watched(engine::Time time, std::uint32_t source, Event event) const {
    if (observer_ != nullptr) { observer_->registered(time, event); }
    if (certificate_ != nullptr) { event.rank = certificate_->label(time, source); }
    return event;
  }

  OrderCertificate* certificate_ = nullptr;
  EventObserver* observer_ = nullptr;
  bool is_watched_ = false;
};

inline constexpr std::uint64_t kChunkTag = std::uint64_t{1} << 63;  // tags of chunks are never those of nodes,
inline constexpr std::uint64_t kReadyTag = std::uint64_t{1} << 62;  // nor those of ready-to-receive messages
inline constexpr std::uint64_t kReadyBytes = 8192;                  // of a ready-to-receive message (rendezvous)

// A message in flight.
struct alignas(64) Message {
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;
  std::uint32_t source = 0, target = 0;
  Continuation owner;  // the sender; of a ready-to-receive message, the receiver that sent it
  // Of a ready-to-receive message: size of the message that may depart. In folded runs: image_source().
  std::uint64_t expected_bytes = 0;
  std::uint32_t device = 0;    // its current device
  std::uint32_t next = kNone;  // in the queue of a link
};

// A folded run sends the message of its rank and receives, in its place, that of another rank, its image.
[[nodiscard]] inline std::uint64_t image_source(std::uint32_t rank, bool is_exchange) {
  return std::uint64_t{rank} * 2 + (is_exchange ? 1 : 0);  // halving and doubling exchange messages with a partner
}
[[nodiscard]] inline std::uint32_t source_of_image(const Message& message) {
  return static_cast<std::uint32_t>(message.expected_bytes / 2);
}

// Messages and receives of one key are matched in order: the k-th with the k-th.
struct MessageKey {
  std::uint64_t tag = 0;
  std::uint64_t bytes = 0;
  std::uint32_t source = 0, target = 0;

  friend bool operator==(const MessageKey&, const MessageKey&) = default;
};

struct MessageKeyHash {
  std::size_t operator()(const MessageKey& key) const {
    std::uint64_t mixed = key.tag * 0x9E3779B97F4A7C15U ^ (key.bytes + 0x7F4A7C15U);
    mixed = (mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9U;
    mixed ^= (std::uint64_t{key.source} << 32) | key.target;
    return (mixed ^ (mixed >> 31)) * 0x94D049BB133111EBU;
  }
};

}  // namespace orrery::simulate
