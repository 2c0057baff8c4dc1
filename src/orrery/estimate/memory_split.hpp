// Which tensors of a plan should be in a second tier of memory that kernels use in place (hardware/tier_use.hpp).
//
// Set: S_c, bytes of class c in a rank's memory; E, bytes that do not fit in the first tier; kernels k of a step with
// their number n_k, seconds of arithmetic c_k, seconds of traffic m_k with everything in the first tier and M_k with
// everything in the second one, and the part p_kc of that traffic that belongs to class c. Computed: x_c, the part of
// class c that is in the second tier, which solves
//
//   minimize    T(x) = sum_k n_k (c_k^4 + t_k(f_k)^4)^(1/4)      f_k = sum_c p_kc x_c
//   subject to  sum_c S_c x_c = E,  0 <= x_c <= 1
//
//   t_k(f) = (1 - f) m_k + f M_k (serial), max((1 - f) m_k, f M_k) (parallel)
//
// T is convex: t_k is, and the fourth-power mean is convex and does not decrease. Where kernels wait for memory only,
// the problem is linear, and its solution fills the second tier with classes in the order of their traffic per byte,
// the least first. In general arithmetic hides some of the slower loads, and the best split may divide several classes.
//
// The ellipsoid method solves it in n - 1 <= 5 variables, O(n^2) steps per digit, each O(kernels), to 1e-9 of T: at the
// center of the ellipsoid {center + B u, |u| <= 1} with the subgradient g, no point of it is better by more than |B'g|.
// B is updated, not B B', whose differences of nearly equal numbers would end the method early. A vertex, or
// the split without rests of less than 1e-6 of a class, is taken instead if it is worse by at most 1e-8 of T.
//
// The objective is the time of kernels of the rank class whose kernels take longest, where those of a micro-batch count
// once more for every micro-batch that the pipeline waits for. Left out: communication that hides some of them.
#pragma once

#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/tier_use.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

using hardware::ByClass;
using hardware::TensorClass;

// A kernel, with all of its executions in a step.
struct SplitKernel {
  double count = 0;                           // n
  double compute = 0, first = 0, second = 0;  // c, m, M: seconds of one execution
  ByClass<double> part;                       // p; they sum to 1
};

struct SplitProblem {
  hardware::ExpansionRule rule = hardware::ExpansionRule::serial;
  std::vector<SplitKernel> kernels;
  ByClass<Bytes> sizes;    // S
  ByClass<bool> may_move;  // classes that may be in the second tier; the others have x = 0
  Bytes excess;            // E

  // Bytes of the classes that may move.
  [[nodiscard]] Bytes movable() const;
};

// Of a plan on `accelerator`, which has no tier in use, with a second tier of this rate, bytes/s. Sizes, classes and
// excess are the caller's to set.
[[nodiscard]] SplitProblem split_problem(const parallel::Program& program, const hardware::Accelerator& accelerator,
                                         hardware::ExpansionRule rule, BytesPerSecond second_rate);

// T(x), seconds.
[[nodiscard]] double kernel_seconds(const SplitProblem& problem, const ByClass<double>& shares);

// The best x. If E is more than what may move: x = 1 for all of it.
[[nodiscard]] ByClass<double> best_shares(const SplitProblem& problem);

// The same part of every class that may move.
[[nodiscard]] ByClass<double> uniform_shares(const SplitProblem& problem);

}  // namespace orrery::estimate
