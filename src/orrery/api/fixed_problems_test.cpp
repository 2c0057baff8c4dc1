// Values that a user fixed and no plan can have are reported in terms of what was given.
#include "orrery/api/fixed_problems.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/planning.hpp"
#include "orrery/core/test_effort.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::api::fixed_problems_test {
namespace {

using parallel::PartialPlan;
using testing::ElementsAre;
using testing::HasSubstr;

PlanRequest request(const std::string& model, std::int64_t devices, std::int64_t batch, std::int64_t seq) {
  PlanRequest made;
  made.job.model = model;
  made.job.cluster = "dgx-h100";
  made.job.devices = devices;
  made.job.global_batch = batch;
  made.job.seq = seq;
  return made;
}

// Nothing: the space has points.
std::optional<std::vector<Diagnostic>> problems_with(const PlanRequest& asked) {
  static const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  const auto problem = read_problem(ORRERY_DATA_DIR, catalogue, asked);
  EXPECT_TRUE(problem) << problem.error().text();
  const auto space = space_of(asked, *problem);
  EXPECT_TRUE(space) << space.error().text();
  if (space->points() > 0) { return std::nullopt; }
  return fixed_problems(asked, *problem);
}

std::vector<std::string> complaints(const PlanRequest& asked) {
  std::vector<std::string> texts;
  const auto found = problems_with(asked);
  EXPECT_TRUE(found);
  for (const Diagnostic& one : found.value_or(std::vector<Diagnostic>{})) { texts.push_back(one.text()); }
  return texts;
}

TEST(FixedProblems, degrees_that_do_not_divide_the_devices_are_named_without_the_others) {
  auto asked = request("llama-3.1-8b", 64, 512, 8192);
  asked.job.dp = 3;
  EXPECT_THAT(complaints(asked), ElementsAre("--dp: dp 3 does not divide the 64 devices; nearest divisors: 2 and 4"));
  asked.job.tp = 4;
  EXPECT_THAT(complaints(asked), ElementsAre("--dp: dp 3 does not divide the 64 devices; nearest divisors: 2 and 4"));
  asked.job.tp = 16;
  asked.job.dp = 8;
  EXPECT_THAT(complaints(asked), ElementsAre("--dp: tp 16 x dp 8 = 128 does not divide the 64 devices; nearest dp: 4"));
  asked.job.tp = std::nullopt;
  asked.job.dp = std::nullopt;
  asked.job.pp = 5;
  EXPECT_THAT(complaints(asked), ElementsAre("--pp: pp 5 does not divide the 64 devices; nearest divisors: 4 and 8"));
}

// Each by itself, with the rule it breaks or the nearest values that leave plans.
TEST(FixedProblems, independent_mistakes_are_reported_together) {
  auto asked = request("mixtral-8x7b", 64, 256, 4096);
  asked.job.pp = 7;
  asked.job.ep = 3;
  const auto found = complaints(asked);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_THAT(found, testing::Contains(HasSubstr("--pp: pp 7 does not divide the 64 devices")));
  EXPECT_THAT(found, testing::Contains("--ep: \"3\" does not divide the 8 experts; nearest divisors: 2 and 4"));
}

// 512 sequences: no dp leaves a replica a multiple of 3. 32 layers: two stages of 16.
TEST(FixedProblems, values_that_no_rule_alone_forbids_have_the_nearest_ones_that_leave_plans) {
  auto asked = request("llama-3.1-8b", 64, 512, 8192);
  asked.job.micro_batch = 3;
  EXPECT_THAT(complaints(asked),
              ElementsAre("--micro-batch: no plan of the search has micro-batch 3 on 64 devices with 512 sequences; "
                          "nearest valid micro-batch: 2 and 4"));
  asked.job.micro_batch = std::nullopt;
  asked.job.vpp = 1'000'000;
  EXPECT_THAT(complaints(asked), ElementsAre("--vpp: no plan of the search has vpp 1000000 on 64 devices with 512 "
                                             "sequences; nearest valid vpp: 16"));
}

using Member = std::optional<std::int64_t> PartialPlan::*;
constexpr std::array<std::pair<const char*, Member>, 7> kDegrees{{{"tp", &PartialPlan::tp},
                                                                  {"cp", &PartialPlan::cp},
                                                                  {"pp", &PartialPlan::pp},
                                                                  {"ep", &PartialPlan::ep},
                                                                  {"dp", &PartialPlan::dp},
                                                                  {"vpp", &PartialPlan::vpp},
                                                                  {"micro-batch", &PartialPlan::micro_batch}}};

// "tp 4" in what is said to be wrong, which ends where the advice begins.
void expect_given(const PartialPlan& given, const Diagnostic& problem) {
  static const std::regex kDegree("\\b(tp|cp|pp|ep|etp|dp|vpp|micro-batch) (\\d+)");
  const std::string wrong = problem.message.substr(0, problem.message.find(';'));
  for (auto at = std::sregex_iterator(wrong.begin(), wrong.end(), kDegree); at != std::sregex_iterator(); ++at) {
    bool is_given = false;
    for (const auto& [name, member] : kDegrees) {
      is_given = is_given || ((*at)[1] == name && given.*member && std::to_string(*(given.*member)) == (*at)[2]);
    }
    EXPECT_TRUE(is_given) << problem.text();
  }
  const std::string& flag = problem.place.path;
  bool is_flag = flag == "--global-batch";
  for (const auto& [name, member] : kDegrees) {
    is_flag = is_flag || (given.*member && flag == "--" + std::string(name));
  }
  EXPECT_TRUE(is_flag) << problem.text();
}

TEST(FixedProblems, every_combination_without_plans_is_reported_by_what_was_given) {
  const std::vector<PlanRequest> jobs = {request("llama-3.1-8b", 16, 64, 8192), request("llama-3.1-8b", 64, 96, 4096),
                                         request("mixtral-8x7b", 64, 64, 4096)};
  parallel::test::SeededRandom random(5);
  int reported = 0, possible = 0;
  const int jobs_tried = orrery::test::kSanitizers ? 100 : 300;
  for (int i = 0; i < jobs_tried && !HasFailure(); ++i) {
    PlanRequest asked = jobs[static_cast<std::size_t>(i) % jobs.size()];
    for (const auto& [name, member] : kDegrees) {
      if (random(0, 2) == 1) {
        asked.job.*member = parallel::test::any_of(random, {1, 1, 2, 2, 2, 3, 4, 4, 5, 8, 16, 64});
      }
    }
    const auto found = problems_with(asked);
    (found ? reported : possible) += 1;
    if (!found) { continue; }
    EXPECT_FALSE(found->empty());
    for (const Diagnostic& problem : *found) { expect_given(asked.job, problem); }
  }
  EXPECT_GT(reported, jobs_tried / 3);
  EXPECT_GT(possible, jobs_tried / 30);
}

}  // namespace
}  // namespace orrery::api::fixed_problems_test
