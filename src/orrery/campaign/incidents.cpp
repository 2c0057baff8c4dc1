#include "orrery/campaign/incidents.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "orrery/campaign/setting.hpp"
#include "orrery/core/error.hpp"

namespace orrery::campaign {

namespace {

// P(K <= count) of a Poisson count.
double poisson_below(std::int64_t count, double mean) {
  if (mean <= 0.0) { return 1.0; }
  // From the largest term down, so that nothing underflows.
  const double mode = std::min(static_cast<double>(count), std::floor(mean));
  const double peak = mode * std::log(mean) - mean - std::lgamma(mode + 1.0);
  double sum = 0.0, term = 1.0;
  for (auto k = static_cast<std::int64_t>(mode); k >= 0 && term > 1e-18; --k) {
    sum += term;
    term *= static_cast<double>(k) / mean;
  }
  term = 1.0;
  for (auto k = static_cast<std::int64_t>(mode) + 1; k <= count && term > 1e-18; ++k) {
    term *= mean / static_cast<double>(k);
    sum += term;
  }
  return std::min(1.0, sum * std::exp(peak));
}

// The mean at which P(K <= count) is `p`.
double mean_at(std::int64_t count, double p) {
  double low = 0.0, high = 2.0 * static_cast<double>(count) + 40.0;
  for (int i = 0; i < 80; ++i) {
    const double middle = 0.5 * (low + high);
    (poisson_below(count, middle) > p ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

// Probability of a split of n at least as uneven as `first` and n - first, by chance.
double even_split_p(std::int64_t first, std::int64_t n) {
  if (n == 0) { return 1.0; }
  const std::int64_t less = std::min(first, n - first);
  double p = 0.0;
  for (std::int64_t k = 0; k <= less; ++k) {
    const auto whole = static_cast<double>(n), part = static_cast<double>(k);
    p += std::exp(std::lgamma(whole + 1.0) - std::lgamma(part + 1.0) - std::lgamma(whole - part + 1.0) -
                  whole * std::log(2.0));
  }
  return std::min(1.0, 2.0 * p);
}

results::FittedRate rate_of(std::string cause, std::int64_t count, double node_days) {
  const double scale = 1000.0 / node_days;
  const auto narrow = poisson_interval(count, 0.8), wide = poisson_interval(count, 0.95);
  return {std::move(cause),
          count,
          static_cast<double>(count) * scale,
          narrow.low * scale,
          narrow.high * scale,
          wide.low * scale,
          wide.high * scale};
}

std::optional<double> variation_of(const std::vector<Incident>& incidents) {
  if (incidents.size() < 3) { return std::nullopt; }
  const auto gaps = static_cast<double>(incidents.size() - 1);
  const double mean = (incidents.back().at - incidents.front().at).value() / gaps;
  double squares = 0.0;
  for (std::size_t i = 1; i < incidents.size(); ++i) {
    const double difference = (incidents[i].at - incidents[i - 1].at).value() - mean;
    squares += difference * difference;
  }
  if (!(mean > 0.0)) { return std::nullopt; }
  return std::sqrt(squares / (gaps - 1.0)) / mean;
}

}  // namespace

PoissonInterval poisson_interval(std::int64_t count, double coverage) {
  const double tail = (1.0 - coverage) / 2.0;
  return {count == 0 ? 0.0 : mean_at(count - 1, 1.0 - tail), mean_at(count, tail)};
}

double incidents_to_tell(double ratio) {
  constexpr double kSignificance = 1.959963984540054, kPower = 0.8416212335729143;
  ORRERY_ASSERT(ratio > 1.0);
  return (kSignificance + kPower) * (kSignificance + kPower) * (1.0 + ratio) / ((ratio - 1.0) * (ratio - 1.0));
}

results::IncidentFit fit_incidents(const std::vector<Incident>& incidents, double devices, Seconds window) {
  results::IncidentFit fit;
  fit.devices = devices;
  fit.days = window.value() / kDaySeconds;
  fit.node_days = devices / kRatedNode * fit.days;
  const auto count = static_cast<std::int64_t>(incidents.size());
  fit.all = rate_of("all", count, fit.node_days);
  std::map<std::string, std::int64_t> causes;
  std::int64_t first_half = 0;
  double downtime = 0.0, with_downtime = 0.0;
  for (const auto& incident : incidents) {
    if (!incident.cause.empty()) { ++causes[incident.cause]; }
    first_half += incident.at < window / 2.0 ? 1 : 0;
    if (incident.downtime) {
      downtime += incident.downtime->value();
      with_downtime += 1.0;
    }
  }
  for (const auto& [cause, number] : causes) { fit.causes.push_back(rate_of(cause, number, fit.node_days)); }
  std::stable_sort(fit.causes.begin(), fit.causes.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  if (count > 0) { fit.mean_hours_between = window.value() / 3600.0 / static_cast<double>(count); }
  fit.variation = variation_of(incidents);
  fit.first_half_rate = 2000.0 * static_cast<double>(first_half) / fit.node_days;
  fit.second_half_rate = 2000.0 * static_cast<double>(count - first_half) / fit.node_days;
  fit.halves_p = even_split_p(first_half, count);
  if (with_downtime > 0.0) { fit.mean_downtime_s = downtime / with_downtime; }
  if (fit.all.rate > 0.0) {
    for (const double other : {fit.all.rate * 1.1, fit.all.rate * 1.5, fit.all.rate * 2.0, kUsualFailures}) {
      const double ratio = std::max(other, fit.all.rate) / std::min(other, fit.all.rate);
      if (ratio <= 1.0 + 1e-9) { continue; }
      fit.to_tell.push_back({other, incidents_to_tell(ratio), other < fit.all.low95 || other > fit.all.high95});
    }
  }
  return fit;
}

}  // namespace orrery::campaign
