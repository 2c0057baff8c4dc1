// A bandwidth, and what bytes take at it in whole picoseconds, rounded up. Private to the room.
#pragma once

#include <array>
#include <cstdint>

#include "orrery/simulate/phase.hpp"

namespace orrery::simulate {

inline constexpr std::uint64_t kPicosecondsPerNs = 1000;
inline constexpr std::uint64_t kMostTime = std::uint64_t{1} << 62;  // picoseconds: 53 days

// Integer arithmetic to the last bit, so that the same bytes take the same time on any machine.
class Rate {
 public:
  Rate() = default;
  // `parts`: each byte is moved so many times.
  explicit Rate(std::uint64_t bytes_per_second, std::uint64_t parts = 1)
      : bytes_per_second_(bytes_per_second == 0 ? 1 : bytes_per_second), parts_(parts) {}

  // Throws TooLong where the clock cannot hold it.
  [[nodiscard]] std::uint64_t picoseconds(std::uint64_t bytes) {
    Known& known = known_[(bytes * 0x9E3779B97F4A7C15U) >> 61U];
    if (bytes != known.bytes) { known = {bytes, divided(bytes)}; }
    return known.time;
  }

  [[nodiscard]] std::uint64_t bytes_per_second() const { return bytes_per_second_; }

 private:
  [[nodiscard]] std::uint64_t divided(std::uint64_t bytes) const {
    __extension__ using Wide = unsigned __int128;
    constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;
    constexpr Wide kMost = Wide{1} << 61;  // a few of these fit into the clock
    const Wide whole = Wide{bytes} * parts_ * kPicosecondsPerSecond;
    const Wide time = (whole + bytes_per_second_ - 1) / bytes_per_second_;
    if (time > kMost) { throw TooLong{}; }
    return static_cast<std::uint64_t>(time);
  }

  std::uint64_t bytes_per_second_ = 1;
  std::uint64_t parts_ = 1;
  struct Known {
    std::uint64_t bytes = 0, time = 0;
  };
  std::array<Known, 8> known_;  // messages of a run have few lengths
};

// To the next whole byte per second.
[[nodiscard]] inline Rate rate_of(double bytes_per_second, std::uint64_t parts = 1) {
  constexpr double kMost = 1e18;
  return Rate(static_cast<std::uint64_t>(bytes_per_second < kMost ? bytes_per_second + 0.5 : kMost), parts);
}

}  // namespace orrery::simulate
