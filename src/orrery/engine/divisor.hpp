// Division of 32-bit numbers by a number that is known beforehand, without the instruction for division. Source: D.
// Lemire, O. Kaser, N. Kurz, "Faster remainder by direct computation", Software: Practice and Experience 49 (2019),
// section 3: exact for all 32-bit numbers.
#pragma once

#include <cstdint>
#include <limits>

namespace orrery::engine {

class Divisor {
 public:
  Divisor() = default;  // 1
  explicit Divisor(std::uint32_t divisor)
      : divisor_(divisor), inverse_(std::numeric_limits<std::uint64_t>::max() / divisor + 1) {}

  [[nodiscard]] std::uint32_t value() const { return divisor_; }
  [[nodiscard]] std::uint32_t quotient(std::uint32_t number) const {
    __extension__ using Wide = unsigned __int128;
    return divisor_ == 1 ? number : static_cast<std::uint32_t>((Wide{inverse_} * number) >> 64U);
  }
  [[nodiscard]] std::uint32_t remainder(std::uint32_t number) const { return number - quotient(number) * divisor_; }

 private:
  std::uint32_t divisor_ = 1;
  std::uint64_t inverse_ = 0;  // of 1 it is 2^64, which does not fit
};

}  // namespace orrery::engine
