#include "orrery/campaign/renewal.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "orrery/core/error.hpp"

namespace orrery::campaign {

namespace {

// e^(lam R) (1/lam + D): the mean time between two moments at which the job starts to run.
double cycle(double rate, const Downtime& downtime) {
  return std::exp(rate * downtime.restart.value()) * (1.0 / rate + downtime.unprotected.value());
}

// Variance of the time from a failure until the job runs: T = D + R, or D + Y + T again if a failure strikes the
// restart at Y < R.
double recovery_variance(double rate, const Downtime& downtime) {
  const double d = downtime.unprotected.value(), r = downtime.restart.value(), x = rate * r;
  if (x < 1e-6) { return 0.0; }  // less than 1e-6 r (d + r)
  const double passes = std::exp(-x);
  const double square = (2.0 - (x * x + 2.0 * x + 2.0) * passes) / (rate * rate);  // E[Y^2; Y < R]
  const double first = (1.0 - (x + 1.0) * passes) / rate;                          // E[Y; Y < R]
  const double mean = cycle(rate, downtime) - 1.0 / rate;
  const double squares = d * d + 2.0 * d * (mean - d) + passes * r * r + square + 2.0 * first * mean;
  return std::max(0.0, squares / passes - mean * mean);
}

}  // namespace

double lambert_w0(double z) {
  // Near the branch point, the series of Corless et al. (1996), equation 4.22; Halley's iteration from there on.
  const double p = std::sqrt(std::max(0.0, 2.0 * (std::numbers::e * z + 1.0)));
  double w = -1.0 + p - p * p / 3.0 + 11.0 / 72.0 * p * p * p;
  if (p < 1e-6) { return w; }
  for (int i = 0; i < 60; ++i) {
    const double e = std::exp(w), f = w * e - z;
    const double change = f / (e * (w + 1.0) - (w + 2.0) * f / (2.0 * w + 2.0));
    w -= change;
    if (std::abs(change) <= 1e-16 * std::abs(w)) { break; }
  }
  return w;
}

double ettr(Hertz rate, const Interval& interval, const Downtime& downtime) {
  const double lam = rate.value(), length = interval.length().value();
  if (!(length > 0.0)) {  // free checkpoints at every moment
    return lam > 0.0 ? std::exp(-lam * interval.flush.value()) / (lam * cycle(lam, downtime)) : 1.0;
  }
  if (!(lam > 0.0)) { return is_finite(interval.useful) ? interval.useful.value() / length : 1.0; }
  return interval.useful.value() * std::exp(-lam * interval.flush.value()) / std::expm1(lam * length) /
         cycle(lam, downtime);
}

Seconds best_useful(Hertz rate, Seconds pause) {
  const double lam = rate.value();
  if (!(lam > 0.0)) { return pause > Seconds(0) ? infinite<Seconds>() : Seconds(0); }
  // 1 + W0 loses digits where lam C is small: there it is p - p^2/3 + ... with p from expm1.
  const double x = lam * pause.value();
  const double p = std::sqrt(-2.0 * std::expm1(-x));
  if (p < 1e-3) { return Seconds((p - p * p / 3.0 + 11.0 / 72.0 * p * p * p) / lam); }
  return Seconds((1.0 + lambert_w0(-std::exp(-x - 1.0))) / lam);
}

Seconds young_useful(Hertz rate, Seconds pause) { return Seconds(std::sqrt(2.0 * pause.value() / rate.value())); }

Seconds daly_useful(Hertz rate, Seconds pause) {
  const double mean = 1.0 / rate.value(), half = pause.value() / (2.0 * mean);
  return Seconds(std::sqrt(2.0 * pause.value() * mean) * (1.0 + std::sqrt(half) / 3.0 + half / 9.0) - pause.value());
}

Interval best_interval(Hertz rate, Seconds pause, Seconds flush) {
  const Seconds useful = max(best_useful(rate, pause), flush - pause);
  return {useful, pause, flush};
}

double shape_ettr(double shape, Seconds mean, const Interval& interval, Seconds downtime) {
  ORRERY_ASSERT(shape > 0.0 && interval.length() > Seconds(0));
  const double scale = mean.value() / std::tgamma(1.0 + 1.0 / shape);
  double survived = 0.0;
  for (std::int64_t k = 1;; ++k) {
    const double at = static_cast<double>(k) * interval.length().value() + interval.flush.value();
    const double term = std::exp(-std::pow(at / scale, shape));
    survived += term;
    if (term < 1e-17) { break; }
  }
  return interval.useful.value() * survived / (mean + downtime).value();
}

double meta_ettr(Hertz rate, Seconds interval, Seconds pause, Seconds restart) {
  return (1.0 - rate * (restart + interval / 2.0)) / (1.0 + pause / interval);
}

double interval_variance(Hertz rate, const Interval& interval, const Downtime& downtime) {
  const double lam = rate.value(), length = interval.length().value();
  if (!(lam > 0.0) || !(length > 0.0)) { return 0.0; }
  const double p = std::exp(-lam * length), q = -std::expm1(-lam * length);
  // Y: a time to failure, given that it is below the length of the interval.
  const double mean = 1.0 / lam - length * p / q;
  const double square = 2.0 / (lam * lam) - (length * length + 2.0 * length / lam) * p / q;
  const double lost = mean + interval.flush.value() + cycle(lam, downtime) - 1.0 / lam;
  return q / p * (square - mean * mean + recovery_variance(lam, downtime)) + q / (p * p) * lost * lost;
}

double tiers_ettr(Hertz rate, const Tiers& tiers) {
  const double lam = rate.value(), length = tiers.piece_length().value(), n = static_cast<double>(tiers.pieces);
  const double useful = tiers.memory.useful.value();
  if (!(lam > 0.0)) { return useful / length; }
  const double p0 = std::exp(-lam * length), failed = -std::expm1(-lam * length);
  const double p1 = tiers.recoverable * failed, p2 = (1.0 - tiers.recoverable) * failed;
  // t: mean time of a visit to a piece, until it is done or the storage checkpoint is needed; a: the share of visits
  // that are done.
  const double t = (failed / lam + p1 * tiers.memory_downtime.value()) / (1.0 - p1);
  const double a = p0 / (p0 + p2), done = std::pow(a, n);
  const double visits = p2 > 0.0 ? (1.0 - done) / (1.0 - a) / done : n;
  const double expected = t * visits + tiers.storage_downtime.value() * (1.0 - done) / done;
  return n * useful / expected;
}

std::int64_t best_pieces(Hertz rate, Tiers tiers) {
  // ETTR rises with the pieces, then falls: golden section over powers, then single steps.
  const auto value = [&](std::int64_t pieces) {
    tiers.pieces = pieces;
    return tiers_ettr(rate, tiers);
  };
  std::int64_t best = 1;
  while (best < (std::int64_t{1} << 30) && value(best * 2) > value(best)) { best *= 2; }
  std::int64_t low = std::max<std::int64_t>(1, best / 2), high = best * 2;
  while (high - low > 2) {
    const std::int64_t third = (high - low) / 3, a = low + third, b = high - third;
    (value(a) < value(b) ? low : high) = value(a) < value(b) ? a : b;
  }
  for (std::int64_t pieces = low; pieces <= high; ++pieces) {
    if (value(pieces) > value(best)) { best = pieces; }
  }
  return best;
}

}  // namespace orrery::campaign
