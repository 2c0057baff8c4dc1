#include "orrery/campaign/waiting.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "orrery/campaign/spares.hpp"

namespace orrery::campaign {

namespace {

using Complex = std::complex<double>;

// The inverse of a Laplace transform at t > 0.
template <class Transform>
double inverse(const Transform& transform, double t) {
  constexpr int kTerms = 24;
  const double r = 2.0 * kTerms / (5.0 * t);
  double sum = 0.5 * std::exp(r * t) * transform(Complex(r, 0.0)).real();
  for (int k = 1; k < kTerms; ++k) {
    const double angle = k * std::numbers::pi / kTerms, cot = 1.0 / std::tan(angle);
    const Complex z = r * angle * Complex(cot, 1.0);
    const double sigma = angle + (angle * cot - 1.0) * cot;
    sum += (std::exp(t * z) * transform(z) * Complex(1.0, sigma)).real();
  }
  return r / kTerms * sum;
}

// Nodes that fail one by one. Times in units of the mean repair.
class SingleNodes {
 public:
  SingleNodes(double in_repair, double exposed, std::size_t spares, double detection)
      : a_(in_repair), exposed_(exposed), spares_(spares) {
    const RepairClass one{1, a_};
    const auto distribution = repair_distribution(std::span(&one, 1));
    start_.assign(spares_ + 1, 0.0);
    for (std::size_t k = 0; k <= spares_ && k < distribution.size(); ++k) { start_[k] = distribution[k]; }
    if (distribution.size() <= spares_ + 1) { return; }  // never short
    double above = 0.0;                                  // P(K >= j)
    for (std::size_t j = distribution.size() - 1; j > spares_; --j) {
      above += distribution[j];
      if (distribution[j] > 0.0) { first_wait_ += above * above / (static_cast<double>(j) * distribution[j]); }
    }
    wait_ = above / (a_ * distribution[spares_]);
    wait_ *= std::exp(-static_cast<double>(spares_ + 1) * detection);
    start_[spares_] += above;
  }

  [[nodiscard]] double waiting(double running) const {
    if (!(wait_ > 0.0) || !(running > 0.0)) { return first_wait_; }
    const double full = inverse([&](Complex z) { return at_limit(z) / z; }, running);
    return first_wait_ + a_ * exposed_ * wait_ * full;
  }
  // Of the long run.
  [[nodiscard]] double waiting_per_running() const {
    double weight = 1.0, sum = 1.0;  // of K = s, and of all below, relative to it
    for (std::size_t k = spares_; k > 0; --k) {
      weight *= static_cast<double>(k) / (a_ * exposed_);
      sum += weight;
    }
    return a_ * exposed_ * wait_ / sum;
  }

 private:
  // The transform of P(K = s): the last unknown of (z - Q^T) x = start, by elimination from K = 0 on.
  [[nodiscard]] Complex at_limit(Complex z) const {
    const double up = a_ * exposed_;
    Complex ahead = 0.0, known = 0.0;  // x[k - 1] = ahead x[k] + known
    for (std::size_t k = 0;; ++k) {
      const bool is_last = k == spares_;
      const Complex diagonal = z + static_cast<double>(k) + (is_last ? 0.0 : up) - (k > 0 ? up * ahead : 0.0);
      const Complex right = start_[k] + (k > 0 ? up * known : 0.0);
      if (is_last) { return right / diagonal; }
      ahead = static_cast<double>(k + 1) / diagonal;
      known = right / diagonal;
    }
  }

  double a_, exposed_;
  std::size_t spares_;
  std::vector<double> start_;  // of the limited process: K at the start, and s if it is above
  double first_wait_ = 0.0, wait_ = 0.0;
};

}  // namespace

Seconds waiting_for_nodes(const Process& process, Seconds running) {
  if (!process.spares || !(running > Seconds(0)) || !is_finite(running)) { return Seconds(0); }
  std::vector<RepairClass> classes;
  double mean = 0.0;
  bool has_groups = false;
  for (const auto& one : process.nodes) {
    classes.push_back({one.nodes, one.rate * process.repair});
    mean += classes.back().in_repair * static_cast<double>(one.nodes);
    has_groups = has_groups || (one.nodes > 1 && classes.back().in_repair > 0.0);
  }
  if (!(mean > 0.0)) { return Seconds(0); }
  Process unlimited = process;
  unlimited.spares.reset();
  const Shares shares = shares_of(unlimited);
  const double safe = shares.detection + (process.tiers ? shares.restart : 0.0);
  const double detection = process.downtime.unprotected / process.repair;
  const SingleNodes single(mean, 1.0 - safe, static_cast<std::size_t>(*process.spares), detection);
  const double length = running / process.repair;
  if (!has_groups) { return process.repair * single.waiting(length); }
  const double stands = shortage(*process.spares, repair_distribution(classes)).share;
  const double of_long_run = running.value() * stands / (1.0 - stands);
  const double usual = length * single.waiting_per_running();
  return Seconds(usual > 0.0 ? of_long_run * single.waiting(length) / usual : of_long_run);
}

}  // namespace orrery::campaign
