#include "orrery/profile/rows.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/test_profiles.hpp"

namespace orrery::profile::rows_test {

// One addmm of two kernels, 3 + 1.5 us; the bias is not a matrix.
TEST(Rows, products_have_the_shapes_of_their_operator_and_the_time_of_its_kernels) {
  const char* const text = R"({"deviceProperties":[{"id":0,"name":"NVIDIA A100-SXM4-80GB"}],"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":9,"tid":9,"ts":0,"dur":50,"args":{"Input Dims":[[64],[4096,100],[100,64],[]],"Input type":["c10::Half","c10::Half","c10::Half","Scalar"]}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":5,"dur":3,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":15,"dur":3,"args":{"correlation":2}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":12,"dur":3,"args":{"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"splitK","pid":0,"tid":7,"ts":22,"dur":1.5,"args":{"device":0,"stream":7,"correlation":2}}]})";
  const auto profile = read_kineto_bytes(text, "a.json");
  ASSERT_TRUE(profile) << profile.error().text();
  const auto job = job_plan({&*profile});
  ASSERT_TRUE(job) << job.error().text();
  EXPECT_EQ(rows_of(*job).kernels,
            "id,family,op,gpu_type,dtype,m,n,k,groups,time_us,source\n"
            "gemm-1,profile,gemm,A100-SXM4-80GB,fp16,4096,64,100,1,4.500,\"median of 1 in 1 profiles\"\n");
}

// Every step has one all-reduce of 4,096 bytes; alone, a rank has no time on the wire.
TEST(Rows, collectives_have_their_time_on_the_wire) {
  const auto texts = MadeJob(2, 3, 5).profiles();
  const auto a = read_kineto_bytes(texts[0], "a.json");
  const auto b = read_kineto_bytes(texts[1], "b.json");
  ASSERT_TRUE(a && b);
  const auto job = job_plan({&*a, &*b});
  ASSERT_TRUE(job) << job.error().text();
  const ProfileRows rows = rows_of(*job);
  EXPECT_EQ(rows.collective_rows, 3U);
  EXPECT_NE(rows.collectives.find("all_reduce-1,profile,all_reduce,4096,"), std::string::npos) << rows.collectives;
  const auto alone = job_plan({&*a});
  ASSERT_TRUE(alone);
  EXPECT_EQ(rows_of(*alone).collective_rows, 0U);
}

// The step of the job is that of its slowest rank; the row is the median of the steps.
TEST(Rows, steps_are_measurements_of_a_command) {
  const MadeJob made(2, 3, 5);
  const auto texts = made.profiles();
  const auto a = read_kineto_bytes(texts[0], "a.json");
  const auto b = read_kineto_bytes(texts[1], "b.json");
  ASSERT_TRUE(a && b);
  const auto job = job_plan({&*a, &*b});
  ASSERT_TRUE(job) << job.error().text();
  const auto steps = made.steps();
  std::vector<std::int64_t> slowest;
  for (std::size_t step = 0; step < 3; ++step) { slowest.push_back(std::max(steps[0][step], steps[1][step])); }
  std::sort(slowest.begin(), slowest.end());
  EXPECT_EQ(step_rows(rows_of(*job), "estimate --model \"my model\""),
            fmt::format("id,args,measured_s,source\nstep,\"estimate --model \"\"my model\"\"\",0.{:09},"
                        "\"median of 3 steps, each on its slowest rank\"\n",
                        slowest[1]));
}

}  // namespace orrery::profile::rows_test
