// Summary of predictions against measurements.
#pragma once

#include <string>
#include <vector>

#include "orrery/results/validation.hpp"

namespace orrery::validate {

// With e_i = (predicted - measured) / measured over the n rows that have both:
//   mape = mean |e_i|      bias = mean e_i      max_ape = largest |e_i|
//   median_ape: the middle |e_i|, the mean of the two middle ones for even n
//   p90_ape: nearest rank, the ceil(0.9 n)-th smallest |e_i|
// All are 0 without such rows. `infeasible` counts predicted rows that memory says do not fit. The predictions' order
// does not matter except for the rounding of sums, which are taken in it.
[[nodiscard]] results::FamilyScore score(std::string kind, std::string family,
                                         const std::vector<const results::Prediction*>& predictions);

// Scores of serving tables, whose rows state a group. Throughput counts where Little's law holds in the measurement.
[[nodiscard]] std::vector<results::ServingScore> serving_scores(const std::vector<results::Prediction>& predictions);

}  // namespace orrery::validate
