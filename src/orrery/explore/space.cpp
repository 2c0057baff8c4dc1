#include "orrery/explore/space.hpp"

#include <algorithm>

namespace orrery::explore {

using parallel::Plan;
using parallel::Recompute;
using parallel::ScheduleKind;

namespace {

constexpr std::int64_t kMostChunks = 8;
constexpr std::int64_t kLargestMicroBatch = 16;

std::vector<std::int64_t> divisors(std::int64_t whole, std::int64_t most) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= whole; ++d) {
    if (whole % d != 0) { continue; }
    small.push_back(d);
    if (d != whole / d) { large.push_back(whole / d); }
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  std::erase_if(small, [&](std::int64_t d) { return d > most; });
  return small;
}

template <class T>
std::vector<T> axis(const std::optional<T>& fixed, std::vector<T> values) {
  return fixed ? std::vector<T>{*fixed} : values;
}

class Enumeration {
 public:
  Enumeration(const workload::Model& model, const parallel::Job& job, const hardware::Cluster& cluster,
              const Fixed& fixed, bool dp_overlap)
      : model_(model), job_(job), cluster_(cluster), fixed_(fixed) {
    plan_.dp_overlap = fixed.dp_overlap.value_or(dp_overlap);
  }

  std::vector<Plan> run() {
    const std::int64_t widest = 2 * cluster_.node_size();
    for (const std::int64_t tp : axis(fixed_.tp, divisors(cluster_.devices, widest))) {
      plan_.tp = tp;
      if (tp < 1 || model_.heads % tp != 0 || cluster_.devices % tp != 0) { continue; }
      over_stages();
    }
    return std::move(plans_);
  }

 private:
  void over_stages() {
    for (const std::int64_t pp : axis(fixed_.pp, divisors(cluster_.devices / plan_.tp, model_.layers))) {
      if (pp < 1 || pp > cluster_.devices / plan_.tp) { continue; }
      plan_.pp = pp;
      plan_.dp = cluster_.devices / (plan_.tp * pp);
      const bool wanted = !fixed_.dp || *fixed_.dp == plan_.dp;
      if (!wanted || plan_.devices() != cluster_.devices || job_.global_batch % plan_.dp != 0) { continue; }
      over_chunks();
    }
  }

  void over_chunks() {
    const std::int64_t most = plan_.pp > 1 ? std::min(kMostChunks, model_.layers / plan_.pp) : 1;
    std::vector<std::int64_t> chunks;
    for (std::int64_t v = 1; v <= most; ++v) { chunks.push_back(v); }
    for (const std::int64_t vpp : axis(fixed_.vpp, chunks)) {
      plan_.vpp = vpp;
      plan_.schedule = vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
      for (const std::int64_t size :
           axis(fixed_.micro_batch, divisors(job_.global_batch / plan_.dp, kLargestMicroBatch))) {
        plan_.micro_batch = size;
        over_choices();
      }
    }
  }

  void over_choices() {
    const auto sequence = plan_.tp > 1 ? std::vector<bool>{false, true} : std::vector<bool>{false};
    const auto zero = plan_.dp > 1 ? std::vector<int>{0, 1, 2, 3} : std::vector<int>{0};
    for (const bool split : axis(fixed_.sequence_parallel, sequence)) {
      plan_.sequence_parallel = split;
      for (const auto recompute : axis(fixed_.recompute, {Recompute::none, Recompute::selective, Recompute::full})) {
        plan_.recompute = recompute;
        for (const int stage : axis(fixed_.zero, zero)) {
          plan_.zero = stage;
          if (parallel::is_valid(model_, job_, plan_, cluster_.devices)) { plans_.push_back(plan_); }
        }
      }
    }
  }

  const workload::Model& model_;
  const parallel::Job& job_;
  const hardware::Cluster& cluster_;
  const Fixed& fixed_;
  Plan plan_;
  std::vector<Plan> plans_;
};

}  // namespace

std::vector<Plan> enumerate(const workload::Model& model, const parallel::Job& job, const hardware::Cluster& cluster,
                            const Fixed& fixed, bool dp_overlap) {
  return Enumeration(model, job, cluster, fixed, dp_overlap).run();
}

}  // namespace orrery::explore
