#include "orrery/campaign/sites.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <utility>
#include <vector>

#include "orrery/campaign/spares.hpp"

namespace orrery::campaign {

namespace {

using Complex = std::complex<double>;
using Spectrum = std::vector<Complex>;

constexpr std::size_t kPoints = 4096;  // a power of two
constexpr int kParts = 4;              // of lost work, each with the failures of its middle

// In place, by halves (J. W. Cooley, J. W. Tukey, Math. Comp. 19, 1965). Inverse: `sign` 1, and without 1 / n.
void transform(Spectrum& values, double sign) {
  const std::size_t n = values.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n / 2;
    for (; (j & bit) != 0; bit /= 2) { j ^= bit; }
    j ^= bit;
    if (i < j) { std::swap(values[i], values[j]); }
  }
  for (std::size_t length = 2; length <= n; length *= 2) {
    const Complex turn = std::polar(1.0, sign * 2.0 * std::numbers::pi / static_cast<double>(length));
    Spectrum turns(length / 2);
    Complex now = 1.0;
    for (auto& one : turns) {
      one = now;
      now *= turn;
    }
    for (std::size_t first = 0; first < n; first += length) {
      for (std::size_t k = 0; k < length / 2; ++k) {
        Complex& even = values[first + k];
        Complex& odd = values[first + k + length / 2];
        const Complex high = odd * turns[k];
        odd = even - high;
        even += high;
      }
    }
  }
}

// A delay as probabilities on a grid of points 0, step, 2 step, ... Mass between two points is divided so that the mean
// is kept.
class Delay {
 public:
  explicit Delay(double step) : step_(step), mass_(kPoints) {}

  Delay& at(double delay, double probability = 1.0) {
    const double place = std::min(delay / step_, static_cast<double>(kPoints - 1));
    const auto below = static_cast<std::size_t>(place);
    const double part = place - static_cast<double>(below);
    mass_[below] += probability * (1.0 - part);
    if (part > 0.0) { mass_[below + 1] += probability * part; }
    return *this;
  }
  // Uniform between two delays.
  Delay& between(double low, double high, double probability = 1.0) {
    if (high - low < 1e-3 * step_) { return at((low + high) / 2.0, probability); }
    const auto pieces = static_cast<std::size_t>(std::ceil(2.0 * (high - low) / step_));
    const double width = (high - low) / static_cast<double>(pieces);
    for (std::size_t i = 0; i < pieces; ++i) {
      at(low + (static_cast<double>(i) + 0.5) * width, probability / static_cast<double>(pieces));
    }
    return *this;
  }
  Delay& exponential(double mean) {
    const double ratio = std::exp(-step_ / mean);
    double above = 1.0;
    for (std::size_t i = 0; i + 1 < kPoints; ++i, above *= ratio) {
      at((static_cast<double>(i) + 0.5) * step_, above * (1.0 - ratio));
    }
    return at(static_cast<double>(kPoints - 1) * step_, above);
  }

  [[nodiscard]] Spectrum spectrum() const {
    Spectrum out(mass_.begin(), mass_.end());
    transform(out, -1.0);
    return out;
  }

 private:
  double step_;
  std::vector<double> mass_;
};

// The spectrum of real numbers: its second half is the conjugate of the first.
template <class Value>
Spectrum real_spectrum(const Value& value) {
  Spectrum out(kPoints);
  for (std::size_t i = 0; i <= kPoints / 2; ++i) {
    out[i] = value(i);
    if (i > 0 && i < kPoints / 2) { out[kPoints - i] = std::conj(out[i]); }
  }
  return out;
}

// Of a delay of one step.
Complex turn(std::size_t i) {
  return std::polar(1.0, -2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(kPoints));
}

// Long waits for a node: their mean, and how many there are per second of running time.
struct MissingNodes {
  double mean = 0.0, rate = 0.0;
};

MissingNodes missing_nodes(const Process& process, double short_share) {
  if (!process.spares || !(short_share > 0.0)) { return {}; }
  std::vector<RepairClass> classes;
  double failures = 0.0;
  for (const auto& one : process.nodes) {
    classes.push_back({one.nodes, one.rate * process.repair});
    failures += one.rate.value();
  }
  const auto in_repair = repair_distribution(classes);
  const auto spares = static_cast<std::size_t>(*process.spares);
  const double share = shortage(*process.spares, in_repair).share;
  if (!(share > 0.0) || spares >= in_repair.size()) { return {}; }
  MissingNodes out;
  out.mean = share / (failures * in_repair[spares]);
  out.rate = short_share / (1.0 - short_share) / out.mean;
  return out;
}

// Lost work of a site, of a failure that returns to the last checkpoint: between `shortest` and `longest`.
struct Losses {
  double shortest = 0.0, longest = 0.0;

  [[nodiscard]] double part() const { return (longest - shortest) / kParts; }  // longest - shortest: the interval
};

// Delays of one site in the frequency domain, by cause.
class Causes {
 public:
  Causes(const Process& process, const Losses& losses, double stretch, double step)
      : process_(process), losses_(losses), lam_(process.failures().value()), stretch_(stretch), step_(step) {
    if (process.tiers) {
      const double downtime = process.tiers->memory_downtime.value();
      kept_ = process.tiers->recoverable;
      piece_ = Delay(step).between(downtime, downtime + process.tiers->piece_length().value()).spectrum();
    }
    half_ = Delay(step).at(step / 2.0).spectrum();
    restart_ = recovery();
    for (int part = 0; part < kParts; ++part) { failures_.push_back(failure(part)); }
  }

  [[nodiscard]] double kept() const { return kept_; }
  [[nodiscard]] const Spectrum& piece() const { return piece_; }  // of a failure that leaves a copy in memory
  // Of one that does not, by the part of the interval in which it strikes, until the work before it is done again. A
  // failure in that time begins at the same checkpoint again; one that leaves a copy costs a piece and goes on.
  [[nodiscard]] const std::vector<Spectrum>& failures() const { return failures_; }

  // Corrupted work is done again, with failures and corruption on the way.
  [[nodiscard]] Spectrum corruption(double hits) const {
    constexpr int kGenerations = 4;
    const double low = process_.validation_latency.value() * stretch_;
    const double width = process_.validate_every.value() * stretch_ / kParts;
    std::vector<Spectrum> runs;
    for (int part = 0; part < kParts; ++part) {
      runs.push_back(Delay(step_).between(low + part * width, low + (part + 1) * width).spectrum());
    }
    Spectrum out = restart_;
    for (int generation = 0; generation < kGenerations; ++generation) {
      out = real_spectrum([&](std::size_t i) {
        const Complex added = lam_ * (any_failure(i) - 1.0) + hits * (out[i] - 1.0);
        Complex grown = std::exp(added * (low + width / 2.0)), sum = 0.0;
        const Complex more = std::exp(added * width);
        for (const auto& run : runs) {
          sum += run[i] * grown;
          grown *= more;
        }
        return restart_[i] * sum / static_cast<double>(kParts);
      });
    }
    return out;
  }

 private:
  [[nodiscard]] Complex any_failure(std::size_t i) const {
    Complex sum = 0.0;
    for (const auto& one : failures_) { sum += one[i]; }
    return (kept_ > 0.0 ? kept_ * piece_[i] : 0.0) + (1.0 - kept_) * sum / static_cast<double>(kParts);
  }

  // The time of a failure that ends `length` seconds too early, with `through` the transform of passing them and
  // `exposed` per second: the sum over steps.
  [[nodiscard]] Complex ends_early(std::size_t i, Complex exposed, Complex through, double length) const {
    const double struck = -std::expm1(-lam_ * (1.0 - kept_) * step_);  // in a step, without a copy in memory
    const Complex ahead = turn(i) * std::exp(-exposed * step_);
    return struck * half_[i] * (std::abs(1.0 - ahead) > 1e-12 ? (1.0 - through) / (1.0 - ahead) : length / step_);
  }

  // Detection and restart from storage, which failures strike again.
  [[nodiscard]] Spectrum recovery() const {
    if (process_.tiers) { return Delay(step_).at(process_.tiers->storage_downtime.value()).spectrum(); }
    const double restart = process_.downtime.restart.value();
    const Spectrum detected = Delay(step_).at(process_.downtime.unprotected.value()).spectrum();
    const Spectrum done = Delay(step_).at(restart).spectrum();
    return real_spectrum([&](std::size_t i) {
      const Complex through = done[i] * std::exp(-lam_ * restart);
      return detected[i] * through / (1.0 - detected[i] * ends_early(i, lam_, through, restart));
    });
  }

  [[nodiscard]] Spectrum failure(int part) const {
    const double low = losses_.shortest + part * losses_.part(), length = low + losses_.part() / 2.0;
    const Spectrum run = Delay(step_).between(low, low + losses_.part()).spectrum();
    const Spectrum mean = Delay(step_).at(length).spectrum();
    return real_spectrum([&](std::size_t i) {
      const Complex exposed = lam_ * (kept_ > 0.0 ? 1.0 - kept_ * piece_[i] : 1.0);
      const Complex through = std::exp(-exposed * length);
      return restart_[i] * run[i] * through / (1.0 - restart_[i] * ends_early(i, exposed, through * mean[i], length));
    });
  }

  const Process& process_;
  Losses losses_;
  double lam_, stretch_, step_, kept_ = 0.0;  // kept: share of failures that leave a copy in memory
  Spectrum piece_, half_, restart_;
  std::vector<Spectrum> failures_;
};

class Round {
 public:
  Round(const Process& process, double work, double short_share) : process_(process), lam_(process.failures().value()) {
    const Interval piece = process.tiers ? process.tiers->memory : process.interval;
    const double length = process.tiers ? process.tiers->piece_length().value() : piece.length().value();
    stretch_ = std::isfinite(length) && piece.useful > Seconds(0) ? length / piece.useful.value() : 1.0;
    losses_.shortest = process.tiers ? 0.0 : process.interval.flush.value();
    const double pieces = process.tiers ? static_cast<double>(process.tiers->pieces) : 1.0;
    losses_.longest = losses_.shortest + (std::isfinite(length) ? length * pieces : work);
    progress_ = work * stretch_;
    missing_ = missing_nodes(process, short_share);
  }

  // E[max of `sites`] - E[one], of the time that is added to an undisturbed round.
  [[nodiscard]] double waiting(std::int64_t count) const {
    const auto sites = static_cast<double>(count);
    Grid grid{0.0, range(sites) / static_cast<double>(kPoints)};
    if (!(grid.step > 0.0)) { return 0.0; }  // failures cost nothing
    auto exponents = exponents_on(grid.step);
    if (lam_ * progress_ > kMany) {
      grid = around_mean(exponents.front()[1], grid.step, sites);
      exponents = exponents_on(grid.step);
    }
    double sum = 0.0;
    for (auto& one : exponents) { sum += longest(std::move(one), sites, grid); }
    return std::max(0.0, sum / static_cast<double>(exponents.size()));
  }

 private:
  static constexpr double kMany = 20.0;  // events, whose sum is far from zero

  // Delays from `low` on.
  struct Grid {
    double low = 0.0, step = 0.0;
  };

  // The delay of a round, by where it starts in the interval between two checkpoints, which matters if the round is not
  // much longer.
  [[nodiscard]] std::vector<Spectrum> exponents_on(double step) const {
    const Causes causes(process_, losses_, stretch_, step);
    Spectrum anywhere(kPoints, 0.0);
    const auto add = [](Spectrum& sum, double count, const Spectrum& delay) {
      for (std::size_t i = 0; i < kPoints; ++i) { sum[i] += count * (delay[i] - 1.0); }
    };
    if (causes.kept() > 0.0) { add(anywhere, lam_ * progress_ * causes.kept(), causes.piece()); }
    const double hits = process_.corruptions.value() / stretch_;
    if (hits > 0.0) { add(anywhere, hits * progress_, causes.corruption(hits)); }
    if (missing_.rate > 0.0) {
      add(anywhere, missing_.rate * progress_, Delay(step).exponential(missing_.mean).spectrum());
    }
    const int starts = progress_ < 4.0 * losses_.part() * kParts ? kStarts : 1;
    std::vector<Spectrum> out(static_cast<std::size_t>(starts), anywhere);
    for (int start = 0; start < starts; ++start) {
      for (int part = 0; part < kParts; ++part) {
        const double seconds = starts == 1 ? progress_ / kParts : time_in(part, start);
        const double count = lam_ * (1.0 - causes.kept()) * seconds;
        if (count > 0.0) {
          add(out[static_cast<std::size_t>(start)], count, causes.failures()[static_cast<std::size_t>(part)]);
        }
      }
    }
    return out;
  }

  // Mean and variance of a compound Poisson delay are the first terms of its exponent, here of the lowest frequency.
  [[nodiscard]] Grid around_mean(Complex exponent, double step, double sites) const {
    const double unit = static_cast<double>(kPoints) / (2.0 * std::numbers::pi) * step;
    const double mean = -exponent.imag() * unit, deviation = std::sqrt(-2.0 * exponent.real()) * unit;
    const double low = std::max(0.0, mean - 9.0 * deviation);
    const double high = mean + (9.0 + std::sqrt(2.0 * std::log(sites))) * deviation + tail(sites);
    return {low, std::min(step, (high - low) / static_cast<double>(kPoints))};
  }

  // Running time until this much useful work since a checkpoint, with the pauses of those on the way.
  [[nodiscard]] double running(double useful) const {
    const double each = process_.tiers ? 0.0 : process_.interval.useful.value();
    if (!(each > 0.0) || !std::isfinite(each)) { return useful * stretch_; }
    return useful + std::floor(useful / each) * process_.interval.pause.value();
  }

  // Running time in this part of the interval, of a round that starts there (1 / kStarts of the useful work).
  [[nodiscard]] double time_in(int part, int start) const {
    const double interval = losses_.part() * kParts, low = losses_.part() * part;
    const double first = interval / stretch_ * (start + 0.5) / kStarts;
    const auto up_to = [&](double time) {  // since some checkpoint is in storage
      const double whole = std::floor(time / interval);
      return whole * losses_.part() + std::clamp(time - whole * interval - low, 0.0, losses_.part());
    };
    const double offset = interval - std::fmod(losses_.shortest, interval);
    return up_to(running(first + progress_ / stretch_) + offset) - up_to(running(first) + offset);
  }
  static constexpr int kStarts = 8;

  // E[max of `sites`] - E[one] of a delay: compound Poisson with this exponent.
  static double longest(Spectrum exponent, double sites, const Grid& grid) {
    const double shift = 2.0 * std::numbers::pi * grid.low / grid.step / static_cast<double>(kPoints);
    for (std::size_t i = 0; i <= kPoints / 2; ++i) {
      exponent[i] = std::exp(exponent[i] + Complex(0.0, shift * static_cast<double>(i)));
      if (i > 0 && i < kPoints / 2) { exponent[kPoints - i] = std::conj(exponent[i]); }
    }
    transform(exponent, 1.0);
    double below = 0.0, sum = 0.0;  // P(delay <= grid point)
    for (const auto& point : exponent) {
      below = std::min(1.0, below + std::max(0.0, point.real() / static_cast<double>(kPoints)));
      sum -= std::expm1(sites * std::log(std::max(below, 1e-300))) + (1.0 - below);
    }
    return sum * grid.step;
  }

  [[nodiscard]] double longest_downtime() const {
    if (process_.tiers) { return max(process_.tiers->memory_downtime, process_.tiers->storage_downtime).value(); }
    return process_.downtime.unprotected.value() + process_.downtime.restart.value();
  }

  // A delay of one failure, above which few are: with what is lost again in it.
  [[nodiscard]] double one_failure() const {
    const double again = std::exp(std::min(30.0, lam_ * std::max(losses_.longest, longest_downtime())));
    return (losses_.longest + longest_downtime()) * again;
  }
  [[nodiscard]] double one_corruption() const {
    if (!(process_.corruptions > Hertz(0))) { return 0.0; }
    return (process_.validate_every + process_.validation_latency).value() * stretch_ + one_failure();
  }
  // What a few long delays add to the sum of the others.
  [[nodiscard]] double tail(double sites) const {
    const double far = 20.0 + std::log(sites);
    return far / 4.0 * one_failure() + far * missing_.mean + 8.0 * one_corruption();
  }
  // Delays above it have next to no probability.
  [[nodiscard]] double range(double sites) const {
    const double far = 20.0 + std::log(sites), count = lam_ * progress_;
    const double hits = process_.corruptions.value() * progress_ / stretch_;
    return one_failure() * (count + 4.0 + far * std::sqrt(count) / 4.0) + far * missing_.mean +
           missing_.rate * progress_ * missing_.mean + one_corruption() * (2.0 + hits + std::sqrt(hits) * 8.0);
  }

  const Process& process_;
  double lam_, stretch_ = 1.0;  // stretch: running time / useful time
  Losses losses_;
  double progress_ = 0.0;
  MissingNodes missing_;
};

}  // namespace

double long_run_shortage(const Process& process) { return shares_of(process).short_of_spares; }

Seconds waiting_for_sites(const Process& process, double short_share) {
  if (process.sites <= 1 || !(process.round > Seconds(0)) || !is_finite(process.round)) { return Seconds(0); }
  const double events = process.failures().value() + process.corruptions.value();
  if (!(events > 0.0)) { return Seconds(0); }
  return Seconds(Round(process, process.round.value(), short_share).waiting(process.sites));
}

}  // namespace orrery::campaign
