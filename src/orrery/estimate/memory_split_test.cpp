// The best split against slow references, and laws of a second tier that is used in place.
#include "orrery/estimate/memory_split.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::estimate::memory_split_test {
namespace {

using hardware::ExpansionRule;
using parallel::test::any_case;
using parallel::test::Case;
using parallel::test::SeededRandom;

constexpr std::size_t kClasses = hardware::kTensorClasses;

// `classes` classes of 1 to 100 bytes and 12 kernels; `waits_for_memory`: without arithmetic.
SplitProblem random_problem(std::mt19937& random, std::size_t classes, ExpansionRule rule, bool waits_for_memory) {
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  SplitProblem problem;
  problem.rule = rule;
  double all = 0.0;
  for (std::size_t c = 0; c < classes; ++c) {
    problem.sizes.values[c] = Bytes(draw(1.0, 100.0));
    problem.may_move.values[c] = true;
    all += problem.sizes.values[c].value();
  }
  problem.excess = Bytes(draw(0.05, 0.95) * all);
  const double slower = std::exp(draw(-0.7, 3.0));  // of rates, 0.5 to 20
  for (int k = 0; k < 12; ++k) {
    SplitKernel kernel;
    kernel.count = std::floor(draw(1.0, 10.0));
    kernel.first = draw(0.1, 1.0);
    kernel.second = kernel.first * slower;
    kernel.compute = waits_for_memory ? 0.0 : draw(0.0, 3.0);
    double sum = 0.0;
    for (std::size_t c = 0; c < classes; ++c) {
      sum += kernel.part.values[c] = draw(0.0, 1.0) < 0.4 ? 0.0 : draw(0.0, 1.0);
    }
    if (!(sum > 0.0)) { sum = kernel.part.values[0] = 1.0; }
    for (double& part : kernel.part.values) { part /= sum; }
    problem.kernels.push_back(kernel);
  }
  return problem;
}

void expect_valid(const SplitProblem& problem, const ByClass<double>& shares) {
  Bytes there;
  for (std::size_t c = 0; c < kClasses; ++c) {
    EXPECT_GE(shares.values[c], -1e-12);
    EXPECT_LE(shares.values[c], 1.0 + 1e-12);
    there += shares.values[c] * problem.sizes.values[c];
  }
  EXPECT_NEAR(there / problem.excess, 1.0, 1e-9);
}

// All splits in steps of 1 / steps of all classes but the last one, which takes what is left.
double least_on_a_grid(const SplitProblem& problem, std::size_t classes, int steps) {
  double least = HUGE_VAL;
  ByClass<double> shares;
  const std::function<void(std::size_t, Bytes)> fill = [&](std::size_t c, Bytes rest) {
    if (c + 1 == classes) {
      const double last = rest / problem.sizes.values[c];
      if (last < 0.0 || last > 1.0) { return; }
      shares.values[c] = last;
      least = std::min(least, kernel_seconds(problem, shares));
      return;
    }
    for (int i = 0; i <= steps; ++i) {
      shares.values[c] = static_cast<double>(i) / steps;
      fill(c + 1, rest - shares.values[c] * problem.sizes.values[c]);
    }
  };
  fill(0, problem.excess);
  return least;
}

TEST(MemorySplit, no_split_of_a_grid_is_better) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const std::size_t classes = 2 + static_cast<std::size_t>(i % 3);
    const auto rule = i % 2 == 0 ? ExpansionRule::serial : ExpansionRule::parallel;
    const SplitProblem problem = random_problem(random, classes, rule, i % 5 == 0);
    const auto best = best_shares(problem);
    expect_valid(problem, best);
    const double grid = least_on_a_grid(problem, classes, classes == 4 ? 24 : 60);
    EXPECT_LE(kernel_seconds(problem, best), grid * (1.0 + 1.1e-8)) << i;
    EXPECT_LE(kernel_seconds(problem, best), kernel_seconds(problem, uniform_shares(problem)) * (1.0 + 1e-9)) << i;
  }
}

// Five and six classes, for which a grid is too large: no exchange between two classes makes it better.
TEST(MemorySplit, no_exchange_of_two_classes_is_better) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    const std::size_t classes = 5 + static_cast<std::size_t>(i % 2);
    const SplitProblem problem =
        random_problem(random, classes, i % 4 < 2 ? ExpansionRule::serial : ExpansionRule::parallel, false);
    const auto best = best_shares(problem);
    expect_valid(problem, best);
    const double time = kernel_seconds(problem, best);
    for (std::size_t a = 0; a < classes; ++a) {
      for (std::size_t b = 0; b < classes; ++b) {
        for (const double step : {1e-4, 1e-3, 1e-2, 1e-1}) {
          ByClass<double> other = best;
          const Bytes moved = step * problem.sizes.values[a];
          other.values[a] += step;
          other.values[b] -= moved / problem.sizes.values[b];
          if (a == b || other.values[a] > 1.0 || other.values[b] < 0.0) { continue; }
          EXPECT_GE(kernel_seconds(problem, other), time * (1.0 - 1.1e-8)) << i;
        }
      }
    }
  }
}

// Kernels without arithmetic that read tiers one after the other: the time is linear, and classes fill the second tier
// in the order of their traffic per byte.
TEST(MemorySplit, classes_with_the_least_traffic_per_byte_move_first) {
  std::mt19937 random(13);
  for (int i = 0; i < 200; ++i) {
    SplitProblem problem = random_problem(random, 4, ExpansionRule::serial, true);
    if (problem.kernels.front().second < problem.kernels.front().first) { continue; }  // then the most traffic moves
    ByClass<double> traffic;
    for (const auto& kernel : problem.kernels) {
      for (std::size_t c = 0; c < 4; ++c) { traffic.values[c] += kernel.count * kernel.first * kernel.part.values[c]; }
    }
    std::vector<std::size_t> order{0, 1, 2, 3};
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return traffic.values[a] / problem.sizes.values[a].value() < traffic.values[b] / problem.sizes.values[b].value();
    });
    ByClass<double> expected;
    Bytes rest = problem.excess;
    for (const std::size_t c : order) {
      expected.values[c] = std::min(1.0, rest / problem.sizes.values[c]);
      rest -= expected.values[c] * problem.sizes.values[c];
    }
    const auto best = best_shares(problem);
    for (std::size_t c = 0; c < 4; ++c) { EXPECT_NEAR(best.values[c], expected.values[c], 1e-6) << i; }
  }
}

// Two classes of 10 bytes, of which 10 must move. Kernel A: 1 s of traffic of class 0 under 4 s of arithmetic; kernel
// B: 1 s of traffic of class 1 and no arithmetic; the second tier takes twice as long. With x of class 0: (256 + (1 +
// x)^4)^(1/4)
// + 2 - x, whose slope (1 + x)^3 / (...)^(3/4) - 1 is negative up to x = 1: class 0 moves.
TEST(MemorySplit, arithmetic_hides_slow_loads) {
  SplitProblem problem;
  problem.sizes.values[0] = problem.sizes.values[1] = problem.excess = Bytes(10.0);
  problem.may_move.values[0] = problem.may_move.values[1] = true;
  SplitKernel a{1.0, 4.0, 1.0, 2.0, {}}, b{1.0, 0.0, 1.0, 2.0, {}};
  a.part.values[0] = b.part.values[1] = 1.0;
  problem.kernels = {a, b};
  const auto best = best_shares(problem);
  EXPECT_EQ(best.values[0], 1.0);
  EXPECT_EQ(best.values[1], 0.0);
  EXPECT_NEAR(kernel_seconds(problem, best), std::pow(256.0 + 16.0, 0.25) + 1.0, 1e-12);
}

TEST(MemorySplit, what_may_not_move_stays_and_too_much_moves_all) {
  std::mt19937 random(17);
  SplitProblem problem = random_problem(random, 4, ExpansionRule::serial, false);
  problem.may_move.values[1] = false;
  problem.excess = 0.5 * problem.movable();
  EXPECT_EQ(best_shares(problem).values[1], 0.0);
  problem.excess = problem.movable() + Bytes(1.0);
  EXPECT_EQ(best_shares(problem), (ByClass<double>{{1.0, 0.0, 1.0, 1.0, 0.0, 0.0}}));
  problem.excess = Bytes(0);
  EXPECT_EQ(best_shares(problem), ByClass<double>{});
}

// ---- plans ---------------------------------------------------------------------------------------------------------

// The classes of a kernel's traffic are parts of it.
TEST(MemorySplit, the_tensors_of_a_kernel_are_parts_of_its_traffic) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Case c = any_case(SeededRandom(seed));
    const auto program = parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack);
    for (const auto& block : program.blocks) {
      for (const auto& item : block->items) {
        if (item.kernel() == nullptr) { continue; }
        const auto& kernel = item.kernel()->kernel;
        const auto& h = kernel.held;
        for (const Bytes part : {h.weights, h.gradients, h.optimizer, h.kv_cache, h.tables}) {
          ASSERT_GE(part, Bytes(0));
        }
        ASSERT_LE(h.total().value(), kernel.bytes.value() * (1.0 + 1e-12)) << item.name << " seed " << seed;
      }
    }
  }
}

// Both tiers as fast as the first one: serial use changes nothing, whatever is where; parallel use of both for half of
// everything is never slower.
TEST(MemorySplit, equal_tiers_are_one_memory) {
  std::mt19937 random(19);
  std::uniform_real_distribution<double> share(0.0, 1.0);
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Case c = any_case(SeededRandom(seed));
    const auto step = [&](const hardware::Cluster& cluster) {
      return Estimator(c.model, cluster, c.stack, c.job).step_time(c.plan).value();
    };
    auto& chip = c.cluster.accelerator;
    const double plain = step(c.cluster);
    const BytesPerSecond rate = chip.memory_bandwidth * chip.memory_efficiency;
    hardware::Cluster divided = c.cluster;
    ByClass<double> shares;
    for (double& one : shares.values) { one = share(random); }
    divided.accelerator.tier_use = {ExpansionRule::serial, rate, shares};
    EXPECT_NEAR(step(divided) / plain, 1.0, 1e-9) << seed;
    shares.values.fill(0.5);
    divided.accelerator.tier_use = {ExpansionRule::parallel, rate, shares};
    EXPECT_LE(step(divided), plain * (1.0 + 1e-9)) << seed;
  }
}

// What a split costs by the sum of kernels is what the same kernels cost in the estimator's cost model.
TEST(MemorySplit, kernels_of_a_plan_cost_what_the_cost_model_says) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Case c = any_case(SeededRandom(seed));
    const auto program = parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack);
    const auto& chip = c.cluster.accelerator;
    const BytesPerSecond second = chip.memory_bandwidth * 0.1;
    for (const auto rule : {ExpansionRule::serial, ExpansionRule::parallel}) {
      const SplitProblem problem = split_problem(program, chip, rule, second);
      ASSERT_FALSE(problem.kernels.empty());
      for (const auto& kernel : problem.kernels) {
        double sum = 0.0;
        for (const double part : kernel.part.values) { sum += part; }
        ASSERT_NEAR(sum, 1.0, 1e-9);
      }
    }
    for (const auto& block : program.blocks) {
      for (const auto& item : block->items) {
        if (item.kernel() == nullptr) { continue; }
        auto slow = chip;
        slow.tier_use = {ExpansionRule::serial, second, {{1.0, 1.0, 1.0, 1.0, 1.0, 1.0}}};
        const auto& kernel = item.kernel()->kernel;
        const auto all_there = cost::kernel_cost(kernel, slow), here = cost::kernel_cost(kernel, chip);
        ASSERT_NEAR(all_there.memory.value(), here.memory.value() * 10.0 * chip.memory_efficiency,
                    1e-9 * all_there.memory.value());
      }
    }
  }
}

}  // namespace
}  // namespace orrery::estimate::memory_split_test
