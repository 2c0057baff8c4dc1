#include "orrery/estimate/memory_split.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/calls.hpp"

namespace orrery::estimate {

using parallel::ChunkProgram;
using parallel::Program;
using parallel::RankClass;
using parallel::Segment;

Bytes SplitProblem::movable() const {
  Bytes sum;
  for (std::size_t c = 0; c < hardware::kTensorClasses; ++c) {
    if (may_move.values[c]) { sum += sizes.values[c]; }
  }
  return sum;
}

namespace {

// The kernels of a step of a rank class.
class Kernels {
 public:
  Kernels(const Program& program, const hardware::Accelerator& accelerator, BytesPerSecond second_rate)
      : program_(program),
        accelerator_(accelerator),
        slower_(accelerator.memory_bandwidth * accelerator.memory_efficiency / second_rate) {}

  std::vector<SplitKernel> of(const RankClass& rank_class) {
    list_.clear();
    for (const auto& chunk : rank_class.chunks) {
      const ChunkProgram& work = program_.program_of(chunk);
      program_.job.is_inference() ? add_requests(work) : add_training(work);
    }
    add(rank_class.finish_reduce, 1.0);
    add(rank_class.finish, 1.0);
    return std::move(list_);
  }

 private:
  // Micro-batches of a chunk, and those that the stages wait for while the pipeline fills and drains.
  void add_training(const ChunkProgram& work) {
    const auto& shape = program_.pipeline;
    const bool divides = shape.schedule == parallel::ScheduleKind::dualpipe;
    const double count = static_cast<double>(shape.micro_batches) / (divides ? 2.0 : 1.0);
    const auto& plan = program_.plan;
    const double waits = static_cast<double>(plan.pp - 1) / static_cast<double>(parallel::chunks_of(plan));
    const double scale = (count + waits) / count;
    add(work.first_forward, scale);
    add(work.forward, scale * (count - 1.0));
    add(work.backward, scale * (work.weight.empty() ? count - 1.0 : count));
    add(work.weight, scale * (count - 1.0));
    add(work.last_backward, scale);
  }

  void add_requests(const ChunkProgram& work) {
    const auto count = static_cast<double>(program_.pipeline.micro_batches);
    add(work.forward, count);
    const std::int64_t later = program_.job.generate - 1;  // tokens that a decode step generates
    add(work.decode, count * static_cast<double>(later), later / 2);
  }

  void add(const Segment& segment, double count, std::int64_t grown = 0) {
    if (!(count > 0.0)) { return; }
    for (const auto& use : segment) {
      for (const auto& item : program_.block(use.work).items) {
        if (item.kernel() != nullptr) { add(*item.kernel(), count * static_cast<double>(use.repeat), grown); }
      }
    }
  }

  void add(const parallel::KernelLaunch& launch, double count, std::int64_t grown) {
    const hardware::Kernel kernel = grown > 0 ? parallel::grown_kernel(launch, grown) : launch.kernel;
    const auto cost = cost::kernel_cost(kernel, accelerator_);
    if (!(cost.memory > Seconds(0))) { return; }
    SplitKernel one{count, cost.compute.value(), cost.memory.value(), cost.memory.value() * slower_, {}};
    using C = TensorClass;
    one.part[C::weights] = kernel.held.weights / kernel.bytes;
    one.part[C::gradients] = kernel.held.gradients / kernel.bytes;
    one.part[C::optimizer] = kernel.held.optimizer / kernel.bytes;
    one.part[C::kv_cache] = kernel.held.kv_cache / kernel.bytes;
    one.part[C::tables] = kernel.held.tables / kernel.bytes;
    one.part[C::activations] = (kernel.bytes - kernel.held.total()) / kernel.bytes;
    list_.push_back(one);
  }

  const Program& program_;
  const hardware::Accelerator& accelerator_;
  double slower_;  // rate of the first tier / rate of the second one
  std::vector<SplitKernel> list_;
};

double traffic_time(const SplitProblem& problem, const SplitKernel& kernel, double part) {
  return hardware::two_tier_time(problem.rule, part, kernel.first, kernel.second);
}

double part_of(const SplitKernel& kernel, const ByClass<double>& shares) {
  double part = 0.0;
  for (std::size_t c = 0; c < hardware::kTensorClasses; ++c) { part += kernel.part.values[c] * shares.values[c]; }
  return part;
}

// d T / d x_c.
ByClass<double> slopes(const SplitProblem& problem, const ByClass<double>& shares) {
  ByClass<double> sum;
  for (const SplitKernel& kernel : problem.kernels) {
    const double part = part_of(kernel, shares), memory = traffic_time(problem, kernel, part);
    const double ratio = memory / cost::overlapped_seconds(kernel.compute, memory);
    const bool waits_for_first = (1.0 - part) * kernel.first > part * kernel.second;
    const double slope = problem.rule == hardware::ExpansionRule::serial ? kernel.second - kernel.first
                         : waits_for_first                               ? -kernel.first
                                                                         : kernel.second;
    const double weight = kernel.count * ratio * ratio * ratio * slope;
    for (std::size_t c = 0; c < hardware::kTensorClasses; ++c) { sum.values[c] += weight * kernel.part.values[c]; }
  }
  return sum;
}

}  // namespace

double kernel_seconds(const SplitProblem& problem, const ByClass<double>& shares) {
  double sum = 0.0;
  for (const SplitKernel& kernel : problem.kernels) {
    const double memory = traffic_time(problem, kernel, part_of(kernel, shares));
    sum += kernel.count * cost::overlapped_seconds(kernel.compute, memory);
  }
  return sum;
}

SplitProblem split_problem(const Program& program, const hardware::Accelerator& accelerator,
                           hardware::ExpansionRule rule, BytesPerSecond second_rate) {
  SplitProblem problem;
  problem.rule = rule;
  double most = -1.0;
  Kernels kernels(program, accelerator, second_rate);
  for (const RankClass& rank_class : program.classes) {
    SplitProblem one;
    one.rule = rule;
    one.kernels = kernels.of(rank_class);
    const double time = kernel_seconds(one, {});
    if (time > most) {
      most = time;
      problem.kernels = std::move(one.kernels);
    }
  }
  return problem;
}

namespace {

constexpr double kGap = 1e-9;       // of T
constexpr int kMostSteps = 20'000;  // about 700 are needed
constexpr double kNoExtent = 1e-30;
constexpr double kLoss = 1e-8;  // of T; a split without rests is taken if it is worse by less
constexpr double kRest = 1e-6;  // of a class

constexpr std::size_t kMostVariables = hardware::kTensorClasses;
using Vector = std::array<double, kMostVariables>;

// The ellipsoid method over the shares of all classes that may move but the largest, whose share follows from E. At
// least two variables, of which the last may have no meaning.
class Ellipsoid {
 public:
  Ellipsoid(const SplitProblem& problem, const std::vector<std::size_t>& classes)
      : problem_(problem), pivot_(classes.front()), free_(classes.begin() + 1, classes.end()) {
    n_ = std::max<std::size_t>(2, free_.size());
    for (std::size_t i = 0; i < n_; ++i) {
      center_[i] = 0.5;
      axes_[i][i] = 0.5 * std::sqrt(static_cast<double>(n_)) * 1.01;  // a ball around the unit cube
    }
  }

  // Tries every center.
  template <class Try>
  void run(const Try& attempt) {
    for (int step = 0; step < kMostSteps; ++step) {
      const ByClass<double> shares = shares_at_center();
      Vector normal{};
      const bool is_inside = !breaks_a_limit(shares, normal);
      if (is_inside) {
        const double time = attempt(shares);
        normal = gradient(shares);
        if (!(extent(normal) > kGap * time)) { return; }
      }
      if (!cut(normal)) { return; }
    }
  }

 private:
  [[nodiscard]] double ratio(std::size_t i) const {  // d x_pivot / d x_i = -this
    return problem_.sizes.values[free_[i]] / problem_.sizes.values[pivot_];
  }
  [[nodiscard]] ByClass<double> shares_at_center() const {
    ByClass<double> shares;
    double rest = problem_.excess / problem_.sizes.values[pivot_];
    for (std::size_t i = 0; i < free_.size(); ++i) {
      shares.values[free_[i]] = center_[i];
      rest -= ratio(i) * center_[i];
    }
    shares.values[pivot_] = rest;
    return shares;
  }
  // The outward normal of a limit that the center breaks.
  [[nodiscard]] bool breaks_a_limit(const ByClass<double>& shares, Vector& normal) const {
    for (std::size_t i = 0; i < free_.size(); ++i) {
      if (center_[i] >= 0.0 && center_[i] <= 1.0) { continue; }
      normal[i] = center_[i] < 0.0 ? -1.0 : 1.0;
      return true;
    }
    const double share = shares.values[pivot_];
    if (share >= 0.0 && share <= 1.0) { return false; }
    for (std::size_t i = 0; i < free_.size(); ++i) { normal[i] = share < 0.0 ? ratio(i) : -ratio(i); }
    return true;
  }
  [[nodiscard]] Vector gradient(const ByClass<double>& shares) const {
    const ByClass<double> by_class = slopes(problem_, shares);
    Vector found{};
    for (std::size_t i = 0; i < free_.size(); ++i) {
      found[i] = by_class.values[free_[i]] - ratio(i) * by_class.values[pivot_];
    }
    return found;
  }
  // B'v: the extents of the ellipsoid's axes along v.
  [[nodiscard]] Vector along_axes(const Vector& v) const {
    Vector product{};
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) { product[j] += axes_[i][j] * v[i]; }
    }
    return product;
  }
  // |B'v|: how much v'x can fall inside the ellipsoid, from its center.
  [[nodiscard]] double extent(const Vector& v) const {
    double sum = 0.0;
    for (const double part : along_axes(v)) { sum += part * part; }
    return std::sqrt(sum);
  }
  // The smallest ellipsoid around the half of this one where v'(x - center) <= 0; false: it has no extent along v.
  [[nodiscard]] bool cut(const Vector& v) {
    const double length = extent(v);
    if (!(length > kNoExtent)) { return false; }
    const auto n = static_cast<double>(n_);
    Vector unit = along_axes(v);
    for (double& part : unit) { part /= length; }
    Vector step{};  // B unit
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) { step[i] += axes_[i][j] * unit[j]; }
    }
    const double wider = n / std::sqrt(n * n - 1.0), narrower = std::sqrt((n - 1.0) / (n + 1.0)) - 1.0;
    for (std::size_t i = 0; i < n_; ++i) {
      center_[i] -= step[i] / (n + 1.0);
      for (std::size_t j = 0; j < n_; ++j) { axes_[i][j] = wider * (axes_[i][j] + narrower * step[i] * unit[j]); }
    }
    return true;
  }

  const SplitProblem& problem_;
  std::size_t pivot_, n_ = 2;
  std::vector<std::size_t> free_;
  Vector center_{};
  std::array<Vector, kMostVariables> axes_{};  // B; the ellipsoid is center + B u, |u| <= 1
};

// Every split in which at most one class is divided: `divided` holds what the whole classes of `mask` leave of E.
template <class Try>
void try_vertices(const SplitProblem& problem, const std::vector<std::size_t>& classes, const Try& attempt) {
  for (std::uint32_t mask = 0; mask < 1U << classes.size(); ++mask) {
    ByClass<double> shares;
    Bytes rest = problem.excess;
    for (std::size_t i = 0; i < classes.size(); ++i) {
      if ((mask >> i & 1U) == 0) { continue; }
      shares.values[classes[i]] = 1.0;
      rest -= problem.sizes.values[classes[i]];
    }
    if (rest < Bytes(0)) { continue; }
    for (std::size_t i = 0; i < classes.size(); ++i) {
      const std::size_t divided = classes[i];
      if ((mask >> i & 1U) != 0 || rest > problem.sizes.values[divided]) { continue; }
      shares.values[divided] = rest / problem.sizes.values[divided];
      attempt(shares);
      shares.values[divided] = 0.0;
    }
    if (rest == Bytes(0)) { attempt(shares); }
  }
}

// Classes that are in one tier but for a rest are all in it; the largest divided class makes up for it.
ByClass<double> without_rests(const SplitProblem& problem, const std::vector<std::size_t>& classes,
                              const ByClass<double>& shares) {
  ByClass<double> rounded = shares;
  Bytes rest = problem.excess;
  std::optional<std::size_t> divided;
  for (const std::size_t c : classes) {
    double& share = rounded.values[c];
    if (share < kRest || share > 1.0 - kRest) {
      share = std::round(share);
    } else if (!divided) {
      divided = c;
      continue;
    }
    rest -= share * problem.sizes.values[c];
  }
  if (!divided) { return shares; }
  const double share = rest / problem.sizes.values[*divided];
  if (share < 0.0 || share > 1.0) { return shares; }
  rounded.values[*divided] = share;
  return rounded;
}

// Classes that may move and have bytes, the largest first.
std::vector<std::size_t> moving(const SplitProblem& problem) {
  std::vector<std::size_t> classes;
  for (std::size_t c = 0; c < hardware::kTensorClasses; ++c) {
    if (problem.may_move.values[c] && problem.sizes.values[c] > Bytes(0)) { classes.push_back(c); }
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [&](std::size_t a, std::size_t b) { return problem.sizes.values[b] < problem.sizes.values[a]; });
  return classes;
}

}  // namespace

ByClass<double> uniform_shares(const SplitProblem& problem) {
  ByClass<double> shares;
  const Bytes all = problem.movable();
  const double part = all > Bytes(0) ? std::min(1.0, problem.excess / all) : 0.0;
  for (const std::size_t c : moving(problem)) { shares.values[c] = part; }
  return shares;
}

ByClass<double> best_shares(const SplitProblem& problem) {
  if (!(problem.excess > Bytes(0)) || problem.excess >= problem.movable()) { return uniform_shares(problem); }
  const auto classes = moving(problem);
  ByClass<double> best = uniform_shares(problem);
  double least = kernel_seconds(problem, best);
  const auto attempt = [&](const ByClass<double>& shares) {
    const double time = kernel_seconds(problem, shares);
    if (time < least) {
      least = time;
      best = shares;
    }
    return time;
  };
  if (classes.size() > 1) { Ellipsoid(problem, classes).run(attempt); }
  ByClass<double> vertex = best;
  double least_of_vertices = HUGE_VAL;
  try_vertices(problem, classes, [&](const ByClass<double>& shares) {
    const double time = kernel_seconds(problem, shares);
    if (time < least_of_vertices) {
      least_of_vertices = time;
      vertex = shares;
    }
  });
  const double most = least * (1.0 + kLoss);
  if (least_of_vertices < most) { return vertex; }
  const ByClass<double> rounded = without_rests(problem, classes, best);
  return kernel_seconds(problem, rounded) < most ? rounded : best;
}

}  // namespace orrery::estimate
