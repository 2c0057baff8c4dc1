// Runs whose limits are far enough away are the same run.
#include "orrery/serving/headroom.hpp"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::headroom_test {
namespace {

Headroom headroom_of(const FleetRun& run) {
  Headroom headroom;
  for (const EngineTotals& totals : run.engines) { headroom.add(totals.headroom); }
  return headroom;
}

bool are_equal(const FleetRun& a, const FleetRun& b) {
  if (a.end != b.end) { return false; }
  for (std::size_t i = 0; i < a.outcomes.size(); ++i) {
    const Outcome &x = a.outcomes[i], &y = b.outcomes[i];
    if (x.scheduled != y.scheduled || x.first != y.first || x.last != y.last || x.engine != y.engine ||
        x.cached != y.cached || x.preemptions != y.preemptions) {
      return false;
    }
  }
  return true;
}

// Around the limits that the run came to, so that often they are just allowed or just not.
std::int64_t near_to(std::int64_t reached, std::int64_t was) {
  const std::vector<std::int64_t> choices = {was, 2 * was, reached, reached + 1, reached + 7};
  const std::int64_t drawn = *rc::gen::elementOf(choices);
  return std::max<std::int64_t>(1, drawn);
}

RC_GTEST_PROP(Headroom, a_run_that_it_allows_is_the_same_bit_for_bit, ()) {
  auto c = engine_test::random_case();
  // Loads from tiers, predicted waits and scaling by a part of the cache act before a limit is reached.
  c.fleet.shape.tiers.clear();
  c.fleet.options.store_tokens = 0;
  c.fleet.options.admission = {};
  c.fleet.autoscale.signal = ScaleSignal::requests;
  if (*rc::gen::arbitrary<bool>()) { c.fleet.shape.blocks *= 20; }
  Workload again = c.load;
  const FleetRun run = c.fleet.run(c.load);
  const Headroom headroom = headroom_of(run);
  const auto had = engine_limits(c.fleet.settings, c.fleet.shape);
  RC_ASSERT(had.has_value());
  auto& s = c.fleet.settings;
  const std::int64_t ranks = c.fleet.shape.ranks, blocks = c.fleet.shape.blocks;
  s.max_sequences = near_to(headroom.most_sequences / ranks, s.max_sequences);
  s.max_batched_tokens = near_to(std::max(headroom.most_tokens / ranks, headroom.largest_chunk), s.max_batched_tokens);
  const std::int64_t spare = std::max<std::int64_t>(0, std::min(headroom.least_free, blocks));
  c.fleet.shape.blocks = near_to(blocks - std::max<std::int64_t>(0, spare - 2), blocks);
  const bool is_allowed = headroom.allows(*had, *engine_limits(s, c.fleet.shape));
  RC_CLASSIFY(is_allowed);
  if (is_allowed) { RC_ASSERT(are_equal(run, c.fleet.run(again))); }
}

// One request of 100 + 10 tokens in blocks of 16: 7 blocks.
TEST(Headroom, is_what_a_run_leaves) {
  TestFleet fleet;
  fleet.settings.block_tokens = 16;
  fleet.shape.blocks = 10;
  Workload load = engine_test::load_of(1, 0.0, 100, 10, 1.0, 1);
  const Headroom headroom = headroom_of(fleet.run(load));
  EXPECT_EQ(headroom.most_sequences, 1);
  EXPECT_EQ(headroom.most_tokens, 100);
  EXPECT_EQ(headroom.largest_chunk, 100);
  EXPECT_EQ(headroom.least_free, 3);
}

TEST(Headroom, a_limit_that_was_reached_allows_no_other_one) {
  const EngineLimits had{8, 100, 100, 50, 1, true};
  const auto other = [&](auto member, std::int64_t value) {
    EngineLimits limits = had;
    limits.*member = value;
    return limits;
  };
  const Headroom headroom{8, 99, 99, 4};
  EXPECT_TRUE(headroom.allows(had, had));
  EXPECT_FALSE(headroom.allows(had, other(&EngineLimits::sequences, 9)));
  EXPECT_TRUE(headroom.allows(had, other(&EngineLimits::tokens, 1000)));
  EXPECT_FALSE(headroom.allows(had, other(&EngineLimits::tokens, 99)));
  EXPECT_TRUE(headroom.allows(had, other(&EngineLimits::blocks, 48)));
  EXPECT_FALSE(headroom.allows(had, other(&EngineLimits::blocks, 47)));
  EngineLimits two_ranks = other(&EngineLimits::blocks, 60);
  two_ranks.ranks = 2;
  Headroom large{7, 99, 99, 40};
  EXPECT_TRUE(large.allows(had, two_ranks));
  large.largest_request = 31;  // of 30 on a rank
  EXPECT_FALSE(large.allows(had, two_ranks));
  const Headroom short_of_blocks{1, 1, 1, -1};
  EXPECT_FALSE(short_of_blocks.allows(had, other(&EngineLimits::blocks, 51)));
  EngineLimits waits = other(&EngineLimits::tokens, 1000);
  waits.cuts_prompts = false;
  EXPECT_FALSE(headroom.allows(had, waits));
  // A rank that may get all tokens of an iteration computes no more than a prompt may have.
  EngineLimits ranks = had, more = had;
  ranks.chunk = 50;
  more.chunk = 200;
  EXPECT_TRUE((Headroom{1, 99, 49, 4}.allows(ranks, more)));
  ranks.is_shared_out = more.is_shared_out = true;
  EXPECT_FALSE((Headroom{1, 99, 49, 4}.allows(ranks, more)));
  EXPECT_TRUE((Headroom{1, 49, 49, 4}.allows(ranks, more)));
}

}  // namespace
}  // namespace orrery::serving::headroom_test
