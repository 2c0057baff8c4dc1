#include "orrery/api/memory_expansion.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"

namespace orrery::api {

BytesPerSecond hybrid_rate(BytesPerSecond first, BytesPerSecond second, double part, study::ExpansionRule rule) {
  const double near = (1.0 - part) / first.value();
  const double far = part > 0.0 ? part / second.value() : 0.0;
  return BytesPerSecond(1.0 / (rule == study::ExpansionRule::serial ? near + far : std::max(near, far)));
}

hardware::Cluster with_both_tiers(const hardware::Cluster& cluster, double reserve) {
  hardware::Cluster roomy = cluster;
  roomy.accelerator.memory += cluster.second_tier.memory / (1.0 - reserve);
  return roomy;
}

namespace {

// Parts of the traffic of the optimizer, and of all other kernels, that go to the second tier.
struct Split {
  const char* name;
  double optimizer = 0.0, others = 0.0;
};

// With a longer step: what is per second, and what is per step, follows.
void set_step_time(results::Estimate& estimate, Seconds time) {
  const double slower = time / estimate.step_time;
  estimate.step_time = time;
  estimate.samples_per_s /= slower;
  estimate.tokens_per_s /= slower;
  estimate.mfu /= slower;
  estimate.hfu /= slower;
  if (estimate.cost) { estimate.cost->amount *= slower; }
  if (estimate.energy) { estimate.energy->amount *= slower; }
}

}  // namespace

Expanded expanded(const results::Estimate& roomy, const hardware::Cluster& cluster, Bytes capacity,
                  study::ExpansionRule rule,
                  const std::function<results::Estimate(BytesPerSecond memory_bandwidth)>& priced) {
  const Bytes need = roomy.memory.total();
  Expanded best{roomy, {}};
  best.estimate.memory.capacity = capacity;
  if (need <= capacity) { return best; }
  const Bytes excess = need - capacity;
  const Bytes state = roomy.memory.optimizer;
  const Bytes state_out = min(state, excess);
  const double uniform = excess / need;
  const Split splits[] = {{"uniform", uniform, uniform},
                          {"optimizer first", state > Bytes(0) ? state_out / state : 0.0,
                           need > state ? (excess - state_out) / (need - state) : 0.0}};
  const auto& accelerator = cluster.accelerator;
  const BytesPerSecond first = accelerator.memory_bandwidth * accelerator.memory_efficiency;
  const auto nominal = [&](double part) {
    return hybrid_rate(first, cluster.second_tier.rate(), part, rule) / accelerator.memory_efficiency;
  };
  const char* chosen = nullptr;
  for (const Split& split : splits) {
    results::Estimate one = priced(nominal(split.others));
    if (split.optimizer != split.others) {
      const Seconds update = priced(nominal(split.optimizer)).breakdown.optimizer;
      const Seconds step = one.step_time - one.breakdown.optimizer + update;
      one.breakdown.optimizer = update;
      set_step_time(one, step);
    }
    if (chosen != nullptr && !(one.step_time < best.estimate.step_time)) { continue; }
    best.estimate = std::move(one);
    chosen = split.name;
  }
  results::Memory& memory = best.estimate.memory;
  memory.offloaded = excess;
  memory.capacity = capacity;
  memory.second_tier = cluster.second_tier.memory;
  best.estimate.feasible = excess <= cluster.second_tier.memory;
  best.note =
      fmt::format("expansion {}, {}: {} in the second tier",
                  rule == study::ExpansionRule::serial ? "serial" : "parallel", chosen, config::format_bytes(excess));
  return best;
}

}  // namespace orrery::api
