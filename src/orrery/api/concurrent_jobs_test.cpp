// Plans as jobs on one cluster.
#include "orrery/api/concurrent_jobs.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "orrery/api/plan_simulation.hpp"
#include "orrery/simulate/test_jobs.hpp"
#include "orrery/trace/chakra.hpp"

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

// ---- nodes of several kinds ----------------------------------------------------------------------------------------

// Clusters of four nodes of four devices on one network: of one accelerator, or of two kinds, two nodes each.
class JobsOnKinds : public Jobs {
 protected:
  void SetUp() override {
    Jobs::SetUp();
    folder_ = std::filesystem::temp_directory_path() / (file_.stem().string() + "-clusters");
    std::filesystem::create_directory(folder_);
    write("fast", "accelerator: h100-sxm");
    write("slow", "accelerator: a100-sxm-80gb");
    write("both", "nodes: [{count: 2, accelerator: h100-sxm}, {count: 2, accelerator: a100-sxm-80gb}]");
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    Jobs::TearDown();
  }

  void write(const std::string& name, const std::string& accelerators) const {
    std::ofstream(folder_ / (name + ".yaml"))
        << accelerators << "\ndimensions:\n"
        << "  - {name: nvlink, wiring: switched, size: 4, bandwidth: 300 GB/s, link: nvlink3}\n"
        << "  - {name: infiniband, wiring: rails, size: 4, bandwidth: 200 Gb/s, link: infiniband-hdr}\n";
  }

  results::JobTimes times_on(const std::string& cluster, const std::string& rest) {
    auto times = run("cluster: " + (folder_ / (cluster + ".yaml")).string() + "\ndevices: 16\n" + rest);
    EXPECT_TRUE(times) << times.error().text();
    return times ? *times : results::JobTimes{};
  }

  std::filesystem::path folder_;
};

std::string plan_of(int tp, int pp, int dp) {
  return "--model llama-2-7b --devices " + std::to_string(tp * pp * dp) + " --tp " + std::to_string(tp) + " --pp " +
         std::to_string(pp) + " --dp " + std::to_string(dp) + " --global-batch 16 --seq 2048 --vpp 1 --micro-batch 1" +
         " --recompute none --stack megatron-core";
}

// Packed: the first job has the two nodes of the first kind, the second one those of the second kind.
TEST_F(JobsOnKinds, a_plan_on_nodes_of_one_kind_takes_the_time_of_a_cluster_of_that_kind) {
  const std::string jobs =
      "jobs:\n  - {name: a, plan: " + plan_of(4, 1, 2) + "}\n  - {name: b, plan: " + plan_of(2, 2, 2) + "}\n";
  const auto both = times_on("both", jobs), fast = times_on("fast", jobs), slow = times_on("slow", jobs);
  ASSERT_EQ(both.jobs.size(), 2U);
  EXPECT_EQ(both.jobs[0].alone_s, fast.jobs[0].alone_s);
  EXPECT_EQ(both.jobs[0].finish_s, fast.jobs[0].finish_s);
  EXPECT_EQ(both.jobs[1].alone_s, slow.jobs[1].alone_s);
  EXPECT_EQ(both.jobs[1].finish_s, slow.jobs[1].finish_s);
  EXPECT_GT(slow.jobs[0].alone_s, 1.5 * fast.jobs[0].alone_s);
}

// Devices that are listed, by rank. Reversed nodes of a plan without a pipeline change nothing.
TEST_F(JobsOnKinds, listed_devices_have_the_speed_of_their_nodes) {
  const auto listed = [&](const std::string& cluster, const std::string& devices) {
    return times_on(cluster, "jobs:\n  - {name: a, devices: [" + devices + "], plan: " + plan_of(4, 1, 2) + "}\n")
        .jobs.at(0)
        .alone_s;
  };
  const std::string first = "0, 1, 2, 3, 4, 5, 6, 7", last = "8, 9, 10, 11, 12, 13, 14, 15";
  const std::string across = "4, 5, 6, 7, 8, 9, 10, 11", back = "8, 9, 10, 11, 4, 5, 6, 7";
  EXPECT_EQ(listed("both", first), listed("fast", first));
  EXPECT_EQ(listed("both", last), listed("slow", last));
  EXPECT_EQ(listed("both", across), listed("both", back));
  EXPECT_GT(listed("both", across), 1.5 * listed("fast", across));
  EXPECT_LE(listed("both", across), listed("slow", across));
}

// A pipeline whose first stage is fast and whose second one is slow, by a placement of any kind.
TEST_F(JobsOnKinds, a_job_over_both_kinds_is_bounded_by_both) {
  for (const std::string placement : {"packed", "spread", "random"}) {
    const std::string jobs = "placement: " + placement + "\njobs:\n  - {name: a, plan: " + plan_of(4, 2, 2) + "}\n";
    const double both = times_on("both", jobs).jobs.at(0).alone_s;
    EXPECT_GT(both, times_on("fast", jobs).jobs.at(0).alone_s) << placement;
    EXPECT_LE(both, times_on("slow", jobs).jobs.at(0).alone_s) << placement;
  }
}

TEST_F(JobsOnKinds, nodes_of_equal_kinds_change_nothing) {
  write("equal", "nodes: [{count: 1, accelerator: h100-sxm}, {count: 3, accelerator: h100-sxm}]");
  for (const std::string placement : {"packed", "spread", "random"}) {
    const std::string jobs = "placement: " + placement + "\njobs:\n  - {name: a, plan: " + plan_of(4, 1, 2) +
                             "}\n  - {name: b, start: 3 ms, plan: " + plan_of(2, 4, 1) + "}\n";
    const auto equal = times_on("equal", jobs), plain = times_on("fast", jobs);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(equal.jobs.at(i).finish_s, plain.jobs.at(i).finish_s) << placement;
      EXPECT_EQ(equal.jobs.at(i).alone_s, plain.jobs.at(i).alone_s) << placement;
    }
  }
}

TEST_F(JobsOnKinds, a_node_of_a_plan_lies_on_one_kind) {
  const auto times = run("cluster: " + (folder_ / "both.yaml").string() + "\ndevices: 16\njobs:\n" +
                         "  - {name: a, devices: [6, 7, 8, 9], plan: " + plan_of(2, 1, 2) + "}\n");
  ASSERT_FALSE(times);
  EXPECT_NE(times.error().text().find("/jobs/0/plan: ranks of one node of the plan lie on nodes of different "
                                      "accelerators (h100-sxm and a100-sxm-80gb)"),
            std::string::npos)
      << times.error().text();
}

// Graphs of one kernel without a recorded time have that of the roofline of their device, wherever it is: 1e12
// operations on 1e9 B take 1.011 ms at 989 TFLOP/s and 3.205 ms at 312 TFLOP/s.
TEST_F(JobsOnKinds, graphs_have_the_roofline_of_their_devices) {
  namespace sim = simulate::test;
  graph::NodeRecord kernel = sim::node(1, graph::NodeType::comp);
  kernel.attributes = {sim::number(graph::keys::num_ops, 1'000'000'000'000),
                       sim::number(graph::keys::tensor_size, 1'000'000'000)};
  for (int rank = 0; rank < 4; ++rank) {
    const auto file = (folder_ / ("w." + std::to_string(rank) + ".et")).string();
    ASSERT_TRUE(trace::write_chakra(sim::graph_of({kernel}), file).has_value());
  }
  const std::string jobs = "jobs:\n  - {name: a, workload: " + (folder_ / "w").string() +
                           ", devices: [0, 1, 2, 3]}\n  - {name: b, workload: " + (folder_ / "w").string() +
                           ", devices: [6, 12, 7, 13]}\n";
  const auto times = times_on("both", jobs);
  EXPECT_NEAR(times.jobs.at(0).finish_s, 1e12 / 989.4e12, 2e-6);
  EXPECT_NEAR(times.jobs.at(1).finish_s, 1e12 / 312e12, 2e-6);
}

}  // namespace
}  // namespace orrery::api::concurrent_jobs_test
