// The result of a list of flows on a network of links: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery::results {

struct FlowTime {
  std::uint64_t id = 0;
  double start_s = 0;  // as given
  double bytes = 0;
  double finish_s = 0;
};

struct LinkLoad {
  std::uint64_t id = 0;
  std::string name;
  double bandwidth_Bps = 0;
  double carried_B = 0;
};

struct FlowTimes {
  std::string name;  // of the case
  std::vector<FlowTime> flows;
  std::vector<LinkLoad> links;
  std::uint64_t updates = 0;            // of the rates
  std::uint64_t full = 0, repairs = 0;  // by method
  double wall_s = 0;                    // set by the caller
  std::uint64_t peak_rss_B = 0;         // set by the caller

  [[nodiscard]] double makespan_s() const {
    double last = 0;
    for (const FlowTime& flow : flows) { last = std::max(last, flow.finish_s); }
    return last;
  }
};

}  // namespace orrery::results
