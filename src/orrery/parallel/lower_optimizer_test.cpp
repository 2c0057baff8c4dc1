// The update at the end of a step: traffic and state of each optimizer, and the work of Muon, by hand.
#include "orrery/parallel/lower_optimizer.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/parallel/test_items.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::lower_optimizer_test {
namespace {

using hardware::OptimizerKind;
using test::Case;

constexpr double kHidden = 64.0;

// GPT of two layers, hidden 64: per layer matrices of 64 x 192 (qkv), 64 x 64 (output), 64 x 256 and 256 x 64.
Case small(OptimizerKind kind) {
  Case c;
  c.model = test::gpt(2, 64, 4, 1024);
  c.job = {8, 128, hardware::Precision::bf16, Task::pretrain};
  c.cluster = test::cluster_of({1});
  c.stack.optimizer.kind = kind;
  return c;
}

Case replicated(OptimizerKind kind, int zero) {
  Case c = small(kind);
  c.plan.dp = 8;
  c.cluster = test::cluster_of({8});
  c.plan.zero = zero;
  return c;
}

Program lowered(const Case& c) { return lower(c.model, c.job, c.plan, c.cluster, c.stack); }

std::vector<Item> update_of(const Program& program) {
  std::vector<Item> items;
  for (const auto& step : program.classes[RankClassId(0)].finish) {
    const Block& block = *program.blocks[step.work];
    if (block.name == "optimizer") { items.insert(items.end(), block.items.begin(), block.items.end()); }
  }
  return items;
}

const hardware::Kernel& step_of(const std::vector<Item>& items) {
  const auto found = std::find_if(items.begin(), items.end(), [](const Item& i) { return i.name == "optimizer.step"; });
  EXPECT_NE(found, items.end());
  return test::kernel_of(*found);
}

double orthogonalization_flops(const std::vector<Item>& items) {
  double sum = 0.0;
  for (const Item& item : items) { sum += test::kernel_of(item).flops.value(); }
  return sum;
}

// Elements of the matrices of both layers: 12 h^2 each.
constexpr double kMatrices = 2.0 * 12.0 * kHidden * kHidden;

// Five iterations of 2 (2 m^2 n + m^3) with m = h for all four matrices, whose n add up to (3 + 1 + 4 + 4) h:
// 10 h^3 (2 x 12 + 4) a layer.
constexpr double kOrthogonalization = 2.0 * 10.0 * 28.0 * kHidden * kHidden * kHidden;

// Gradient 4 in; master 4 and moments in and out; weight 2 out.
TEST(LowerOptimizer, traffic_of_a_step_by_hand) {
  const std::vector<std::pair<OptimizerKind, double>> state{
      {OptimizerKind::adam, 8.0}, {OptimizerKind::adam8bit, 2.00390625}, {OptimizerKind::sgd, 4.0}};
  for (const auto& [kind, moments] : state) {
    const Program program = lowered(small(kind));
    const double weights = program.classes[RankClassId(0)].parameters;
    const auto items = update_of(program);
    ASSERT_EQ(items.size(), 1u);
    EXPECT_DOUBLE_EQ(step_of(items).bytes.value(), weights * (4.0 + 2.0 * (4.0 + moments) + 2.0));
    EXPECT_DOUBLE_EQ(program.memory.front().optimizer.value(), weights * (4.0 + moments));
  }
}

TEST(LowerOptimizer, muon_keeps_one_moment_of_matrices_and_two_of_everything_else) {
  const Program program = lowered(small(OptimizerKind::muon));
  const double weights = program.classes[RankClassId(0)].parameters;
  EXPECT_DOUBLE_EQ(program.memory.front().optimizer.value(), weights * 12.0 - kMatrices * 4.0);
  const double bytes = weights * (4.0 + 2.0 * 12.0 + 2.0) - kMatrices * 2.0 * 4.0;
  EXPECT_DOUBLE_EQ(step_of(update_of(program)).bytes.value(), bytes);
}

TEST(LowerOptimizer, newton_schulz_by_hand) {
  const auto items = update_of(lowered(small(OptimizerKind::muon)));
  EXPECT_DOUBLE_EQ(orthogonalization_flops(items), kOrthogonalization);
  EXPECT_EQ(test::kernel_of(items.front()).bytes, Bytes(3.0 * 2.0 * kMatrices));  // copies, norm, result
  // The products of the output projection, 64 x 64, of two layers: each reads or writes 2 or 3 matrices of 64 x 64.
  const auto square = std::find_if(items.begin(), items.end(), [](const Item& i) {
    return i.name == "optimizer.gram" && test::kernel_of(i).k == 64;
  });
  ASSERT_NE(square, items.end());
  EXPECT_DOUBLE_EQ(test::kernel_of(*square).bytes.value(), 5.0 * 2.0 * 2.0 * kHidden * kHidden * 2.0);
  EXPECT_EQ(test::kernel_of(*square).launches, 10);
}

// Whole matrices are distributed over the replicas: a rank gets the mean, an eighth, or the largest one if that is
// more.
TEST(LowerOptimizer, zero_1_divides_the_matrices_among_replicas) {
  const double whole = orthogonalization_flops(update_of(lowered(replicated(OptimizerKind::muon, 0))));
  EXPECT_DOUBLE_EQ(whole, kOrthogonalization);
  const double largest = 10.0 * (2.0 * 4.0 + 1.0) * kHidden * kHidden * kHidden;
  EXPECT_GT(largest, kOrthogonalization / 8.0);
  EXPECT_DOUBLE_EQ(orthogonalization_flops(update_of(lowered(replicated(OptimizerKind::muon, 1)))), largest);
  Case deep = replicated(OptimizerKind::muon, 1);
  deep.model.layers = 16;
  EXPECT_DOUBLE_EQ(orthogonalization_flops(update_of(lowered(deep))), 8.0 * kOrthogonalization / 8.0);
}

// Every rank gathers the momentum of all matrices in 16 bits.
TEST(LowerOptimizer, zero_3_gathers_momentum_and_orthogonalizes_everywhere) {
  const auto items = update_of(lowered(replicated(OptimizerKind::muon, 3)));
  EXPECT_DOUBLE_EQ(orthogonalization_flops(items), kOrthogonalization);
  ASSERT_TRUE(test::is_collective(items.front()));
  EXPECT_EQ(test::call_of(items.front()).collective, Collective::all_gather);
  EXPECT_EQ(test::call_of(items.front()).bytes, Bytes(2.0 * kMatrices));
}

// A tensor-parallel slice is a matrix of its own, with the shorter side of the slice.
TEST(LowerOptimizer, slices_are_orthogonalized_on_their_own) {
  Case c = small(OptimizerKind::muon);
  c.plan.tp = 2;
  c.cluster = test::cluster_of({2});
  // qkv 64 x 96, output 32 x 64, 64 x 128, 128 x 64: m = 64 with n = 96 + 128 + 128, and m = 32 with n = 64.
  const double layer =
      10.0 * (2.0 * 64 * 64 * (96.0 + 128 + 128) + 3.0 * 64 * 64 * 64 + 2.0 * 32 * 32 * 64 + 32.0 * 32 * 32);
  EXPECT_DOUBLE_EQ(orthogonalization_flops(update_of(lowered(c))), 2.0 * layer);
}

// A layer whose recompute differs from the others' has the same matrices.
TEST(LowerOptimizer, recompute_does_not_change_the_update) {
  Case c = small(OptimizerKind::muon);
  c.plan.recompute = Recompute::full;
  c.plan.recompute_layers = 1;
  EXPECT_DOUBLE_EQ(orthogonalization_flops(update_of(lowered(c))), kOrthogonalization);
}

}  // namespace
}  // namespace orrery::parallel::lower_optimizer_test
