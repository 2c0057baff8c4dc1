// Ranks whose kernels take longer.
#include "orrery/simulate/stragglers.hpp"

#include <gtest/gtest.h>

#include <array>

#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::stragglers_test {
namespace {

// Kernels of 100 us, host nodes of 10 us; rank 1 is 1.5 times as slow.
TEST(Stragglers, take_longer_for_kernels_only) {
  const Rig rig = Rig({{Wiring::switched, 2}}, {"direct"}).physical();
  auto job = job_of(rig, [](std::uint32_t) { return std::vector{compute(1, 100), on_host(compute(2, 10, {1}))}; });
  ASSERT_TRUE(job);
  ASSERT_TRUE(slow_ranks(*job, std::array{Straggler{1, 1, 1.5}}));
  EXPECT_EQ(finish_of(simulate(*job)), (Times{110'000, 160'000}));
}

TEST(Stragglers, must_be_ranks_of_the_job) {
  const Rig rig = Rig({{Wiring::switched, 2}}, {"direct"}).physical();
  auto job = job_of(rig, [](std::uint32_t) { return std::vector{compute(1, 100)}; });
  ASSERT_TRUE(job);
  const auto slowed = slow_ranks(*job, std::array{Straggler{1, 2, 1.5}});
  ASSERT_FALSE(slowed);
  EXPECT_EQ(slowed.error().text(), "--slow: rank 2: the ranks are 0 to 1");
}

}  // namespace
}  // namespace orrery::simulate::test::stragglers_test
