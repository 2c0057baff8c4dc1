// The spaces that ship with Orrery against the same plans enumerated by loops.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/explore/space_walk.hpp"
#include "orrery/explore/test_enumerate.hpp"
#include "orrery/explore/test_spaces.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::explore::space_builtin_test {
namespace {

using parallel::Plan;
using parallel::test::any_of;

const SpaceFile& builtin(bool serves) {
  static const auto read = [](const char* name) {
    return read_space_file(std::string(ORRERY_DATA_DIR) + "/spaces/" + name).value();
  };
  static const SpaceFile training = read("training.yaml"), inference = read("inference.yaml");
  return serves ? inference : training;
}

// Plans of a space in axis order.
std::vector<Plan> sorted_plans(const Space& space, std::int64_t batch) {
  std::vector<std::pair<Order, Plan>> found;
  std::int64_t points = 0;
  SpaceWalk walk(space);
  walk.families([&](const Family& family) {
    std::int64_t of_family = 0;
    walk.members(family, [&](const Member& member) {
      EXPECT_EQ(member.verdict, Verdict::possible);
      EXPECT_EQ(member.point.global_batch, batch);
      of_family += member.points;
      found.emplace_back(member.order, member.point.plan);
    });
    EXPECT_EQ(family.points, of_family);
    points += of_family;
    return true;
  });
  EXPECT_EQ(space.points(), points);
  EXPECT_EQ(points, static_cast<std::int64_t>(found.size()));
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Plan> plans;
  for (auto& [order, plan] : found) { plans.push_back(plan); }
  return plans;
}

std::vector<Plan> walked(const workload::Model& model, const parallel::Job& job, const hardware::Cluster& cluster,
                         const parallel::PartialPlan& fixed, bool dp_overlap) {
  const auto space = Space::make(builtin(job.is_inference()), model, job, cluster, fixed, dp_overlap);
  EXPECT_TRUE(space) << space.error().text();
  return sorted_plans(*space, job.global_batch);
}

// Random values of what a user can fix, valid or not.
template <class Range>
parallel::PartialPlan any_typed(Range&& range) {
  using parallel::Recompute;
  using parallel::ScheduleKind;
  parallel::PartialPlan fixed;
  const auto some = [&] { return range(0, 8) == 0; };
  const auto degree = [&] { return any_of(range, {1, 2, 2, 3, 4, 8, 0, -1}); };
  for (auto member : {&parallel::PartialPlan::tp, &parallel::PartialPlan::cp, &parallel::PartialPlan::pp,
                      &parallel::PartialPlan::dp, &parallel::PartialPlan::ep, &parallel::PartialPlan::etp,
                      &parallel::PartialPlan::vpp, &parallel::PartialPlan::micro_batch}) {
    if (some()) { fixed.*member = degree(); }
  }
  if (some()) { fixed.sequence_parallel = range(0, 2) == 1; }
  if (some()) { fixed.dp_overlap = range(0, 2) == 1; }
  if (some()) { fixed.zero = static_cast<int>(range(0, 4)); }
  if (some()) { fixed.recompute = static_cast<Recompute>(range(0, 3)); }
  if (some()) { fixed.schedule = static_cast<ScheduleKind>(range(0, 5)); }
  if (some()) { fixed.cp_method = static_cast<workload::ContextMethod>(range(0, 2)); }
  if (some()) { fixed.tp_overlap = static_cast<parallel::TpOverlap>(range(0, 3)); }
  if (some()) { fixed.shard = range(1, 5); }
  if (some()) { fixed.offload = parallel::Offload{range(0, 2) == 1, range(0, 2) == 1, range(0, 2) == 1}; }
  if (some()) { fixed.first_stage_layers = range(0, 4); }
  if (some()) { fixed.last_stage_layers = range(0, 4); }
  if (some()) { fixed.embedding_as_layer = true; }
  if (some()) { fixed.head_as_layer = true; }
  return fixed;
}

void expect_the_same(const workload::Model& model, const parallel::Job& job, const hardware::Cluster& cluster,
                     const parallel::PartialPlan& fixed, bool dp_overlap) {
  const auto expected = enumerate(model, job, cluster, fixed, dp_overlap);
  const auto found = walked(model, job, cluster, fixed, dp_overlap);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) { ASSERT_EQ(found[i], expected[i]) << i; }
}

TEST(BuiltinSpaces, equal_the_loops_in_order) {
  std::size_t seen = 0;
  for (std::uint64_t seed = 0; seed < orrery::test::cases(150U); ++seed) {
    parallel::test::SeededRandom random(seed);
    auto c = test::any_search(random);
    if (random(0, 2) == 1) { c.fixed = any_typed(random); }
    if (random(0, 4) == 0) { c.cluster.second_tier = {}; }
    if (random(0, 3) == 0) { c.job.seq = 64 * any_of(random, {128, 192, 256, 1024}); }
    if (random(0, 4) == 0 && c.model.encoder_layers == 0) {
      c.job.task = parallel::Task::inference;
      c.job.prompt = c.job.seq;
      c.job.generate = 8;
      c.job.seq += 7;
    }
    SCOPED_TRACE(seed);
    expect_the_same(c.model, c.job, c.cluster, c.fixed, random(0, 2) == 1);
    if (HasFatalFailure()) { return; }
    seen += walked(c.model, c.job, c.cluster, c.fixed, true).size();
  }
  EXPECT_GT(seen, orrery::test::cases(20'000U));
}

TEST(BuiltinSpaces, equal_the_loops_for_models_of_the_catalogue) {
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  const std::int64_t devices = orrery::test::kSanitizers ? 16 : 64;
  for (const auto* name : {"llama-3.1-8b", "llama-3.1-405b", "mixtral-8x22b", "deepseek-v3", "gpt3-175b", "t5-11b"}) {
    const auto model = workload::load_model(ORRERY_DATA_DIR, name).value();
    const auto cluster = catalogue.cluster("dgx-h100", devices).value();
    const parallel::Job job{128, std::min<std::int64_t>(model.max_seq, 16'384), hardware::Precision::bf16,
                            parallel::Task::pretrain};
    SCOPED_TRACE(name);
    expect_the_same(model, job, cluster, {}, true);
    if (model.encoder_layers > 0) { continue; }
    parallel::Job serving = job;
    serving.task = parallel::Task::inference;
    serving.prompt = 2000;
    serving.generate = 49;
    serving.seq = 2048;
    expect_the_same(model, serving, cluster, {}, true);
  }
}

}  // namespace
}  // namespace orrery::explore::space_builtin_test
