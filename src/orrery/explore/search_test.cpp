// A pruned search answers what an exhaustive one does, for any number of threads.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/estimate/estimator.hpp"
#include "orrery/explore/search.hpp"
#include "orrery/explore/test_spaces.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore {
namespace {

using parallel::Plan;
using parallel::test::Dice;

// Plans whose micro-batch is their number, with times and bounds from tables.
struct Table {
  std::vector<Plan> space;
  std::vector<std::optional<Seconds>> times;
  std::vector<Seconds> bounds;
};

class TableEvaluator final : public Evaluator {
 public:
  explicit TableEvaluator(const Table& table) : table_(table) {}
  Seconds bound(const Plan& plan) override { return table_.bounds[index(plan)]; }
  std::optional<Seconds> step_time(const Plan& plan) override { return table_.times[index(plan)]; }
  Seconds unlimited_step_time(const Plan& plan) override { return table_.bounds[index(plan)]; }

 private:
  static std::size_t index(const Plan& plan) { return static_cast<std::size_t>(plan.micro_batch); }
  const Table& table_;
};

// Few different times, so that ties are everywhere; bounds at, just below and far below them; some plans do not fit.
Table any_table(Dice& dice, std::int64_t points) {
  Table table;
  const std::int64_t distinct = parallel::test::any_of(dice, {1, 3, 50, 100'000});
  const std::int64_t unfit = parallel::test::any_of(dice, {0, 10, 60, 100});
  for (std::int64_t i = 0; i < points; ++i) {
    Plan plan;
    plan.micro_batch = i;
    table.space.push_back(plan);
    const auto time = static_cast<double>(dice(0, distinct) + 10);
    const bool fits = dice(0, 100) >= unfit;
    table.times.push_back(fits ? std::optional<Seconds>(Seconds(time)) : std::nullopt);
    table.bounds.emplace_back(time - static_cast<double>(parallel::test::any_of(dice, {0, 0, 1, 9})));
  }
  return table;
}

SearchResult searched(const Table& table, std::size_t top, bool exhaustive, int threads) {
  return search(table.space, [&] { return std::make_unique<TableEvaluator>(table); }, {top, exhaustive, threads, {}});
}

// The K fastest that fit, ties in the order of the space.
std::vector<std::int64_t> sorted_best(const Table& table, std::size_t top) {
  std::vector<std::int64_t> points;
  for (std::size_t i = 0; i < table.space.size(); ++i) {
    if (table.times[i]) { points.push_back(static_cast<std::int64_t>(i)); }
  }
  std::stable_sort(points.begin(), points.end(), [&](std::int64_t a, std::int64_t b) {
    return *table.times[static_cast<std::size_t>(a)] < *table.times[static_cast<std::size_t>(b)];
  });
  points.resize(std::min(points.size(), top));
  return points;
}

std::vector<std::int64_t> points_of(const SearchResult& result) {
  std::vector<std::int64_t> points;
  for (const auto& candidate : result.best) { points.push_back(candidate.plan.micro_batch); }
  return points;
}

void expect_counts_add_up(const SearchResult& result) {
  const auto& s = result.space;
  EXPECT_EQ(s.points, s.evaluated + s.pruned);
  EXPECT_EQ(s.evaluated, s.feasible + s.rejected_memory);
  EXPECT_EQ(s.priced, s.feasible);
}

bool same(const results::SpaceCounts& a, const results::SpaceCounts& b) {
  return a.points == b.points && a.evaluated == b.evaluated && a.pruned == b.pruned && a.feasible == b.feasible &&
         a.rejected_memory == b.rejected_memory;
}

TEST(Search, pruned_and_exhaustive_give_the_k_fastest_with_ties_in_order) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Dice dice(seed);
    const Table table = any_table(dice, dice(0, 8000));
    const auto top = static_cast<std::size_t>(dice(1, 11));
    const auto pruned = searched(table, top, false, 1), exhaustive = searched(table, top, true, 1);
    ASSERT_EQ(points_of(pruned), sorted_best(table, top)) << "seed " << seed;
    ASSERT_EQ(points_of(exhaustive), sorted_best(table, top)) << "seed " << seed;
    for (const auto& candidate : pruned.best) {
      ASSERT_EQ(candidate.step_time, *table.times[static_cast<std::size_t>(candidate.plan.micro_batch)]);
    }
    expect_counts_add_up(pruned);
    expect_counts_add_up(exhaustive);
    ASSERT_EQ(exhaustive.space.pruned, 0);
    // Whatever is pruned has a bound above the last answer.
    const bool full = pruned.best.size() == top;
    if (!full) { ASSERT_EQ(pruned.space.pruned, 0); }
  }
}

TEST(Search, answers_and_counts_do_not_depend_on_threads) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Dice dice(seed);
    const Table table = any_table(dice, dice(0, 6000));
    const auto top = static_cast<std::size_t>(dice(1, 11));
    const auto serial = searched(table, top, false, 1);
    for (const int threads : {2, 7, 0}) {
      const auto parallel = searched(table, top, false, threads);
      ASSERT_EQ(points_of(parallel), points_of(serial)) << "seed " << seed;
      ASSERT_TRUE(same(parallel.space, serial.space)) << "seed " << seed;
    }
  }
}

TEST(Search, tight_bounds_prune_all_but_one_batch) {
  Dice dice(1);
  Table table = any_table(dice, 50'000);
  for (std::size_t i = 0; i < table.space.size(); ++i) {
    table.times[i] = Seconds(static_cast<double>(100'000 - i));
    table.bounds[i] = *table.times[i];
  }
  const auto result = searched(table, 5, false, 1);
  EXPECT_EQ(points_of(result), (std::vector<std::int64_t>{49'999, 49'998, 49'997, 49'996, 49'995}));
  EXPECT_LT(result.space.evaluated, 3000);
}

TEST(Search, nothing_to_search_or_nothing_that_fits_is_no_answer) {
  Table table;
  EXPECT_TRUE(searched(table, 5, false, 2).best.empty());
  Dice dice(1);
  table = any_table(dice, 3000);
  std::fill(table.times.begin(), table.times.end(), std::nullopt);
  const auto result = searched(table, 5, false, 2);
  EXPECT_TRUE(result.best.empty());
  EXPECT_EQ(result.space.evaluated, 3000);
  EXPECT_EQ(result.space.rejected_memory, 3000);
}

TEST(Search, progress_grows_to_what_was_evaluated) {
  Dice dice(5);
  const Table table = any_table(dice, 5000);
  std::vector<std::int64_t> seen;
  const auto result = search(table.space, [&] { return std::make_unique<TableEvaluator>(table); },
                             {3, true, 2, [&](std::int64_t done, std::int64_t points) {
                                EXPECT_EQ(points, 5000);
                                seen.push_back(done);
                              }});
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), result.space.evaluated);
}

class EstimateEvaluator final : public Evaluator {
 public:
  explicit EstimateEvaluator(const test::SearchCase& c) : estimator_(c.model, c.cluster, c.stack, c.job) {}
  Seconds bound(const Plan& plan) override { return estimator_.step_time_bound(plan); }
  std::optional<Seconds> step_time(const Plan& plan) override { return estimator_.feasible_step_time(plan); }
  Seconds unlimited_step_time(const Plan& plan) override { return estimator_.step_time(plan); }

 private:
  estimate::Estimator estimator_;
};

std::int64_t expect_pruned_answers_as_exhaustive(const test::SearchCase& c, std::size_t top, std::uint64_t seed) {
  const auto space = enumerate(c.model, c.job, c.cluster, c.fixed, true);
  const auto run = [&](bool exhaustive, int threads) {
    return search(space, [&] { return std::make_unique<EstimateEvaluator>(c); }, {top, exhaustive, threads, {}});
  };
  const SearchResult exhaustive = run(true, 2);
  std::int64_t pruned_points = 0;
  for (const int threads : {1, 7}) {
    const SearchResult pruned = run(false, threads);
    expect_counts_add_up(pruned);
    pruned_points += pruned.space.pruned;
    EXPECT_EQ(pruned.best.size(), exhaustive.best.size()) << "seed " << seed;
    for (std::size_t i = 0; i < std::min(pruned.best.size(), exhaustive.best.size()); ++i) {
      EXPECT_EQ(pruned.best[i].plan, exhaustive.best[i].plan) << "seed " << seed << " place " << i;
      EXPECT_EQ(pruned.best[i].step_time, exhaustive.best[i].step_time) << "seed " << seed << " place " << i;
    }
  }
  return pruned_points;
}

// Real prices: small random jobs on 16 devices, memory between enough and too little.
TEST(Search, of_random_dense_jobs_pruned_and_exhaustive_agree_for_any_number_of_threads) {
  std::int64_t pruned_points = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Dice dice(seed);
    test::SearchCase c;
    c.stack = parallel::test::any_stack(dice);
    const std::int64_t heads = 4 * dice(1, 5);
    c.model = parallel::test::llama(dice(4, 17), heads * 128, heads, 4, 1024 * dice(1, 9), 1024 * dice(1, 60));
    c.job = {16 * dice(1, 5), 16 * dice(8, 129), hardware::Precision::bf16, parallel::Task::pretrain};
    c.cluster = parallel::test::any_cluster(dice, 16);
    c.cluster.accelerator.memory = Bytes(1e9 * static_cast<double>(dice(1, 20)));
    pruned_points += expect_pruned_answers_as_exhaustive(c, static_cast<std::size_t>(dice(1, 11)), seed);
  }
  EXPECT_GT(pruned_points, 0);
}

// The same of mixtures, cp, split schedules, windows, modules for further tokens.
TEST(Search, of_random_jobs_of_every_kind_pruned_and_exhaustive_agree) {
  std::int64_t pruned_points = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Dice dice(seed);
    const auto c = test::any_search(dice);
    pruned_points += expect_pruned_answers_as_exhaustive(c, static_cast<std::size_t>(dice(1, 11)), seed);
  }
  EXPECT_GT(pruned_points, 0);
}

// Batches of requests: their bound says nothing, so that every plan is priced.
TEST(Search, of_inference_prices_every_plan) {
  Dice dice(4);
  auto c = test::any_search(dice);
  c.fixed = {};
  c.model = parallel::test::llama(8, 512, 8, 4, 1024, 4096);
  c.model.experts = {.count = 8, .active = 2, .ffn = 512};
  c.job.task = parallel::Task::inference;
  c.job.prompt = 128;
  c.job.generate = 16;
  c.job.seq = 144;
  const auto space = enumerate(c.model, c.job, c.cluster, c.fixed, true);
  const auto found = search(space, [&] { return std::make_unique<EstimateEvaluator>(c); }, {3, false, 2, {}});
  EXPECT_EQ(found.space.evaluated, found.space.points);
  EXPECT_EQ(found.best.size(), 3U);
}

struct Covered {
  std::int64_t plans = 0, experts = 0, spread_experts = 0, contexts = 0, zero_bubble = 0, dualpipe = 0, mtp = 0;
  std::int64_t windows = 0, latent = 0, overlapped = 0;
};

void count(Covered& covered, const test::SearchCase& c, const Plan& plan) {
  ++covered.plans;
  covered.experts += c.model.has_experts() ? 1 : 0;
  covered.spread_experts += plan.ep > 1 ? 1 : 0;
  covered.contexts += plan.cp > 1 ? 1 : 0;
  covered.zero_bubble += plan.schedule == parallel::ScheduleKind::zero_bubble ? 1 : 0;
  covered.dualpipe += plan.schedule == parallel::ScheduleKind::dualpipe ? 1 : 0;
  covered.mtp += c.model.mtp_layers > 0 ? 1 : 0;
  covered.windows += c.model.sliding_window > 0 ? 1 : 0;
  covered.latent += c.model.is_latent() ? 1 : 0;
  covered.overlapped += plan.tp_overlap != parallel::TpOverlap::none ? 1 : 0;
}

TEST(Search, the_bound_of_plans_of_every_kind_is_never_above_their_step) {
  Covered covered;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Dice dice(1000 + seed);
    const auto c = test::any_search(dice);
    const auto space = enumerate(c.model, c.job, c.cluster, c.fixed, true);
    EstimateEvaluator evaluator(c);
    estimate::Estimator estimator(c.model, c.cluster, c.stack, c.job);
    for (int i = 0; i < 30 && !space.empty(); ++i) {
      const Plan& plan = space[static_cast<std::size_t>(dice(0, static_cast<std::int64_t>(space.size())))];
      count(covered, c, plan);
      const Seconds bound = evaluator.bound(plan), time = estimator.step_time(plan);
      ASSERT_GT(bound, Seconds());
      ASSERT_LE(bound, time) << "seed " << seed << " tp " << plan.tp << " cp " << plan.cp << " pp " << plan.pp << " ep "
                             << plan.ep << " etp " << plan.etp << " schedule " << static_cast<int>(plan.schedule);
    }
  }
  EXPECT_GT(covered.plans, 2000);
  for (const std::int64_t kind : {covered.experts, covered.spread_experts, covered.contexts, covered.zero_bubble,
                                  covered.dualpipe, covered.mtp, covered.windows, covered.latent, covered.overlapped}) {
    EXPECT_GT(kind, 100);
  }
}

}  // namespace
}  // namespace orrery::explore
