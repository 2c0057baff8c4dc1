// A second tier of memory that kernels use in place, as memory attached by CXL is (memory expansion): which tensors are
// there, and how fast kernels are then.
//
//   serial    time of a kernel's traffic = (1 - f) t1 + f t2      its data are read one tier after the other
//   parallel                             = max((1 - f) t1, f t2)  ... both tiers at the same time
//
// t1, t2: time of all its traffic in the first and in the second tier, seconds; f: the part that goes to the second
// one, bytes / bytes: of its tensors, each with the part of its class that is there. The serial form with one f for all
// kernels is what papers on CXL expansion use as the bandwidth of hybrid memory; the parallel form is that of GenZ.
//
// Left out: copies between the tiers, caching, latency, contention of devices for a pool (give each device its share).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "orrery/core/units.hpp"

namespace orrery::hardware {

// Classes of tensors in a device's memory. Activations include working buffers; tables are the weights of a
// recommender's embedding tables, which are not among weights. Their state and gradients are optimizer and gradients.
enum class TensorClass : std::uint8_t { weights, gradients, optimizer, activations, kv_cache, tables };
inline constexpr std::size_t kTensorClasses = 6;

template <class T>
struct ByClass {
  std::array<T, kTensorClasses> values{};

  [[nodiscard]] T& operator[](TensorClass tensors) { return values[static_cast<std::size_t>(tensors)]; }
  [[nodiscard]] const T& operator[](TensorClass tensors) const { return values[static_cast<std::size_t>(tensors)]; }
  friend bool operator==(const ByClass&, const ByClass&) = default;
};

enum class ExpansionRule : std::uint8_t { serial, parallel };

struct TierUse {
  ExpansionRule rule = ExpansionRule::serial;
  BytesPerSecond rate;     // that kernels reach; 0: no second tier is used in place
  ByClass<double> shares;  // of each class, the part that is in the second tier, 0 to 1

  [[nodiscard]] bool is_used() const { return rate > BytesPerSecond(0); }
};

// Time of traffic of which the part `part` goes to the second tier: `first` and `second` are its times if all of it
// goes to one tier.
[[nodiscard]] inline double two_tier_time(ExpansionRule rule, double part, double first, double second) {
  const double near = (1.0 - part) * first, far = part * second;
  return rule == ExpansionRule::serial ? near + far : std::max(near, far);
}

}  // namespace orrery::hardware
