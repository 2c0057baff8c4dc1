#include "orrery/campaign/spares.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/core/error.hpp"

namespace orrery::campaign {

namespace {

// Larger than any number of nodes in repair that a job of kMaxDevices could have and still run.
constexpr std::size_t kMostInRepair = std::size_t{1} << 22;

std::int64_t missing_nodes(std::size_t in_repair, std::int64_t spares) {
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(in_repair) - spares);
}

// E[throughput(missing nodes)]; counts that are next to impossible are not priced.
template <class Throughput>
double mean_throughput(std::span<const double> distribution, std::int64_t spares, const Throughput& throughput) {
  constexpr double kPossible = 1e-9;
  double mean = 0.0, last = 1.0;
  std::int64_t priced = -1;
  for (std::size_t k = 0; k < distribution.size(); ++k) {
    const std::int64_t missing = missing_nodes(k, spares);
    const bool is_new = missing != priced && (distribution[k] >= kPossible || missing == 0);
    if (is_new) {
      last = throughput(missing);
      priced = missing;
    }
    mean += distribution[k] * last;
  }
  return mean;
}

}  // namespace

std::vector<double> repair_distribution(std::span<const RepairClass> classes) {
  double groups = 0.0;
  for (const auto& one : classes) { groups += one.in_repair; }
  // e^-groups may underflow: the recursion starts at 1 and is normalized at the end, rescaled where it gets large.
  std::vector<double> weights = {1.0};
  double sum = 1.0, peak = 1.0;
  std::int64_t widest = 1, negligible = 0;  // `negligible`: of the last weights, without a gap
  double mean = 0.0;
  for (const auto& one : classes) {
    widest = std::max(widest, one.nodes);
    mean += one.in_repair * static_cast<double>(one.nodes);
  }
  while (weights.size() < kMostInRepair) {
    const auto k = weights.size();
    double next = 0.0;
    for (const auto& one : classes) {
      const auto nodes = static_cast<std::size_t>(one.nodes);
      if (nodes <= k) { next += one.in_repair * static_cast<double>(nodes) * weights[k - nodes]; }
    }
    next /= static_cast<double>(k);
    weights.push_back(next);
    sum += next;
    peak = std::max(peak, next);
    if (sum > 1e250) {
      for (double& weight : weights) { weight *= 1e-250; }
      sum *= 1e-250;
      peak *= 1e-250;
    }
    negligible = next < 1e-17 * sum ? negligible + 1 : 0;
    const bool behind_mean = static_cast<double>(k) > mean + static_cast<double>(widest);
    if (behind_mean && negligible >= widest) { break; }
  }
  for (double& weight : weights) { weight /= sum; }
  return weights;
}

std::int64_t spares_for(double p, std::span<const double> distribution) {
  double sum = 0.0;
  for (std::size_t k = 0; k < distribution.size(); ++k) {
    sum += distribution[k];
    if (sum >= p) { return static_cast<std::int64_t>(k); }
  }
  return static_cast<std::int64_t>(distribution.size());
}

double mean_of(std::span<const double> distribution) {
  double mean = 0.0;
  for (std::size_t k = 0; k < distribution.size(); ++k) { mean += static_cast<double>(k) * distribution[k]; }
  return mean;
}

Shortage shortage(std::int64_t spares, std::span<const double> distribution) {
  Shortage out;
  for (std::size_t k = 0; k < distribution.size(); ++k) {
    const std::int64_t missing = missing_nodes(k, spares);
    if (missing > 0) { out.share += distribution[k]; }
    out.missing += distribution[k] * static_cast<double>(missing);
  }
  return out;
}

double fixed_throughput(std::int64_t nodes, std::int64_t replica, std::int64_t spares,
                        std::span<const double> distribution, const Speed& speed) {
  const double kept = 1.0 - static_cast<double>(replica) / static_cast<double>(nodes);
  const double replicas = static_cast<double>(nodes) / static_cast<double>(replica);
  return mean_throughput(distribution, spares, [&](std::int64_t missing) {
    const double share = std::pow(kept, static_cast<double>(missing));
    if (!speed) { return share; }
    const double left = share * replicas, whole = std::floor(left);
    const auto at = [&](double count) { return speed(static_cast<std::int64_t>(count) * replica); };
    return left == whole ? at(whole) : at(whole) + (left - whole) * (at(whole + 1.0) - at(whole));
  });
}

double regrouped_throughput(std::int64_t nodes, std::int64_t replica, std::int64_t spares,
                            std::span<const double> distribution, const Speed& speed) {
  return mean_throughput(distribution, spares, [&](std::int64_t missing) {
    const std::int64_t left = std::max<std::int64_t>(0, nodes - missing) / replica * replica;
    return speed ? speed(left) : static_cast<double>(left) / static_cast<double>(nodes);
  });
}

double expected_maximum(std::int64_t n) {
  ORRERY_ASSERT(n >= 1);
  // E[max] = int_0^inf (1 - Phi(x)^n) dx - int_-inf^0 Phi(x)^n dx, by Simpson's rule: the integrand is smooth, and
  // beyond 12 standard deviations nothing is left even for 1e9 nodes.
  constexpr int kSteps = 24'000;
  constexpr double kEnd = 12.0, kStep = 2.0 * kEnd / kSteps;
  const auto value = [&](double x) {
    const double above = 0.5 * std::erfc(x / std::sqrt(2.0));
    const double all_below = std::exp(static_cast<double>(n) * std::log1p(-std::min(above, 1.0 - 1e-300)));
    return x >= 0.0 ? 1.0 - all_below : -all_below;
  };
  const auto half = [&](double from) {  // from 0 in either direction, as the integrand jumps there
    double sum = 0.0;
    for (int i = 0; i < kSteps / 2; i += 2) {
      const double a = from + i * kStep, middle = a + kStep, b = middle + kStep;
      const double last = from < 0.0 && i + 2 >= kSteps / 2 ? -std::exp2(-static_cast<double>(n)) : value(b);
      sum += (value(a) + 4.0 * value(middle) + last) * kStep / 3.0;
    }
    return sum;
  };
  return half(0.0) + half(-kEnd);
}

double surviving_share(std::int64_t nodes, std::int64_t copies, std::int64_t lost) {
  if (copies <= 1 && lost >= 1) { return 0.0; }
  if (lost < copies || nodes < copies) { return 1.0; }
  // Mean number of groups that are lost whole, an upper bound of the probability that one is, exact for lost < 2
  // copies: (nodes / copies) x C(nodes - copies, lost - copies) / C(nodes, lost).
  double share = static_cast<double>(nodes) / static_cast<double>(copies);
  for (std::int64_t i = 0; i < copies; ++i) { share *= static_cast<double>(lost - i) / static_cast<double>(nodes - i); }
  return std::max(0.0, 1.0 - share);
}

}  // namespace orrery::campaign
