// How many engines of a pool are on: a target for a signal of each engine, looked at now and then, as a horizontal
// autoscaler does (docs/models/serving.md).
//
// An engine that is switched on takes requests after its start-up time. One that is switched off takes no more and is
// off when its last request has left. Left out: starts that fail, weights that are still in host memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/config/codec.hpp"
#include "orrery/serving/ticks.hpp"

namespace orrery::serving {

// What an engine reports to the autoscaler.
enum class ScaleSignal : std::uint8_t {
  requests,  // that wait or run
  queue,     // requests that wait
  kv,        // part of the cache's blocks that running requests hold
};

struct AutoscaleOptions {
  std::int64_t least = 0;  // engines that are always on; 0: all are, and nothing scales
  double target = 0.0;     // of the signal, for each engine
  Ticks interval = 0;      // between decisions
  Ticks start = 0;         // from a decision to an engine's first request
  Ticks hold = 0;          // engines are switched off if fewer were enough for so long
  ScaleSignal signal = ScaleSignal::requests;
  [[nodiscard]] bool scales() const { return least > 0; }
};

// Times in seconds.
struct AutoscaleTotals {
  std::int64_t starts = 0, stops = 0;
  std::int64_t most = 0;      // engines on at a time; those that start and those that drain are on
  double engine_seconds = 0;  // integral of the engines that are on
  std::vector<std::pair<Ticks, std::int64_t>> changes;  // of the number of engines that are on: since when, number
};

class Autoscaler {
 public:
  // Of the engines of the pool.
  struct View {
    std::function<double(std::size_t engine)> signal;
    std::function<bool(std::size_t engine)> idle;  // has no request: it can be switched off at once
  };

  Autoscaler(const AutoscaleOptions& options, std::size_t engines);

  // The engines that take requests, in order.
  [[nodiscard]] const std::vector<std::size_t>& active() const { return active_; }
  [[nodiscard]] bool is_off(std::size_t engine) const { return states_[engine] == State::off; }
  // The first decision is one interval later. Until then the least number of engines is on.
  void begin(Ticks now);
  // When it decides next, or an engine is ready; kNever if nothing scales.
  [[nodiscard]] Ticks next() const;
  void step(Ticks now, const View& view);
  // The last request of an engine has left.
  void emptied(std::size_t engine, Ticks now);
  // Totals from begin() to `end`.
  [[nodiscard]] AutoscaleTotals totals(Ticks end);

 private:
  enum class State : std::uint8_t { off, starting, active, draining };

  void count(Ticks now);
  void decide(Ticks now, const View& view);
  void add(std::int64_t engines, Ticks now);
  void remove(std::int64_t engines, Ticks now, const View& view);
  void finish_starts(Ticks now);
  void list_active();
  [[nodiscard]] std::int64_t number_of(State state) const;

  AutoscaleOptions options_;
  std::vector<State> states_;  // [engine]
  std::vector<Ticks> ready_;   // [engine], of those that start
  std::vector<std::size_t> active_;
  std::vector<std::pair<Ticks, std::int64_t>> wanted_;  // decisions of the last `hold`
  Ticks decision_ = kNever, counted_ = 0;
  AutoscaleTotals totals_;
};

}  // namespace orrery::serving

namespace orrery::config {

template <>
struct EnumNames<serving::ScaleSignal> {
  using S = serving::ScaleSignal;
  static constexpr std::array<std::pair<S, std::string_view>, 3> value{
      {{S::requests, "requests"}, {S::queue, "queue"}, {S::kv, "kv"}}};
};

}  // namespace orrery::config
