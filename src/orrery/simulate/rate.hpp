// A bandwidth, and the time of bytes at it in whole picoseconds, rounded up. Private to the room.
#pragma once

#include <array>
#include <cstdint>

#include "orrery/simulate/phase.hpp"

namespace orrery::simulate {

inline constexpr std::uint64_t kPicosecondsPerNs = 1000;
inline constexpr std::uint64_t kMostTime = std::uint64_t{1} << 62;  // picoseconds: 53 days

// Integer arithmetic, so that the same bytes take exactly the same time on any machine.
class Rate {
 public:
  Rate() = default;
  // `passes`: the number of times that each byte is moved.
  explicit Rate(std::uint64_t bytes_per_second, std::uint64_t passes = 1)
      : bytes_per_second_(bytes_per_second == 0 ? 1 : bytes_per_second), passes_(passes) {}

  // Throws TooLong if the clock cannot represent the time.
  [[nodiscard]] std::uint64_t picoseconds(std::uint64_t bytes) {
    CachedTime& cached = cache_[(bytes * 0x9E3779B97F4A7C15U) >> 61U];
    if (bytes != cached.bytes) { cached = {bytes, computed(bytes)}; }
    return cached.time;
  }

  [[nodiscard]] std::uint64_t bytes_per_second() const { return bytes_per_second_; }

 private:
  [[nodiscard]] std::uint64_t computed(std::uint64_t bytes) const {
    __extension__ using Wide = unsigned __int128;
    constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;
    constexpr Wide kMost = Wide{1} << 61;  // a few of these fit into the clock
    const Wide whole = Wide{bytes} * passes_ * kPicosecondsPerSecond;
    const Wide time = (whole + bytes_per_second_ - 1) / bytes_per_second_;
    if (time > kMost) { throw TooLong{}; }
    return static_cast<std::uint64_t>(time);
  }

  std::uint64_t bytes_per_second_ = 1;
  std::uint64_t passes_ = 1;
  struct CachedTime {
    std::uint64_t bytes = 0, time = 0;
  };
  std::array<CachedTime, 8> cache_;  // messages of a run have few sizes
};

// To the next whole byte per second.
[[nodiscard]] inline Rate rate_of(double bytes_per_second, std::uint64_t passes = 1) {
  constexpr double kMost = 1e18;
  return Rate(static_cast<std::uint64_t>(bytes_per_second < kMost ? bytes_per_second + 0.5 : kMost), passes);
}

}  // namespace orrery::simulate
