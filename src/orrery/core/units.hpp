// Strong unit types. A quantity is a double in SI base units whose dimension is part of its type: adding bytes to
// seconds, or passing a bandwidth for a time, does not compile.
//
//   Bytes / BytesPerSecond -> Seconds        Flops / FlopsPerSecond -> Seconds        Bytes / Bytes -> double
//
// Left out: scaled types (there is no "gigabytes" type; literals and the text format scale) and integers (a double
// counts bytes exactly up to 9 PB; sharded sizes are fractions).
#pragma once

#include <cmath>
#include <limits>

namespace orrery {

// Dimension exponents: B bytes, S seconds, F floating-point operations.
template <int B, int S, int F>
class Quantity {
 public:
  constexpr Quantity() = default;
  explicit constexpr Quantity(double base) : base_(base) {}

  // The number in SI base units.
  [[nodiscard]] constexpr double value() const { return base_; }

  constexpr Quantity& operator+=(Quantity other) {
    base_ += other.base_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    base_ -= other.base_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    base_ *= factor;
    return *this;
  }
  constexpr Quantity& operator/=(double factor) {
    base_ /= factor;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.base_ + b.base_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.base_ - b.base_); }
  friend constexpr Quantity operator-(Quantity a) { return Quantity(-a.base_); }
  friend constexpr Quantity operator*(Quantity a, double k) { return Quantity(a.base_ * k); }
  friend constexpr Quantity operator*(double k, Quantity a) { return Quantity(k * a.base_); }
  friend constexpr Quantity operator/(Quantity a, double k) { return Quantity(a.base_ / k); }

  // Written by hand: a defaulted <=> on a double costs a branch in g++ 12.
  friend constexpr bool operator==(Quantity a, Quantity b) { return a.base_ == b.base_; }
  friend constexpr bool operator!=(Quantity a, Quantity b) { return a.base_ != b.base_; }
  friend constexpr bool operator<(Quantity a, Quantity b) { return a.base_ < b.base_; }
  friend constexpr bool operator<=(Quantity a, Quantity b) { return a.base_ <= b.base_; }
  friend constexpr bool operator>(Quantity a, Quantity b) { return a.base_ > b.base_; }
  friend constexpr bool operator>=(Quantity a, Quantity b) { return a.base_ >= b.base_; }

 private:
  double base_ = 0.0;
};

template <int B1, int S1, int F1, int B2, int S2, int F2>
[[nodiscard]] constexpr auto operator*(Quantity<B1, S1, F1> a, Quantity<B2, S2, F2> b) {
  if constexpr (B1 + B2 == 0 && S1 + S2 == 0 && F1 + F2 == 0) {
    return a.value() * b.value();
  } else {
    return Quantity<B1 + B2, S1 + S2, F1 + F2>(a.value() * b.value());
  }
}

template <int B1, int S1, int F1, int B2, int S2, int F2>
[[nodiscard]] constexpr auto operator/(Quantity<B1, S1, F1> a, Quantity<B2, S2, F2> b) {
  if constexpr (B1 == B2 && S1 == S2 && F1 == F2) {
    return a.value() / b.value();
  } else {
    return Quantity<B1 - B2, S1 - S2, F1 - F2>(a.value() / b.value());
  }
}

template <int B, int S, int F>
[[nodiscard]] constexpr Quantity<B, S, F> max(Quantity<B, S, F> a, Quantity<B, S, F> b) {
  return a < b ? b : a;
}

template <int B, int S, int F>
[[nodiscard]] constexpr Quantity<B, S, F> min(Quantity<B, S, F> a, Quantity<B, S, F> b) {
  return b < a ? b : a;
}

template <int B, int S, int F>
[[nodiscard]] inline bool is_finite(Quantity<B, S, F> q) {
  return std::isfinite(q.value());
}

using Bytes = Quantity<1, 0, 0>;
using Seconds = Quantity<0, 1, 0>;
using Flops = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, -1, 0>;
using FlopsPerSecond = Quantity<0, -1, 1>;
using Hertz = Quantity<0, -1, 0>;

template <class Q>
[[nodiscard]] constexpr Q infinite() {
  return Q(std::numeric_limits<double>::infinity());
}

inline namespace literals {
// NOLINTBEGIN(google-runtime-int)
constexpr Bytes operator""_B(long double v) { return Bytes(static_cast<double>(v)); }
constexpr Bytes operator""_B(unsigned long long v) { return Bytes(static_cast<double>(v)); }
constexpr Bytes operator""_KiB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1024.0); }
constexpr Bytes operator""_MiB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1048576.0); }
constexpr Bytes operator""_GiB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1073741824.0); }
constexpr Bytes operator""_GB(unsigned long long v) { return Bytes(static_cast<double>(v) * 1e9); }
constexpr Seconds operator""_s(long double v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_s(unsigned long long v) { return Seconds(static_cast<double>(v)); }
constexpr Seconds operator""_ms(long double v) { return Seconds(static_cast<double>(v) * 1e-3); }
constexpr Seconds operator""_ms(unsigned long long v) { return Seconds(static_cast<double>(v) * 1e-3); }
constexpr Seconds operator""_us(long double v) { return Seconds(static_cast<double>(v) * 1e-6); }
constexpr Seconds operator""_us(unsigned long long v) { return Seconds(static_cast<double>(v) * 1e-6); }
constexpr Flops operator""_flop(unsigned long long v) { return Flops(static_cast<double>(v)); }
constexpr FlopsPerSecond operator""_TFLOPps(long double v) { return FlopsPerSecond(static_cast<double>(v) * 1e12); }
constexpr FlopsPerSecond operator""_TFLOPps(unsigned long long v) {
  return FlopsPerSecond(static_cast<double>(v) * 1e12);
}
constexpr BytesPerSecond operator""_GBps(long double v) { return BytesPerSecond(static_cast<double>(v) * 1e9); }
constexpr BytesPerSecond operator""_GBps(unsigned long long v) { return BytesPerSecond(static_cast<double>(v) * 1e9); }
constexpr BytesPerSecond operator""_Gbps(unsigned long long v) {
  return BytesPerSecond(static_cast<double>(v) * 1e9 / 8.0);
}
// NOLINTEND(google-runtime-int)
}  // namespace literals

}  // namespace orrery
