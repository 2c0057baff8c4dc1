#include "orrery/serving/station.hpp"

#include <algorithm>

namespace orrery::serving {

Stations::Stations(const std::vector<StationOptions>& options, std::size_t requests) {
  for (const StationOptions& one : options) {
    Station station;
    station.options = one;
    station.entered.resize(requests);
    station.totals.waits.resize(requests);
    station.totals.times.resize(requests);
    stations_.push_back(std::move(station));
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
  Batch batch{now + at.options.time_of(size), started_++, station, {}};
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t request = at.queue.front();
    at.queue.pop_front();
    at.totals.waits[static_cast<std::size_t>(request)] = now - at.entered[static_cast<std::size_t>(request)];
    batch.requests.push_back(request);
  }
  ++at.busy;
  ++at.totals.batches;
  at.totals.served += size;
  at.totals.busy_s += seconds_of(batch.at - now);
  ends_.push(std::move(batch));
}

void Stations::start(Ticks now) {
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
    if (batch.station + 1 == stations_.size()) {
      left_.push_back(request);
    } else {
      enter(batch.station + 1, request, now);
    }
  }
}

const std::vector<std::int64_t>& Stations::advance(Ticks now) {
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
