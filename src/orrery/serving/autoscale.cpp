#include "orrery/serving/autoscale.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/core/error.hpp"

namespace orrery::serving {

Autoscaler::Autoscaler(const AutoscaleOptions& options, std::size_t engines)
    : options_(options), states_(engines, State::active), ready_(engines, kNever) {
  ORRERY_ASSERT(!options.scales() || (options.target > 0.0 && options.interval > 0));
  const auto on = options.scales() ? static_cast<std::size_t>(options.least) : engines;
  for (std::size_t i = std::min(on, engines); i < engines; ++i) { states_[i] = State::off; }
  list_active();
}

void Autoscaler::list_active() {
  active_.clear();
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == State::active) { active_.push_back(i); }
  }
}

std::int64_t Autoscaler::number_of(State state) const { return std::count(states_.begin(), states_.end(), state); }

void Autoscaler::count(Ticks now) {
  const std::int64_t on = std::ssize(states_) - number_of(State::off);
  totals_.engine_seconds += static_cast<double>(on) * seconds_of(now - counted_);
  totals_.most = std::max(totals_.most, on);
  auto& changes = totals_.changes;
  const bool is_change = changes.empty() || changes.back().second != on;
  if (options_.scales() && now > counted_ && is_change) { changes.emplace_back(counted_, on); }
  counted_ = now;
}

void Autoscaler::begin(Ticks now) {
  counted_ = now;
  if (options_.scales()) { decision_ = saturated_sum(now, options_.interval); }
}

Ticks Autoscaler::next() const {
  if (!options_.scales()) { return kNever; }
  return std::min(decision_, *std::min_element(ready_.begin(), ready_.end()));
}

void Autoscaler::step(Ticks now, const View& view) {
  count(now);
  finish_starts(now);
  if (decision_ == now) {
    decision_ = saturated_sum(now, options_.interval);
    decide(now, view);
  }
  list_active();
}

void Autoscaler::finish_starts(Ticks now) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] != State::starting || ready_[i] > now) { continue; }
    states_[i] = State::active;
    ready_[i] = kNever;
  }
}

// Wanted: ceil(sum of the signal / target). Fewer engines than are on must have been enough for the whole of `hold`.
void Autoscaler::decide(Ticks now, const View& view) {
  constexpr double kRounding = 1e-9;  // engines that are exactly at the target are enough
  double sum = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) { sum += view.signal(i); }
  const double needed = std::ceil(sum / options_.target - kRounding);
  const double most = static_cast<double>(states_.size());
  const auto wanted = static_cast<std::int64_t>(std::clamp(needed, static_cast<double>(options_.least), most));
  wanted_.emplace_back(now, wanted);
  std::erase_if(wanted_, [&](const auto& decision) { return decision.first < now - options_.hold; });
  const std::int64_t on = number_of(State::active) + number_of(State::starting);
  if (wanted > on) {
    add(wanted - on, now);
    return;
  }
  std::int64_t highest = wanted;
  for (const auto& [at, value] : wanted_) { highest = std::max(highest, value); }
  if (highest < on) { remove(on - highest, now, view); }
}

// Engines that drain come back at once; others start.
void Autoscaler::add(std::int64_t engines, Ticks now) {
  for (std::size_t i = 0; i < states_.size() && engines > 0; ++i) {
    if (states_[i] != State::draining) { continue; }
    states_[i] = State::active;
    --engines;
  }
  for (std::size_t i = 0; i < states_.size() && engines > 0; ++i) {
    if (states_[i] != State::off) { continue; }
    states_[i] = State::starting;
    ready_[i] = saturated_sum(now, options_.start);
    ++totals_.starts;
    --engines;
  }
  finish_starts(now);
  totals_.most = std::max(totals_.most, std::ssize(states_) - number_of(State::off));
}

// Those that start, then those with the highest numbers.
void Autoscaler::remove(std::int64_t engines, Ticks now, const View& view) {
  for (const State from : {State::starting, State::active}) {
    for (std::size_t i = states_.size(); i-- > 0 && engines > 0;) {
      if (states_[i] != from) { continue; }
      states_[i] = State::draining;
      ready_[i] = kNever;
      --engines;
      if (view.idle(i)) { emptied(i, now); }
    }
  }
}

void Autoscaler::emptied(std::size_t engine, Ticks now) {
  if (states_[engine] != State::draining) { return; }
  count(now);
  states_[engine] = State::off;
  ++totals_.stops;
}

AutoscaleTotals Autoscaler::totals(Ticks end) {
  if (end > counted_) { count(end); }
  return totals_;
}

}  // namespace orrery::serving
