// Failure rates fitted to a list of incidents. Rates are per 1,000 days of a node of eight accelerators.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orrery::results {

struct FittedRate {
  std::string cause;  // "all"
  std::int64_t count = 0;
  double rate = 0, low80 = 0, high80 = 0, low95 = 0, high95 = 0;
};

struct ToTell {
  double other_rate = 0;
  double incidents = 0;  // of the lower rate
  bool told = false;     // the 95 % interval excludes the other rate already
};

struct IncidentFit {
  double devices = 0, node_days = 0, days = 0;
  FittedRate all;
  std::vector<FittedRate> causes;  // the most frequent first
  double mean_hours_between = 0;
  std::optional<double> variation;  // of times between incidents; 1: a Poisson stream
  double first_half_rate = 0, second_half_rate = 0;
  double halves_p = 1;  // of a difference as large by chance
  std::optional<double> mean_downtime_s;
  std::vector<ToTell> to_tell;
};

}  // namespace orrery::results
