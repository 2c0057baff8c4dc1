// Random space files, searched as by `orrery plan --space`: bounds of families against the price of every member, and
// pruned against exhaustive results.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/explore/search.hpp"
#include "orrery/explore/space_walk.hpp"
#include "orrery/explore/test_written_spaces.hpp"

namespace orrery::explore::space_search_test {
namespace {

using parallel::test::SeededRandom;
using test::Setting;

struct Searched {
  Setting setting;
  hardware::Stack stack;
  std::string text;
  Space space;
};

Searched any_searched(std::uint64_t seed) {
  SeededRandom random(seed);
  Searched s;
  s.setting = test::any_setting(random);
  // Memory between enough and too little.
  s.setting.cluster.accelerator.memory = Bytes(1e6 * static_cast<double>(random(20, 400)));
  s.setting.cluster.second_tier.memory = Bytes(1e6 * static_cast<double>(random(0, 100)));
  s.stack = parallel::test::any_stack(random);
  auto axes = test::any_axes(random);
  if (axes.empty()) { axes.push_back(test::ways("tp").front()); }
  s.text = test::text_of(s.setting, axes, random(0, 2) == 1);
  s.space = test::made(s.setting, s.text);
  return s;
}

class SpaceEvaluator final : public Evaluator {
 public:
  explicit SpaceEvaluator(const Searched& s)
      : estimator_(s.setting.model, s.setting.cluster, s.stack, s.space.job()),
        lowest_memory_(s.space.lowest_memory()) {}
  Seconds bound(const Point& point) override { return of(point).step_time_bound(point.plan); }
  bool may_fit(const Point& point) override { return of(point).may_fit(point.plan, lowest_memory_); }
  std::optional<Price> price(const Point& point) override {
    const auto price = of(point).price(point.plan);
    return price ? std::optional(Price{price->step_time, price->memory}) : std::nullopt;
  }
  Seconds unlimited_step_time(const Point& point) override { return of(point).step_time(point.plan); }

 private:
  estimate::Estimator& of(const Point& point) {
    estimator_.set_global_batch(point.global_batch);
    return estimator_;
  }
  estimate::Estimator estimator_;
  parallel::LowestMemory lowest_memory_;
};

struct Checked {
  std::int64_t plans = 0, fitting = 0, ruled_out = 0, pinned = 0;
};

// A conclusion from a family's first plan is valid for all its plans.
void check_family(const Searched& s, const Family& family, SpaceWalk& walk, SpaceEvaluator& evaluator,
                  Checked& checked) {
  const Seconds bound = evaluator.bound(family.first);
  const bool may_fit = evaluator.may_fit(family.first);
  walk.members(family, [&](const Member& member) {
    if (member.verdict != Verdict::possible) { return; }
    const auto price = evaluator.price(member.point);
    EXPECT_LE(bound, evaluator.unlimited_step_time(member.point)) << s.text;
    EXPECT_TRUE(may_fit || !price) << s.text;
    ++checked.plans;
    checked.fitting += price ? 1 : 0;
    checked.ruled_out += may_fit ? 0 : 1;
    checked.pinned += member.point.plan.placement.any() ? 1 : 0;
  });
}

TEST(SpaceSearch, bounds_of_a_family_hold_for_all_its_plans) {
  constexpr std::int64_t kMostFamilies = 60;  // of a space
  Checked checked;
  for (std::uint64_t seed = 0; seed < orrery::test::cases(200U) && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Searched s = any_searched(seed);
    SpaceEvaluator evaluator(s);
    SpaceWalk walk(s.space), of_members(s.space);
    std::int64_t families = 0;
    walk.families([&](const Family& family) {
      if (family.verdict == Verdict::possible) { check_family(s, family, of_members, evaluator, checked); }
      return ++families < kMostFamilies && !HasFailure();
    });
  }
  EXPECT_GT(checked.plans, orrery::test::cases(20'000));
  EXPECT_GT(checked.fitting, orrery::test::cases(1'000));
  EXPECT_GT(checked.ruled_out, orrery::test::cases(1'000));
  EXPECT_GT(checked.pinned, orrery::test::cases(1'000));
}

SearchResult searched(const Searched& s, bool exhaustive, int threads, std::size_t top) {
  SearchOptions options;
  options.top = top;
  options.among = top % 2 == 0 ? Among::plans : Among::layouts;
  options.exhaustive = exhaustive;
  options.per_sample = s.setting.max_batch > 0;
  options.threads = threads;
  return search(walks_of(s.space), [&] { return std::make_unique<SpaceEvaluator>(s); }, options);
}

void expect_same_best(const SearchResult& pruned, const SearchResult& all) {
  ASSERT_EQ(pruned.best.size(), all.best.size());
  for (std::size_t i = 0; i < all.best.size(); ++i) {
    EXPECT_EQ(pruned.best[i].point.plan, all.best[i].point.plan) << "place " << i;
    EXPECT_EQ(pruned.best[i].price.step_time, all.best[i].price.step_time) << "place " << i;
    EXPECT_EQ(pruned.best[i].order, all.best[i].order) << "place " << i;
  }
}

TEST(SpaceSearch, pruned_results_equal_exhaustive_ones) {
  constexpr std::int64_t kMostPoints = orrery::test::cases(20'000);
  std::int64_t pruned_points = 0, answers = 0;
  for (std::uint64_t seed = 0; seed < orrery::test::cases(160U) && !HasFailure(); ++seed) {
    const Searched s = any_searched(10'000 + seed);
    if (s.space.points() > kMostPoints) { continue; }
    SCOPED_TRACE(s.text);
    const std::size_t top = 1 + seed % 10;
    const auto all = searched(s, true, 2, top);
    const auto pruned = searched(s, false, 1 + static_cast<int>(seed % 3), top);
    expect_same_best(pruned, all);
    EXPECT_EQ(pruned.space.points, all.space.points);
    pruned_points += pruned.space.pruned;
    answers += all.best.empty() ? 0 : 1;
  }
  EXPECT_GT(pruned_points, orrery::test::cases(10'000));
  EXPECT_GT(answers, orrery::test::cases(50));
}

// A setting with a batch, for spaces that do not derive it.
Searched any_job(std::uint64_t seed) {
  Searched s = any_searched(seed);
  if (s.setting.job.global_batch == 0) { s.setting.job.global_batch = 24; }
  return s;
}

// One value for about two thirds of the axes that a space is small without.
std::string some_fixed(std::uint64_t seed) {
  SeededRandom random(seed);
  std::string values;
  for (const auto& [axis, options] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"etp", {"1"}},
           {"cp", {"1", "1..4"}},
           {"embedding_as_layer", {"true", "false"}},
           {"head_as_layer", {"true", "false"}},
           {"schedule", {"1f1b", "dualpipe", "[interleaved, zero-bubble]"}},
           {"micro_batch", {"1", "2"}},
           {"sequence_parallel", {"true", "false"}},
           {"tp_overlap", {"ring", "none"}},
           {"recompute", {"none", "[selective, full]"}},
           {"zero", {"1..2", "3"}},
           {"shard", {"2", "0"}},
           {"offload_weights", {"true", "false"}},
           {"offload_activations", {"true", "false"}},
           {"offload_optimizer", {"true", "false"}}}) {
    if (random(0, 3) == 0) { continue; }
    const auto& option = options[static_cast<std::size_t>(random(0, static_cast<std::int64_t>(options.size())))];
    values += (values.empty() ? "" : ", ") + axis + ": " + option;
  }
  return "{" + values + "}";
}

SpaceFile with(const SpaceFile& file, const std::string& values) {
  return *with_values(file, *config::parse_yaml(values, "values"));
}

// The space of --space wide, in which all choices of a plan are searched.
TEST(SpaceSearch, pruned_results_of_the_wide_space_equal_exhaustive_ones) {
  constexpr std::int64_t kMostPoints = orrery::test::cases(30'000);
  const SpaceFile file = *read_space_file(std::string(ORRERY_DATA_DIR) + "/spaces/wide-training.yaml");
  int answers = 0;
  for (std::uint64_t seed = 0; seed < orrery::test::cases(105U) && !HasFailure(); ++seed) {
    Searched s = any_job(30'000 + seed);
    const std::string values = some_fixed(seed);
    const auto space =
        Space::make(with(file, values), s.setting.model, s.setting.job, s.setting.cluster, {}, seed % 2 == 0);
    ASSERT_TRUE(space) << space.error().text();
    if (space->points() > kMostPoints) { continue; }
    s.space = *space;
    SCOPED_TRACE(std::to_string(seed) + " " + values);
    const auto all = searched(s, true, 2, 5);
    expect_same_best(searched(s, false, 1, 5), all);
    answers += all.best.empty() ? 0 : 1;
  }
  EXPECT_GT(answers, orrery::test::kSanitizers ? 3 : 20);
}

// Several values of an axis: the best of the searches of each value.
TEST(SpaceSearch, the_best_of_several_values_is_that_of_the_best_value) {
  const SpaceFile file = *read_space_file(std::string(ORRERY_DATA_DIR) + "/spaces/training.yaml");
  int answers = 0;
  for (std::uint64_t seed = 0; seed < orrery::test::cases(150U) && !HasFailure(); ++seed) {
    Searched s = any_job(40'000 + seed);
    const auto best_of = [&](const char* values) {
      s.space = *Space::make(with(file, values), s.setting.model, s.setting.job, s.setting.cluster, {}, false);
      const auto result = searched(s, false, 1, 1);
      return result.best.empty() ? infinite<Seconds>() : result.best.front().price.step_time;
    };
    SCOPED_TRACE(seed);
    const Seconds best = best_of("{tp: [1, 2], zero: 0..1, schedule: [1f1b, zero-bubble]}");
    const Seconds one = best_of("{tp: 1, zero: [0, 1], schedule: [1f1b, zero-bubble]}");
    EXPECT_EQ(best, min(one, best_of("{tp: [2], zero: [1, 0], schedule: [zero-bubble, 1f1b]}")));
    answers += best < infinite<Seconds>() ? 1 : 0;
  }
  EXPECT_GT(answers, orrery::test::cases(30));
}

}  // namespace
}  // namespace orrery::explore::space_search_test
