#include "orrery/study/sampling.hpp"

#include <array>
#include <numeric>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/core/random.hpp"

namespace orrery::study {

LatinHypercube::LatinHypercube(std::size_t axes, std::int64_t points, std::uint64_t seed)
    : points_(points), seed_(seed) {
  for (std::size_t axis = 0; axis < axes; ++axis) {
    RandomStream random(seed * 1'000'003U + axis);
    std::vector<std::int32_t> order(static_cast<std::size_t>(points));
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
    }
    order_.push_back(std::move(order));
  }
}

std::vector<double> LatinHypercube::at(std::int64_t index) const {
  std::vector<double> point;
  RandomStream random = stream_of(seed_, static_cast<std::uint64_t>(index));
  for (const auto& order : order_) {
    const double inside = static_cast<double>(random.bits() >> 11U) * 0x1p-53;
    point.push_back((order[static_cast<std::size_t>(index)] + inside) / static_cast<double>(points_));
  }
  return point;
}

namespace {

struct Polynomial {
  unsigned degree, coefficients;
  std::array<std::uint32_t, 5> first;
};
// Joe and Kuo, dimensions 2 to 10 of new-joe-kuo-6.21201.
constexpr std::array<Polynomial, kMostSobolAxes - 1> kPolynomials{{{1, 0, {1}},
                                                                   {2, 1, {1, 3}},
                                                                   {3, 1, {1, 3, 1}},
                                                                   {3, 2, {1, 1, 1}},
                                                                   {4, 1, {1, 1, 3, 3}},
                                                                   {4, 4, {1, 3, 5, 13}},
                                                                   {5, 2, {1, 1, 5, 5, 17}},
                                                                   {5, 4, {1, 1, 5, 5, 5}},
                                                                   {5, 7, {1, 1, 7, 11, 19}}}};
constexpr unsigned kBits = 32;

std::vector<std::uint32_t> directions_of(std::size_t axis) {
  std::vector<std::uint32_t> v(kBits);
  if (axis == 0) {
    for (unsigned i = 0; i < kBits; ++i) { v[i] = 1U << (kBits - 1 - i); }
    return v;
  }
  const Polynomial& p = kPolynomials[axis - 1];
  for (unsigned i = 0; i < p.degree; ++i) { v[i] = p.first[i] << (kBits - 1 - i); }
  for (unsigned i = p.degree; i < kBits; ++i) {
    v[i] = v[i - p.degree] ^ (v[i - p.degree] >> p.degree);
    for (unsigned k = 1; k < p.degree; ++k) {
      if (((p.coefficients >> (p.degree - 1 - k)) & 1U) != 0) { v[i] ^= v[i - k]; }
    }
  }
  return v;
}

}  // namespace

Sobol::Sobol(std::size_t axes, std::uint64_t seed) {
  ORRERY_ASSERT(axes <= kMostSobolAxes);
  RandomStream random(seed);
  for (std::size_t axis = 0; axis < axes; ++axis) {
    directions_.push_back(directions_of(axis));
    shift_.push_back(seed == 0 ? 0 : static_cast<std::uint32_t>(random.bits() >> 32U));
  }
}

std::vector<double> Sobol::at(std::int64_t index) const {
  const auto gray = static_cast<std::uint64_t>(index) ^ (static_cast<std::uint64_t>(index) >> 1U);
  std::vector<double> point;
  for (std::size_t axis = 0; axis < directions_.size(); ++axis) {
    std::uint32_t bits = shift_[axis];
    for (unsigned bit = 0; bit < kBits; ++bit) {
      if (((gray >> bit) & 1U) != 0) { bits ^= directions_[axis][bit]; }
    }
    point.push_back(static_cast<double>(bits) * 0x1p-32);
  }
  return point;
}

}  // namespace orrery::study
