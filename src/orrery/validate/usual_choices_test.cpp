#include "orrery/validate/usual_choices.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::validate::usual_choices_test {
namespace {

using parallel::Plan;
using parallel::Recompute;

// 24 layers of 2048, sequences of 2048 tokens, 16 devices in nodes of 8, tp 2.
struct Example {
  workload::Model model = parallel::test::gpt(24, 2048, 16, 51200);
  hardware::Cluster cluster = parallel::test::cluster_of({8, 2});
  hardware::Stack stack;
  estimate::Request request;

  explicit Example(std::int64_t batch) {
    stack.attention.kernel = hardware::AttentionKernel::plain;
    stack.memory_reserve = 0.0;
    cluster.accelerator.memory = Bytes(1e15);
    request.global_batch = batch;
    request.seq = 2048;
    request.tp = 2;
  }
  [[nodiscard]] Plan plan() const {
    return usual_choices(request, model, cluster, stack,
                         estimate::plan_with_defaults(request, model, cluster.devices, stack));
  }
  [[nodiscard]] Bytes need(Recompute recompute, std::int64_t micro_batch) const {
    Plan plan = this->plan();
    plan.recompute = recompute;
    plan.micro_batch = micro_batch;
    return estimate::Estimator(model, cluster, stack, estimate::job_of(request, model, stack)).memory(plan).need;
  }
};

// A replica has 8 sequences of a batch of 64, and 6 of a batch of 48, which 8, 5 and 4 do not divide.
TEST(UsualChoices, are_the_largest_micro_batch_without_recompute_if_memory_is_enough) {
  EXPECT_EQ(Example(64).plan().micro_batch, 8);
  EXPECT_EQ(Example(64).plan().recompute, Recompute::none);
  EXPECT_EQ(Example(48).plan().micro_batch, 6);
}

// Recompute has priority: micro-batch 1 without recompute is preferred to 8 with it. The memory of the device is set to
// what each choice requires in turn.
TEST(UsualChoices, are_the_lowest_recompute_that_fits_then_the_largest_micro_batch) {
  const std::vector<std::int64_t> sizes = {8, 4, 2, 1};  // divisors of 8 sequences
  for (const auto enough_for : {Recompute::none, Recompute::selective, Recompute::full}) {
    for (const std::int64_t size : sizes) {
      Example e(64);
      e.cluster.accelerator.memory = e.need(enough_for, size);
      std::optional<std::pair<Recompute, std::int64_t>> expected;
      for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        for (const std::int64_t candidate : sizes) {
          const bool fits = e.need(recompute, candidate) <= e.cluster.accelerator.memory;
          if (fits && !expected) { expected = {recompute, candidate}; }
        }
      }
      ASSERT_TRUE(expected);
      EXPECT_EQ(e.plan().recompute, expected->first);
      EXPECT_EQ(e.plan().micro_batch, expected->second);
      if (size == 1) { EXPECT_EQ(e.plan().recompute, enough_for); }
    }
  }
}

TEST(UsualChoices, need_the_lowest_memory_if_nothing_fits) {
  Example e(64);
  e.cluster.accelerator.memory = Bytes(1e6);
  EXPECT_EQ(e.plan().recompute, Recompute::full);
  EXPECT_EQ(e.plan().micro_batch, 1);
}

TEST(UsualChoices, keep_what_is_given) {
  Example e(64);
  e.request.recompute = Recompute::selective;
  e.request.micro_batch = 2;
  EXPECT_EQ(e.plan().recompute, Recompute::selective);
  EXPECT_EQ(e.plan().micro_batch, 2);
}

}  // namespace
}  // namespace orrery::validate::usual_choices_test
