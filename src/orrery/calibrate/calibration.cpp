#include "orrery/calibrate/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "orrery/core/parallel_for.hpp"

namespace orrery::calibrate {

namespace {

constexpr double kProbe = 0.05;     // change of a figure that shows whether a row depends on it
constexpr double kNoEffect = 1e-4;  // relative change of a time that is none
constexpr double kExplained = 2.0;  // scatters
constexpr std::size_t kMostMovers = 3;
constexpr double kSmallestMove = 0.002;  // of ln(value), of a row that is listed
constexpr double kAtBound = 1e-9;

using results::CalibratedFigure;

class Fit {
 public:
  Fit(const Target& target, const std::vector<Figure>& figures, const std::vector<Measurement>& measurements,
      const Progress& progress)
      : target_(target), all_(figures), measurements_(measurements), progress_(progress) {}

  Result<Fitted> run() {
    std::vector<double> start(measurements_.size());
    predict({}, start);
    for (std::size_t i = 0; i < start.size(); ++i) {
      if (std::isfinite(start[i]) && start[i] > 0.0) { continue; }
      return fail(fmt::format("{}: the prediction is not a positive time", measurements_[i].id));
    }
    select(start);
    std::vector<Unknown> unknowns;
    std::vector<double> measured;
    for (const Figure* figure : figures_) { unknowns.push_back(figure->unknown); }
    for (const auto& measurement : measurements_) { measured.push_back(measurement.seconds); }
    const Solution solution =
        fit(unknowns, measured, kScatter,
            [this](std::span<const double> values, std::span<double> seconds) { predict(values, seconds); });
    return result_of(solution);
  }

 private:
  // With the figures in use at `values`; the others are not changed.
  void predict(std::span<const double> values, std::span<double> seconds) {
    parallel_for(measurements_.size(), 0, [&](std::size_t i) {
      Target target = measurements_[i].target;
      for (std::size_t j = 0; j < values.size(); ++j) { figures_[j]->set(target, values[j]); }
      seconds[i] = measurements_[i].time(target).value();
    });
    count_ += static_cast<std::int64_t>(measurements_.size());
    const std::size_t fitted = std::max<std::size_t>(figures_.size(), 1) + 2;  // a step has a prediction each, and two
    const std::size_t most = measurements_.size() * (1 + all_.size() + kMostSteps * fitted);
    if (progress_) { progress_(count_, std::max(count_, static_cast<std::int64_t>(most))); }
  }

  // Finds the figures that some row depends on.
  void select(const std::vector<double>& start) {
    std::vector<double> seconds(start.size());
    std::vector<const Figure*> in_use;
    for (const auto& figure : all_) {
      const Unknown& unknown = figure.unknown;
      const bool up = unknown.start * (1.0 + kProbe) <= unknown.high;
      const double value = unknown.start * (up ? 1.0 + kProbe : 1.0 - kProbe);
      figures_ = {&figure};
      predict(std::span(&value, 1), seconds);
      std::size_t rows = 0;
      for (std::size_t i = 0; i < start.size(); ++i) { rows += std::abs(seconds[i] / start[i] - 1.0) > kNoEffect; }
      if (rows == 0) {
        undetermined_.push_back(fmt::format("{} of {}", figure.name, figure.of));
        continue;
      }
      in_use.push_back(&figure);
      rows_.push_back(rows);
    }
    figures_ = std::move(in_use);
  }

  [[nodiscard]] Fitted result_of(const Solution& solution) const {
    Fitted fitted{{}, target_};
    results::Calibration& result = fitted.result;
    result.scatter = kScatter;
    result.undetermined = undetermined_;
    for (std::size_t i = 0; i < measurements_.size(); ++i) {
      const Measurement& measurement = measurements_[i];
      const auto time = [&](double residual) { return measurement.seconds * std::exp(residual); };
      result.rows.push_back({measurement.id, measurement.kind, measurement.seconds, time(solution.before[i]),
                             time(solution.after[i]), time(solution.left_out[i]),
                             std::abs(solution.after[i]) <= kExplained * kScatter});
    }
    for (std::size_t j = 0; j < figures_.size(); ++j) {
      const double value = solution.values[j];
      figures_[j]->set(fitted.target, value);
      result.figures.push_back(figure_of(j, solution));
    }
    return fitted;
  }

  [[nodiscard]] CalibratedFigure figure_of(std::size_t j, const Solution& solution) const {
    const Figure& figure = *figures_[j];
    const double value = solution.values[j];
    CalibratedFigure out;
    out.owner = name_of(figure.owner);
    out.of = figure.of;
    out.name = figure.name;
    out.meaning = figure.meaning;
    out.is_time = figure.is_time;
    out.is_factor = figure.is_factor;
    out.before = figure.unknown.start;
    out.after = value;
    out.uncertainty = solution.deviation[j];
    out.at_bound = value <= figure.unknown.low * (1.0 + kAtBound) || value >= figure.unknown.high * (1.0 - kAtBound);
    out.rows = rows_[j];
    std::vector<std::size_t> order(measurements_.size());
    for (std::size_t i = 0; i < order.size(); ++i) { order[i] = i; }
    const auto& moves = solution.moves[j];
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return std::abs(moves[a]) > std::abs(moves[b]); });
    for (const std::size_t i : order) {
      if (out.movers.size() == kMostMovers || std::abs(moves[i]) < kSmallestMove) { break; }
      out.movers.push_back({i, std::exp(moves[i])});
    }
    return out;
  }

  const Target& target_;
  const std::vector<Figure>& all_;
  const std::vector<Measurement>& measurements_;
  const Progress& progress_;
  std::vector<const Figure*> figures_;  // in use
  std::vector<std::size_t> rows_;       // that depend on each
  std::vector<std::string> undetermined_;
  std::int64_t count_ = 0;
};

}  // namespace

Result<Fitted> fit_figures(const Target& target, const std::vector<Figure>& figures,
                           const std::vector<Measurement>& measurements, const Progress& progress) {
  return Fit(target, figures, measurements, progress).run();
}

}  // namespace orrery::calibrate
