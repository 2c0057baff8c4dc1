// A pruned search gives the result of an exhaustive one, for any number of threads.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/explore/search.hpp"
#include "orrery/explore/test_enumerate.hpp"
#include "orrery/explore/test_spaces.hpp"
#include "orrery/explore/test_walks.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore::search_test {
namespace {

using parallel::Plan;
using parallel::test::SeededRandom;

// Plans numbered by their micro-batch, with times, memory and bounds from tables.
struct Table {
  std::vector<Plan> plans;
  std::vector<std::optional<Seconds>> times;
  std::vector<Seconds> bounds;  // of a plan's family: at most the lowest time in it
  std::vector<Bytes> memory;
  test::Listed space;
};

class TableEvaluator final : public Evaluator {
 public:
  explicit TableEvaluator(const Table& table) : table_(table) {}
  Seconds bound(const Point& point) override { return table_.bounds[index(point)]; }
  // Families of plans where the first one has an odd number rule out what cannot fit; the others rule out nothing.
  bool may_fit(const Point& point) override {
    if (index(point) % 2 == 0) { return true; }
    for (std::size_t i = 0; i < table_.space.families.size(); ++i) {
      if (!(table_.space.families[i].first.plan == point.plan)) { continue; }
      const auto& members = table_.space.members[i];
      return std::any_of(members.begin(), members.end(), [&](const auto& m) { return price(m.point).has_value(); });
    }
    return true;
  }
  std::optional<Price> price(const Point& point) override {
    const auto time = table_.times[index(point)];
    if (!time) { return std::nullopt; }
    return Price{*time, table_.memory[index(point)]};
  }
  Seconds unlimited_step_time(const Point& point) override { return table_.bounds[index(point)]; }

 private:
  static std::size_t index(const Point& point) { return static_cast<std::size_t>(point.plan.micro_batch); }
  const Table& table_;
};

// Few different times, so that ties are frequent; bounds equal to, slightly below and far below them; some plans do not
// fit; few or many layouts; families of one plan or of several with one layout.
Table any_table(SeededRandom& random, std::int64_t points) {
  Table table;
  const std::int64_t distinct = parallel::test::any_of(random, {1, 3, 50, 100'000});
  const std::int64_t unfit = parallel::test::any_of(random, {0, 10, 60, 100});
  const std::int64_t layouts = parallel::test::any_of(random, {1, 4, 300}), same = random(1, 6);
  std::vector<Seconds> own_bounds;
  for (std::int64_t i = 0; i < points; ++i) {
    Plan plan;
    plan.micro_batch = i;
    plan.tp = i % same == 0 ? random(0, layouts) : table.plans.back().tp;
    table.plans.push_back(plan);
    const auto time = static_cast<double>(random(0, distinct) + 10);
    const bool fits = random(0, 100) >= unfit;
    table.times.push_back(fits ? std::optional<Seconds>(Seconds(time)) : std::nullopt);
    table.memory.emplace_back(static_cast<double>(random(0, 20)));
    own_bounds.emplace_back(time - static_cast<double>(parallel::test::any_of(random, {0, 0, 1, 9})));
  }
  table.space = test::listed(
      table.plans, 1, [same](const Plan& a, const Plan& b) { return a.micro_batch / same == b.micro_batch / same; });
  table.bounds.assign(table.plans.size(), infinite<Seconds>());
  for (std::size_t i = 0; i < table.plans.size(); ++i) {
    Seconds& of_family = table.bounds[i / static_cast<std::size_t>(same) * static_cast<std::size_t>(same)];
    of_family = min(of_family, own_bounds[i]);
  }
  return table;
}

SearchResult searched(const Table& table, const SearchOptions& options) {
  return search(test::walks_of(table.space), [&] { return std::make_unique<TableEvaluator>(table); }, options);
}

SearchOptions options_of(std::size_t top, bool exhaustive, int threads, Among among = Among::plans) {
  SearchOptions options;
  options.top = top;
  options.among = among;
  options.exhaustive = exhaustive;
  options.threads = threads;
  return options;
}

// The K fastest that fit, ties in the order of the space; with Among::layouts only the first of each layout.
std::vector<std::int64_t> sorted_best(const Table& table, std::size_t top, Among among) {
  std::vector<std::int64_t> points;
  for (std::size_t i = 0; i < table.plans.size(); ++i) {
    if (table.times[i]) { points.push_back(static_cast<std::int64_t>(i)); }
  }
  std::stable_sort(points.begin(), points.end(), [&](std::int64_t a, std::int64_t b) {
    return *table.times[static_cast<std::size_t>(a)] < *table.times[static_cast<std::size_t>(b)];
  });
  std::set<std::int64_t> seen;
  std::vector<std::int64_t> best;
  for (const std::int64_t point : points) {
    const bool is_new = seen.insert(table.plans[static_cast<std::size_t>(point)].tp).second;
    if ((among == Among::plans || is_new) && best.size() < top) { best.push_back(point); }
  }
  return best;
}

std::vector<std::int64_t> points_of(const std::vector<Candidate>& candidates) {
  std::vector<std::int64_t> points;
  for (const auto& candidate : candidates) { points.push_back(candidate.point.plan.micro_batch); }
  return points;
}

void expect_counts_add_up(const SearchResult& result) {
  const auto& s = result.space;
  EXPECT_EQ(s.points, s.evaluated + s.pruned);
  EXPECT_EQ(s.evaluated, s.feasible + s.rejected_memory + s.rejected_network + s.rejected_invalid);
  EXPECT_EQ(s.priced, s.feasible);
}

bool same(const results::SpaceCounts& a, const results::SpaceCounts& b) {
  return a.points == b.points && a.evaluated == b.evaluated && a.pruned == b.pruned && a.feasible == b.feasible &&
         a.rejected_memory == b.rejected_memory && a.plans == b.plans;
}

TEST(Search, pruned_and_exhaustive_give_the_k_fastest_with_ties_in_order) {
  for (std::uint64_t seed = 0; seed < (orrery::test::kSanitizers ? 80 : 240); ++seed) {
    SeededRandom random(seed);
    const Table table = any_table(random, random(0, 8000));
    const auto top = static_cast<std::size_t>(random(1, 11));
    const Among among = seed % 2 == 0 ? Among::plans : Among::layouts;
    const auto pruned = searched(table, options_of(top, false, 1, among));
    const auto exhaustive = searched(table, options_of(top, true, 1, among));
    ASSERT_EQ(points_of(pruned.best), sorted_best(table, top, among)) << "seed " << seed;
    ASSERT_EQ(points_of(exhaustive.best), sorted_best(table, top, among)) << "seed " << seed;
    for (const auto& candidate : pruned.best) {
      ASSERT_EQ(candidate.price.step_time, *table.times[static_cast<std::size_t>(candidate.point.plan.micro_batch)]);
    }
    expect_counts_add_up(pruned);
    expect_counts_add_up(exhaustive);
    ASSERT_EQ(exhaustive.space.pruned, 0);
  }
}

TEST(Search, results_and_counts_do_not_depend_on_threads) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SeededRandom random(seed);
    const Table table = any_table(random, random(0, 6000));
    auto options = options_of(static_cast<std::size_t>(random(1, 11)), seed % 3 == 0, 1,
                              seed % 2 == 0 ? Among::plans : Among::layouts);
    const auto serial = searched(table, options);
    for (const int threads : {2, 7, 0}) {
      options.threads = threads;
      const auto parallel = searched(table, options);
      ASSERT_EQ(points_of(parallel.best), points_of(serial.best)) << "seed " << seed;
      ASSERT_TRUE(same(parallel.space, serial.space)) << "seed " << seed;
    }
  }
}

// The front: every plan that fits, unless another needs no more time and memory, and less of one; of equal plans the
// first.
TEST(Search, the_front_is_the_pareto_front_of_time_and_memory) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SeededRandom random(seed);
    const Table table = any_table(random, random(0, 600));
    auto options = options_of(1, false, 1 + static_cast<int>(seed % 3));
    options.front = true;
    std::vector<std::int64_t> expected;
    for (std::size_t i = 0; i < table.plans.size(); ++i) {
      bool beaten = !table.times[i];
      for (std::size_t j = 0; j < table.plans.size() && !beaten; ++j) {
        if (!table.times[j] || *table.times[j] > *table.times[i] || table.memory[j] > table.memory[i]) { continue; }
        beaten = *table.times[j] < *table.times[i] || table.memory[j] < table.memory[i] || j < i;
      }
      if (!beaten) { expected.push_back(static_cast<std::int64_t>(i)); }
    }
    std::sort(expected.begin(), expected.end(), [&](std::int64_t a, std::int64_t b) {
      return *table.times[static_cast<std::size_t>(a)] < *table.times[static_cast<std::size_t>(b)];
    });
    ASSERT_EQ(points_of(searched(table, options).front), expected) << "seed " << seed;
  }
}

TEST(Search, tight_bounds_prune_all_but_the_first_families) {
  SeededRandom random(1);
  Table table = any_table(random, 50'000);
  for (std::size_t i = 0; i < table.plans.size(); ++i) {
    table.times[i] = Seconds(static_cast<double>(100'000 - i));
    table.bounds[i] = Seconds(static_cast<double>(100'000 - i - 5));
  }
  const auto result = searched(table, options_of(5, false, 1));
  EXPECT_EQ(points_of(result.best), (std::vector<std::int64_t>{49'999, 49'998, 49'997, 49'996, 49'995}));
  EXPECT_LT(result.space.evaluated, 300);
}

TEST(Search, an_empty_space_or_nothing_that_fits_gives_no_plan) {
  EXPECT_TRUE(searched(Table{}, options_of(5, false, 2)).best.empty());
  SeededRandom random(1);
  Table table = any_table(random, 3000);
  std::fill(table.times.begin(), table.times.end(), std::nullopt);
  const auto result = searched(table, options_of(5, true, 2));
  EXPECT_TRUE(result.best.empty());
  EXPECT_EQ(result.space.evaluated, 3000);
  EXPECT_EQ(result.space.rejected_memory, 3000);
}

TEST(Search, progress_grows_to_all_points) {
  SeededRandom random(5);
  const Table table = any_table(random, 9000);
  for (const bool exhaustive : {true, false}) {
    std::vector<std::int64_t> seen;
    auto options = options_of(3, exhaustive, 2);
    options.progress = [&](std::int64_t done, std::int64_t points) {
      EXPECT_LE(done, points);
      seen.push_back(done);
    };
    const auto result = searched(table, options);
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    EXPECT_EQ(seen.back(), result.space.points);
  }
}

// A host can end a search while it still counts points: progress is called, and an exception of it ends the search.
TEST(Search, the_first_walk_can_be_ended) {
  SeededRandom random(6);
  const Table table = any_table(random, 9000);
  auto options = options_of(3, false, 2);
  std::int64_t calls = 0;
  options.progress = [&](std::int64_t done, std::int64_t points) {
    ++calls;
    if (done == 0 && points == 0) { throw std::runtime_error("stop"); }
  };
  EXPECT_THROW((void)searched(table, options), std::runtime_error);
  EXPECT_EQ(calls, 1);
}

// Batches may differ: a step twice as long of three times as many sequences is better.
TEST(Search, per_sample_minimizes_time_per_sequence) {
  Table table;
  for (std::int64_t i = 0; i < 2; ++i) {
    Plan plan;
    plan.micro_batch = i;
    plan.tp = i + 1;
    table.plans.push_back(plan);
    table.times.emplace_back(Seconds(i == 0 ? 1.0 : 2.0));
    table.bounds.emplace_back(0.5);
    table.memory.emplace_back(1.0);
  }
  table.space = test::listed(table.plans, 1, [](const Plan&, const Plan&) { return false; });
  table.space.families[1].first.global_batch = table.space.members[1][0].point.global_batch = 3;
  auto options = options_of(1, false, 1);
  EXPECT_EQ(points_of(searched(table, options).best), std::vector<std::int64_t>{0});
  options.per_sample = true;
  EXPECT_EQ(points_of(searched(table, options).best), std::vector<std::int64_t>{1});
}

class EstimateEvaluator final : public Evaluator {
 public:
  explicit EstimateEvaluator(const test::SearchCase& c) : estimator_(c.model, c.cluster, c.stack, c.job) {}
  Seconds bound(const Point& point) override { return estimator_.step_time_bound(point.plan); }
  bool may_fit(const Point& point) override { return estimator_.may_fit(point.plan, kLowestMemory); }
  std::optional<Price> price(const Point& point) override {
    const auto price = estimator_.price(point.plan);
    return price ? std::optional(Price{price->step_time, price->memory}) : std::nullopt;
  }
  Seconds unlimited_step_time(const Point& point) override { return estimator_.step_time(point.plan); }

 private:
  static constexpr parallel::LowestMemory kLowestMemory{3, {}};  // of the plans below
  estimate::Estimator estimator_;
};

std::int64_t expect_pruned_answers_as_exhaustive(const test::SearchCase& c, std::size_t top, std::uint64_t seed) {
  const auto space = test::listed(enumerate(c.model, c.job, c.cluster, c.fixed, true), c.job.global_batch);
  const auto among = seed % 2 == 0 ? Among::plans : Among::layouts;
  const auto run = [&](bool exhaustive, int threads) {
    return search(
        test::walks_of(space), [&] { return std::make_unique<EstimateEvaluator>(c); },
        options_of(top, exhaustive, threads, among));
  };
  const SearchResult exhaustive = run(true, 2);
  std::int64_t pruned_points = 0;
  for (const int threads : {1, 7}) {
    const SearchResult pruned = run(false, threads);
    expect_counts_add_up(pruned);
    pruned_points += pruned.space.pruned;
    EXPECT_EQ(pruned.best.size(), exhaustive.best.size()) << "seed " << seed;
    for (std::size_t i = 0; i < std::min(pruned.best.size(), exhaustive.best.size()); ++i) {
      EXPECT_EQ(pruned.best[i].point.plan, exhaustive.best[i].point.plan) << "seed " << seed << " place " << i;
      EXPECT_EQ(pruned.best[i].price.step_time, exhaustive.best[i].price.step_time)
          << "seed " << seed << " place " << i;
    }
  }
  return pruned_points;
}

// Real prices: small random jobs on 16 devices, memory between enough and too little.
TEST(Search, of_random_dense_jobs_pruned_and_exhaustive_agree_for_any_number_of_threads) {
  std::int64_t pruned_points = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SeededRandom random(seed);
    test::SearchCase c;
    c.stack = parallel::test::any_stack(random);
    const std::int64_t heads = 4 * random(1, 5);
    c.model = parallel::test::llama(random(4, 17), heads * 128, heads, 4, 1024 * random(1, 9), 1024 * random(1, 60));
    c.job = {16 * random(1, 5), 16 * random(8, 129), hardware::Precision::bf16, parallel::Task::pretrain};
    c.cluster = parallel::test::any_cluster(random, 16);
    c.cluster.accelerator.memory = Bytes(1e9 * static_cast<double>(random(1, 20)));
    pruned_points += expect_pruned_answers_as_exhaustive(c, static_cast<std::size_t>(random(1, 11)), seed);
  }
  EXPECT_GT(pruned_points, 0);
}

// The same with mixtures of experts, cp, zero-bubble schedules, sliding windows, MTP modules.
TEST(Search, of_random_jobs_of_every_kind_pruned_and_exhaustive_agree) {
  std::int64_t pruned_points = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    SeededRandom random(seed);
    const auto c = test::any_search(random);
    pruned_points += expect_pruned_answers_as_exhaustive(c, static_cast<std::size_t>(random(1, 11)), seed);
  }
  EXPECT_GT(pruned_points, 0);
}

// Inference: the bound is zero, so every plan is priced.
TEST(Search, of_inference_prices_every_plan) {
  SeededRandom random(4);
  auto c = test::any_search(random);
  c.fixed = {};
  c.model = parallel::test::llama(8, 512, 8, 4, 1024, 4096);
  c.model.experts = {.count = 8, .active = 2, .ffn = 512};
  c.job.task = parallel::Task::inference;
  c.job.prompt = 128;
  c.job.generate = 16;
  c.job.seq = 144;
  const auto space = test::listed(enumerate(c.model, c.job, c.cluster, c.fixed, true), c.job.global_batch);
  const auto found =
      search(test::walks_of(space), [&] { return std::make_unique<EstimateEvaluator>(c); }, options_of(3, true, 2));
  const auto pruned =
      search(test::walks_of(space), [&] { return std::make_unique<EstimateEvaluator>(c); }, options_of(3, false, 2));
  EXPECT_EQ(pruned.space.priced, found.space.priced);
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
    SeededRandom random(1000 + seed);
    const auto c = test::any_search(random);
    const auto space = enumerate(c.model, c.job, c.cluster, c.fixed, true);
    EstimateEvaluator evaluator(c);
    estimate::Estimator estimator(c.model, c.cluster, c.stack, c.job);
    for (int i = 0; i < 30 && !space.empty(); ++i) {
      const Plan& plan = space[static_cast<std::size_t>(random(0, static_cast<std::int64_t>(space.size())))];
      count(covered, c, plan);
      const Seconds bound = evaluator.bound({plan, c.job.global_batch}), time = estimator.step_time(plan);
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

// If may_fit rules out a family, none of its plans fits, whatever it shards and offloads.
TEST(Search, families_that_may_not_fit_have_no_plan_that_does) {
  std::int64_t ruled_out = 0, fitting = 0, offloaded = 0, on_host = 0, in_pool = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    SeededRandom random(2000 + seed);
    auto c = test::any_search(random);
    const bool has_tier = random(0, 2) == 1;
    c.cluster.second_tier.memory = Bytes(has_tier ? 1e9 * static_cast<double>(random(1, 10)) : 0.0);
    c.cluster.second_tier.bandwidth = BytesPerSecond(has_tier ? 1e10 : 0.0);
    const bool is_pool = has_tier && seed % 2 == 0;  // it has one copy of what replicas share
    if (is_pool) { c.cluster.second_tier.levels = {{"memories", c.cluster.devices, 1, BytesPerSecond(1e10), true}}; }
    const auto plans = enumerate(c.model, c.job, c.cluster, c.fixed, true);
    estimate::Estimator estimator(c.model, c.cluster, c.stack, c.job);
    for (int i = 0; i < 20 && !plans.empty(); ++i) {
      Plan plan = plans[static_cast<std::size_t>(random(0, static_cast<std::int64_t>(plans.size())))];
      const parallel::LowestMemory lowest_memory{static_cast<int>(random(0, 4)),
                                                 {has_tier, has_tier && random(0, 2) == 1, has_tier},
                                                 static_cast<parallel::OptimizerDevice>(random(0, 2))};
      const bool may_fit = estimator.may_fit(plan, lowest_memory);
      for (int member = 0; member < 6; ++member) {
        plan.zero = static_cast<int>(random(0, lowest_memory.zero + 1));
        plan.offload = {lowest_memory.offload.weights && random(0, 2) == 1,
                        lowest_memory.offload.activations && random(0, 2) == 1,
                        lowest_memory.offload.optimizer && random(0, 2) == 1};
        const bool may_update = lowest_memory.optimizer_device == parallel::OptimizerDevice::host;
        plan.optimizer_device =
            static_cast<parallel::OptimizerDevice>(plan.offload.optimizer && may_update && random(0, 2) == 1 ? 1 : 0);
        if (!parallel::is_valid(c.model, c.job, plan, c.cluster.devices)) { continue; }
        const bool fits = estimator.memory(plan).fits;
        ASSERT_TRUE(may_fit || !fits) << "seed " << seed;
        ruled_out += may_fit ? 0 : 1;
        fitting += fits ? 1 : 0;
        offloaded += fits && plan.offload.any() ? 1 : 0;
        on_host += fits && plan.updates_on_host() ? 1 : 0;
        in_pool += fits && is_pool && plan.offload.weights ? 1 : 0;
      }
    }
  }
  EXPECT_GT(ruled_out, 300);
  EXPECT_GT(fitting, 300);
  EXPECT_GT(offloaded, 50);
  EXPECT_GT(on_host, 10);
  EXPECT_GT(in_pool, 20);
}

}  // namespace
}  // namespace orrery::explore::search_test
