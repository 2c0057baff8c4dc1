#include "orrery/serving/station.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/serving/load.hpp"

namespace orrery::serving {

namespace {

// Streams of random numbers, one for each station: by its place and its order in the place, so that stages of other
// places do not change them.
constexpr std::uint64_t kStationDraws = 1000, kDrawsOfPlace = 1'000'000'000;

// [request]: tokens of the prompt and answer of the turn before it.
std::vector<std::int64_t> earlier_tokens(const Workload& load) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(load.arriving()));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    for (const std::uint32_t follower : load.followers_of(static_cast<std::int64_t>(i))) {
      tokens[follower] = std::max(tokens[follower], load.requests[i].input + load.requests[i].output);
    }
  }
  return tokens;
}

}  // namespace

std::vector<std::int64_t> tokens_of_hits(const std::optional<std::int64_t>& prefix, const Workload& load) {
  std::vector<std::int64_t> tokens =
      prefix ? std::vector<std::int64_t>(static_cast<std::size_t>(load.arriving()), *prefix) : earlier_tokens(load);
  for (std::size_t i = 0; i < tokens.size(); ++i) { tokens[i] = std::min(tokens[i], load.requests[i].input - 1); }
  return tokens;
}

Stations::Stations(const std::vector<StationOptions>& options, const Workload& load, std::uint64_t seed) {
  const auto requests = static_cast<std::size_t>(load.arriving());
  for (const StationOptions& one : options) {
    Station station;
    station.options = one;
    station.entered.resize(requests);
    station.totals.waits.assign(requests, -1);
    station.totals.times.assign(requests, -1);
    stations_.push_back(std::move(station));
  }
  link_places();
  for (std::size_t i = 0; i < stations_.size(); ++i) { draw(i, load, seed); }
}

void Stations::link_places() {
  first_.fill(stations_.size());
  for (std::size_t i = stations_.size(); i-- > 0;) {
    std::size_t& first = first_[static_cast<std::size_t>(stations_[i].options.place)];
    stations_[i].next = first;
    first = i;
  }
}

void Stations::draw(std::size_t number, const Workload& load, std::uint64_t seed) {
  Station& station = stations_[number];
  const auto requests = static_cast<std::size_t>(load.arriving());
  const auto at = stations_.begin() + static_cast<std::ptrdiff_t>(number);
  const auto earlier_in_place = static_cast<std::uint64_t>(std::count_if(
      stations_.begin(), at, [&](const Station& other) { return other.options.place == station.options.place; }));
  const auto place = static_cast<std::uint64_t>(station.options.place);
  Draws draws(seed, kStationDraws + place * kDrawsOfPlace + earlier_in_place);
  if (station.options.fixed_cv > 0) {
    const double variance = std::log(1.0 + station.options.fixed_cv * station.options.fixed_cv);
    for (std::size_t i = 0; i < requests; ++i) {
      const double drawn = std::exp(std::sqrt(variance) * draws.normal() - 0.5 * variance);
      const double time = static_cast<double>(station.options.fixed) * drawn;
      station.own.push_back(std::llround(std::min(time, kLongestStageSeconds * kTicksPerSecond)));
    }
    station.options.fixed = 0;
  }
  if (!station.options.store) { return; }
  const StoreOptions& store = *station.options.store;
  station.own.resize(requests);
  std::vector<std::int64_t>& found = station.totals.found;
  found = tokens_of_hits(store.prefix_tokens, load);
  retrieved_.resize(requests);
  for (std::size_t i = 0; i < requests; ++i) {
    if (!(draws.uniform() < store.hit_rate)) { found[i] = 0; }
    const double time = static_cast<double>(found[i]) * store.token.value();
    station.own[i] += ticks_of(Seconds(std::min(time, kLongestStageSeconds)));
    retrieved_[i] = std::max(retrieved_[i], found[i]);
  }
}

void Stations::count(Station& station, std::int64_t change, Ticks now) {
  station.totals.inside_integral += static_cast<double>(station.inside) * seconds_of(now - station.counted);
  station.counted = now;
  station.inside += change;
}

void Stations::enter(std::size_t station, std::int64_t request, Ticks now) {
  Station& at = stations_[station];
  count(at, 1, now);
  at.entered[static_cast<std::size_t>(request)] = now;
  at.queue.push_back(request);
}

void Stations::start_batch(std::size_t station, Ticks now) {
  Station& at = stations_[station];
  const auto size = std::min<std::int64_t>(at.options.batch, std::ssize(at.queue));
  Batch batch{0, started_++, station, {}};
  Ticks longest = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t request = at.queue.front();
    const auto r = static_cast<std::size_t>(request);
    at.queue.pop_front();
    at.totals.waits[r] = now - at.entered[r];
    if (!at.own.empty()) { longest = std::max(longest, at.own[r]); }
    if (!at.totals.found.empty()) {
      at.totals.hits += at.totals.found[r] > 0 ? 1 : 0;
      at.totals.retrieved += at.totals.found[r];
    }
    batch.requests.push_back(request);
  }
  const Ticks time = saturated_sum(at.options.time_of(size), longest);
  batch.at = std::min(now, kNever - 1 - time) + time;  // too late ones are an error of the run
  ++at.busy;
  ++at.totals.batches;
  at.totals.served += size;
  at.totals.busy_s += seconds_of(batch.at - now);
  ends_.push(std::move(batch));
}

void Stations::start_batches(Ticks now) {
  for (std::size_t i = 0; i < stations_.size(); ++i) {
    Station& station = stations_[i];
    while (!station.queue.empty() && (station.options.servers == 0 || station.busy < station.options.servers)) {
      start_batch(i, now);
    }
  }
}

void Stations::end_batch(Ticks now) {
  const Batch batch = ends_.top();
  ends_.pop();
  Station& station = stations_[batch.station];
  --station.busy;
  for (const std::int64_t request : batch.requests) {
    count(station, -1, now);
    const auto i = static_cast<std::size_t>(request);
    station.totals.times[i] = now - station.entered[i];
    if (station.next == stations_.size()) {
      left_.push_back({request, station.options.place});
    } else {
      enter(station.next, request, now);
    }
  }
}

const std::vector<Stations::Left>& Stations::advance(Ticks now) {
  left_.clear();
  while (next() == now) {  // again where batches take no time
    while (next() == now) { end_batch(now); }
    start(now);
  }
  return left_;
}

std::vector<StationTotals> Stations::totals() const {
  std::vector<StationTotals> list;
  for (const Station& station : stations_) { list.push_back(station.totals); }
  return list;
}

}  // namespace orrery::serving
