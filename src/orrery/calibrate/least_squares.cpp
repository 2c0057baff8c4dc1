#include "orrery/calibrate/least_squares.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/core/error.hpp"

namespace orrery::calibrate {
namespace {

constexpr double kHuber = 2.0;        // in units of the scatter
constexpr double kDifference = 0.01;  // of ln(value), in derivatives: large, because predictions have kinks
constexpr double kEnough = 1e-6;      // relative decrease of the objective that ends the search
constexpr double kMostDamping = 1e6;

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;

// The solution of a symmetric positive definite system, by Cholesky's decomposition.
class Cholesky {
 public:
  explicit Cholesky(Matrix matrix) : lower_(std::move(matrix)) {
    const std::size_t n = lower_.size();
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t i = j; i < n; ++i) {
        double sum = lower_[i][j];
        for (std::size_t k = 0; k < j; ++k) { sum -= lower_[i][k] * lower_[j][k]; }
        ORRERY_ASSERT(i != j || sum > 0);
        lower_[i][j] = i == j ? std::sqrt(sum) : sum / lower_[j][j];
      }
    }
  }

  [[nodiscard]] Vector solve(Vector right) const {
    const std::size_t n = lower_.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < i; ++k) { right[i] -= lower_[i][k] * right[k]; }
      right[i] /= lower_[i][i];
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t k = i + 1; k < n; ++k) { right[i] -= lower_[k][i] * right[k]; }
      right[i] /= lower_[i][i];
    }
    return right;
  }

 private:
  Matrix lower_;
};

class Problem {
 public:
  Problem(std::span<const Unknown> unknowns, std::span<const double> measured, double scatter, const Predict& predict)
      : unknowns_(unknowns), measured_(measured), scatter_(scatter), predict_(predict) {}

  [[nodiscard]] std::size_t size() const { return unknowns_.size(); }
  [[nodiscard]] std::size_t rows() const { return measured_.size(); }

  // ln(predicted / measured) where ln(value / start) is `z`.
  [[nodiscard]] Vector residuals(const Vector& z) const {
    Vector seconds(rows());
    predict_(values(z), seconds);
    for (std::size_t i = 0; i < rows(); ++i) { seconds[i] = std::log(seconds[i] / measured_[i]); }
    return seconds;
  }

  [[nodiscard]] Vector values(const Vector& z) const {
    Vector out(size());
    for (std::size_t j = 0; j < size(); ++j) { out[j] = unknowns_[j].start * std::exp(z[j]); }
    return out;
  }

  [[nodiscard]] double objective(const Vector& z, const Vector& residuals) const {
    double total = 0;
    for (const double r : residuals) {
      const double size = std::abs(r) / scatter_;
      total += size <= kHuber ? size * size : kHuber * (2 * size - kHuber);
    }
    for (std::size_t j = 0; j < size(); ++j) { total += z[j] * z[j] / variance(j); }
    return total;
  }

  // [unknown][row]: derivative of the residual by z.
  [[nodiscard]] Matrix jacobian(const Vector& z, const Vector& residuals) const {
    Matrix out(size(), Vector(rows()));
    for (std::size_t j = 0; j < size(); ++j) {
      Vector moved = z;
      const double by = z[j] + kDifference <= high(j) ? kDifference : -kDifference;
      moved[j] += by;
      const Vector there = this->residuals(moved);
      for (std::size_t i = 0; i < rows(); ++i) { out[j][i] = (there[i] - residuals[i]) / by; }
    }
    return out;
  }

  // Weight of a row: the inverse of its variance, less beyond Huber's limit.
  [[nodiscard]] double weight(double residual) const {
    return std::min(1.0, kHuber * scatter_ / std::max(std::abs(residual), 1e-300)) / (scatter_ * scatter_);
  }

  // J^T W J and the prior.
  [[nodiscard]] Matrix curvature(const Matrix& jacobian, const Vector& residuals) const {
    Matrix out(size(), Vector(size()));
    for (std::size_t a = 0; a < size(); ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        for (std::size_t i = 0; i < rows(); ++i) {
          out[a][b] += weight(residuals[i]) * jacobian[a][i] * jacobian[b][i];
        }
        out[b][a] = out[a][b];
      }
      out[a][a] += 1.0 / variance(a);
    }
    return out;
  }

  // Half the derivative of the objective by z.
  [[nodiscard]] Vector slope(const Vector& z, const Matrix& jacobian, const Vector& residuals) const {
    Vector out(size());
    for (std::size_t j = 0; j < size(); ++j) {
      out[j] = z[j] / variance(j);
      for (std::size_t i = 0; i < rows(); ++i) { out[j] += weight(residuals[i]) * jacobian[j][i] * residuals[i]; }
    }
    return out;
  }

  // Where a damped step ends. Unknowns that are on a bound and would leave it stay there.
  [[nodiscard]] Vector step(const Vector& z, Matrix curvature, Vector slope, double damping) const {
    for (std::size_t j = 0; j < size(); ++j) {
      curvature[j][j] *= 1 + damping;
      const bool leaves = (z[j] <= low(j) && slope[j] > 0) || (z[j] >= high(j) && slope[j] < 0);
      if (!leaves) { continue; }
      slope[j] = 0;
      for (std::size_t k = 0; k < size(); ++k) {
        if (k != j) { curvature[j][k] = curvature[k][j] = 0; }
      }
    }
    const Vector move = Cholesky(std::move(curvature)).solve(std::move(slope));
    Vector out = z;
    for (std::size_t j = 0; j < size(); ++j) { out[j] = std::clamp(z[j] - move[j], low(j), high(j)); }
    return out;
  }

 private:
  [[nodiscard]] double variance(std::size_t j) const { return unknowns_[j].spread * unknowns_[j].spread; }
  [[nodiscard]] double low(std::size_t j) const { return std::log(unknowns_[j].low / unknowns_[j].start); }
  [[nodiscard]] double high(std::size_t j) const { return std::log(unknowns_[j].high / unknowns_[j].start); }

  std::span<const Unknown> unknowns_;
  std::span<const double> measured_;
  double scatter_;
  const Predict& predict_;
};

struct Point {
  Vector z, residuals;
};

Point minimum(const Problem& problem, Point at) {
  double best = problem.objective(at.z, at.residuals);
  double damping = 1e-3;
  for (std::size_t step = 0; step < kMostSteps; ++step) {
    const Matrix jacobian = problem.jacobian(at.z, at.residuals);
    const Matrix curvature = problem.curvature(jacobian, at.residuals);
    const Vector slope = problem.slope(at.z, jacobian, at.residuals);
    const double before = best;
    for (; damping < kMostDamping; damping *= 4) {
      Point tried{problem.step(at.z, curvature, slope, damping), {}};
      tried.residuals = problem.residuals(tried.z);
      const double value = problem.objective(tried.z, tried.residuals);
      if (value >= best) { continue; }
      at = std::move(tried);
      best = value;
      damping = std::max(damping / 8, 1e-9);
      break;
    }
    if (before - best <= kEnough * before) { break; }
  }
  return at;
}

}  // namespace

Solution fit(std::span<const Unknown> unknowns, std::span<const double> measured, double scatter,
             const Predict& predict) {
  const Problem problem(unknowns, measured, scatter, predict);
  const Vector start(unknowns.size(), 0.0);
  Solution solution;
  solution.before = problem.residuals(start);
  const Point at = minimum(problem, {start, solution.before});
  solution.values = problem.values(at.z);
  solution.after = at.residuals;

  const Matrix jacobian = problem.jacobian(at.z, at.residuals);
  const Cholesky curvature(problem.curvature(jacobian, at.residuals));
  solution.deviation.resize(problem.size());
  solution.moves.assign(problem.size(), Vector(problem.rows()));
  solution.left_out = at.residuals;
  for (std::size_t j = 0; j < problem.size(); ++j) {
    Vector unit(problem.size());
    unit[j] = 1.0;
    solution.deviation[j] = std::sqrt(curvature.solve(std::move(unit))[j]);
  }
  for (std::size_t i = 0; i < problem.rows(); ++i) {
    Vector row(problem.size());
    for (std::size_t j = 0; j < problem.size(); ++j) { row[j] = jacobian[j][i]; }
    const Vector gain = curvature.solve(row);
    const double weight = problem.weight(at.residuals[i]);
    double leverage = 0;
    // At the solution, z = curvature^-1 sum_i w_i J_i (J_i z - r_i): the sum's terms are what each row contributes.
    double target = -at.residuals[i];
    for (std::size_t j = 0; j < problem.size(); ++j) {
      leverage += weight * gain[j] * row[j];
      target += row[j] * at.z[j];
    }
    for (std::size_t j = 0; j < problem.size(); ++j) { solution.moves[j][i] = weight * gain[j] * target; }
    solution.left_out[i] = at.residuals[i] / std::max(1 - leverage, 1e-6);
  }
  return solution;
}

}  // namespace orrery::calibrate
