// Stages of a request before its engine, one after the other: each a queue in front of servers that take batches.
// Stages: docs/models/serving.md.
//
// A server that is idle takes what waits, up to a batch; it does not wait for a fuller one. First come, first served.
#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <vector>

#include "orrery/serving/ticks.hpp"

namespace orrery::serving {

struct StationOptions {
  std::int64_t servers = 1;  // 0: as many as there are requests
  std::int64_t batch = 1;    // requests that a server takes at a time, at most
  Ticks fixed = 0;           // of a batch
  Ticks shared = 0;          // reads of memory that all requests of a batch share
  Ticks read = 0;            // reads of memory of each request
  Ticks compute = 0;         // of each request, under the reads

  [[nodiscard]] Ticks time_of(std::int64_t requests) const {
    const Ticks reads = shared + requests * read, computes = requests * compute;
    return fixed + (reads > computes ? reads : computes);
  }
};

// Integrals are over time, in seconds.
struct StationTotals {
  std::int64_t served = 0, batches = 0;
  double busy_s = 0;           // sum over servers
  double inside_integral = 0;  // of the requests that wait or are served
  std::vector<Ticks> waits;    // [request], from its arrival at the station to the start of its batch
  std::vector<Ticks> times;    // [request], to the end of its batch
};

class Stations {
 public:
  Stations(const std::vector<StationOptions>& options, std::size_t requests);

  [[nodiscard]] bool empty() const { return stations_.empty(); }
  // At the first station. Call start() when all requests of a moment have arrived.
  void arrive(std::int64_t request, Ticks now) { enter(0, request, now); }
  void start(Ticks now);
  // When the next batch ends; kNever if none is served.
  [[nodiscard]] Ticks next() const { return ends_.empty() ? kNever : ends_.top().at; }
  // Ends the batches of this moment and starts others. The requests that left the last station, in order.
  [[nodiscard]] const std::vector<std::int64_t>& advance(Ticks now);
  [[nodiscard]] std::vector<StationTotals> totals() const;

 private:
  struct Station {
    StationOptions options;
    StationTotals totals;
    std::deque<std::int64_t> queue;
    std::vector<Ticks> entered;  // [request]
    std::int64_t busy = 0, inside = 0;
    Ticks counted = 0;
  };
  struct Batch {
    Ticks at = 0;
    std::uint64_t number = 0;  // batches that end together end in the order of their start
    std::size_t station = 0;
    std::vector<std::int64_t> requests;
    friend bool operator>(const Batch& a, const Batch& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; }
  };

  void enter(std::size_t station, std::int64_t request, Ticks now);
  static void count(Station& station, std::int64_t change, Ticks now);
  void start_batch(std::size_t station, Ticks now);
  void end_batch(Ticks now);

  std::vector<Station> stations_;
  std::priority_queue<Batch, std::vector<Batch>, std::greater<>> ends_;
  std::vector<std::int64_t> left_;
  std::uint64_t started_ = 0;
};

}  // namespace orrery::serving
