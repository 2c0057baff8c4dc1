#include "orrery/profile/idle.hpp"

#include <gtest/gtest.h>

#include "orrery/profile/facts.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/test_profiles.hpp"

namespace orrery::profile::idle_test {

IdleFacts idle_of(const std::string& text) {
  const auto profile = read_kineto_bytes(text, "a.json");
  EXPECT_TRUE(profile) << profile.error().text();
  return idle_facts(*profile, plan_of(*profile));
}

// Kernels at 10-20, 26-30 and 80-90 us. The second was launched at 12, in time: a gap of 6. The third is launched at
// 74, 44 us after the device ran dry at 30: 20 of these the profiler stopped the host, 24 it worked. Then 6 us of
// latency.
TEST(Idle, time_of_the_host_the_profiler_and_the_launch_are_told_apart) {
  const IdleFacts idle = idle_of(R"({"traceEvents":[
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":4,"dur":3,"args":{"correlation":1}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":12,"dur":3,"args":{"correlation":2}},
{"ph":"X","cat":"overhead","name":"Buffer Flush","pid":-1,"tid":0,"ts":40,"dur":20,"args":{}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":74,"dur":3,"args":{"correlation":3}},
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":10,"dur":10,"args":{"device":0,"stream":7,"correlation":1}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":26,"dur":4,"args":{"device":0,"stream":7,"correlation":2}},
{"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":80,"dur":10,"args":{"device":0,"stream":7,"correlation":3}}]})");
  EXPECT_EQ(idle.gap_ns, 6'000);
  EXPECT_EQ(idle.profiler_ns, 20'000);
  EXPECT_EQ(idle.host_ns, 24'000);
  EXPECT_EQ(idle.launch_ns, 6'000);
  EXPECT_EQ(idle.all_ns(), 56'000);
}

// Whatever the causes are, they are all of the time in which the device does nothing.
class MadeIdle : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, MadeIdle, ::testing::Range(0U, 12U));

TEST_P(MadeIdle, parts_add_up_to_the_span_less_the_busy_time) {
  for (const std::string& text : MadeJob(3, 4, GetParam()).profiles()) {
    const auto profile = read_kineto_bytes(text, "a.json");
    ASSERT_TRUE(profile);
    const BusyFacts whole = facts_of(*profile).whole;
    const IdleFacts idle = idle_facts(*profile, plan_of(*profile));
    EXPECT_EQ(idle.all_ns(), whole.span_ns - whole.busy_ns);
    EXPECT_EQ(idle.unexplained_ns, 0);
    EXPECT_EQ(idle.without_call_ns, 0);
  }
}

}  // namespace orrery::profile::idle_test
