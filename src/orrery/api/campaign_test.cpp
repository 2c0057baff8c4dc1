#include "orrery/api/campaign.hpp"

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
