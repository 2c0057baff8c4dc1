// Neighbouring plans, against their definition.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/explore/neighbours.hpp"
#include "orrery/explore/test_enumerate.hpp"
#include "orrery/explore/test_spaces.hpp"
#include "orrery/explore/test_walks.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore::neighbours_test {
namespace {

using parallel::Plan;

// A mixture of 8 experts on 8 nodes of 8.
std::vector<Plan> mixture_space(std::int64_t seq) {
  auto model = parallel::test::llama(16, 1024, 16, 16, 4096, 4096);
  model.experts = {.count = 8, .active = 2, .ffn = 1024};
  const parallel::Job job{64, seq, hardware::Precision::bf16, parallel::Task::pretrain};
  return enumerate(model, job, parallel::test::cluster_of({8, 8}), {}, true);
}

// Prices that select a plan: more chunks, then larger micro-batches, are faster; micro-batches above `most` do not fit.
class TablePrices final : public Evaluator {
 public:
  explicit TablePrices(std::int64_t most = 1024) : most_(most) {}
  Seconds bound(const Point& point) override { return unlimited_step_time(point); }
  bool may_fit(const Point&) override { return true; }
  std::optional<Price> price(const Point& point) override {
    if (point.plan.micro_batch > most_) { return std::nullopt; }
    return Price{unlimited_step_time(point), Bytes(1.0)};
  }
  Seconds unlimited_step_time(const Point& point) override {
    return Seconds(100.0 / static_cast<double>(point.plan.vpp) + 1.0 / static_cast<double>(point.plan.micro_batch));
  }

 private:
  std::int64_t most_;
};

constexpr std::int64_t kBatch = 64;

std::vector<Neighbour> neighbours_in(const std::vector<Plan>& space, const Plan& plan, Evaluator& evaluator,
                                     std::int64_t batch = kBatch) {
  const auto list = test::listed(space, batch);
  test::ListWalk walk(list);
  return neighbours(walk, {plan, batch}, evaluator);
}

std::vector<std::string> texts_of(const std::vector<Neighbour>& found) {
  std::vector<std::string> texts;
  for (const auto& [axis, fastest] : found) {
    const Plan& plan = fastest.point.plan;
    if (axis == "tp") { texts.push_back("tp " + std::to_string(plan.tp)); }
    if (axis == "ep") { texts.push_back("ep " + std::to_string(plan.ep)); }
    if (axis == "vpp") { texts.push_back("vpp " + std::to_string(plan.vpp)); }
    if (axis == "cp") { texts.push_back("cp " + std::to_string(plan.cp)); }
    if (axis == "zero") { texts.push_back("zero " + std::to_string(plan.zero)); }
  }
  return texts;
}

// tp 2, pp 2, dp 16, ep 4, vpp 2: neighbours are ep 2 and 8, vpp 1 (which is 1f1b) and 3. vpp 4 is not the nearest.
TEST(Neighbours, are_the_nearest_values_of_each_axis_below_and_above) {
  Plan plan;
  plan.tp = 2;
  plan.pp = 2;
  plan.dp = 16;
  plan.ep = 4;
  plan.vpp = 2;
  plan.schedule = parallel::ScheduleKind::interleaved;
  plan.sequence_parallel = true;
  plan.zero = 1;
  TablePrices table;
  const auto found = neighbours_in(mixture_space(4096), plan, table);
  EXPECT_THAT(texts_of(found),
              testing::ElementsAre("tp 1", "tp 4", "ep 2", "ep 8", "vpp 1", "vpp 3", "zero 0", "zero 2"));
  const Plan& narrow = found.front().found.point.plan;
  EXPECT_EQ(narrow.dp, 32);
  EXPECT_FALSE(narrow.sequence_parallel);  // has no effect with tp 1
  EXPECT_EQ(narrow.zero, 1);
}

// tp 2 of 64 devices without stages: tp 1 has 64 replicas of one sequence; tp 4 has 16 replicas of up to 4, or of 2 if
// memory is limited.
TEST(Neighbours, that_change_the_batch_of_a_replica_choose_their_micro_batch) {
  Plan plan;
  plan.tp = 2;
  plan.dp = 32;
  plan.sequence_parallel = true;
  for (const std::int64_t most : {4, 2}) {
    TablePrices table(most);
    const auto found = neighbours_in(mixture_space(4096), plan, table);
    ASSERT_THAT(texts_of(found), testing::IsSupersetOf({"tp 1", "tp 4"}));
    EXPECT_EQ(found[0].found.point.plan.micro_batch, 1);
    const auto& wide = found[1].found;
    EXPECT_EQ(wide.point.plan.micro_batch, most);
    EXPECT_EQ(wide.beyond_memory.has_value(), most == 2);
    if (wide.beyond_memory) { EXPECT_EQ(wide.beyond_memory->plan.micro_batch, 4); }
    for (const auto& [axis, one] : found) {
      if (axis == "recompute" || axis == "zero") { EXPECT_EQ(one.point.plan.micro_batch, 1) << axis; }
    }
  }
}

// If nothing fits, the fastest plan.
TEST(Neighbours, exist_when_nothing_fits) {
  std::vector<Point> points(3);
  points[1].plan.micro_batch = points[2].plan.micro_batch = 4;
  TablePrices nothing(0);
  const auto found = fastest(points, nothing);
  EXPECT_EQ(found.point.plan, points[1].plan);
  EXPECT_FALSE(found.beyond_memory);
}

// From cp 1 to cp 2 of 8,192 tokens: the method that comes first.
TEST(Neighbours, of_cp_1_have_a_method) {
  Plan plan;
  plan.dp = 64;
  TablePrices table;
  const auto found = neighbours_in(mixture_space(8192), plan, table);
  const auto cp = std::find_if(found.begin(), found.end(), [](const auto& one) { return one.axis == "cp"; });
  ASSERT_NE(cp, found.end());
  EXPECT_EQ(cp->found.point.plan.cp, 2);
  EXPECT_EQ(cp->found.point.plan.dp, 32);
  EXPECT_EQ(cp->found.point.plan.cp_method, workload::ContextMethod::ring);
}

TEST(Neighbours, of_every_plan_are_in_the_space_and_mutual) {
  const auto space = mixture_space(8192);
  const auto list = test::listed(space, kBatch);
  TablePrices table;
  const auto neighbours_of = [&](const Plan& plan) {
    test::ListWalk walk(list);
    return neighbours(walk, {plan, kBatch}, table);
  };
  const std::size_t sampled = orrery::test::kSanitizers ? 3 : 20;
  for (std::size_t i = 0; i < space.size(); i += space.size() / sampled) {
    for (const auto& near : neighbours_of(space[i])) {
      const Plan& plan = near.found.point.plan;
      ASSERT_NE(std::find(space.begin(), space.end(), plan), space.end());
      ASSERT_FALSE(plan == space[i]);
      const auto back = neighbours_of(plan);
      const bool mutual = std::any_of(back.begin(), back.end(), [&](const auto& one) { return one.axis == near.axis; });
      ASSERT_TRUE(mutual) << near.axis;
    }
  }
}

TEST(Neighbours, of_a_space_of_one_plan_are_none) {
  TablePrices table;
  EXPECT_TRUE(neighbours_in({Plan{}}, Plan{}, table).empty());
  EXPECT_TRUE(neighbours_in({}, Plan{}, table).empty());
}

class Prices final : public Evaluator {
 public:
  explicit Prices(const test::SearchCase& c) : estimator_(c.model, c.cluster, c.stack, c.job) {}
  Seconds bound(const Point& point) override { return estimator_.step_time_bound(point.plan); }
  bool may_fit(const Point&) override { return true; }
  std::optional<Price> price(const Point& point) override {
    const auto price = estimator_.price(point.plan);
    return price ? std::optional(Price{price->step_time, price->memory}) : std::nullopt;
  }
  Seconds unlimited_step_time(const Point& point) override { return estimator_.step_time(point.plan); }

  std::optional<Seconds> fitting(const Plan& plan) {
    const auto found = price({plan, 0});
    return found ? std::optional(found->step_time) : std::nullopt;
  }
  Seconds unlimited(const Plan& plan) { return unlimited_step_time({plan, 0}); }

 private:
  estimate::Estimator estimator_;
};

// All candidates for a neighbour on pp, by definition: tp, cp, ep, etp, recompute, cp method and sequence parallelism
// as in `plan`, pp and zero as in `near`; any micro-batch and vpp.
std::vector<Plan> of_its_kind(const std::vector<Plan>& space, const Plan& plan, const Plan& near) {
  std::vector<Plan> kind;
  std::copy_if(space.begin(), space.end(), std::back_inserter(kind), [&](const Plan& other) {
    Plan follows = plan;
    follows.pp = near.pp;
    follows.dp = near.dp;
    follows.zero = near.zero;
    follows.micro_batch = other.micro_batch;
    follows.vpp = other.vpp;
    follows.schedule = other.schedule;
    return follows == other;
  });
  return kind;
}

std::optional<Seconds> least_time(const std::vector<Plan>& plans, Prices& prices, bool must_fit) {
  std::optional<Seconds> least;
  for (const Plan& plan : plans) {
    const auto time = must_fit ? prices.fitting(plan) : std::optional(prices.unlimited(plan));
    if (time && (!least || *time < *least)) { least = time; }
  }
  return least;
}

// Against all prices: the result is the fastest candidate that fits, or the fastest if none does; no value between has
// a candidate.
TEST(Neighbours, on_pp_of_random_jobs_are_the_fastest_of_their_kind) {
  std::int64_t fitting = 0, beyond = 0, unfit = 0;
  for (std::uint64_t seed = 0; seed < orrery::test::cases(40U); ++seed) {
    parallel::test::SeededRandom random(seed);
    const auto c = test::any_search(random);
    const auto space = enumerate(c.model, c.job, c.cluster, c.fixed, true);
    Prices prices(c);
    for (int i = 0; i < 10 && !space.empty(); ++i) {
      const Plan& plan = space[static_cast<std::size_t>(random(0, static_cast<std::int64_t>(space.size())))];
      for (const auto& [axis, found] : neighbours_in(space, plan, prices, c.job.global_batch)) {
        if (axis != "pp") { continue; }
        const auto kind = of_its_kind(space, plan, found.point.plan);
        ASSERT_NE(std::find(kind.begin(), kind.end(), found.point.plan), kind.end()) << "seed " << seed;
        if (plan.replicas() == 1) { continue; }  // zero may change too
        const auto least = least_time(kind, prices, true), at_all = least_time(kind, prices, false);
        ASSERT_EQ(prices.unlimited(found.point.plan), least.value_or(*at_all)) << "seed " << seed;
        ASSERT_EQ(prices.fitting(found.point.plan).has_value(), least.has_value());
        ASSERT_EQ(found.beyond_memory.has_value(), least && *at_all < *least) << "seed " << seed;
        ++(!least ? unfit : found.beyond_memory ? beyond : fitting);
      }
    }
  }
  EXPECT_GT(fitting, orrery::test::cases(20));
  EXPECT_GT(beyond, orrery::test::cases(5));
  EXPECT_GT(unfit, orrery::test::cases(5));
}

}  // namespace
}  // namespace orrery::explore::neighbours_test
