#include "orrery/api/campaign.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/api/orrery.hpp"
#include "orrery/campaign/setting.hpp"
#include "orrery/config/node.hpp"

namespace orrery::api::campaign_test {
namespace {

results::Campaign campaign_of(const CampaignRequest& request) {
  const auto campaign = run_campaign(ORRERY_DATA_DIR, request);
  EXPECT_TRUE(campaign) << campaign.error().text();
  return campaign.value_or(results::Campaign{});
}

// 30.84 M GPU-hours (model card of Llama 3.1; they include smaller stages and long contexts), from the published plan;
// more than 90 % of the time useful in the window of 54 days (arXiv:2407.21783, table 4, sections 3.3.2 and 3.3.4).
TEST(run_campaign, of_llama3_405b) {
  const auto scenario = config::parse_yaml(
      "{model: llama-3.1-405b, cluster: meta-24k-roce, stack: llama3, devices: 16384, global_batch: 2048, seq: 8192, "
      "tp: 8, pp: 16, vpp: 8, micro_batch: 1, zero: 2, recompute: none, sequence_parallel: true, "
      "embedding_as_layer: true, head_as_layer: true, placement: \"tp=0,pp=1\"}",
      "Llama 3 405B");
  ASSERT_TRUE(scenario);
  const auto job = estimate::request_record().read(*scenario);
  ASSERT_TRUE(job) << job.error().text();
  CampaignRequest request;
  request.job = *job;
  request.spec.tokens = "15.6T";
  request.spec.restart = Seconds(600);
  const auto campaign = campaign_of(request);
  EXPECT_NEAR(campaign.device_hours / 30.84e6, 1.0, 0.20);
  EXPECT_GT(campaign.ettr, 0.90);
  EXPECT_LT(campaign.ettr, 0.95);
  // 405.853e9 parameters x 14 B over 16,384 devices: 347 MB, within the published 1 MB to 4 GB.
  EXPECT_NEAR(campaign.checkpoint.total.value(), 405.853e9 * 14, 1e9);
  EXPECT_NEAR(campaign.checkpoint.per_device.value(), 347e6, 1e6);
}

// 2.664 M GPU-hours of pre-training on 2,048 H800 (arXiv:2412.19437, table 1), from the published plan.
TEST(run_campaign, of_deepseek_v3) {
  CampaignRequest request;
  request.job.model = "deepseek-v3-mtp";
  request.job.cluster = "hgx-h800";
  request.job.stack = "hai-llm";
  request.job.devices = 2048;
  request.job.global_batch = 15'360;
  request.job.seq = 4096;
  request.job.precision = hardware::Precision::fp8;
  request.job.pp = 16;
  request.job.ep = 64;
  request.job.micro_batch = 1;
  request.job.schedule = parallel::ScheduleKind::dualpipe;
  request.spec.tokens = "14.8T";
  request.spec.usd_per_device_hour = 2.0;
  request.spec.price_date = "2024-12";
  const auto campaign = campaign_of(request);
  EXPECT_NEAR(campaign.device_hours / 2.664e6, 1.0, 0.10);
}

// Plans by campaign: the same order as each plan's own campaign.
TEST(plan, by_campaign_orders_plans_by_their_own_campaigns) {
  PlanRequest request;
  request.job.model = "llama-3.1-8b";
  request.job.cluster = "dgx-h100";
  request.job.devices = 64;
  request.job.global_batch = 128;
  request.job.seq = 8192;
  request.objective = results::Objective::days;
  request.campaign.tokens = "1T";
  request.campaign.spares = 0;
  request.campaign.when_short = campaign::WhenShort::shrink;
  request.top = 4;
  const auto search = Orrery(ORRERY_DATA_DIR).plan(request);
  ASSERT_TRUE(search) << search.error().text();
  ASSERT_EQ(search->campaigns.size(), search->best.size());
  for (std::size_t i = 0; i < search->best.size(); ++i) {
    CampaignRequest one;
    one.job = request_of(request.job, search->best[i]);
    one.spec = request.campaign;
    EXPECT_NEAR(campaign_of(one).days.p50, search->campaigns[i].days, 1e-9 * search->campaigns[i].days);
    if (i > 0) { EXPECT_GE(search->campaigns[i].days, search->campaigns[i - 1].days); }
  }
}

// The best plans are those of a search that prices every candidate with fewer replicas: with as many plans to print as
// there are candidates, nothing is ruled out by its bound.
TEST(plan, by_campaign_finds_what_a_search_without_bounds_finds) {
  PlanRequest request;
  request.job.model = "llama-3.1-8b";
  request.job.cluster = "dgx-h100";
  request.job.devices = 128;
  request.job.global_batch = 256;
  request.job.seq = 8192;
  request.objective = results::Objective::days;
  request.campaign.tokens = "1T";
  request.campaign.when_short = campaign::WhenShort::shrink;
  for (const std::int64_t spares : {0, 1}) {
    request.campaign.spares = spares;
    request.top = 3;
    const auto few = Orrery(ORRERY_DATA_DIR).plan(request);
    request.top = 1000;
    const auto all = Orrery(ORRERY_DATA_DIR).plan(request);
    ASSERT_TRUE(few && all);
    ASSERT_EQ(few->best.size(), 3u);
    EXPECT_EQ(all->best.size(), all->campaigns_of);
    for (std::size_t i = 0; i < few->best.size(); ++i) {
      EXPECT_EQ(few->campaigns[i].days, all->campaigns[i].days);
      EXPECT_EQ(few->best[i].step_time, all->best[i].step_time);
    }
  }
}

// 64 sequences on 16 replicas of four devices, 4 micro-batches each. 14 replicas: 5 micro-batches have them all, in 5/4
// of the time (0.8), or 4 have 56 of 64 in about the same time (0.875). 8 replicas: 8 micro-batches, at most half as
// fast, and more than that as gradients are reduced among fewer. The plan prices the whole job alike.
TEST(campaign_job, has_the_speed_of_other_numbers_of_replicas) {
  estimate::Request request;
  request.model = "llama-3.1-8b";
  request.cluster = "dgx-h100";
  request.devices = 64;
  request.global_batch = 64;
  request.seq = 8192;
  request.tp = 4;
  request.micro_batch = 1;
  const auto job = campaign_job(ORRERY_DATA_DIR, request, campaign::Spec{});
  ASSERT_TRUE(job) << job.error().text();
  ASSERT_TRUE(job->speed);
  EXPECT_DOUBLE_EQ(job->speed(64), 1.0);
  EXPECT_NEAR(job->speed(56), 0.875, 0.02);
  EXPECT_NEAR(job->speed(32), 0.5, 0.03);
  EXPECT_GT(job->speed(128), 1.6);                      // 32 replicas of 2 micro-batches
  EXPECT_DOUBLE_EQ(job->speed(4096), job->speed(256));  // 64 replicas have a micro-batch each; more have none
  double before = 0.0;
  for (std::int64_t devices = 8; devices <= 64; devices += 8) {
    EXPECT_GE(job->speed(devices), before);
    before = job->speed(devices);
  }
}

// 4 nodes of 8 H100 and 4 more, which are these: a campaign of 64 devices in a folder of its own.
CampaignRequest campaign_on(const std::string& nodes) {
  const auto path = std::filesystem::path(testing::TempDir()) / "campaign_nodes.yaml";
  std::ofstream(path) << nodes << "dimensions:\n"
                      << "  - {name: nvlink, wiring: switched, size: 8, bandwidth: 300 GB/s, link: nvlink3}\n"
                      << "  - {name: infiniband, wiring: rails, size: 8, bandwidth: 200 Gb/s, link: infiniband-hdr}\n";
  CampaignRequest request;
  request.job.model = "llama-3.1-8b";
  request.job.cluster = path.string();
  request.job.devices = 64;
  request.job.global_batch = 64;
  request.job.seq = 4096;
  request.job.tp = 4;
  request.job.pp = 2;
  request.job.micro_batch = 1;
  request.spec.tokens = "1T";
  request.spec.node_price_usd = 300'000.0;
  request.spec.price_date = "2026-11";
  request.what_if = false;
  return request;
}

std::string nodes_and(const std::string& second) {
  return "nodes:\n  - {count: 4, accelerator: h100-sxm}\n  - {count: 4, accelerator: " + second + "}\n";
}

TEST(run_campaign, kinds_of_nodes_that_are_equal_change_nothing) {
  for (const auto when : {campaign::WhenShort::wait, campaign::WhenShort::shrink}) {
    std::vector<results::Campaign> found;
    for (const auto& nodes : {std::string("accelerator: h100-sxm\n"), nodes_and("h100-sxm")}) {
      CampaignRequest request = campaign_on(nodes);
      request.spec.when_short = when;
      request.spec.spares = when == campaign::WhenShort::shrink ? 2 : 0;  // with spares, few replicas are missing
      request.simulate = 20;
      found.push_back(campaign_of(request));
    }
    EXPECT_EQ(found[0].estimate.step_time, found[1].estimate.step_time);
    EXPECT_EQ(found[0].useful_days, found[1].useful_days);
    ASSERT_TRUE(found[0].energy && found[1].energy && found[0].money && found[1].money);
    if (when == campaign::WhenShort::wait) {
      EXPECT_EQ(found[0].days.p50, found[1].days.p50);
      EXPECT_EQ(found[0].days.p90, found[1].days.p90);
      EXPECT_EQ(found[0].energy->site_J, found[1].energy->site_J);
      EXPECT_EQ(found[0].money->usd, found[1].money->usd);
    } else {  // of nodes of one kind, the plan is priced with fewer replicas instead
      EXPECT_NEAR(found[1].days.p50 / found[0].days.p50, 1.0, 0.01);
    }
  }
}

TEST(run_campaign, slower_nodes_never_make_it_shorter) {
  double before = 0.0;
  for (const char* second :
       {"h100-sxm", "{use: h100-sxm, memory_bandwidth: 2 TB/s}", "{use: h100-sxm, memory_bandwidth: 1 TB/s}",
        "{use: h100-sxm, memory_bandwidth: 500 GB/s}"}) {
    const double days = campaign_of(campaign_on(nodes_and(second))).days.p50;
    EXPECT_GE(days, before) << second;
    before = days;
  }
}

// Nameplates of 700 W (H100) and 400 W (A100): 550 W on average while the job computes. The days at full speed are
// those of the steps of the estimate, and 1T tokens are 1e12 / (64 x 4096) steps.
TEST(run_campaign, on_two_kinds_of_nodes_has_the_step_of_the_estimate_and_the_mean_power) {
  const auto campaign = campaign_of(campaign_on(nodes_and("a100-sxm-80gb")));
  const double steps = 1e12 / (64.0 * 4096.0);
  EXPECT_DOUBLE_EQ(campaign.steps, steps);
  EXPECT_NEAR(campaign.useful_days, steps * campaign.estimate.step_time.value() / 86'400.0,
              1e-9 * campaign.useful_days);
  ASSERT_EQ(campaign.estimate.nodes.size(), 2u);
  ASSERT_TRUE(campaign.energy);
  EXPECT_THAT(campaign.energy->basis, testing::HasSubstr("mean nameplate of the accelerators, 550 W"));
  const double idle_hours = campaign.energy->idle_J / 3600.0 / 80.0;
  const double busy_hours = campaign.device_hours + campaign.spare_device_hours - idle_hours;
  EXPECT_NEAR(campaign.energy->busy_J, busy_hours * 3600.0 * 550.0, 1e-6 * campaign.energy->busy_J);
}

TEST(run_campaign, refuses_inference) {
  CampaignRequest request;
  request.job.task = parallel::Task::inference;
  request.spec.tokens = "1T";
  const auto campaign = run_campaign(ORRERY_DATA_DIR, request);
  ASSERT_FALSE(campaign);
  EXPECT_THAT(campaign.error().text(), testing::HasSubstr("--task: inference: a campaign is a training run"));
}

}  // namespace
}  // namespace orrery::api::campaign_test
