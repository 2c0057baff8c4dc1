// Open choices of a plan, against all combinations priced one by one.
#include "orrery/estimate/open_choices.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/parallel/plan_fields.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::estimate::open_choices_test {
namespace {

using parallel::Plan;
using parallel::PlanField;
using parallel::Recompute;
using parallel::ScheduleKind;
using parallel::test::SeededRandom;

// A request that gives some of the open choices of a case's plan, and all others.
Request partly_open(const parallel::test::Case& c, SeededRandom& random) {
  Request request;
  request.task = c.job.task;
  request.global_batch = c.job.global_batch;
  request.seq = c.job.seq;
  request.precision = c.job.precision;
  request.lora = c.job.adapter.rank;
  request.lora_targets = c.job.adapter.targets;
  if (random(0, 2) == 1) { request.vpp = c.plan.vpp; }
  const bool has_common_schedule =
      c.plan.schedule == ScheduleKind::one_f_one_b || c.plan.schedule == ScheduleKind::interleaved;
  if (request.vpp || !has_common_schedule) { request.schedule = c.plan.schedule; }
  if (random(0, 2) == 1) { request.micro_batch = c.plan.micro_batch; }
  if (random(0, 2) == 1) { request.sequence_parallel = c.plan.sequence_parallel; }
  if (random(0, 2) == 1) { request.recompute = c.plan.recompute; }
  return request;
}

// All valid plans that differ from `plan` in open choices alone, from loops over more values than a model has.
std::vector<Plan> all_plans(const Request& request, const parallel::test::Case& c) {
  std::vector<Plan> plans;
  const auto is_open = [](const auto& given, const auto& value) { return !given || *given == value; };
  for (std::int64_t vpp = 1; vpp <= c.model.depth() + 2; ++vpp) {
    for (const auto schedule : {ScheduleKind::one_f_one_b, ScheduleKind::interleaved, c.plan.schedule}) {
      for (std::int64_t micro_batch = 1; micro_batch <= c.job.global_batch; ++micro_batch) {
        for (const bool sequence_parallel : {false, true}) {
          for (const auto recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
            Plan plan = c.plan;
            plan.vpp = vpp;
            plan.schedule = schedule;
            plan.micro_batch = micro_batch;
            plan.sequence_parallel = sequence_parallel;
            plan.recompute = recompute;
            const bool is_chosen = is_open(request.vpp, vpp) && is_open(request.schedule, schedule) &&
                                   is_open(request.micro_batch, micro_batch) &&
                                   is_open(request.sequence_parallel, sequence_parallel) &&
                                   is_open(request.recompute, recompute) &&
                                   (plan.tp > 1 || sequence_parallel == c.plan.sequence_parallel) &&
                                   (schedule == ScheduleKind::interleaved || vpp == 1 || request.vpp);
            const bool is_known = std::find(plans.begin(), plans.end(), plan) != plans.end();
            if (is_chosen && !is_known && parallel::is_valid(c.model, c.job, plan, c.cluster.devices) &&
                parallel::is_valid(c.cluster, plan)) {
              plans.push_back(plan);
            }
          }
        }
      }
    }
  }
  return plans;
}

std::int64_t value_of(PlanField field, const Plan& plan) { return parallel::part_of(field).get(plan); }

std::optional<Seconds> fastest_with(Estimator& estimator, const std::vector<Plan>& plans, auto&& condition) {
  std::optional<Seconds> best;
  for (const Plan& plan : plans) {
    if (!condition(plan)) { continue; }
    const auto price = estimator.price(plan);
    if (price && (!best || price->step_time < *best)) { best = price->step_time; }
  }
  return best;
}

TEST(OpenChoices, are_the_fastest_of_all_combinations_and_so_are_their_runners_up) {
  int chosen = 0, runners_up = 0, none_fit = 0;
  for (std::uint64_t seed = 0; seed < 1200; ++seed) {
    SeededRandom random(seed);
    auto c = parallel::test::any_case(random);
    if (c.plan.recompute_layers > 0) { continue; }
    if (random(0, 2) == 1) {
      Estimator unlimited(c.model, c.cluster, c.stack, c.job);
      c.cluster.accelerator.memory = unlimited.memory(c.plan).need * (0.25 * static_cast<double>(random(1, 5)));
    }
    const Request request = partly_open(c, random);
    const auto plans = open_plans(request, c.model, c.cluster, c.stack, c.plan);
    const auto all = all_plans(request, c);
    SCOPED_TRACE(seed);
    ASSERT_EQ(plans.size(), all.size());
    Estimator estimator(c.model, c.cluster, c.stack, c.job), slow(c.model, c.cluster, c.stack, c.job);
    const OpenChoice choice = fastest(estimator, plans);
    const auto expected = fastest_with(slow, all, [](const Plan&) { return true; });
    ASSERT_EQ(choice.fits, expected.has_value());
    if (!expected) {
      ++none_fit;
      for (const Plan& plan : all) { ASSERT_LE(slow.memory(choice.plan).need, slow.memory(plan).need); }
      continue;
    }
    ASSERT_EQ(slow.step_time(choice.plan), *expected);
    ++chosen;
    for (const auto& field : choice.fields) {
      const auto second = fastest_with(slow, all, [&](const Plan& plan) {
        return value_of(field.field, plan) != value_of(field.field, choice.plan);
      });
      ASSERT_EQ(field.runner_up.has_value(), second.has_value());
      if (!second) { continue; }
      ASSERT_NE(value_of(field.field, field.runner_up->plan), value_of(field.field, choice.plan));
      ASSERT_EQ(slow.step_time(field.runner_up->plan), *second);
      ASSERT_EQ(field.runner_up->slower, *second / *expected - 1.0);
      ++runners_up;
    }
  }
  EXPECT_GT(chosen, 200);
  EXPECT_GT(runners_up, 300);
  EXPECT_GT(none_fit, 0);
}

}  // namespace
}  // namespace orrery::estimate::open_choices_test
