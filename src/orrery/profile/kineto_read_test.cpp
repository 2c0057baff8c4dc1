#include "orrery/profile/kineto_read.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/profile/facts.hpp"
#include "orrery/profile/test_profiles.hpp"

namespace orrery::profile::kineto_read_test {

using ::testing::HasSubstr;

TEST(Nanoseconds, decimal_text_is_exact) {
  EXPECT_EQ(nanoseconds_of("1694128201545123.456"), 1694128201545123456);  // more digits than a double has
  EXPECT_EQ(nanoseconds_of("12"), 12000);
  EXPECT_EQ(nanoseconds_of("0.001"), 1);
  EXPECT_EQ(nanoseconds_of("-3.5"), -3500);
  EXPECT_EQ(nanoseconds_of("1.5e3"), 1'500'000);
  EXPECT_EQ(nanoseconds_of("0.0004"), 0);
  EXPECT_EQ(nanoseconds_of("0.0005"), 1);
  EXPECT_EQ(nanoseconds_of("1.23456789012345678901234"), 1235);
  for (const char* wrong : {"", ".", "-", "1x", "1e", "NaN", "99999999999999999999", "1e30"}) {
    EXPECT_EQ(nanoseconds_of(wrong), std::nullopt) << wrong;
  }
}

RC_GTEST_PROP(Nanoseconds, printing_and_reading_returns_the_number, ()) {
  const auto number = *rc::gen::inRange<std::int64_t>(0, INT64_MAX / 2);
  RC_ASSERT(nanoseconds_of(fmt::format("{}.{:03}", number / 1000, number % 1000)) == number);
}

constexpr const char* kSmall = R"({"schemaVersion": 1, "distributedInfo": {"rank": 3, "world_size": 8},
  "baseTimeNanoseconds": 1000, "traceEvents": [
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 1.5, "dur": 20,
   "args": {"External id": 4, "Record function id": 7, "Input Dims": [[2, 3], [3, 4]]}},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 2, "dur": 3, "args": {"correlation": 5}},
  {"ph": "X", "cat": "kernel", "name": "gemm \"a\"", "pid": 0, "tid": 7, "ts": 10, "dur": 4.25,
   "args": {"device": 0, "stream": 7, "correlation": 5}},
  {"ph": "f", "id": 5, "pid": 0, "tid": 7, "ts": 10, "cat": "ac2g", "name": "ac2g", "bp": "e"}
  ], "traceName": "x"})";

TEST(Kineto, a_small_file_is_read) {
  const auto profile = read_kineto_bytes(kSmall, "small.json");
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(profile->rank, 3U);
  EXPECT_EQ(profile->world_size, 8U);
  EXPECT_EQ(profile->base_ns, 1000);
  EXPECT_EQ(profile->all_events, 4U);
  ASSERT_EQ(profile->events.size(), 3U);
  EXPECT_EQ(profile->events[0].start, 1500);
  EXPECT_EQ(profile->events[0].record_function, 7U);
  EXPECT_EQ(profile->name(profile->events[2]), "gemm \"a\"");
  EXPECT_EQ(profile->events[2].duration, 4250);
  EXPECT_FALSE(profile->whole_microseconds);
  const Facts facts = facts_of(*profile);
  EXPECT_EQ(facts.linked, 1U);
  EXPECT_EQ(facts.whole.busy_ns, 4250);
  ASSERT_EQ(facts.top_operators.size(), 1U);
  EXPECT_EQ(facts.top_operators[0].name, "aten::mm");
}

TEST(Kineto, quotes_that_are_not_escaped_and_missing_commas_are_repaired) {
  std::string text = kSmall;
  text.replace(text.find(R"(\"a\")"), 5, R"("a")");
  text.replace(text.find("}},\n  {\"ph\": \"f\""), 3, "}}");
  const auto profile = read_kineto_bytes(text, "broken.json");
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(profile->all_events, 4U);
  EXPECT_EQ(profile->name(profile->events[2]), "gemm \"a\"");
  ASSERT_EQ(profile->notes.size(), 2U);
  EXPECT_THAT(profile->notes[0].text, HasSubstr("a quote inside a text is not escaped; repaired"));
  EXPECT_THAT(profile->notes[1].text, HasSubstr("a comma between two events is missing; repaired"));
}

// Cut at any byte, the file is either refused with the byte, or, tolerant, has the events before the cut.
TEST(Kineto, a_file_cut_at_any_byte_is_refused_with_the_byte) {
  const std::string text = kSmall;
  for (std::size_t size = 1; size < text.size(); ++size) {
    const auto strict = read_kineto_bytes(text.substr(0, size), "cut.json");
    ASSERT_FALSE(strict) << size;
    const auto tolerant = read_kineto_bytes(text.substr(0, size), "cut.json", {true, {}, false});
    if (!tolerant) { continue; }
    EXPECT_LE(tolerant->events.size(), 3U);
    EXPECT_FALSE(tolerant->notes.empty());
  }
  const auto failed = read_kineto_bytes(text.substr(0, text.find("ac2g")), "cut.json");
  EXPECT_THAT(failed.error().text(), HasSubstr("after 3 whole events; --tolerant reads the file up to there"));
}

TEST(Kineto, other_json_is_refused) {
  for (const char* text : {"{}", "{\"a\": 1}", "[1, 2]", "7", "{\"traceEvents\": 5}", "{\"traceEvents\": [[]]}"}) {
    EXPECT_FALSE(read_kineto_bytes(text, "other.json")) << text;
  }
}

TEST(Kineto, old_names_of_categories_are_the_same) {
  std::string text = kSmall;
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("\"cpu_op\"", "\"Operator\"");
  replace("\"cuda_runtime\"", "\"Runtime\"");
  replace("\"kernel\"", "\"Kernel\"");
  replace("\"tid\": 7, \"ts\": 10, \"dur\"", "\"tid\": \"stream 7\", \"ts\": 10, \"dur\"");
  const auto profile = read_kineto_bytes(text, "old.json");
  ASSERT_TRUE(profile) << profile.error().text();
  EXPECT_EQ(profile->categories.at("kernel"), 1U);
  EXPECT_EQ(facts_of(*profile).streams.count("0:7"), 1U);
}

// Derived by hand: two streams, communication 0-100 and 150-200, compute 50-160. All: 0-200; hidden 50-100 and 150-160.
TEST(Facts, exposed_communication_is_what_no_other_work_covers) {
  const auto kernel = [](const char* name, int stream, int start, int duration) {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"stream":{},)"
        R"("device":0}}}})",
        name, stream, start, duration, stream);
  };
  const std::string text = fmt::format(R"({{"traceEvents":[{},{},{}]}})", kernel("ncclDevKernel_AllReduce", 20, 0, 100),
                                       kernel("gemm", 7, 50, 110), kernel("ncclDevKernel_AllReduce", 20, 150, 50));
  const auto profile = read_kineto_bytes(text, "made.json");
  ASSERT_TRUE(profile) << profile.error().text();
  const Facts facts = facts_of(*profile);
  EXPECT_EQ(facts.whole.busy_ns, 200'000);
  EXPECT_EQ(facts.whole.comm_ns, 150'000);
  EXPECT_EQ(facts.whole.kernel_not_comm_ns, 110'000);
  EXPECT_EQ(facts.whole.exposed_comm_ns, 90'000);
  EXPECT_EQ(facts.not_linked, 3U);
}

// An operator that says to be a collective, as a damaged file may have it, has no record of communication; the name of
// record_param_comms counts also where letters of it are escaped.
TEST(Kineto, only_kernels_and_record_param_comms_have_records_of_communication) {
  const auto operation = [](const char* name) {
    return fmt::format(
        R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":9,"tid":9,"ts":1,"dur":9,"args":{{"External id":1,)"
        R"("Collective name":"allreduce","Input Dims":[[2,3]],"Input type":["float"]}}}})",
        name);
  };
  const auto profile = read_kineto_bytes(
      fmt::format(R"({{"traceEvents":[{},{}]}})", operation("aten::mm"), operation(R"(record\u005fparam_comms)")), "a");
  ASSERT_TRUE(profile) << profile.error().text();
  ASSERT_EQ(profile->events.size(), 2U);
  EXPECT_EQ(profile->comm(profile->events[0]), nullptr);
  ASSERT_EQ(profile->shapes.size(), 1U);
  EXPECT_EQ(profile->events[0].detail, 1U);
  EXPECT_EQ(profile->names[profile->shapes[0].first], "[[2,3]]");
  ASSERT_EQ(profile->comms.size(), 1U);
  ASSERT_NE(profile->comm(profile->events[1]), nullptr);
  EXPECT_EQ(profile->comm(profile->events[1])->name, "allreduce");
}

}  // namespace orrery::profile::kineto_read_test
