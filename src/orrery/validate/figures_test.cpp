#include "orrery/validate/figures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/validate/rules.hpp"

namespace orrery::validate::figures_test {
namespace {

Parts parts() {
  Parts parts;
  parts.data_directory = ORRERY_DATA_DIR;
  return parts;
}

FigureRow row_of(CampaignColumns of, const std::string& metric) {
  FigureRow row;
  row.of = std::move(of);
  row.metric = metric;
  return row;
}

// BLOOM: 1,082,990 h x 400 W without PUE = 433.196 MWh; x 57 g = 24.69 t (arXiv:2211.02001).
TEST(figures, energy_and_carbon_are_hours_times_power_times_intensity) {
  CampaignColumns bloom;
  bloom.gpu_hours = 1'082'990;
  bloom.power_w = 400;
  bloom.pue = 1.2;
  bloom.g_per_kwh = 57;
  bloom.energy_basis = "hours x 400 W, no PUE";
  bloom.carbon_basis = "dynamic only";
  EXPECT_NEAR(scenario_of(row_of(bloom, "energy_mwh"), parts())->value, 433.196, 1e-3);
  EXPECT_NEAR(scenario_of(row_of(bloom, "carbon_t"), parts())->value, 24.69, 5e-3);
  bloom.energy_basis = "hours x 400 W x PUE";
  EXPECT_NEAR(scenario_of(row_of(bloom, "energy_mwh"), parts())->value, 433.196 * 1.2, 1e-3);
}

// OLMo 7B: 104 MWh of GPUs x 1.1 x 610 g = 69.8 t (arXiv:2402.00838).
TEST(figures, carbon_adds_the_pue_that_its_basis_has) {
  CampaignColumns olmo;
  olmo.energy_mwh = 104;
  olmo.pue = 1.1;
  olmo.g_per_kwh = 610;
  olmo.energy_basis = "GPU only, no PUE";
  olmo.carbon_basis = "energy x PUE x intensity";
  EXPECT_NEAR(scenario_of(row_of(olmo, "carbon_t"), parts())->value, 69.784, 1e-3);
}

TEST(figures, hours_follow_from_the_mfu) {
  CampaignColumns run;
  run.model = "something";
  run.accelerator = "H100-SXM5-80GB";
  run.devices = 8;
  run.params_b = 10;
  run.tokens_b = 100;
  run.mfu = 0.5;
  // 6e21 FLOP / (989.4e12 x 0.5) / 3600 = 3,369 h, and nearly no failures on one node.
  EXPECT_NEAR(scenario_of(row_of(run, "gpu_hours"), parts())->value, 3369.0, 0.02 * 3369.0);
  run.mfu.reset();
  EXPECT_EQ(scenario_of(row_of(run, "gpu_hours"), parts()).error(), "neither a plan nor an MFU is published");
}

// The MFU of a run is measured: it has no effect on a run whose plan is published.
TEST(figures, a_published_plan_comes_before_an_mfu) {
  CampaignColumns run;
  run.model = "Llama 3.1 405B";
  run.accelerator = "H100-SXM5-80GB";
  run.devices = 16'384;
  run.params_b = 405.853;
  run.tokens_b = 15'600;
  const auto by_plan = scenario_of(row_of(run, "gpu_hours"), parts());
  ASSERT_TRUE(by_plan);
  run.mfu = 0.205;  // half of the published 41 %
  EXPECT_EQ(scenario_of(row_of(run, "gpu_hours"), parts())->value, by_plan->value);
  run.model = "a model without a published plan";
  EXPECT_GT(scenario_of(row_of(run, "gpu_hours"), parts())->value, 1.5 * by_plan->value);
}

TEST(figures, every_published_plan_is_a_valid_command) {
  for (const auto& plan : published_plans()) {
    CampaignColumns run;
    run.model = plan.model;
    run.tokens_b = 1000;
    const auto hours = scenario_of(row_of(run, "gpu_hours"), parts());
    ASSERT_TRUE(hours) << plan.model << ": " << hours.error();
    EXPECT_GT(hours->value, 0.0);
  }
}

// Llama 3 405B: 800 G tokens are of longer sequences, which cost more attention; 14.8 T of 15.6 T are not. A table that
// has fewer tokens than the later stage cannot be of this run.
TEST(figures, a_run_of_two_stages_is_the_sum_of_them) {
  CampaignColumns run;
  run.model = "Llama 3.1 405B";
  const auto hours = [&](double tokens_b) {
    run.tokens_b = tokens_b;
    return scenario_of(row_of(run, "gpu_hours"), parts());
  };
  const double more = hours(2800)->value - hours(1800)->value;  // 1 T tokens of the first stage
  EXPECT_NEAR(hours(15'600)->value, hours(1800)->value + 13.8 * more, 1e-6 * hours(15'600)->value);
  const double longer = hours(1800)->value - more;  // the second stage
  EXPECT_GT(longer / 0.8, 1.5 * more);
  EXPECT_LT(longer / 0.8, 2.5 * more);
  EXPECT_EQ(hours(800).error(), "tokens_b is less than that of the later stages of the published plan");
}

// 100 steps of 22.8 s and exchanges of 103 s and 469 s: 95.7 % and 83.0 % (arXiv:2412.01152, table 2).
TEST(figures, utilization_of_intellect1) {
  WanColumns wan;
  wan.step_s = 22.8;
  wan.inner_steps = 100;
  FigureRow row;
  row.metric = "compute_utilization_pct";
  wan.outer_s = 103;
  row.of = wan;
  EXPECT_NEAR(scenario_of(row, parts())->value, 95.7, 0.2);
  wan.outer_s = 469;
  row.of = wan;
  EXPECT_NEAR(scenario_of(row, parts())->value, 83.0, 0.2);
}

// 1e9 parameters at 1 Gb/s. Data parallel, 16 bits: 24,120 steps of 0.1 s (0.67 h), each with 16 s of exchange of which
// 0.067 s are hidden: 0.67 + 24,120 x 15.933 / 3600 = 107.4 h (published 109). Streaming, 4 bits, every 100 steps in 8
// fragments that hide 0.1 s each: 0.67 + 241.2 x (4 - 0.8) / 3600 = 0.884 h (published 0.88).
TEST(figures, hours_of_streaming_diloco) {
  const auto hours = [](const std::string& run, std::optional<double> bits, std::int64_t inner) {
    WanColumns wan;
    wan.run = run;
    wan.params_b = 1;
    wan.bits_per_param = bits;
    wan.inner_steps = inner;
    wan.bandwidth_gbps = 1;
    FigureRow row;
    row.metric = "hours_at_1gbps";
    row.of = wan;
    return scenario_of(row, parts());
  };
  EXPECT_NEAR(hours("streaming-1b-25b-dp", std::nullopt, 1)->value, 107.42, 0.01);
  EXPECT_NEAR(hours("streaming-1b-25b-fp4", 4.0, 100)->value, 0.8844, 1e-4);
  EXPECT_NEAR(hours("streaming-1b-250b-dp", std::nullopt, 1)->value, 1097.0, 0.02 * 1097.0);
  EXPECT_NEAR(hours("streaming-1b-250b-fp4", 4.0, 100)->value, 8.75, 0.02 * 8.75);
  EXPECT_FALSE(hours("another", 4.0, 100));
}

}  // namespace
}  // namespace orrery::validate::figures_test
