// Rows that measure a part of a mixture's step by itself, and recipes of mixtures.
#include <cmath>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/validate/expert_all_to_all.hpp"
#include "orrery/validate/outcome.hpp"
#include "orrery/validate/rules.hpp"

namespace orrery::validate::rules_experts_test {
namespace {

using testing::HasSubstr;

Parts parts_of(const ExpertRow& row) {
  auto parts = parts_for(ORRERY_SOURCE_DATA_DIR, {AnyRow(row)});
  EXPECT_TRUE(parts.has_value());
  return std::move(*parts);
}

double seconds(const ExpertRow& row) {
  const auto outcome = outcome_of(AnyRow(row), parts_of(row));
  EXPECT_TRUE(outcome.has_value()) << outcome.error();
  return outcome ? outcome->time.value() : 0.0;
}

// 4096 tokens of 7168 numbers to 8 of 256 experts, on nodes of eight.
ExpertRow exchange(std::int64_t gpus, const char* metric) {
  ExpertRow row;
  row.family = "deepep";
  row.model = "DeepEP dispatch/combine";
  row.gpu_type = "H100-SXM";
  row.precision = "fp8 dispatch";
  row.metric = metric;
  row.seq = 4096;
  row.hidden = 7168;
  row.experts = 256;
  row.topk = 8;
  row.gpus = row.ep = gpus;
  row.gpus_per_node = 8;
  return row;
}

ExpertRow layer(const char* metric) {
  ExpertRow row;
  row.family = "mcore_moe_layer";
  row.model = "single MoE layer Mixtral-8x7B";
  row.gpu_type = "H100-SXM";
  row.precision = "bf16";
  row.metric = metric;
  row.layers = 1;
  row.hidden = 4096;
  row.seq = 4096;
  row.experts = row.gpus = row.gpus_per_node = row.ep = row.dp = row.global_batch = 8;
  row.topk = 2;
  row.moe_ffn = 14336;
  row.micro_batch = 1;
  return row;
}

TEST(RulesOfExperts, an_exchange_moves_every_copy_or_a_token_to_a_node_once) {
  const auto low = all_to_all_named("dispatch_latency"), high = all_to_all_named("combine_bottleneck_bw");
  ASSERT_TRUE(low && high);
  EXPECT_DOUBLE_EQ(low->element, 1.0 + 4.0 / 128.0);
  EXPECT_FALSE(low->once_per_node);
  EXPECT_DOUBLE_EQ(high->element, 2.0);
  EXPECT_TRUE(high->once_per_node && high->as_a_rate);
  EXPECT_FALSE(all_to_all_named("dispatch_seconds"));
  EXPECT_FALSE(all_to_all_named("step_time"));
  // Eight copies to two nodes meet 2 (1 - 1/2^8); of eight nodes four at most, so 4 (1 - (3/4)^8) of them.
  EXPECT_DOUBLE_EQ(node_dispatch(8, 16, 8).places_reached(2), 2.0 * (1.0 - 1.0 / 256.0));
  EXPECT_DOUBLE_EQ(node_dispatch(8, 64, 8).places_reached(8), 4.0 * (1.0 - std::pow(0.75, 8)));
}

// In one node every rank is a place: 8 (1 - (7/8)^8) of them.
TEST(RulesOfExperts, a_rate_counts_a_token_once_per_destination) {
  const ExpertAllToAll back = *all_to_all_named("combine_bottleneck_bw");
  EXPECT_DOUBLE_EQ(counted_bytes(back, 100, 10, 8, 16, 8), 100 * 10 * 2.0 * 2.0 * (1.0 - 1.0 / 256.0));
  EXPECT_DOUBLE_EQ(counted_bytes(back, 100, 10, 8, 8, 8), 100 * 10 * 2.0 * 8.0 * (1.0 - std::pow(0.875, 8)));
}

// Never faster than what leaves a port: the 7 of 8 ranks that are others get 8 copies of a token between them.
TEST(RulesOfExperts, an_exchange_takes_no_less_than_its_ports) {
  const double copies = 4096.0 * 7168.0 * (1.0 + 4.0 / 128.0) * 8.0 * 7.0 / 8.0;
  EXPECT_GT(seconds(exchange(8, "dispatch_latency")), copies / 450e9);
  EXPECT_LT(seconds(exchange(8, "dispatch_bottleneck_bw")), seconds(exchange(8, "dispatch_latency")));
  EXPECT_GT(seconds(exchange(32, "combine_bottleneck_bw")), seconds(exchange(32, "dispatch_bottleneck_bw")));
  EXPECT_GT(seconds(exchange(32, "dispatch_bottleneck_bw")), seconds(exchange(8, "dispatch_bottleneck_bw")));
}

// Of four nodes, three quarters of the copies leave through a port of 50 GB/s. What stays is done by then.
TEST(RulesOfExperts, copies_of_low_latency_kernels_go_straight) {
  const double copies = 4096.0 * 7168.0 * (1.0 + 4.0 / 128.0) * 8.0, port = copies * 0.75 / 50e9;
  EXPECT_GT(seconds(exchange(32, "dispatch_latency")), port);
  EXPECT_LT(seconds(exchange(32, "dispatch_latency")), 1.1 * port);
  EXPECT_LT(seconds(exchange(8, "dispatch_latency")), seconds(exchange(16, "dispatch_latency")));
}

// Mixtral's experts: 8192 rows of three products of 4096 x 14336 a rank, at no more than the peak of 989 TFLOP/s.
TEST(RulesOfExperts, a_pass_over_a_layer_is_its_experts_and_their_exchange) {
  const double flops = 2.0 * 8192 * 3 * 4096 * 14336;
  const double forward = seconds(layer("forward_time")), backward = seconds(layer("backward_time"));
  EXPECT_GT(forward, flops / 989e12);
  EXPECT_LT(forward, 2.0 * flops / 989e12);
  EXPECT_GT(backward, 1.5 * forward);
  EXPECT_LT(backward, 2.5 * forward);
}

TEST(RulesOfExperts, missing_columns_skip_the_row) {
  EXPECT_EQ(measured_by("step_time"), Measured::step);
  EXPECT_EQ(measured_by(""), Measured::step);
  EXPECT_EQ(measured_by("backward_time"), Measured::pass);
  EXPECT_EQ(measured_by("combine_latency"), Measured::all_to_all);
  ExpertRow row = layer("forward_time");
  row.model = "single layer of a friend";
  EXPECT_THAT(outcome_of(AnyRow(row), parts_of(row)).error(), HasSubstr("unknown model"));
  row = exchange(8, "dispatch_latency");
  row.topk = std::nullopt;
  EXPECT_EQ(outcome_of(AnyRow(row), parts_of(row)).error(), "not stated: topk");
}

// DeepSeek-V3 on GB300 as released since 2026-06; two sequences at a time is the recipe before.
TEST(RulesOfExperts, a_row_is_a_recipe_where_model_machine_format_and_layout_are_its) {
  TrainingRow row;
  row.family = "mbridge_moe";
  row.model = "DeepSeekV3";
  row.gpu_type = "GB300";
  row.precision = "mxfp8";
  row.pp = 2;
  row.vpp = 8;
  row.ep = 32;
  row.micro_batch = 1;
  EXPECT_EQ(defaults_of(row).stack, "nemo-recorded");
  row.micro_batch = 2;
  EXPECT_EQ(defaults_of(row).stack, "nemo");
  row.micro_batch = 1;
  row.precision = "bf16";
  EXPECT_EQ(defaults_of(row).stack, "nemo");
  row.model = "GPT OSS 120B";
  EXPECT_EQ(defaults_of(row).stack, "nemo-alltoall");
  row.precision = "mxfp8";
  EXPECT_EQ(defaults_of(row).stack, "nemo");
  row.model = "Qwen3_235B_a22B";
  row.gpu_type = "B200";
  EXPECT_EQ(defaults_of(row).stack, "nemo-alltoall");
  row.family = "mbridge_dense";
  EXPECT_EQ(defaults_of(row).stack, "nemo");
}

// Automodel's page has a dash for ep where its experts lie over all ranks.
TEST(RulesOfExperts, automodel_spreads_experts_where_its_table_says_one) {
  TrainingRow row;
  row.family = "automodel_moe";
  row.model = "GPT-OSS 120B";
  row.gpu_type = "H100-SXM";
  row.precision = "bf16";
  row.seq = 4096;
  row.gpus = 64;
  row.gpus_per_node = 8;
  row.global_batch = 512;
  row.micro_batch = 2;
  row.ep = 1;
  const auto ep_of = [&](TrainingRow of) {
    const auto parts = parts_for(ORRERY_SOURCE_DATA_DIR, {AnyRow(of)});
    const auto scenario = scenario_of(of, *parts);
    EXPECT_TRUE(scenario.has_value()) << scenario.error();
    return scenario ? scenario->plan.ep : 0;
  };
  EXPECT_EQ(ep_of(row), 64);
  row.gpus = 24;  // of 128 experts 8 ranks have even shares
  row.global_batch = 48;
  EXPECT_EQ(ep_of(row), 8);
  row.ep = 4;
  EXPECT_EQ(ep_of(row), 4);
  row.ep = 1;
  row.family = "torchtitan";
  EXPECT_EQ(ep_of(row), 1);
}

}  // namespace
}  // namespace orrery::validate::rules_experts_test
