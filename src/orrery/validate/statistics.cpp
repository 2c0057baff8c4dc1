#include "orrery/validate/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace orrery::validate {

namespace {

double median(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

// In whole numbers, since 0.9 n is not exact.
double ninetieth(const std::vector<double>& sorted) { return sorted[(9 * sorted.size() + 9) / 10 - 1]; }

}  // namespace

results::FamilyScore score(std::string kind, std::string family,
                           const std::vector<const results::Prediction*>& predictions) {
  results::FamilyScore out;
  out.kind = std::move(kind);
  out.family = std::move(family);
  std::vector<double> errors;
  double sum = 0.0, signed_sum = 0.0;
  for (const auto* prediction : predictions) {
    ++out.rows;
    ++(prediction->predicted_s ? out.predicted : out.skipped);
    if (prediction->predicted_s && !prediction->feasible) { ++out.infeasible; }
    if (const auto error = prediction->signed_error()) {
      errors.push_back(std::abs(*error));
      sum += errors.back();
      signed_sum += *error;
      if (prediction->p10_s && prediction->p90_s) {
        ++out.ranged;
        out.width += (*prediction->p90_s - *prediction->p10_s) / *prediction->predicted_s;
        if (*prediction->p10_s <= *prediction->measured_s && *prediction->measured_s <= *prediction->p90_s) {
          ++out.covered;
        }
      }
    }
  }
  out.scored = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) { return out; }
  if (out.ranged > 0) { out.width /= static_cast<double>(out.ranged); }
  std::sort(errors.begin(), errors.end());
  out.mape = sum / static_cast<double>(errors.size());
  out.bias = signed_sum / static_cast<double>(errors.size());
  out.median_ape = median(errors);
  out.p90_ape = ninetieth(errors);
  out.max_ape = errors.back();
  return out;
}

}  // namespace orrery::validate
