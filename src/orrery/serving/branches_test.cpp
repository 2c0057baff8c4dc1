// Laws of branches of reasoning: shared prompts, joins, cuts, conservation.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/serving/test_cases.hpp"

namespace orrery::serving::branches_test {

using engine_test::random_case;
using engine_test::RandomCase;

RandomCase case_with_branches() {
  RandomCase c = random_case(*rc::gen::element<std::int64_t>(2, 3, 5));
  c.load.join = *rc::gen::inRange<std::int64_t>(1, c.load.branches + 1);
  return c;
}

// Sequences of a request, itself first.
std::vector<std::int64_t> sequences_of(const Workload& load, std::int64_t request) {
  std::vector<std::int64_t> list = {request};
  for (std::int64_t k = 0; k + 1 < load.branches; ++k) { list.push_back(load.first_branch_of(request) + k); }
  return list;
}

RC_GTEST_PROP(Branches, aggregated_runs_equal_stepped_ones_bit_for_bit, ()) {
  RandomCase c = case_with_branches();
  Workload again = c.load;
  const FleetRun jumps = c.fleet.run(c.load);
  c.fleet.shape.jumps = Jumps::stepped;
  const FleetRun steps = c.fleet.run(again);
  RC_ASSERT(jumps.end == steps.end && jumps.system_integral == steps.system_integral);
  for (std::size_t i = 0; i < jumps.outcomes.size(); ++i) {
    const Outcome &a = jumps.outcomes[i], &b = steps.outcomes[i];
    RC_ASSERT(a.scheduled == b.scheduled && a.first == b.first && a.last == b.last && a.answered == b.answered);
    RC_ASSERT(a.preemptions == b.preemptions && a.cached == b.cached && a.recomputed == b.recomputed);
    RC_ASSERT(a.cut == b.cut && a.joined_by == b.joined_by);
  }
  for (std::size_t i = 0; i < jumps.engines.size(); ++i) {
    RC_ASSERT(jumps.engines[i].iterations == steps.engines[i].iterations);
    RC_ASSERT(jumps.engines[i].peak_blocks == steps.engines[i].peak_blocks);
    RC_ASSERT(jumps.engines[i].cut_tokens == steps.engines[i].cut_tokens);
  }
}

// The answer is there at the end of the join-th branch; later ones are cut then, and no other one is. Every token is
// one of a branch that ended or of one that was cut.
RC_GTEST_PROP(Branches, an_answer_waits_for_its_branches_and_tokens_are_conserved, ()) {
  RandomCase c = case_with_branches();
  const FleetRun run = c.fleet.run(c.load);
  std::int64_t generated = 0, cut_tokens = 0, cut = 0, ended = 0, outputs = 0, prefilled = 0, prompts = 0,
               preempted = 0;
  for (const EngineTotals& totals : run.engines) {
    generated += totals.generated;
    prefilled += totals.prefilled;
    cut_tokens += totals.cut_tokens;
    cut += totals.cut_branches;
    RC_ASSERT(totals.peak_blocks <= c.fleet.shape.blocks);
  }
  for (std::int64_t request = 0; request < c.load.arriving(); ++request) {
    std::vector<Ticks> ends;
    for (const std::int64_t sequence : sequences_of(c.load, request)) {
      const auto i = static_cast<std::size_t>(sequence);
      RC_ASSERT(c.load.request_of(sequence) == request);
      RC_ASSERT(run.outcomes[i].done());
      preempted += run.outcomes[i].preemptions;
      prompts += c.load.requests[i].input - run.outcomes[i].cached;
      if (run.outcomes[i].cut) { continue; }
      ends.push_back(run.outcomes[i].last);
      outputs += c.load.requests[i].output;
    }
    ended += std::ssize(ends);
    RC_ASSERT(std::ssize(ends) >= c.load.join);
    std::sort(ends.begin(), ends.end());
    const Ticks join = ends[static_cast<std::size_t>(c.load.join - 1)];
    RC_ASSERT(ends.back() == join);  // more may end in the same iteration
    RC_ASSERT(end_of(run.outcomes, request).last == join);
    const bool has_after = std::any_of(c.fleet.options.stations.begin(), c.fleet.options.stations.end(),
                                       [](const auto& s) { return s.place == StagePlace::after_answer; });
    if (!has_after) { RC_ASSERT(run.outcomes[static_cast<std::size_t>(request)].answered == join); }
  }
  RC_ASSERT(generated == outputs + cut_tokens);
  RC_ASSERT(ended + cut == std::ssize(c.load.requests));
  if (c.load.join == c.load.branches) { RC_ASSERT(cut == 0); }
  if (cut == 0 && preempted == 0) { RC_ASSERT(prefilled == prompts); }
  if (c.fleet.settings.reserve == Reserve::whole) { RC_ASSERT(preempted == 0); }
}

// A client with an engine of his own: a run that waits for n of the branches ends with the n-th end of the run that
// waits for all.
RC_GTEST_PROP(Branches, the_first_n_are_the_first_n_of_all, ()) {
  LoadOptions options;
  options.requests = 5;
  options.clients = 1;
  options.input = *rc::gen::inRange<std::int64_t>(1, 200);
  options.output = *rc::gen::inRange<std::int64_t>(1, 100);
  options.range = 0.1;
  options.branches = options.join = *rc::gen::inRange<std::int64_t>(2, 6);
  options.seed = *rc::gen::arbitrary<std::uint32_t>();
  TestFleet fleet;
  Workload all = generated(options);
  const FleetRun run = fleet.run(all);
  options.join = *rc::gen::inRange<std::int64_t>(1, options.branches + 1);
  Workload some = generated(options);
  const FleetRun first = fleet.run(some);
  for (std::int64_t request = 0; request < all.arriving(); ++request) {
    std::vector<Ticks> ends;
    const auto r = static_cast<std::size_t>(request);
    for (const std::int64_t sequence : sequences_of(all, request)) {
      ends.push_back(run.outcomes[static_cast<std::size_t>(sequence)].last - all.requests[r].arrival);
    }
    std::sort(ends.begin(), ends.end());
    RC_ASSERT(run.outcomes[r].answered - all.requests[r].arrival == ends.back());
    const Ticks end = first.outcomes[r].answered - some.requests[r].arrival;
    RC_ASSERT(end == ends[static_cast<std::size_t>(options.join - 1)]);
    RC_ASSERT(first.outcomes[r].first - some.requests[r].arrival == run.outcomes[r].first - all.requests[r].arrival);
  }
}

// By hand: a prompt of 40 tokens and outputs of 3. The prompt takes 10 ms + 40 x 100 us = 14 ms. Then the second branch
// finds 32 of 40 tokens (two whole blocks of 16) and computes 8 next to the first branch's second token: 10 ms + 8 x
// 100 us + 20 us + 41 x 0.1 us. The first branch's last token comes with the second one's second; the second branch's
// last token alone. Blocks: 2 shared, and one for each branch.
TEST(Branches, branches_share_whole_blocks_of_the_prompt) {
  LoadOptions options;
  options.requests = 1;
  options.input = 40;
  options.output = 3;
  options.branches = options.join = 2;
  Workload load = generated(options), alone = load;
  TestFleet fleet;
  const FleetRun run = fleet.run(load);
  const double prompt = 14e-3, fork = 10e-3 + 8 * 100e-6 + 20e-6 + 41 * 0.1e-6;
  const double both = 10e-3 + 2 * 20e-6 + (42 + 41) * 0.1e-6, one = 10e-3 + 20e-6 + 42 * 0.1e-6;
  EXPECT_NEAR(seconds_of(run.outcomes[0].first), prompt, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[1].first), prompt + fork, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[0].last), prompt + fork + both, 1e-12);
  EXPECT_NEAR(seconds_of(run.outcomes[1].last), prompt + fork + both + one, 1e-12);
  EXPECT_EQ(run.outcomes[0].answered, run.outcomes[1].last);
  EXPECT_EQ(run.outcomes[0].joined_by, 1);
  EXPECT_EQ(run.outcomes[1].cached, 32);
  EXPECT_EQ(run.engines[0].peak_blocks, 4);
  EXPECT_EQ(run.engines[0].prefilled, 48);
  fleet.settings.prefix_cache = false;  // every branch computes and holds the prompt
  const FleetRun without = fleet.run(alone);
  EXPECT_EQ(without.engines[0].prefilled, 80);
  EXPECT_EQ(without.engines[0].peak_blocks, 6);
}

// Requests and their own answers do not depend on the number of branches.
TEST(Branches, more_branches_are_the_same_requests) {
  LoadOptions options;
  options.requests = 30;
  options.rate = 5.0;
  options.input = 100;
  options.output = 50;
  options.range = 0.2;
  const Workload plain = generated(options);
  options.branches = 3;
  options.join = 2;
  const Workload more = generated(options);
  ASSERT_EQ(more.arriving(), 30);
  ASSERT_EQ(more.requests.size(), 90U);
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(plain.requests[i].arrival, more.requests[i].arrival);
    EXPECT_EQ(plain.requests[i].input, more.requests[i].input);
    EXPECT_EQ(plain.requests[i].output, more.requests[i].output);
  }
}

}  // namespace orrery::serving::branches_test
