// The links of a physical machine: routes, which request gets a link next, and when heads and tails arrive. The rules
// and their proofs are in docs/models/physical.md. Private to the room.
//
// A message in flight requests one link after the other. A link carries one message at a time, for bytes / bandwidth;
// its head is at the next device a latency later. Earlier requests go first; those of the same round of the same
// instant by Order. Messages that are equal in all of that share the link evenly: they start and
// end together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "orrery/results/simulation_tables.hpp"
#include "orrery/simulate/inputs.hpp"
#include "orrery/simulate/pool.hpp"
#include "orrery/simulate/rate.hpp"

namespace orrery::simulate {

// The tie-break between messages. It has no rank numbers and no order of registration: a symmetry of a
// job leaves all of it as it is.
struct Order {
  std::int32_t priority = 0;  // smaller ones go first, whenever they were requested
  std::uint32_t node = 0;     // which of its rank's nodes sends it, by ascending id
  std::uint32_t chunk = 0;    // of a collective
  std::uint32_t step = 0;     // of a collective; of a custom one, which of its steps
  std::uint32_t place = 0;    // among the messages of a step

  friend bool operator==(const Order&, const Order&) = default;
};

struct alignas(64) Packet {
  std::uint64_t bytes = 0;
  std::uint64_t asked = 0;  // when it requested the link that it waits for
  Order order;
  std::uint32_t target = 0;
  std::uint32_t at = 0;            // the rank where it is, or at whose switch
  std::uint32_t next = kNone;      // in a queue
  std::uint32_t owner = 0;         // collective; message
  std::uint32_t from = 0, to = 0;  // a collective's seats
  std::uint8_t dimension = 0;      // from this one on it has to move
  bool on_its_way : 1 = false;     // has crossed a link already: goes before messages at their source
  bool in_switch : 1 = false;      // at the switch of `dimension` that `at` is connected to
  bool to_switch : 1 = false;      // ends at the switch
  bool of_collective : 1 = false;
  bool reduces : 1 = false;
  bool is_ready : 1 = false;  // a ready-to-receive message of rendezvous
};

static_assert(sizeof(Packet) == 64);

// The effect of a request or a grant, and its time.
struct LinkNotice {
  enum class Kind : std::uint8_t {
    asks,     // packet `id` requests its next link
    arrives,  // packet `id` is whole at its target
    reduced,  // packet `id` has been reduced by its target's memory
    leaves,   // packet `id`, of a collective, has left its sender whole
    wakes     // link `id` is free: wake() it then
  };
  std::uint64_t time = 0;
  std::uint32_t id = 0;
  Kind kind = Kind::asks;
};

class Links {
 public:
  // `memory_gb`: at which a rank's memory reduces, 0 for no time; see reduce().
  Links(const Network& network, double memory_gb);

  [[nodiscard]] Packet& operator[](std::uint32_t packet) { return packets_[packet]; }
  [[nodiscard]] const Packet& operator[](std::uint32_t packet) const { return packets_[packet]; }
  [[nodiscard]] std::uint32_t take() { return packets_.take(); }
  void give_back(std::uint32_t packet) { packets_.give_back(packet); }

  // Within a round: the packet requests its next link; its rank's memory, to be reduced there; a link is free.
  void ask(std::uint32_t packet, std::uint64_t now);
  void reduce(std::uint32_t packet, std::uint64_t now);
  void wake(std::uint32_t link, std::uint64_t now);

  // At the end of a round: every link that is free grants one request, if it has any. The notices of the round, in an
  // order without meaning; valid until the next round ends.
  [[nodiscard]] std::span<const LinkNotice> grant(std::uint64_t now);

  // Prefetches what wake() accesses.
  void fetch(std::uint32_t link, int distance) const {
    if (distance > 1) { return __builtin_prefetch(&links_[link]); }
    if (links_[link].first != kNone) { __builtin_prefetch(&packets_[links_[link].first]); }
  }

  [[nodiscard]] std::vector<results::SimulatedLink> counts() const;
  [[nodiscard]] bool reductions_take_time() const { return reducers_ != kNone; }

 private:
  struct Link {
    std::uint64_t free_at = 0;
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t to = 0;  // rank behind it; of a link into a switch, before it
    std::uint8_t dimension = 0;
    bool into_switch = false;
    bool is_dirty = false, will_wake = false;
    bool has_equals = false;         // some that wait may be equal
    std::int32_t last_priority = 0;  // of the last that waits, which is far from the processor
    std::uint64_t last_asked = 0;
    std::uint32_t older = kNone;  // the last that was not requested in the instant `older_than`
    std::uint64_t older_than = 0;
    std::uint64_t bytes = 0, busy = 0, messages = 0, queued = 0;
  };
  struct Dimension {
    Topology topology = Topology::Ring;
    std::uint32_t ranks = 1, stride = 1;
    std::uint32_t first_link = 0;
    std::uint64_t latency = 0;
    Rate rate;
    // FullyConnected: links by rank, made when first used.
    std::vector<std::unique_ptr<std::uint32_t[]>> rows;  // NOLINT(*-avoid-c-arrays)

    [[nodiscard]] std::uint32_t coordinate(std::uint32_t rank) const { return rank / stride % ranks; }
  };
  // The link that a packet takes next; what is in `in_switch` or differs in the dimension.
  [[nodiscard]] std::uint32_t next_link(const Packet& packet);
  [[nodiscard]] std::uint32_t next_link(Dimension& dimension, std::uint8_t number, const Packet& packet);
  [[nodiscard]] std::uint32_t own_link(Dimension& dimension, std::uint8_t number, std::uint32_t rank, std::uint32_t to);
  void know_ends(const Dimension& dimension, std::uint8_t number);
  [[nodiscard]] static bool arrived(const Packet& packet) {
    return packet.to_switch ? packet.in_switch : packet.at == packet.target && !packet.in_switch;
  }
  void put(std::uint32_t link, std::uint32_t packet, std::uint64_t now);
  void touch(std::uint32_t link, std::uint64_t now);
  void insert(Link& link, std::uint32_t packet);
  void take_batch(Link& link);
  void grant(std::uint32_t link, std::uint64_t now);
  void send_on(std::uint64_t now, std::uint64_t takes, std::uint64_t latency);
  void reduced(std::uint64_t now, std::uint64_t takes);
  [[nodiscard]] bool before(const Packet& a, const Packet& b) const;

  std::uint32_t ranks_;
  std::vector<Dimension> dimensions_;
  std::vector<Link> links_;
  Rate memory_rate_;
  std::uint32_t reducers_ = kNone;  // where the ranks' memories are in links_
  Pool<Packet> packets_;
  std::vector<std::uint32_t> dirty_;           // links with requests that are looked at when the round ends
  std::vector<LinkNotice> notices_, granted_;  // of the round; of the last one, as its machine reads them
  struct Going {
    std::uint32_t packet = 0;
    std::uint32_t next = kNone;  // link; kNone: it has arrived
  };
  std::vector<Going> batch_;  // of the current grant
};

}  // namespace orrery::simulate
