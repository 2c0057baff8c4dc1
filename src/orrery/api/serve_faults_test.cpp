// Faults that reviews found, each with the run that showed it.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/serve.hpp"
#include "orrery/api/serve_plan.hpp"
#include "orrery/api/test_serving.hpp"
#include "orrery/core/test_effort.hpp"

namespace orrery::api::serve_faults_test {
namespace {

using serving_test::of_a_file;
using serving_test::run_of;
using serving_test::small_run;
using testing::HasSubstr;

std::string error_of(const ServeRequest& request) {
  const auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  return run ? "none" : run.error().text();
}

// The clock stops at the longest simulation instead of passing its end.
TEST(ServeFaults, times_beyond_the_clock_are_refused) {
  ServeRequest request = small_run();
  request.scenario.rate.reset();
  request.scenario.concurrency = 1;
  request.scenario.requests = 20;
  request.scenario.think = Seconds(95000);
  EXPECT_THAT(error_of(request), HasSubstr("the simulated time exceeds 900000 s"));
  request.scenario.think = {};
  request.scenario.osl = 100'000;
  config::add(request.engine, "step_host", of_a_file(config::text_node("10 s")));
  EXPECT_THAT(error_of(request), HasSubstr("the simulated time exceeds 900000 s"));
}

TEST(ServeFaults, a_large_burst_of_a_slow_bucket_passes) {
  ServeRequest request = small_run();
  request.scenario.admission_rate = 0.001;
  request.scenario.admission_burst = 1000;
  EXPECT_EQ(run_of(request).refused, 0);
}

// A run lasts until its last request has arrived, though it is refused.
TEST(ServeFaults, refused_requests_take_their_time_to_arrive) {
  ServeRequest request = small_run();
  request.scenario.rate = 1.0;
  request.scenario.requests = 100;
  request.scenario.admission_rate = 0.001;
  request.scenario.admission_burst = 1;
  const results::Serving run = run_of(request);
  EXPECT_EQ(run.refused, 99);
  EXPECT_GT(run.duration_s, 90.0);
  EXPECT_LT(run.pools.front().utilisation, 0.01);
}

TEST(ServeFaults, the_files_of_a_model_and_a_trace_are_warned_of) {
  const auto folder = std::filesystem::temp_directory_path() / "orrery_serve_faults";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) {
    const std::string path = folder / name;
    std::ofstream(path) << text;
    return path;
  };
  ServeRequest request = small_run();
  request.scenario.model =
      write("config.json", R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
      "max_position_embeddings": 8192, "num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32,
      "vocab_size": 128256, "kv_compression": 4, "quantization_config": {"quant_method": "fp8"}})");
  EXPECT_THAT(run_of(request).warnings, testing::Contains(HasSubstr("\"kv_compression\"")));
  EXPECT_THAT(run_of(request).warnings, testing::Contains(HasSubstr("the checkpoint has weights in fp8")));
  request.scenario.precision = hardware::Precision::fp8;
  EXPECT_THAT(run_of(request).warnings, testing::Not(testing::Contains(HasSubstr("the checkpoint"))));
  ServeRequest sessions = small_run();
  sessions.scenario.rate.reset();
  sessions.scenario.trace =
      write("trace.csv", "arrival_s,input_tokens,output_tokens,session\n0,100,10,a\n1,210,10,a\n2,100,10,b\n");
  EXPECT_THAT(run_of(sessions).warnings, testing::Contains(HasSubstr("sessions and no block_ids")));
  std::filesystem::remove_all(folder);
}

TEST(ServeFaults, a_search_with_few_requests_says_so) {
  ServePlanRequest request;
  request.base = small_run();
  request.base.scenario.rate.reset();
  request.base.scenario.slo = "ttft_p99=1s tpot_p99=30ms";
  request.base.scenario.requests = 40;
  request.devices = 2;
  request.tp = {1};
  request.pp = {1};
  request.pools = Pools::aggregated;
  const auto plan = plan_serving(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(plan.has_value()) << plan.error().text();
  EXPECT_THAT(plan->best.front().result.warnings, testing::Contains(HasSubstr("too few requests to tell")));
}

// Eight chunks of a prompt are eight whole iterations of the host, whatever decode iterations generate.
TEST(ServeFaults, prompts_pay_the_host_of_whole_iterations) {
  const auto prefill_of = [](std::int64_t drafts, const char* host) {
    ServeRequest request = small_run();
    request.scenario.rate.reset();
    request.scenario.concurrency = request.scenario.requests = 1;
    request.scenario.isl = 8192;
    request.scenario.osl = 1;
    config::add(request.engine, "max_batched_tokens", config::integer_node(1024));
    config::add(request.engine, "step_host", config::text_node(host));
    config::add(request.engine, "speculative_tokens", config::integer_node(drafts));
    return run_of(request).prefill.mean;
  };
  EXPECT_NEAR(prefill_of(0, "100 ms") - prefill_of(0, "0 s"), 0.8, 1e-9);
  EXPECT_NEAR(prefill_of(3, "100 ms") - prefill_of(3, "0 s"), 0.8, 1e-9);
}

// A request that joins a decode engine is in a decode iteration: its host is shared by the tokens of the iteration.
TEST(ServeFaults, joining_a_decode_engine_is_no_prompt) {
  const auto tpot_of = [](std::int64_t prefill_engines) {
    ServeRequest request = small_run();
    request.scenario.rate.reset();
    request.scenario.concurrency = 1;
    request.scenario.requests = 20;
    request.scenario.osl = 2;
    request.scenario.prefill_replicas = prefill_engines;
    config::add(request.engine, "speculative_tokens", config::integer_node(3));
    config::add(request.engine, "step_host", config::text_node("300 ms"));
    return run_of(request).tpot.mean;
  };
  EXPECT_NEAR(tpot_of(1), tpot_of(0), 0.02 * tpot_of(0));
}

TEST(ServeFaults, a_decode_engine_computes_no_prompts) {
  ServeRequest request = small_run();
  request.scenario.prefill_replicas = 1;
  const results::Serving run = run_of(request);
  EXPECT_EQ(run.pools.front().prefill_share, 1.0);
  EXPECT_EQ(run.pools.back().prefill_share, 0.0);
}

// One engine of eight is on: it is busy most of the time.
TEST(ServeFaults, engines_that_are_off_are_not_idle) {
  ServeRequest request = small_run();
  request.scenario.rate = 5.0;
  request.scenario.replicas = 8;
  request.scenario.autoscale_min = 1;
  request.scenario.autoscale_target = 16;
  const results::Serving scaled = run_of(request);
  EXPECT_EQ(scaled.pools.front().autoscale->peak, 1);
  request.scenario.replicas.reset();
  request.scenario.autoscale_min.reset();
  request.scenario.autoscale_target.reset();
  EXPECT_NEAR(scaled.pools.front().utilisation, run_of(request).pools.front().utilisation, 1e-3);
}

// Sessions with even numbers on two engines: half of them on each.
TEST(ServeFaults, new_sessions_go_to_the_engine_with_fewest_requests) {
  const auto file = std::filesystem::temp_directory_path() / "orrery-sessions.csv";
  {
    std::ofstream out(file);
    out << "arrival_s,input_tokens,output_tokens,session\n";
    for (int i = 0; i < 200; ++i) { out << 0.02 * i << ",200,20,s" << 2 * (i % 8) << "\n"; }
  }
  ServeRequest request = small_run();
  request.scenario.rate.reset();
  request.scenario.requests.reset();
  request.scenario.isl = serving::Scenario{}.isl, request.scenario.osl = serving::Scenario{}.osl;
  request.scenario.trace = file.string();
  request.scenario.replicas = 2;
  request.scenario.routing = serving::Routing::session;
  request.each = true;
  const results::Serving run = run_of(request);
  std::int64_t first = 0;
  for (std::size_t i = 0; i < run.each.size(); ++i) {
    first += run.each[i].engine == 0 ? 1 : 0;
    EXPECT_EQ(run.each[i].engine, run.each[i % 8].engine);  // a session stays
  }
  EXPECT_EQ(first, 100);
  std::filesystem::remove(file);
}

// The warm-up leaves out the first turns of all sessions, not all turns of the first sessions.
TEST(ServeFaults, the_warm_up_of_sessions_is_that_of_their_first_turns) {
  ServeRequest request = small_run();
  request.scenario.rate.reset();
  request.scenario.concurrency = 4;
  request.scenario.turns = 50;
  request.scenario.requests = 200;
  request.scenario.turn_tokens = 32;
  request.scenario.isl = 4096;  // a prompt without hits takes long
  const double cold = run_of(request).ttft.max;
  request.scenario.warm_up = 0.1;
  EXPECT_LT(run_of(request).ttft.max, 0.5 * cold);
}

TEST(ServeFaults, an_overload_is_seen_in_few_requests_and_in_traces) {
  ServeRequest request = small_run();
  request.scenario.isl = 1024;
  request.scenario.osl = 128;
  request.scenario.rate = 64;  // more than twice what the engine completes
  request.scenario.requests = 3000;
  const results::Serving over = run_of(request);
  EXPECT_TRUE(over.overloaded);
  EXPECT_THAT(over.warnings.front(), HasSubstr("wait for an engine when the last one arrives"));
  request.scenario.rate = 10;
  EXPECT_FALSE(run_of(request).overloaded);
}

TEST(ServeFaults, a_search_names_the_nearest_deployment_if_none_meets_the_limit) {
  ServePlanRequest request;
  request.base = small_run();
  request.base.scenario.rate.reset();
  request.base.scenario.requests.reset();
  request.base.scenario.slo = "tpot_p99=1us";
  request.devices = 2;
  const auto plan = plan_serving(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(plan.has_value()) << plan.error().text();
  EXPECT_THAT(plan->nothing, HasSubstr("nearest"));
  EXPECT_THAT(plan->nothing, HasSubstr("(tp 2)"));  // the fastest for a user
  EXPECT_THAT(plan->nothing, HasSubstr("tpot_p99"));
}

// With and without the front: the same best deployment, which here has one pool though a pair's unit promises more.
TEST(ServeFaults, an_explained_search_has_the_same_answer) {
  ServePlanRequest request;
  request.base = small_run();
  request.base.scenario.rate.reset();
  request.base.scenario.requests.reset();
  request.base.scenario.isl = 1024;
  request.base.scenario.osl = 256;
  request.base.scenario.slo = "ttft_p99=1s tpot_p99=25ms";
  request.devices = 6;
  request.tp = {1};
  if (!test::kSanitizers) { request.tp.push_back(2); }
  request.pp = {1};
  request.top = 1;
  const auto best_with = [&](bool front) {
    request.front = front;
    const auto plan = plan_serving(ORRERY_SOURCE_DATA_DIR, request);
    EXPECT_TRUE(plan.has_value() && !plan->best.empty());
    return plan && !plan->best.empty() ? plan->best.front().text : std::string();
  };
  const std::string plain = best_with(false);
  EXPECT_EQ(plain, best_with(true));
  EXPECT_EQ(plain, "6 x (tp 1)");
}

// Ten requests of sessions of four turns are three sessions. The highest number of clients is tried, though it is no
// power of two times the first one.
TEST(ServeFaults, as_many_clients_as_there_are_sessions_run) {
  ServeRequest request = small_run();
  request.scenario.rate.reset();
  request.scenario.concurrency = 3;
  request.scenario.requests = 10;
  request.scenario.turns = 4;
  EXPECT_EQ(error_of(request), "none");
  request.scenario.concurrency = 4;
  EXPECT_THAT(error_of(request), HasSubstr("fewer than one session for each of the 4 clients"));
  request.scenario.turns = 1;
  request.scenario.concurrency = 3;
  request.scenario.slo = "ttft_p99=1000s";
  const auto curve = serve_goodput(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(curve.has_value()) << curve.error().text();
  EXPECT_EQ(curve->points[*curve->best].load, 10.0);
  const auto sweep = serve_sweep(ORRERY_SOURCE_DATA_DIR, request);
  ASSERT_TRUE(sweep.has_value());
  EXPECT_EQ(sweep->points.back().load, 10.0);
}

TEST(ServeFaults, loads_that_cannot_be_held_or_have_idle_clients_are_errors) {
  ServeRequest request = small_run();
  request.scenario.rate.reset();
  request.scenario.concurrency = 100;
  request.scenario.requests = 10;
  EXPECT_THAT(error_of(request), HasSubstr("--requests: 10 are fewer than one for each of the 100 clients"));
  request.scenario.requests.reset();
  request.scenario.concurrency = 100'000'000;
  EXPECT_THAT(error_of(request), HasSubstr("more than 100,000,000"));
  request = small_run();
  request.scenario.prefix_groups = 1'000'000;
  request.scenario.isl = request.scenario.prefix_tokens = 1'000'000;
  EXPECT_THAT(error_of(request), HasSubstr("shared blocks"));
  request.scenario.prefix_groups = 2;
  request.scenario.isl = 512;
  EXPECT_THAT(error_of(request), HasSubstr("--prefix-tokens: 1000000 are more than the 512 of a prompt"));
}

// As spreadsheets write them, and with times since 1970.
TEST(ServeFaults, traces_of_spreadsheets_are_read_and_unix_times_explained) {
  const auto file = std::filesystem::temp_directory_path() / "orrery-spreadsheet.csv";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  ServeRequest request = small_run();
  request.scenario.rate.reset();
  request.scenario.requests.reset();
  request.scenario.isl = serving::Scenario{}.isl, request.scenario.osl = serving::Scenario{}.osl;
  request.scenario.trace = file.string();
  write(
      "\xEF\xBB\xBF"
      "arrival_s,input_tokens,output_tokens\r\n0,100,10\r\n1,200,20\r\n");
  EXPECT_EQ(run_of(request).requests, 2);
  write("arrival_s,input_tokens,output_tokens\n1735689600.5,100,10\n");
  EXPECT_THAT(error_of(request), HasSubstr("900,000 s; subtract the first arrival"));
  std::filesystem::remove(file);
}

// A request takes half a minute, so that 1,000 would arrive in little more than they take.
TEST(ServeFaults, a_rate_is_simulated_for_ten_times_what_a_request_takes) {
  ServeRequest request = small_run();
  request.scenario.requests.reset();
  request.scenario.rate = 5.0;
  request.scenario.isl = 64;
  request.scenario.osl = 2000;
  const results::Serving run = run_of(request);
  EXPECT_GT(run.requests, 1250);
  EXPECT_GT(run.requests_per_s, 0.88 * 5.0);
  EXPECT_LE(run.requests_per_s, 5.0);
}

// 1,536 / 8 = 192 columns are one and a half blocks of 128; with ep 2 slices have 384.
TEST(ServeFaults, slices_of_experts_that_block_scales_do_not_fit_are_warned_of) {
  ServeRequest request = small_run();
  request.scenario.model = "qwen3-235b-a22b";
  request.scenario.cluster = "dgx-h200";
  request.scenario.precision = hardware::Precision::fp8;
  request.scenario.tp = 8;
  EXPECT_THAT(
      run_of(request).warnings,
      testing::Contains(HasSubstr("experts in 8 slices have 192 columns: fp8 checkpoints with a scale for "
                                  "128 x 128 weights (DeepSeek-V3, Qwen3) do not load; ep 2 has whole blocks")));
  request.scenario.ep = 2;
  EXPECT_THAT(run_of(request).warnings, testing::Not(testing::Contains(HasSubstr("columns"))));
  request.scenario.ep = 1;
  request.scenario.precision = hardware::Precision::bf16;
  EXPECT_THAT(run_of(request).warnings, testing::Not(testing::Contains(HasSubstr("columns"))));
}

TEST(ServeFaults, clients_in_lockstep_are_warned_of) {
  ServeRequest request = small_run();
  request.scenario.rate.reset();
  request.scenario.concurrency = 64;
  request.scenario.isl = 2048;
  EXPECT_THAT(run_of(request).warnings, testing::Contains(HasSubstr("the clients are in lockstep")));
  request.scenario.length_range = 0.5;
  EXPECT_THAT(run_of(request).warnings, testing::Not(testing::Contains(HasSubstr("lockstep"))));
}

TEST(ServeFaults, the_95th_percentile_is_a_limit) {
  ServeRequest request = small_run();
  request.scenario.slo = "ttft_p95=1s";
  const results::Serving run = run_of(request);
  EXPECT_EQ(run.slo[0].reached_s, run.ttft.p95);
  EXPECT_GE(run.ttft.p95, run.ttft.p90);
  EXPECT_LE(run.ttft.p95, run.ttft.p99);
}

// Pools with different degrees have different defaults of SGLang.
TEST(ServeFaults, each_pool_has_its_own_memory_fraction) {
  ServeRequest request = small_run();
  request.scenario.model = "deepseek-v2-lite";
  request.scenario.cluster = "dgx-h200";
  request.scenario.engine = "sglang";
  request.scenario.prefill_replicas = 1;
  request.scenario.attention_dp = request.scenario.ep = 8;
  request.scenario.prefill_attention_dp = request.scenario.prefill_ep = 2;
  const results::Serving run = run_of(request);
  EXPECT_GT(run.pools.front().memory_use, run.pools.back().memory_use + 0.05);
}

}  // namespace
}  // namespace orrery::api::serve_faults_test
