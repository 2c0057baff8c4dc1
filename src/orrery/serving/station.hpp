// Stages of a request outside its engine, in three places; those of a place one after the other: each a queue in front
// of servers that take batches. Stages: docs/models/serving.md.
//
// A server that is idle takes what waits, up to a batch; it does not wait for a fuller one. First come, first served.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <vector>

#include "orrery/serving/request.hpp"
#include "orrery/serving/ticks.hpp"

namespace orrery::serving {

enum class StagePlace : std::uint8_t {
  before_prefill,  // every request, before the engines
  after_answer,    // every request, after its last token
  between_turns,   // a request that another turn of its session follows, after its answer
};
inline constexpr std::size_t kStagePlaces = 3;
inline constexpr double kLongestStageSeconds = 1e5;  // of a request in a stage, without the queue

// A store of keys and values: a lookup may find the beginning of the prompt, and sends it.
struct StoreOptions {
  double hit_rate = 0;                        // part of the lookups that find it
  std::optional<std::int64_t> prefix_tokens;  // that are found; none: those of the session's earlier turns
  Seconds token;                              // to send the keys and values of a token
};

// [request]: tokens that a lookup finds if it hits, so many as the prefix has, or the session's earlier turns; one
// token of the prompt at least is not among them.
[[nodiscard]] std::vector<std::int64_t> tokens_of_hits(const std::optional<std::int64_t>& prefix, const Workload& load);

struct StationOptions {
  std::int64_t servers = 1;  // 0: as many as there are requests
  std::int64_t batch = 1;    // requests that a server takes at a time, at most
  Ticks fixed = 0;           // of a batch
  Ticks shared = 0;          // reads of memory that all requests of a batch share
  Ticks read = 0;            // reads of memory of each request
  Ticks compute = 0;         // of each request, under the reads
  StagePlace place = StagePlace::before_prefill;
  double fixed_cv = 0;  // `fixed` is log-normal with this coefficient of variation; of a batch, the longest draw
  std::optional<StoreOptions> store = std::nullopt;

  [[nodiscard]] Ticks time_of(std::int64_t requests) const {
    const Ticks reads = saturated_sum(shared, saturated_product(requests, read));
    const Ticks computes = saturated_product(requests, compute);
    return saturated_sum(fixed, reads > computes ? reads : computes);
  }
};

// Integrals are over time, in seconds.
struct StationTotals {
  std::int64_t served = 0, batches = 0;
  std::int64_t hits = 0, retrieved = 0;  // of a store: requests, tokens
  std::vector<std::int64_t> found;       // [request], tokens of a store; empty: none
  double busy_s = 0;                     // sum over servers
  double inside_integral = 0;            // of the requests that wait or are served
  std::vector<Ticks> waits;  // [request], from its arrival at the station to the start of its batch; -1: none
  std::vector<Ticks> times;  // [request], to the end of its batch; -1: it was not here
};

class Stations {
 public:
  // Random times and hits of a request depend on the seed, the place of the station and its order in the place.
  Stations(const std::vector<StationOptions>& options, const Workload& load, std::uint64_t seed);

  [[nodiscard]] bool empty() const { return stations_.empty(); }
  [[nodiscard]] bool has(StagePlace place) const { return first_of(place) < stations_.size(); }
  // At the first station of a place that has some. Call start() when all requests of a moment have arrived.
  void arrive(StagePlace place, std::int64_t request, Ticks now) { enter(first_of(place), request, now); }
  void start(Ticks now) {
    if (!stations_.empty()) { start_batches(now); }
  }
  // When the next batch ends; kNever if none is served.
  [[nodiscard]] Ticks next() const { return ends_.empty() ? kNever : ends_.top().at; }
  struct Left {
    std::int64_t request;
    StagePlace place;
  };
  // Ends the batches of this moment and starts others. The requests that left the last station of a place, in order.
  [[nodiscard]] const std::vector<Left>& advance(Ticks now);
  // Leading tokens of the request's prompt that stores find; fewer than the prompt has.
  [[nodiscard]] std::int64_t retrieved(std::int64_t request) const {
    return retrieved_.empty() ? 0 : retrieved_[static_cast<std::size_t>(request)];
  }
  [[nodiscard]] std::vector<StationTotals> totals() const;

 private:
  struct Station {
    StationOptions options;
    StationTotals totals;
    std::deque<std::int64_t> queue;
    std::vector<Ticks> entered;  // [request]
    std::vector<Ticks> own;      // [request], a time of its own; empty: none
    std::size_t next = 0;        // next station of the same place; their number: none
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

  [[nodiscard]] std::size_t first_of(StagePlace place) const { return first_[static_cast<std::size_t>(place)]; }
  void link_places();
  void draw(std::size_t number, const Workload& load, std::uint64_t seed);
  void enter(std::size_t station, std::int64_t request, Ticks now);
  static void count(Station& station, std::int64_t change, Ticks now);
  void start_batches(Ticks now);
  void start_batch(std::size_t station, Ticks now);
  void end_batch(Ticks now);

  std::vector<Station> stations_;
  std::array<std::size_t, kStagePlaces> first_{};
  std::vector<std::int64_t> retrieved_;  // [request]; empty: no stores
  std::priority_queue<Batch, std::vector<Batch>, std::greater<>> ends_;
  std::vector<Left> left_;
  std::uint64_t started_ = 0;
};

}  // namespace orrery::serving
