// Reports of serving simulations: parts of E2E, units of loads, files of requests.
#include "orrery/report/serving.hpp"
#include "orrery/report/panels.hpp"
#include "orrery/report/serving_plan.hpp"

#include <gtest/gtest.h>

namespace orrery::report::serving_test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

results::ServingStage stage(const char* name, const char* place, double time) {
  results::ServingStage made;
  made.name = name;
  made.place = place;
  made.time.mean = time;
  return made;
}

// E2E 10 s: overhead 0.5, embed 1, tokenisation 0.25, queue 0.25, prefill 1, decode 5, guard 2.
TEST(ServingText, rows_of_the_stage_table_sum_to_the_end_to_end_time) {
  results::Serving s;
  s.stages = {stage("embed", "before-prefill", 1), stage("guard", "after-answer", 2)};
  s.request_overhead_s = 0.5;
  s.tokenisation_s = 0.25;
  s.queue.mean = 0.25;
  s.prefill.mean = 1;
  s.ttft.mean = 3;
  s.e2e.mean = 10;
  const std::string text = serving_text(s, {});
  const auto share_of = [&](const std::string& row) {  // the last two words of the line: "5.0 %"
    const std::size_t at = text.rfind("\n" + row);
    EXPECT_NE(at, std::string::npos) << row;
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    return line.substr(line.rfind(' ', line.rfind(' ') - 1) + 1);
  };
  EXPECT_EQ(share_of("request overhead"), "5.0 %");
  EXPECT_EQ(share_of("tokenisation"), "2.5 %");
  EXPECT_EQ(share_of("queue of the engine"), "2.5 %");
  EXPECT_EQ(share_of("prefill"), "10.0 %");
  EXPECT_EQ(share_of("decode"), "50.0 %");
}

TEST(ServingText, loads_of_sessions_are_sessions_per_second) {
  results::ServingCurve curve;
  curve.axis = "rate";
  curve.points = {{2.0, {}}};
  curve.points[0].result.gpus = 1;
  curve.best = 0;
  EXPECT_TRUE(has(serving_curve_text(curve, {}), "Highest sustained load: 2 requests/s,"));
  curve.points[0].result.sessions = true;
  const std::string text = serving_curve_text(curve, {});
  EXPECT_TRUE(has(text, "Highest sustained load: 2 sessions/s, 0 requests/s per GPU"));
  EXPECT_LT(text.find("sessions/s"), text.find("TTFT p50"));  // the head of the first column
}

TEST(ServingText, a_warning_of_a_curve_says_from_which_load) {
  results::ServingCurve curve;
  curve.axis = "concurrency";
  curve.points = {{1, {}}, {8, {}}, {64, {}}, {512, {}}};
  for (auto& point : curve.points) { point.result.gpus = 1; }
  curve.points[1].result.warnings = {"streams 91 %"};
  curve.points[2].result.warnings = {"streams 99 %"};
  curve.points[3].result.warnings = {"streams 99 %", "encodes 95 %"};
  const std::string text = serving_curve_text(curve, {});
  EXPECT_TRUE(has(text, "warning: from 8 clients: streams 91 %\n"));
  EXPECT_FALSE(has(text, "from 64 clients"));
  EXPECT_TRUE(has(text, "warning: from 512 clients: encodes 95 %\n"));
}

TEST(ServingPlanText, a_warning_names_the_deployments_that_have_it) {
  results::ServingPlan plan;
  plan.devices = 8;
  plan.best.resize(3);
  plan.best[0].result.warnings = plan.best[2].result.warnings = {"streams 91 %"};
  plan.best[1].result.warnings = {"encodes 95 %"};
  const std::string text = serving_plan_text(plan, false, {});
  EXPECT_TRUE(has(text, "warning: #1, #3: streams 91 %\n"));
  EXPECT_TRUE(has(text, "warning: #2: encodes 95 %\n"));
}

// Arrives at 1 s; embed to 2, tokenised at 2.5, scheduled at 3, tokens at 4 and 6; guard to 8, tool to 9.
results::Serving one_request() {
  results::Serving s;
  s.stages = {stage("tool \"a\"", "between-turns", 1), stage("embed", "before-prefill", 1),
              stage("guard", "after-answer", 2)};
  results::ServedRequest r;
  r.arrival_s = 1;
  r.ready_s = 2.5;
  r.scheduled_s = 3;
  r.first_token_s = 4;
  r.last_token_s = 6;
  r.answered_s = 8;
  r.output = 30;
  r.last_branch_first_token_s = 4.5;
  r.last_branch_output = 16;
  r.stage_s = {1, 1, 2};
  s.each = {r};
  return s;
}

TEST(ServingTimeline, has_a_span_for_each_stage_and_the_queue_after_them) {
  const std::string text = serving_timeline(one_request());
  const auto span = [&](const std::string& name, const char* from, const char* time) {
    EXPECT_TRUE(has(text, "{\"name\":\"" + name + "\",\"ph\":\"X\",\"pid\":0,\"tid\":1,\"ts\":" + from +
                              ".000,\"dur\":" + time + ".000}"))
        << name << "\n"
        << text;
  };
  span("embed", "1000000", "1000000");
  span("tokenisation", "2000000", "500000");
  span("queue", "2500000", "500000");
  span("prefill", "3000000", "1000000");
  span("decode", "4000000", "2000000");
  span("guard", "6000000", "2000000");
  span(R"(tool \"a\")", "8000000", "1000000");
}

TEST(ServingTimeline, names_engines_and_requests) {
  results::Serving s = one_request();
  results::ServingPool pool;
  pool.name = "decode";
  pool.engine = "vllm-v1";
  pool.plan = "tp 2";
  pool.accelerator = "h100-sxm";
  s.pools = {pool};
  const std::string text = serving_timeline(s);
  EXPECT_TRUE(has(text, R"x({"name":"process_name","ph":"M","pid":0,)x"
                        R"x("args":{"name":"decode 1 (vllm-v1, tp 2, h100-sxm)"}})x"));
  EXPECT_TRUE(has(text, R"({"name":"thread_name","ph":"M","pid":0,"tid":1,"args":{"name":"request 1"}})"));
}

// Prefilled by engine 2 until 3.5 s; the decode engine takes the request at 4 s.
TEST(ServingTimeline, has_the_prompt_on_the_engine_that_computes_it) {
  results::Serving s = one_request();
  s.each[0].prefilled_by = 2;
  s.each[0].prefilled_s = 3.5;
  const std::string text = serving_timeline(s);
  EXPECT_TRUE(has(text, R"("name":"queue","ph":"X","pid":2,)"));
  EXPECT_TRUE(has(text, R"("name":"prefill","ph":"X","pid":2,"tid":1,"ts":3000000.000,"dur":500000.000})"));
  EXPECT_TRUE(has(text, R"("name":"transfer","ph":"X","pid":0,"tid":1,"ts":3500000.000,"dur":500000.000})"));
  EXPECT_TRUE(has(text, R"("name":"decode","ph":"X","pid":0,)"));
}

// A place is given before the prompt, from 2.5 to 2.75 s, or after it, from 3.5 to 3.75 s.
TEST(ServingTimeline, has_the_wait_for_a_place_before_the_prompt_or_after_it) {
  results::Serving s = one_request();
  results::ServedRequest& r = s.each[0];
  r.prefilled_by = 2;
  r.prefilled_s = 3.5;
  r.asked_s = 2.5;
  r.placed_s = 2.75;
  const std::string before = serving_timeline(s);
  EXPECT_TRUE(has(before, R"("name":"place","ph":"X","pid":0,"tid":1,"ts":2500000.000,"dur":250000.000})"));
  EXPECT_TRUE(has(before, R"("name":"queue","ph":"X","pid":2,"tid":1,"ts":2750000.000,"dur":250000.000})"));
  EXPECT_TRUE(has(before, R"("name":"transfer","ph":"X","pid":0,"tid":1,"ts":3500000.000,"dur":500000.000})"));
  r.asked_s = 3.5;
  r.placed_s = 3.75;
  const std::string after = serving_timeline(s);
  EXPECT_TRUE(has(after, R"("name":"place","ph":"X","pid":0,"tid":1,"ts":3500000.000,"dur":250000.000})"));
  EXPECT_TRUE(has(after, R"("name":"queue","ph":"X","pid":2,"tid":1,"ts":2500000.000,"dur":500000.000})"));
  EXPECT_TRUE(has(after, R"("name":"transfer","ph":"X","pid":0,"tid":1,"ts":3750000.000,"dur":250000.000})"));
}

TEST(ServingPicture, marks_of_axes_are_round_numbers) {
  EXPECT_EQ(Axis::linear(0, 620, 0, 1).ticks(), (std::vector<double>{0, 200, 400, 600}));
  EXPECT_EQ(Axis::linear(0, 8.4, 0, 1).ticks(), (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(Axis::logarithmic(0.9, 12, 0, 1).ticks(), (std::vector<double>{1, 2, 5, 10}));
  EXPECT_DOUBLE_EQ(Axis::linear(0, 4, 100, -50).at(1), 87.5);
  EXPECT_DOUBLE_EQ(Axis::logarithmic(1, 100, 0, 10).at(10), 5.0);
}

// Two intervals of 5 s: a line with two points for each series, and one less where no request arrives.
TEST(ServingPicture, of_a_run_has_a_line_for_each_series) {
  results::Serving s = one_request();
  results::ServingSeries& over = s.series.emplace();
  over.interval_s = 5;
  over.arrivals_per_s = over.waiting = over.in_system = over.output_tokens_per_s = {1, 2};
  over.ttft_p50_s = over.ttft_max_s = {1, std::nullopt};
  over.engines = {{"decode", {1, 3}}};
  const std::string text = serving_run_svg(s);
  std::size_t lines = 0;
  for (std::size_t at = text.find("<polyline"); at != std::string::npos; at = text.find("<polyline", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 7U);
  EXPECT_TRUE(has(text, "engines that are on"));
  EXPECT_TRUE(has(text, "seconds from the first arrival"));
  over.interval_s = 0;  // a run without a duration
  EXPECT_FALSE(has(serving_run_svg(s), "<polyline"));
}

TEST(ServingText, has_a_row_for_each_priority) {
  results::Serving s = one_request();
  EXPECT_FALSE(has(serving_text(s, {}), "priority"));
  for (int priority = 0; priority < 12; ++priority) {
    results::ServingClass one{priority, 1000 + priority};
    one.ttft.p99 = 0.25;
    s.classes.push_back(one);
  }
  const std::string text = serving_text(s, {});
  EXPECT_TRUE(has(text, "priority  requests  TTFT mean"));
  EXPECT_TRUE(has(text, "1,009"));
  EXPECT_FALSE(has(text, "1,010"));
  EXPECT_TRUE(has(text, "and 2 more (--json)"));
}

TEST(ServingCsv, has_the_tokens_of_the_branch_that_ends_last) {
  results::Serving s = one_request();
  s.each.push_back({});
  s.each.back().refused = true;
  s.each.back().priority = 2;
  s.each.back().session = 5;
  EXPECT_EQ(serving_requests_csv(s),
            "request,engine,arrival_s,scheduled_s,first_token_s,last_token_s,input_tokens,output_tokens,cached_tokens,"
            "preemptions,answered_s,last_branch_first_token_s,last_branch_tokens,priority,session\n"
            "1,0,1.000000000,3.000000000,4.000000000,6.000000000,0,30,0,0,8.000000000,4.500000000,16,0,\n"
            "2,,0.000000000,,,,0,0,,,,,,2,5\n");
}

}  // namespace
}  // namespace orrery::report::serving_test
