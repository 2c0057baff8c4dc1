// Plans as jobs on one cluster.
#include "orrery/api/concurrent_jobs.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "orrery/api/plan_simulation.hpp"

namespace orrery::api::concurrent_jobs_test {
namespace {

const std::string kData = ORRERY_SOURCE_DATA_DIR;

class Jobs : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    file_ = std::filesystem::temp_directory_path() / (std::string("orrery-") + info->name() + ".yaml");
  }
  void TearDown() override { std::filesystem::remove(file_); }

  Result<results::JobTimes> run(const std::string& text) {
    std::ofstream(file_) << text;
    return simulate_jobs(kData, file_.string());
  }

  std::filesystem::path file_;
};

const std::string kPlan =
    "--model llama-2-7b --devices 16 --tp 4 --pp 2 --dp 2 --micro-batch 1 --global-batch 8 --seq 2048";

// Two plans on whole nodes of rails share no port: each ends when `simulate` of the plan alone says. The second
// starts 1 ms later.
TEST_F(Jobs, plans_on_their_own_nodes_take_the_time_of_each_alone) {
  const auto times = run("cluster: dgx-h100\ndevices: 32\njobs:\n  - {name: a, plan: " + kPlan +
                         "}\n  - {name: b, start: 1 ms, plan: " + kPlan + "}\n");
  ASSERT_TRUE(times) << times.error().text();
  estimate::Request request;
  request.model = "llama-2-7b";
  request.cluster = "dgx-h100";
  request.devices = 16;
  request.tp = 4;
  request.pp = 2;
  request.dp = 2;
  request.micro_batch = 1;
  request.global_batch = 8;
  request.seq = 2048;
  const auto alone = simulate_plan(kData, request, {});
  ASSERT_TRUE(alone) << alone.error().text();
  const double expected = 1e-9 * static_cast<double>(alone->simulation.makespan_ns());
  for (const results::JobTime& job : times->jobs) {
    EXPECT_EQ(job.ranks, 16U);
    EXPECT_NEAR(job.alone_s, expected, 1e-9);
    EXPECT_NEAR(job.finish_s - job.start_s, expected, 2e-9);
  }
  EXPECT_DOUBLE_EQ(times->jobs[1].start_s, 0.001);
}

// Steps follow one another; without a pipeline nothing of the second overlaps with the first.
TEST_F(Jobs, two_steps_of_a_plan_take_twice_as_long) {
  const std::string plan = "--model llama-2-7b --devices 8 --tp 8 --dp 1 --micro-batch 1 --global-batch 2 --seq 2048";
  const auto times = run("cluster: dgx-h100\ndevices: 16\njobs:\n  - {name: a, plan: " + plan +
                         "}\n  - {name: b, steps: 2, plan: " + plan + "}\n");
  ASSERT_TRUE(times) << times.error().text();
  EXPECT_NEAR(times->jobs[1].alone_s / times->jobs[0].alone_s, 2, 0.01);
}

TEST_F(Jobs, mistakes_of_plans_have_the_place_of_the_job) {
  const auto text_of = [&](const std::string& job) {
    const auto times = run("cluster: dgx-h100\ndevices: 16\njobs:\n  - {name: a, " + job + "}\n");
    return times ? std::string("no error") : times.error().text();
  };
  EXPECT_NE(text_of("plan: --model llama-2-7b --tpp 4").find("/jobs/0/plan"), std::string::npos);
  EXPECT_NE(text_of("plan: " + kPlan + " --cluster dgx-a100").find("--cluster"), std::string::npos);
  EXPECT_NE(text_of("plan: " + kPlan + ", workload: w").find("one of them"), std::string::npos);
  EXPECT_NE(text_of("workload: w, steps: 2").find("/jobs/0/steps"), std::string::npos);
}

}  // namespace
}  // namespace orrery::api::concurrent_jobs_test
