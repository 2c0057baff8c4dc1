#include "orrery/profile/idle.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
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

// A call of the runtime, and an operation that it launched, in us; of streams 7 and 8.
std::string call(const char* name, int correlation, int start, int duration) {
  return fmt::format(
      R"({{"ph":"X","cat":"cuda_runtime","name":"{}","pid":9,"tid":9,"ts":{},"dur":{},"args":{{"correlation":{}}}}})",
      name, start, duration, correlation);
}
std::string kernel(int correlation, int start, int end, int stream = 7) {
  return fmt::format(R"({{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":{0},"ts":{1},"dur":{2},)"
                     R"("args":{{"device":0,"stream":{0},"correlation":{3}}}}})",
                     stream, start, end - start, correlation);
}
IdleFacts idle_of(const std::vector<std::string>& events) {
  return idle_of(fmt::format(R"({{"traceEvents":[{}]}})", fmt::join(events, ",")));
}

// A kernel until 100, a call that waits for it and returns at 104, and a launch at 110 whose kernel starts at 116.
TEST(Idle, the_return_of_a_blocking_call_is_no_work_of_the_host) {
  const IdleFacts idle =
      idle_of({call("cudaLaunchKernel", 1, 4, 3), kernel(1, 10, 100), call("cudaStreamSynchronize", 2, 20, 84),
               call("cudaLaunchKernel", 3, 110, 3), kernel(3, 116, 120)});
  EXPECT_EQ(idle.blocked_ns, 4'000);
  EXPECT_EQ(idle.host_ns, 6'000);
  EXPECT_EQ(idle.launch_ns, 6'000);
  EXPECT_EQ(idle.all_ns(), 16'000);
}

TEST(Idle, time_between_operations_of_a_graph_is_the_graphs) {
  const IdleFacts idle = idle_of({call("cudaGraphLaunch", 1, 4, 3), kernel(1, 10, 20), kernel(1, 25, 30)});
  EXPECT_EQ(idle.graph_ns, 5'000);
  EXPECT_EQ(idle.all_ns(), 5'000);
}

TEST(Idle, time_before_an_operation_whose_call_is_missing_is_apart) {
  const IdleFacts idle = idle_of({call("cudaLaunchKernel", 1, 4, 3), kernel(1, 10, 20), kernel(99, 30, 35)});
  EXPECT_EQ(idle.without_call_ns, 10'000);
  EXPECT_EQ(idle.all_ns(), 10'000);
}

// The second kernel was launched at 12 and could start at 21, after the usual gap of 1; it starts at 100.
TEST(Idle, a_late_start_that_nothing_explains_is_called_unexplained) {
  const std::vector<std::string> events = {call("cudaLaunchKernel", 1, 4, 3), kernel(1, 10, 20),
                                           call("cudaLaunchKernel", 2, 12, 3), kernel(2, 100, 110)};
  const IdleFacts idle = idle_of(events);
  EXPECT_EQ(idle.unexplained_ns, 79'000);
  EXPECT_EQ(idle.gap_ns, 1'000);
  EXPECT_EQ(idle.all_ns(), 80'000);
}

// The same, but a kernel of another stream ends at 99: it explains the start.
TEST(Idle, the_end_of_another_stream_explains_a_late_start) {
  const IdleFacts idle =
      idle_of({call("cudaLaunchKernel", 1, 4, 3), kernel(1, 10, 20), call("cudaLaunchKernel", 3, 8, 3),
               kernel(3, 14, 99, 8), call("cudaLaunchKernel", 2, 12, 3), kernel(2, 100, 110)});
  EXPECT_EQ(idle.unexplained_ns, 0);
  EXPECT_EQ(idle.gap_ns, 1'000);
  EXPECT_EQ(idle.all_ns(), 1'000);
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
