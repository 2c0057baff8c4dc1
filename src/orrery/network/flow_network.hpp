// Flows in time on shared links: bytes that move at max-min fair rates (fair_rates.hpp). Rates change only when flows
// start or end, or a bandwidth changes; all changes of one instant are one update.
//
// Times are seconds. Events that differ by less than kInstant of the time are of one instant; each flow still ends at
// its own time. Left out: packets, queues, congestion control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "orrery/network/fair_rates.hpp"

namespace orrery::network {

inline constexpr double kInstant = 1e-12;  // relative

// Flows by the time of their end: a heap while few ends change at once, a plain list after many have.
class FlowEnds {
 public:
  void set(std::uint32_t flow, double end);  // a new flow or a new end
  void remove(std::uint32_t flow);
  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] double first();
  // The ends are about to change for so many flows.
  void expect_changes(std::size_t flows) { is_heap_ = is_heap_ && flows * kMany < ends_.size(); }
  // Removes the flows that end until `time`, and appends them to `ended`.
  void take(double time, std::vector<std::pair<std::uint32_t, double>>& ended);

 private:
  struct End {
    double time = 0;
    std::uint32_t flow = 0;
  };
  static constexpr std::size_t kMany = 8;  // changes of more than an eighth of the ends: a list is cheaper
  static constexpr std::size_t kArity = 4;

  void place(std::size_t i, const End& end);
  void rise(std::size_t i);
  void sink(std::size_t i);
  void remove_at(std::size_t i);
  void make_heap();

  std::vector<End> ends_;
  std::vector<std::uint32_t> places_;  // by flow
  bool is_heap_ = false;
  double first_ = 0;       // of a list
  bool is_known_ = false;  // first_
};

class FlowNetwork {
 public:
  using Ended = std::pair<std::uint32_t, double>;  // flow, time

  explicit FlowNetwork(std::vector<double> bandwidths, FairRates::Method method = FairRates::Method::automatic)
      : rates_(std::move(bandwidths), method) {}

  // Starts at `now`, which is not before the last end. The route is not empty. Numbers of ended flows are used again.
  [[nodiscard]] std::uint32_t start(double now, double bytes, std::span<const std::uint32_t> route, double weight = 1);
  void set_bandwidth(std::uint32_t link, double bandwidth) { rates_.set_bandwidth(link, bandwidth); }
  // After all starts and ends of an instant. In debug builds the rates are checked with their certificate.
  void settle(double now);

  [[nodiscard]] bool empty() const { return ends_.empty(); }
  [[nodiscard]] double next_end() { return ends_.first(); }
  // The flows that end until `time`, in no particular order; they are removed.
  [[nodiscard]] const std::vector<Ended>& take_ended(double time);

  [[nodiscard]] const FairRates& rates() const { return rates_; }
  [[nodiscard]] std::uint64_t updates() const { return updates_; }

 private:
  struct Flow {
    double left = 0;  // bytes at `since`
    double since = 0;
    double rate = 0;
  };

  FairRates rates_;
  FlowEnds ends_;
  std::vector<Flow> flows_;
  std::vector<Ended> ended_;
  std::vector<std::uint32_t> changed_;
  std::uint64_t updates_ = 0;
};

}  // namespace orrery::network
