// Times of requests by their priority.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "orrery/api/serve.hpp"
#include "orrery/api/test_serving.hpp"

namespace orrery::api::serve_classes_test {
namespace {

// More than one engine serves: 1,000 requests within 2 s, every fourth of priority 0, the others 1.
results::Serving run_of(const char* policy, bool classes) {
  const auto path = (std::filesystem::path(testing::TempDir()) / "orrery_serve_classes.csv").string();
  std::ofstream file(path);
  file << "arrival_s,input_tokens,output_tokens,priority\n";
  for (int i = 0; i < 1000; ++i) { file << 0.002 * i << ",512,64," << (classes && i % 4 != 0 ? 1 : 0) << "\n"; }
  file.close();
  ServeRequest request = serving_test::small_run();
  request.scenario.rate.reset();
  request.scenario.requests.reset();
  request.scenario.isl = serving::Scenario().isl;
  request.scenario.osl = serving::Scenario().osl;
  request.scenario.trace = path;
  request.each = true;
  config::add(request.engine, "policy", config::text_node(policy));
  config::add(request.engine, "max_sequences", config::integer_node(64));
  auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  std::filesystem::remove(path);
  EXPECT_TRUE(run.has_value()) << run.error().text();
  return run ? std::move(*run) : results::Serving{};
}

TEST(ServeClasses, are_of_requests_of_one_priority) {
  const results::Serving run = run_of("priority", true);
  ASSERT_EQ(run.classes.size(), 2U);
  EXPECT_EQ(run.classes[0].priority, 0);
  EXPECT_EQ(run.classes[0].answered, 250);
  EXPECT_EQ(run.classes[1].answered, 750);
  EXPECT_LT(run.classes[0].ttft.p99, 0.5 * run.classes[1].ttft.p50);
  const double mean = 0.25 * run.classes[0].ttft.mean + 0.75 * run.classes[1].ttft.mean;
  EXPECT_NEAR(mean, run.ttft.mean, 1e-9 * mean);
  EXPECT_DOUBLE_EQ(std::max(run.classes[0].e2e.max, run.classes[1].e2e.max), run.e2e.max);
  double sum = 0;
  for (const auto& one : run.each) {
    if (one.priority == 0) { sum += one.last_token_s - one.arrival_s; }
  }
  EXPECT_NEAR(sum / 250 + run.request_overhead_s, run.classes[0].e2e.mean, 1e-6);
}

TEST(ServeClasses, are_served_alike_in_the_order_of_arrival) {
  const results::Serving run = run_of("fcfs", true);
  ASSERT_EQ(run.classes.size(), 2U);
  EXPECT_NEAR(run.classes[0].ttft.mean, run.classes[1].ttft.mean, 0.02 * run.ttft.mean);
}

TEST(ServeClasses, one_priority_is_no_class) { EXPECT_TRUE(run_of("fcfs", false).classes.empty()); }

}  // namespace
}  // namespace orrery::api::serve_classes_test
