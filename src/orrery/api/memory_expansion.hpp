// Memory expansion: what does not fit in device memory is in a second tier and used in place, as memory attached by CXL
// is. Nothing is copied ahead of its use, so kernels are as fast as both memories together.
//
//   serial    1 / rate = (1 - f) / first + f / second         data of the two tiers are read one after the other
//   parallel  1 / rate = max((1 - f) / first, f / second)     ... at the same time
//
// f: the part of a kernel's traffic that goes to the second tier; first, second: rates of the tiers, bytes/s (the first
// one what kernels reach, memory_bandwidth x memory_efficiency; the second one as its description states it). The
// serial form with f = the part of the footprint in the second tier is what papers on CXL expansion use as the
// bandwidth of hybrid memory; the parallel form is that of GenZ. Two splits are compared and the faster one is taken:
//
//   uniform          all data have the same part in the second tier
//   optimizer first  optimizer state, which is used once per step, fills the second tier first; the rest is uniform
//
// Left out: moving data between tiers, caching, contention of devices for a pool (give each device its share), latency.
// The optimizer's other traffic (weights, gradients) is charged at the rate of its state.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/study/study.hpp"

namespace orrery::api {

// The rate of traffic of which `part` goes to the second tier.
[[nodiscard]] BytesPerSecond hybrid_rate(BytesPerSecond first, BytesPerSecond second, double part,
                                         study::ExpansionRule rule);

// The same machine with both tiers as device memory, at the rate of the first.
[[nodiscard]] hardware::Cluster with_both_tiers(const hardware::Cluster& cluster, double reserve);

struct Expanded {
  results::Estimate estimate;  // memory: what is in the first tier, and `offloaded` in the second
  std::string note;            // "expansion serial, optimizer first: 120 GiB in the second tier"; empty: it is not used
};

// `roomy`: the estimate with both tiers; `priced`: the same plan with another rate of memory.
[[nodiscard]] Expanded expanded(const results::Estimate& roomy, const hardware::Cluster& cluster, Bytes capacity,
                                study::ExpansionRule rule,
                                const std::function<results::Estimate(BytesPerSecond memory_bandwidth)>& priced);

}  // namespace orrery::api
