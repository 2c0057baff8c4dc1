#include "orrery/report/json.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "orrery/report/samples.hpp"
#include "orrery/report/test_json.hpp"

namespace orrery::report::json_test {
namespace {

const std::vector<std::string> kEstimateFields = {"semantics",
                                                  "feasible",
                                                  "infeasible_reason",
                                                  "devices",
                                                  "step_time_s",
                                                  "uncertainty",
                                                  "samples_per_s",
                                                  "tokens_per_s",
                                                  "model_flops_per_step",
                                                  "mfu",
                                                  "hfu",
                                                  "breakdown_s",
                                                  "comm_s",
                                                  "memory_B",
                                                  "plan",
                                                  "groups",
                                                  "model",
                                                  "cluster",
                                                  "stack",
                                                  "precision",
                                                  "global_batch",
                                                  "seq",
                                                  "task",
                                                  "lora",
                                                  "validity",
                                                  "hardware_flops_per_step",
                                                  "peak_flops_per_s",
                                                  "causal_half",
                                                  "slowest_pace",
                                                  "cost_usd_per_step",
                                                  "cost_basis",
                                                  "energy_J_per_step",
                                                  "energy_basis",
                                                  "not_modelled",
                                                  "warnings"};

TEST(Json, an_estimate_has_the_fields_of_the_contract_in_its_order) {
  const std::vector<std::string> chosen = {"dp 16"};
  const Json json = Json::parse(estimate_json(samples::estimate(), chosen));
  std::vector<std::string> fields = {"schema"};
  fields.insert(fields.end(), kEstimateFields.begin(), kEstimateFields.end());
  fields.emplace_back("chosen");
  EXPECT_EQ(json.keys(), fields);
  EXPECT_EQ(json["schema"], "orrery.estimate/1");
  EXPECT_EQ(json["semantics"], "physical");
  EXPECT_EQ(json["feasible"], true);
  EXPECT_TRUE(json["infeasible_reason"].is_null());
  EXPECT_TRUE(json["devices"].is_integer());
  EXPECT_EQ(json["chosen"], Json::parse(R"(["dp 16"])"));
  EXPECT_EQ(json["not_modelled"].size(), 2U);
}

TEST(Json, the_parts_of_a_step_sum_to_it) {
  const Json json = Json::parse(estimate_json(samples::estimate()));
  EXPECT_EQ(json["breakdown_s"].keys(), (std::vector<std::string>{"compute", "recompute", "exposed_comm", "bubble",
                                                                  "optimizer", "offload", "host"}));
  double sum = 0;
  for (const auto& part : json["breakdown_s"].values()) { sum += part.number(); }
  EXPECT_NEAR(sum, json["step_time_s"].number(), 1e-12);
}

TEST(Json, every_group_is_there_and_unused_ones_are_zero) {
  const Json comm = Json::parse(estimate_json(samples::estimate()))["comm_s"];
  EXPECT_EQ(comm["by_group"].keys(), (std::vector<std::string>{"tp", "pp", "dp", "ep", "cp"}));
  for (const auto& group : comm["by_group"].values()) {
    EXPECT_EQ(group.keys(), (std::vector<std::string>{"total", "exposed"}));
  }
  EXPECT_EQ(comm["by_group"]["tp"]["total"], 0.5);
  EXPECT_EQ(comm["by_group"]["ep"]["total"], 0.0);
}

TEST(Json, memory_and_plan_have_their_fields) {
  const Json json = Json::parse(estimate_json(samples::estimate()));
  EXPECT_EQ(json["memory_B"].keys(),
            (std::vector<std::string>{"weights", "gradients", "optimizer", "activations", "buffers", "kv_cache",
                                      "total", "capacity", "stage", "offloaded", "second_tier"}));
  EXPECT_EQ(json["memory_B"]["total"], 7.5 * 1073741824.0);
  EXPECT_EQ(json["plan"].size(), samples::plan().values.size());
  EXPECT_EQ(json["plan"].keys()[7], "micro_batch");
  EXPECT_EQ(json["plan"]["micro_batch"], 2);
  EXPECT_EQ(json["plan"]["recompute"], "selective");
  EXPECT_EQ(json["plan"]["sequence_parallel"], true);
}

TEST(Json, a_batch_of_requests_has_its_times) {
  const Json json = Json::parse(estimate_json(samples::served()));
  EXPECT_EQ(json["inference"].keys(),
            (std::vector<std::string>{"prompt", "generate", "ttft_s", "tpot_s", "last_token_s", "output_tokens_per_s",
                                      "decode_tokens_per_s", "kv_B_per_token", "state_B_per_sequence"}));
  EXPECT_EQ(json["inference"]["ttft_s"], 0.25);
  EXPECT_EQ(json["task"], "inference");
  EXPECT_EQ(json["memory_B"]["kv_cache"], 1073741824.0);
  EXPECT_EQ(Json::parse(estimate_json(samples::estimate())).contains("inference"), false);
  EXPECT_EQ(json["validity"]["basis"], "generation");
}

TEST(Json, an_estimate_that_does_not_fit_says_why) {
  results::Estimate estimate = samples::estimate();
  estimate.feasible = false;
  estimate.infeasible_reason = "needs more";
  const Json json = Json::parse(estimate_json(estimate));
  EXPECT_EQ(json["feasible"], false);
  EXPECT_EQ(json["infeasible_reason"], "needs more");
}

TEST(Json, terms_and_classes_appear_on_request) {
  const Json json = Json::parse(estimate_json(samples::explained()));
  ASSERT_EQ(json["terms"].size(), 4U);
  EXPECT_EQ(json["terms"][0].keys(),
            (std::vector<std::string>{"name", "segment", "count", "flops", "bytes", "time_s", "bound"}));
  ASSERT_EQ(json["classes"].size(), 2U);
  EXPECT_EQ(json["classes"][1]["stages"], 7);
}

TEST(Json, numbers_read_back_as_the_same_double) {
  results::Estimate estimate = samples::estimate();
  estimate.step_time = Seconds(0.1 + 0.2);
  estimate.mfu = 1.0 / 3.0;
  const Json json = Json::parse(estimate_json(estimate));
  EXPECT_EQ(json["step_time_s"].number(), 0.1 + 0.2);
  EXPECT_EQ(json["mfu"].number(), 1.0 / 3.0);
}

TEST(Json, what_is_not_finite_is_null_and_what_is_not_text_is_replaced) {
  results::Estimate estimate = samples::estimate();
  estimate.mfu = std::numeric_limits<double>::quiet_NaN();
  estimate.step_time = infinite<Seconds>();
  estimate.model = "bad\xff";
  const Json json = Json::parse(estimate_json(estimate));
  EXPECT_TRUE(json["mfu"].is_null());
  EXPECT_TRUE(json["step_time_s"].is_null());
  EXPECT_EQ(json["model"], "bad\ufffd");
}

TEST(Json, a_search_ranks_estimates_without_terms) {
  const Json json = Json::parse(plan_json(samples::search()));
  EXPECT_EQ(json.keys(), (std::vector<std::string>{"schema", "space", "wall_s", "points_per_s", "best", "not_searched",
                                                   "objective", "explanation"}));
  EXPECT_EQ(json["schema"], "orrery.plan/1");
  EXPECT_EQ(json["space"].keys(),
            (std::vector<std::string>{"points", "evaluated", "pruned", "feasible", "rejected", "priced", "plans"}));
  EXPECT_EQ(json["space"]["rejected"], Json::parse(R"({"memory": 300, "network": 0, "invalid": 0})"));
  EXPECT_EQ(json["points_per_s"], 24690.0);  // 12345 points in half a second
  std::vector<std::string> fields = {"rank"};
  fields.insert(fields.end(), kEstimateFields.begin(), kEstimateFields.end());
  ASSERT_EQ(json["best"].size(), 2U);
  EXPECT_EQ(json["best"][1].keys(), fields);  // this one has terms
  EXPECT_EQ(json["best"][0]["rank"], 1);
  EXPECT_EQ(json["best"][1]["rank"], 2);
}

TEST(Json, a_search_too_fast_to_time_has_no_rate) {
  results::PlanSearch search = samples::search();
  search.wall_s = 0;
  EXPECT_TRUE(Json::parse(plan_json(search))["points_per_s"].is_null());
}

TEST(Json, unknown_expenses_are_null) {
  results::Estimate estimate = samples::estimate();
  EXPECT_EQ(Json::parse(estimate_json(estimate, {}))["cost_usd_per_step"], 1.5);
  EXPECT_EQ(Json::parse(estimate_json(estimate, {}))["energy_basis"], "nameplate power, 10000 W a node of 8");
  estimate.cost = estimate.energy = std::nullopt;
  for (const char* field : {"cost_usd_per_step", "cost_basis", "energy_J_per_step", "energy_basis"}) {
    EXPECT_TRUE(Json::parse(estimate_json(estimate, {}))[field].is_null()) << field;
  }
}

TEST(Json, what_would_change_the_answer_has_factors_and_winners) {
  const Json json = Json::parse(plan_json(samples::search_with_changes()));
  ASSERT_EQ(json["what_if"].size(), 4U);
  const Json flip = json["what_if"][0];
  EXPECT_EQ(flip.keys(), (std::vector<std::string>{"knob", "direction", "factor", "value", "same_until", "searches",
                                                   "winner", "step_time_s"}));
  EXPECT_EQ(flip["knob"], "device_memory");
  EXPECT_EQ(flip["factor"], 1.25);
  EXPECT_EQ(flip["value"], 20.0 * 1073741824.0);
  EXPECT_EQ(flip["winner"]["tp"], 8);
  EXPECT_EQ(flip["step_time_s"], 2.0);
  EXPECT_EQ(json["what_if"][1]["direction"], "down");
  EXPECT_TRUE(json["what_if"][1]["winner"].is_null());
  EXPECT_TRUE(json["what_if"][2]["factor"].is_null());
}

TEST(Json, numbers_of_devices_have_rows) {
  const Json json = Json::parse(plan_json(samples::search_of_counts()));
  EXPECT_EQ(json["objective"], "cost");
  ASSERT_EQ(json["by_devices"].size(), 3U);
  EXPECT_EQ(
      json["by_devices"][0],
      Json::parse(
          R"({"devices": 64, "feasible": false, "impossible": null, "within": false, "step_time_s": null, "samples_per_s": null,
                             "cost_usd_per_step": null, "energy_J_per_step": null})"));
  EXPECT_EQ(json["by_devices"][1]["within"], false);
  EXPECT_EQ(json["by_devices"][2]["step_time_s"], 2.0);
  EXPECT_EQ(json["by_devices"][2]["cost_usd_per_step"], 1.5);
}

TEST(Json, a_family_without_scores_has_no_errors) {
  const Json json = Json::parse(validation_json(samples::validation()));
  EXPECT_EQ(json["schema"], "orrery.validate/1");
  ASSERT_EQ(json["families"].size(), 2U);
  for (const char* field :
       {"kind", "family", "rows", "predicted", "skipped", "mape", "median_ape", "p90_ape", "bias"}) {
    EXPECT_TRUE(json["families"][0].contains(field)) << field;
  }
  EXPECT_EQ(json["families"][0]["mape"], 0.15);
  EXPECT_TRUE(json["families"][1]["mape"].is_null());
  EXPECT_EQ(json["overall"]["rows"], 3);
  EXPECT_EQ(json["kinds"]["training"]["rows"], 3);
}

TEST(Json, a_listing_counts_figures) {
  const std::vector<hardware::EntrySummary> entries = {
      {.name = "box", .description = "A box", .figures = 3, .unverified = 1}};
  const std::vector<UnverifiedFigure> figures = {{"box", "weight", "a guess"}};
  const Json json = Json::parse(listing_json("clusters", entries, figures));
  EXPECT_EQ(json["schema"], "orrery.list/1");
  EXPECT_EQ(json["kind"], "clusters");
  EXPECT_EQ(json["entries"][0],
            Json::parse(R"({"name": "box", "description": "A box", "figures": 3, "unverified": 1})"));
  EXPECT_EQ(json["unverified_figures"][0]["why"], "a guess");
  EXPECT_FALSE(Json::parse(listing_json("clusters", entries)).contains("unverified_figures"));
}

}  // namespace
}  // namespace orrery::report::json_test
