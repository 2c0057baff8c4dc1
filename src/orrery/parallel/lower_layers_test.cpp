// Distribution of layers over virtual stages.
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/parallel/program.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::lower_layers_test {
namespace {

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

RC_GTEST_PROP(LowerLayers, layers_are_distributed_evenly_and_the_ends_have_fewer, ()) {
  const auto stages = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto chunks = *rc::gen::inRange<std::int64_t>(1, 6);
  const auto layers = *rc::gen::inRange<std::int64_t>(stages * chunks, 10 * stages * chunks);
  Plan plan;
  plan.pp = stages;
  plan.vpp = chunks;
  const auto shares = layers_per_virtual_stage(test::gpt(layers, 256, 4, 1024), plan);
  RC_ASSERT(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == layers);
  for (const auto share : shares) { RC_ASSERT(share == layers / (stages * chunks) || share == 1 + shares.back()); }
  RC_ASSERT(shares.back() == layers / (stages * chunks));
  for (std::size_t q = 2; q + 1 < shares.size(); ++q) { RC_ASSERT(shares[q] >= shares[q - 1]); }
}

// Llama Team, "The Llama 3 Herd of Models" (arXiv:2407.21783), section 3.3.2: 126 layers over 16 stages, one layer
// fewer on the first and the last. 126 = 16 x 7 + 14.
TEST(LowerLayers, llama_3_1_405b_over_16_stages_has_7_layers_on_the_first_and_the_last_and_8_between) {
  std::vector<std::int64_t> expected(16, 8);
  expected.front() = expected.back() = 7;
  Plan plan;
  plan.pp = 16;
  EXPECT_EQ(layers_per_virtual_stage(test::gpt(126, 256, 4, 1024), plan), expected);
  plan.embedding_as_layer = plan.head_as_layer = true;  // 128 = 16 x 8, one of them the embedding, one the head
  EXPECT_EQ(layers_per_virtual_stage(test::gpt(126, 256, 4, 1024), plan), expected);
}

// DeepSeek-V3's 61 layers over 16 stages: 3 on the first and 2 on the last leave 56 = 14 x 4.
TEST(LowerLayers, the_ends_have_the_given_layers_and_the_others_the_rest) {
  std::vector<std::int64_t> expected(16, 4);
  expected.front() = 3;
  expected.back() = 2;
  Plan plan;
  plan.pp = 16;
  plan.first_stage_layers = 3;
  plan.last_stage_layers = 2;
  const auto model = test::gpt(61, 256, 4, 1024);
  EXPECT_EQ(layers_per_virtual_stage(model, plan), expected);
  plan.schedule = ScheduleKind::dualpipe;
  EXPECT_EQ(layers_per_virtual_stage(model, plan), expected);
  EXPECT_EQ(chunks_of(plan), 2);
  EXPECT_EQ(virtual_stage(plan, 3, 0), 3);
  EXPECT_EQ(virtual_stage(plan, 3, 1), 12);
}

RC_GTEST_PROP(LowerLayers, every_layer_has_one_virtual_stage, ()) {
  const test::Case c = test::any_case(kDraw);
  const auto shares = layers_per_virtual_stage(c.model, c.plan);
  RC_ASSERT(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}) == c.model.depth());
  for (const auto share : shares) { RC_ASSERT(share >= 0); }
  const auto stages = c.plan.pp, chunks = c.plan.vpp;
  std::int64_t first = 0, last = 0;
  for (std::int64_t k = 0; k < chunks; ++k) {
    first += shares[static_cast<std::size_t>(k * stages)];
    last += shares[static_cast<std::size_t>(k * stages + stages - 1)];
  }
  if (c.plan.first_stage_layers > 0) { RC_ASSERT(first == c.plan.first_stage_layers); }
  if (c.plan.last_stage_layers > 0) { RC_ASSERT(last == c.plan.last_stage_layers); }
}

}  // namespace
}  // namespace orrery::parallel::lower_layers_test
