// Seeded random numbers, the same on every machine: nothing here depends on the standard library.
//
// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014): a counter that grows by
// an odd constant, with its bits mixed. Good enough to sample a space; not for cryptography.
#pragma once

#include <cmath>
#include <cstdint>

#include "orrery/core/error.hpp"

namespace orrery {

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31U);
  }

  // Uniform over 0 .. count - 1. `count` is at least 1.
  std::int64_t below(std::int64_t count) {
    ORRERY_ASSERT(count >= 1);
    const auto whole = static_cast<std::uint64_t>(count);
    const std::uint64_t rejected = (0 - whole) % whole;  // 2^64 modulo count: values below it would bias the result
    std::uint64_t value = bits();
    while (value < rejected) { value = bits(); }
    return static_cast<std::int64_t>(value % whole);
  }

 private:
  std::uint64_t state_;
};

// Uniform in [0, 1), 53 bits.
[[nodiscard]] inline double uniform(RandomStream& random) {
  return static_cast<double>(random.bits() >> 11U) * 0x1p-53;
}

// Exponential with this rate (> 0).
[[nodiscard]] inline double exponential(RandomStream& random, double rate) {
  return -std::log1p(-uniform(random)) / rate;
}

// A Poisson count, by its exponential waiting times: the cost grows with the mean.
[[nodiscard]] inline std::int64_t poisson(RandomStream& random, double mean) {
  std::int64_t count = -1;
  for (double at = 0.0; at <= mean; at += exponential(random, 1.0)) { ++count; }
  return count;
}

// The stream of one of many repetitions of a random experiment.
[[nodiscard]] inline RandomStream stream_of(std::uint64_t seed, std::uint64_t repetition) {
  return RandomStream(RandomStream(seed).bits() ^ RandomStream(~repetition).bits());
}

}  // namespace orrery
