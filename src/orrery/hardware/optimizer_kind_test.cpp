#include "orrery/hardware/optimizer_kind.hpp"

#include <gtest/gtest.h>

namespace orrery::hardware::optimizer_kind_test {
namespace {

constexpr Bytes kTwoOfFp32{8.0};

// Adam 4 + 4; 8-bit Adam 1 + 1 and two scales of 4 bytes per 2,048 weights; momentum alone 4.
TEST(OptimizerKind, state_by_hand) {
  EXPECT_EQ(state_per_weight(OptimizerKind::adam, kTwoOfFp32), Bytes(8.0));
  EXPECT_EQ(state_per_weight(OptimizerKind::adam8bit, kTwoOfFp32), Bytes(2.00390625));
  EXPECT_EQ(state_per_weight(OptimizerKind::sgd, kTwoOfFp32), Bytes(4.0));
  EXPECT_EQ(state_per_weight(OptimizerKind::muon, kTwoOfFp32), Bytes(8.0));  // embedding, head, norms
  EXPECT_EQ(state_per_matrix_weight(OptimizerKind::muon, kTwoOfFp32), Bytes(4.0));
}

TEST(OptimizerKind, only_muon_treats_matrices_differently) {
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adam8bit, OptimizerKind::sgd}) {
    EXPECT_EQ(state_per_matrix_weight(kind, kTwoOfFp32), state_per_weight(kind, kTwoOfFp32)) << name_of(kind);
  }
}

// A stack with moments of 16 bits keeps its momentum in 16 bits, too.
TEST(OptimizerKind, momentum_has_the_format_of_the_stack_s_moments) {
  EXPECT_EQ(state_per_weight(OptimizerKind::sgd, Bytes(4.0)), Bytes(2.0));
  EXPECT_EQ(state_per_matrix_weight(OptimizerKind::muon, Bytes(4.0)), Bytes(2.0));
}

}  // namespace
}  // namespace orrery::hardware::optimizer_kind_test
