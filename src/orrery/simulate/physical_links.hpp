// The links of a physical machine: routes, arbitration between requests, and arrival times of heads and tails. The
// rules and their proofs are in docs/models/physical.md. Private to the room.
//
// A transfer (a message in flight) requests one link after the other. A link serves one transfer at a time, for bytes /
// bandwidth; the head of the transfer is at the next device one latency later. Earlier requests are served first; those
// of the same round are ordered by Order. Transfers that are equal in all of that share the bandwidth of the link
// equally: they start and end together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "orrery/core/large_pages.hpp"
#include "orrery/engine/divisor.hpp"
#include "orrery/engine/prefetch.hpp"
#include "orrery/results/simulation_tables.hpp"
#include "orrery/simulate/inputs.hpp"
#include "orrery/simulate/pool.hpp"
#include "orrery/simulate/rate.hpp"

namespace orrery::simulate {

// The tie-break between transfers. It contains neither rank numbers nor the order of registration, so a symmetry of the
// job does not change it.
struct Order {
  std::int32_t priority = 0;  // smaller ones are served first, whenever they were requested
  std::uint32_t node = 0;     // the sending node of its rank, by ascending id
  std::uint32_t chunk = 0;    // of a collective
  std::uint32_t step = 0;     // of a collective; the number of the step in a custom one
  std::uint32_t place = 0;    // among the messages of a step

  friend bool operator==(const Order&, const Order&) = default;
};

struct alignas(64) Transfer {
  std::uint64_t bytes = 0;
  std::uint64_t requested_at = 0;  // when it requested the link that it waits for
  Order order;
  std::uint32_t target = 0;
  std::uint32_t at = 0;              // its current rank, or the rank whose switch it has reached
  std::uint32_t next = kNone;        // next in a queue
  std::uint32_t owner = 0;           // number of its collective or message
  std::uint32_t from = 0, to = 0;    // indices into PhysicalCollective::progress
  std::uint8_t dimension = 0;        // it has reached its target in all lower dimensions
  bool has_left_source : 1 = false;  // has crossed a link: served before transfers at their source
  bool in_switch : 1 = false;        // at the switch of `dimension` that `at` is connected to
  bool to_switch : 1 = false;        // ends at the switch
  bool of_collective : 1 = false;
  bool reduces : 1 = false;
  bool is_ready : 1 = false;  // a ready-to-receive message of rendezvous
  bool has_next : 1 = false;  // the next message of its step waits behind it on the same link; see TransferSource
};

static_assert(sizeof(Transfer) == 64);

// The effect of a request or a grant, and its time.
struct LinkNotice {
  enum class Kind : std::uint8_t {
    requests,  // transfer `id` requests its next link
    arrives,   // transfer `id` is whole at its target
    reduced,   // transfer `id` has been reduced by its target's memory
    leaves,    // transfer `id`, of a collective, has left its sender whole
    wakes      // link `id` is free: wake() it then
  };
  std::uint64_t time = 0;
  std::uint32_t id = 0;
  Kind kind = Kind::requests;
};

// Messages of a step that a rank sends over one link are queued as the first of them. The next one is made when the
// link has been granted to the one before, so that a link does not store what it will carry later. All of them have
// been requested at the same time, and no other transfer is between them in Order.
class TransferSource {
 public:
  TransferSource() = default;
  TransferSource(const TransferSource&) = delete;
  TransferSource& operator=(const TransferSource&) = delete;
  virtual ~TransferSource() = default;

  // The message after `transfer` in its step.
  [[nodiscard]] virtual Transfer next(const Transfer& transfer) const = 0;
};

class LinkLog;

class Links {
 public:
  // `memory_gb`: bandwidth at which the memory of a rank reduces, in 1e9 bytes per second; 0: reductions take no time.
  // `counts`: whether counts() is needed.
  Links(const Network& network, double memory_gb, bool counts);

  // Of transfers with `has_next`; required before the first of them.
  void set_source(const TransferSource& source) { source_ = &source; }
  // Every grant is noted there from now on.
  void set_log(LinkLog& log) { log_ = &log; }
  // Rank 0 is simulated for all ranks: what it sends arrives, as the image of other ranks' transfers, on its own links.
  void fold() { is_folded_ = true; }
  // The same with one rank of each class: images[r] is simulated for r.
  void fold(std::span<const std::uint32_t> images) {
    is_folded_ = true;
    images_ = images;
  }
  // The rank that is simulated in place of a rank, in a folded job.
  [[nodiscard]] std::uint32_t image(std::uint32_t rank) const { return images_.empty() ? 0 : images_[rank]; }
  // A rank's transfers along the dimension start on one link.
  [[nodiscard]] bool starts_on_one_link(std::uint32_t dimension) const {
    return hardware::has_switch(dimensions_[dimension].wiring);
  }

  [[nodiscard]] Transfer& operator[](std::uint32_t transfer) { return transfers_[transfer]; }
  [[nodiscard]] const Transfer& operator[](std::uint32_t transfer) const { return transfers_[transfer]; }
  [[nodiscard]] std::uint32_t take() { return transfers_.take(); }
  template <class Make>
  [[nodiscard]] std::uint32_t take(Make&& make) {
    return transfers_.take(make);
  }
  void give_back(std::uint32_t transfer) { transfers_.give_back(transfer); }

  // During a round. request: the transfer requests its next link. reduce: it requests the memory of its rank, which
  // reduces it. wake: a link is free.
  void request(std::uint32_t transfer, std::uint64_t now);
  void reduce(std::uint32_t transfer, std::uint64_t now);
  void wake(std::uint32_t link, std::uint64_t now);

  // At the end of a round: every free link grants one request, if it has any. Returns the notices of the round in no
  // particular order; the span is valid until the next call.
  [[nodiscard]] std::span<const LinkNotice> grant(std::uint64_t now);

  // The transfer that the link serves next, or kNone.
  [[nodiscard]] std::uint32_t first(std::uint32_t link) const { return links_[link].first; }

  // Prefetch a link; the memory that reduces a transfer that has arrived; the transfer that it serves next; the links
  // that a transfer may request next, where it is or, if it has arrived, as the first of another transfer.
  void prefetch(std::uint32_t link) const { engine::prefetch(&links_[link]); }
  void prefetch_reducer(const Transfer& transfer) const { prefetch(reducers_ + transfer.at); }
  void prefetch_first(std::uint32_t link) const {
    if (links_[link].first != kNone) { engine::prefetch(&transfers_[links_[link].first]); }
  }
  void prefetch_next(const Transfer& transfer) const;
  void prefetch_own(std::uint32_t rank, std::uint32_t dimension) const;  // the links that leave a rank

  [[nodiscard]] std::vector<results::SimulatedLink> counts() const;
  [[nodiscard]] bool reductions_take_time() const { return reducers_ != kNone; }

 private:
  struct alignas(64) Link {
    std::uint64_t free_at = 0;
    std::uint32_t first = kNone, last = kNone;
    std::uint32_t to = 0;  // the rank at its end; for a link into a switch, the rank at its start
    std::uint8_t dimension = 0;
    bool into_switch = false;
    bool is_dirty = false, will_wake = false;
    bool has_equals = false;         // some queued transfers may be equal
    std::int32_t last_priority = 0;  // of the last queued transfer, which is likely not cached
    std::uint64_t last_requested_at = 0;
    std::uint32_t older = kNone;  // the last queued transfer that was requested before the instant `older_than`
    std::uint64_t older_than = 0;
  };
  static_assert(sizeof(Link) == 64);
  struct LinkCounts {
    std::uint64_t bytes = 0, busy = 0, messages = 0, queued = 0;
  };
  struct Dimension {
    Wiring wiring = Wiring::ring;
    std::uint32_t ranks = 1, stride = 1;
    engine::Divisor by_ranks, by_stride;
    std::uint32_t first_link = 0;
    std::uint64_t latency = 0;
    Rate rate;
    // FullyConnected: link numbers by rank and coordinate of the target; links are created on first use.
    std::vector<std::unique_ptr<std::uint32_t[]>> rows;  // NOLINT(*-avoid-c-arrays)

    [[nodiscard]] std::uint32_t coordinate(std::uint32_t rank) const {
      return by_ranks.remainder(by_stride.quotient(rank));
    }
  };
  // The link that a transfer needs next. The second form: in the dimension `number`, in which it has to move.
  [[nodiscard]] std::uint32_t next_link(const Transfer& transfer);
  [[nodiscard]] std::uint32_t next_link(Dimension& dimension, std::uint8_t number, const Transfer& transfer);
  [[nodiscard]] std::uint32_t own_link(Dimension& dimension, std::uint8_t number, std::uint32_t rank, std::uint32_t to);
  void set_link_ends(const Dimension& dimension, std::uint8_t number);
  [[nodiscard]] static bool arrived(const Transfer& transfer) {
    return transfer.to_switch ? transfer.in_switch : transfer.at == transfer.target && !transfer.in_switch;
  }
  void enqueue(std::uint32_t link, std::uint32_t transfer, std::uint64_t now);
  void touch(std::uint32_t link, std::uint64_t now);
  void insert(Link& link, std::uint32_t transfer);
  [[nodiscard]] std::uint32_t take_first(Link& link);
  void take_batch(Link& link);
  void count(std::uint32_t link, std::uint64_t now, std::uint64_t duration, std::uint32_t first, std::size_t size);
  void queue_next(Link& link, std::uint32_t transfer);
  void grant(std::uint32_t link, std::uint64_t now);
  [[nodiscard]] std::uint64_t occupy(Link& link, std::uint64_t bytes, std::size_t count, std::uint64_t now);
  [[nodiscard]] std::uint32_t cross(const Link& link, std::uint32_t transfer, std::uint64_t left);
  void send_batch(const Link& link, std::uint64_t now, std::uint64_t duration);
  void forward(std::uint64_t now, std::uint64_t duration, std::uint64_t latency);
  void request_next(std::uint32_t next, std::span<const std::uint32_t> transfers, std::uint64_t head,
                    std::uint64_t duration);
  void reduced(std::uint64_t now, std::uint64_t duration);
  void note(std::uint32_t link, bool is_batch, std::uint32_t head, std::uint64_t now, std::uint64_t duration) const;
  [[nodiscard]] bool goes_before(const Transfer& a, const Transfer& b) const;

  std::uint32_t ranks_;
  std::vector<Dimension> dimensions_;
  std::vector<Link, LargePages<Link>> links_;
  bool has_counts_;
  bool is_folded_ = false;
  std::span<const std::uint32_t> images_;
  std::vector<LinkCounts> counts_;  // of links_, where they are needed
  Rate memory_rate_;
  const TransferSource* source_ = nullptr;
  LinkLog* log_ = nullptr;
  std::uint32_t reducers_ = kNone;  // the index in links_ of the first rank's memory
  Pool<Transfer> transfers_;
  std::vector<std::uint32_t> dirty_;           // free links with requests, arbitrated at the end of the round
  std::vector<LinkNotice> notices_, granted_;  // of this round; of the previous one, for its reader
  struct Granted {
    std::uint32_t transfer = 0;
    std::uint32_t next = kNone;  // the next link; kNone: it has arrived
  };
  std::vector<Granted> batch_;           // of the current grant
  std::vector<std::uint32_t> together_;  // of the batch: transfers that request one link
};

}  // namespace orrery::simulate
