// The times of messages. Congestion-unaware: latency + bytes / bandwidth. Congestion-aware: every link transfers one
// message at a time, and every device of the route stores and forwards whole messages. Private to the room.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "orrery/engine/prefetch.hpp"
#include "orrery/results/simulation_tables.hpp"
#include "orrery/simulate/event.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// Counts for the tables of a job; only if the job has tables.
struct LinkCount {
  std::uint64_t bytes = 0, messages = 0, busy_ns = 0;
  std::uint64_t queued_ns = 0, since_ns = 0;  // sum over the waiting messages up to `since_ns`
  std::uint64_t waiting = 0;
};
// A link of a dimension, by the ranks at its ends; results::SimulatedLink::kSwitch is a switch.
struct LinkEnds {
  std::uint32_t dimension = 0, from = 0, to = 0;
  friend auto operator<=>(const LinkEnds&, const LinkEnds&) = default;
};
struct DimensionCount {
  std::uint64_t bytes = 0, messages = 0;
};

class MessageNetwork {
 public:
  MessageNetwork(const SimulationJob& job, EventQueue& events);
  MessageNetwork(const MessageNetwork&) = delete;
  MessageNetwork& operator=(const MessageNetwork&) = delete;

  [[nodiscard]] std::uint32_t add(const Message& message) {
    const std::uint32_t id = messages_.take();
    messages_[id] = message;
    return id;
  }
  [[nodiscard]] const Message& operator[](std::uint32_t message) const { return messages_[message]; }
  void prefetch(std::uint32_t message) const { engine::prefetch(&messages_[message]); }

  // From departure to arrival, congestion-unaware; 0 if congestion-aware.
  [[nodiscard]] std::uint64_t flight_ns(std::uint32_t source, std::uint32_t target, std::uint64_t bytes);

  // Of a message without congestion: the dimension of which it takes the time, and its latency there, not rounded.
  struct Flight {
    std::uint32_t dimension = 0;
    double latency_ns = 0;
  };
  [[nodiscard]] Flight flight_of(std::uint32_t source, std::uint32_t target) const;
  // With congestion: the device that a message on a link comes to, and the devices at the ends of a link; kHub is a
  // switch.
  static constexpr std::uint32_t kHub = results::SimulatedLink::kSwitch;
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> ends_of_hop(std::uint32_t message) const;
  [[nodiscard]] std::pair<std::uint32_t, std::uint32_t> ends_of_link(std::uint32_t link) const;

  // The message leaves its source; an event reports its arrival, `flight` later if congestion-unaware.
  void depart(std::uint32_t message, std::uint64_t flight);

  // Messages that are equal but for their receiver, on a network of one dimension, leave it; their arrivals are events
  // of the caller, who reports them.
  void depart_together(const Message& message, std::uint64_t count) {
    if (!dimension_counts_.empty()) { this->count(message, count); }
  }
  void note_arrivals(std::uint64_t count) { delivered_ += count; }

  // The message is at the next device of its route: continues from there, or returns true at its target.
  [[nodiscard]] bool hop(std::uint32_t message);
  void free_link(std::uint32_t link);

  // The message is at its target and leaves the network.
  [[nodiscard]] Message remove(std::uint32_t message) {
    messages_.give_back(message);
    ++delivered_;
    return messages_[message];
  }

  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  [[nodiscard]] const std::vector<LinkCount>& link_counts() const { return link_counts_; }
  // Without congestion: links on the routes of messages, in the dimension of which a message takes the time.
  [[nodiscard]] const std::map<LinkEnds, LinkCount>& route_counts() const { return route_counts_; }
  [[nodiscard]] const std::vector<DimensionCount>& dimension_counts() const { return dimension_counts_; }
  // Whether a message crossed several dimensions and took the time of one.
  [[nodiscard]] bool skipped_dimensions() const { return skipped_dimensions_; }

 private:
  struct Link {
    std::uint32_t first = kNone, last = kNone;  // queue of messages
    bool busy = false;
  };
  struct Hop {
    std::uint32_t link = 0;
    std::uint32_t device = 0;  // at its end
  };

  [[nodiscard]] Hop next_hop(const Message& message) const;
  void forward(std::uint32_t message);
  void begin_link(std::uint32_t link, std::uint32_t message);
  void count(const Message& message, std::uint64_t copies = 1);
  void count_route(const LinkEnds& line, const Message& message, std::uint64_t copies);
  void count_waiting(std::uint32_t link, bool joins);

  const SimulationJob& job_;
  EventQueue& events_;
  bool is_folded_;
  Pool<Message> messages_;
  std::vector<Link> links_;
  std::vector<LinkCount> link_counts_;            // of links_; empty without tables
  std::vector<DimensionCount> dimension_counts_;  // the same
  std::map<LinkEnds, LinkCount> route_counts_;
  std::vector<double> bytes_per_ns_;  // by dimension
  std::uint64_t delivered_ = 0;
  bool skipped_dimensions_ = false;
};

}  // namespace orrery::simulate
