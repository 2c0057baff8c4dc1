// Points of the unit cube for samplers.
//
// Latin hypercube: of n points, each axis has one in every n-th part, in a random order (McKay, Beckman, Conover 1979).
// Sobol: the sequence of Joe and Kuo (SIAM J. Sci. Comput. 30, 2008) with their first primitive polynomials and
// direction numbers, for at most 10 axes; without a random shift for seed 0, else with a digital shift.
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::study {

inline constexpr std::size_t kMostSobolAxes = 10;

class LatinHypercube {
 public:
  LatinHypercube(std::size_t axes, std::int64_t points, std::uint64_t seed);
  // Coordinates of point `index`, each from 0 to 1.
  [[nodiscard]] std::vector<double> at(std::int64_t index) const;

 private:
  std::int64_t points_;
  std::vector<std::vector<std::int32_t>> order_;  // [axis][point]
  std::uint64_t seed_;
};

class Sobol {
 public:
  Sobol(std::size_t axes, std::uint64_t seed);
  [[nodiscard]] std::vector<double> at(std::int64_t index) const;

 private:
  std::vector<std::vector<std::uint32_t>> directions_;  // [axis][bit]
  std::vector<std::uint32_t> shift_;
};

}  // namespace orrery::study
