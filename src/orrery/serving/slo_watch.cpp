#include "orrery/serving/slo_watch.hpp"

#include "orrery/serving/request_times.hpp"

namespace orrery::serving {

SloWatch::SloWatch(const std::vector<results::ServiceLevel>& slo, const Workload& load, double warm_up,
                   double overhead_s)
    : load_(load), overhead_s_(overhead_s) {
  const std::size_t skipped = warm_up_requests(load.requests.size(), warm_up);
  if (skipped > 0 && !load.following.empty()) { return; }  // which turns arrive first is known at the end
  skipped_ = static_cast<std::int64_t>(skipped);
  std::size_t all = load.requests.size() - skipped, with_tpot = 0;
  for (std::size_t i = skipped; i < load.requests.size(); ++i) { with_tpot += load.requests[i].output > 1 ? 1 : 0; }
  for (const auto& one : slo) {
    const std::size_t count = one.metric == "tpot" ? with_tpot : all;
    if (count == 0) { continue; }
    Level level;
    level.metric = one.metric;
    level.limit = one.limit_s;
    level.is_mean = one.measure == "mean";
    // Above the rounding of a sum in another order.
    constexpr double kRounding = 1.0 + 1e-9;
    level.most = kRounding * level.limit * static_cast<double>(count);
    if (!level.is_mean) {
      level.allowed = static_cast<std::int64_t>(count) - 1 - nearest_rank(count, part_within(one.measure));
    }
    levels_.push_back(level);
  }
}

bool SloWatch::is_missed_with(std::int64_t request, const Outcome& outcome) {
  if (request < skipped_) { return false; }
  const Request& r = load_.requests[static_cast<std::size_t>(request)];
  const RequestTimes times = times_of(r, outcome, r, outcome, overhead_s_);
  bool missed = false;
  for (Level& level : levels_) {
    if (level.metric == "tpot" && r.output <= 1) { continue; }
    const double time = times.of(level.metric);
    if (level.is_mean) {
      level.sum += time;
      missed = missed || level.sum > level.most;
    } else {
      level.above += time > level.limit ? 1 : 0;
      missed = missed || level.above > level.allowed;
    }
  }
  return missed;
}

}  // namespace orrery::serving
