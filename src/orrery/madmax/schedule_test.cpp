// Iterations by hand, on the machine and the layers of round numbers of test_madmax.hpp. Times in milliseconds.
#include <map>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/madmax/test_madmax.hpp"

namespace orrery::madmax {
namespace {

constexpr double kCrumb = 1e-9;

RunSettings batch_of_four(Task task = Task::pretrain) { return {task, {}, 4, true}; }

std::map<std::string, std::pair<double, double>> spans(const results::MadMaxEstimate& estimate) {
  std::map<std::string, std::pair<double, double>> found;
  for (const auto& event : estimate.events) {
    found[event.name] = {milliseconds(event.start), milliseconds(event.start + event.duration)};
  }
  return found;
}

void expect_spans(const results::MadMaxEstimate& estimate,
                  const std::map<std::string, std::pair<double, double>>& expected) {
  const auto found = spans(estimate);
  for (const auto& [name, span] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_NEAR(found.at(name).first, span.first, kCrumb) << name;
    EXPECT_NEAR(found.at(name).second, span.second, kCrumb) << name;
  }
  EXPECT_EQ(found.size(), expected.size());
}

// (tp,ddp): two copies of two samples, products cut in two: 4 GFLOP x 2 / 2 = 4 ms forward. Activations 2 x 5 M x 2 B
// at 10 GB/s: 2 ms. Gradients of a layer 4 MB at 4 GB/s: 1 ms. Tables (ddp): one sample, 1 MB: 1 ms, reduced in 0.25
// ms.
TEST(Schedule, cut_layers_wait_for_their_activations_and_reduce_them_before_their_gradients) {
  const auto estimate =
      estimate_of(round_transformer(), round_system(), "emb=(ddp); transformer=(tp,ddp)", batch_of_four(), true);
  expect_spans(estimate, {{"EMB_f.", {0, 1}},
                          {"Attn0_f.", {1, 5}},
                          {"Attn0_f_c_act_ar.", {5, 7}},
                          {"TransformerFC0_f.", {7, 11}},
                          {"TransformerFC0_f_c_act_ar.", {11, 13}},
                          {"TransformerFC0_b.", {13, 21}},
                          {"TransformerFC0_b_c_act_ar.", {21, 23}},
                          {"TransformerFC0_b_c_wg_ar", {23, 24}},
                          {"Attn0_b.", {23, 31}},
                          {"Attn0_b_c_act_ar.", {31, 33}},
                          {"Attn0_b_c_wg_ar", {33, 34}},
                          {"EMB_b_c_ar.", {34, 34.25}},
                          {"EMB_b.", {34.25, 35.25}}});
  EXPECT_NEAR(milliseconds(estimate.step_time), 35.25, kCrumb);
  EXPECT_NEAR(milliseconds(estimate.breakdown.exposed), 35.25 - 24.0 - 2.0, kCrumb);
}

// (ddp,tp): two copies, one in each place of a node, products cut between nodes. Gradients of half a layer, 2 MB at
// 10 GB/s: 0.2 ms, before the activations' 2 x 5 M x 2 B at 4 GB/s: 5 ms.
TEST(Schedule, copies_inside_nodes_reduce_their_gradients_before_the_activations) {
  const auto found =
      spans(estimate_of(round_transformer(), round_system(), "transformer=(ddp,tp)", batch_of_four(), true));
  EXPECT_NEAR(found.at("TransformerFC0_b_c_wg_ar").first, 27.0, kCrumb);  // 1 + 4 + 5 + 4 + 5 + 8
  EXPECT_NEAR(found.at("TransformerFC0_b_c_wg_ar").second, 27.2, kCrumb);
  EXPECT_NEAR(found.at("TransformerFC0_b_c_act_ar.").second, 32.2, kCrumb);
  EXPECT_NEAR(found.at("Attn0_b.").first, 32.2, kCrumb);
}

// (fsdp): one sample a device, 4 ms forward; a layer of 4 MB gathered at 8 GB/s: 0.5 ms.
TEST(Schedule, weights_are_gathered_ahead_forward_and_behind_the_scatter_backward) {
  const auto estimate = estimate_of(round_transformer(), round_system(), "", batch_of_four(), true);
  expect_spans(estimate, {{"EMB_f.", {0, 1}},
                          {"Attn0_f_c_wgt_ag.", {0, 0.5}},
                          {"TransformerFC0_f_c_wgt_ag.", {0.5, 1}},
                          {"Attn0_f.", {1, 5}},
                          {"TransformerFC0_f.", {5, 9}},
                          {"TransformerFC0_b_c_wgt_ag.", {9, 9.5}},
                          {"TransformerFC0_b.", {9.5, 17.5}},
                          {"TransformerFC0_b_c_wg_rs", {17.5, 18}},
                          {"Attn0_b_c_wgt_ag.", {18, 18.5}},
                          {"Attn0_b.", {18.5, 26.5}},
                          {"Attn0_b_c_wg_rs", {26.5, 27}},
                          {"EMB_b_c_ar.", {27, 27.25}},
                          {"EMB_b.", {27.25, 28.25}}});
}

// The same of a vision model: the gather of attention stands before the scatter, and waits for nothing.
TEST(Schedule, vision_models_gather_one_half_layer_ahead_in_backward) {
  SampleWork work = round_transformer();
  work.gathers_early = true;
  const auto found = spans(estimate_of(work, round_system(), "", batch_of_four(), true));
  EXPECT_NEAR(found.at("Attn0_b_c_wgt_ag.").first, 9.5, kCrumb);
  EXPECT_NEAR(found.at("TransformerFC0_b_c_wg_rs").second, 18.0, kCrumb);
  EXPECT_NEAR(found.at("Attn0_b.").first, 17.5, kCrumb);
  EXPECT_NEAR(found.at("EMB_b.").second, 27.25, kCrumb);
}

// With (ddp) they gather their last layer all the same: 4 MB x 4 devices at 8 GB/s, 2 ms of waiting; others do not.
TEST(Schedule, vision_models_pay_a_gather_that_copies_do_not_need) {
  SampleWork work = round_transformer();
  const double without =
      milliseconds(estimate_of(work, round_system(), "transformer=(ddp)", batch_of_four()).step_time);
  work.gathers_early = true;
  const auto vision = estimate_of(work, round_system(), "transformer=(ddp)", batch_of_four());
  EXPECT_NEAR(without, 27.25, kCrumb);  // 1 + 4 + 4 + 8 + 8, 1 of gradients, 0.25, 1
  EXPECT_NEAR(milliseconds(vision.step_time), 29.25, kCrumb);
  EXPECT_NEAR(milliseconds(vision.breakdown.all_gather), 2.0, kCrumb);
  EXPECT_EQ(estimate_of(work, round_system(), "transformer=(ddp)", batch_of_four(Task::inference)).breakdown.all_gather,
            Seconds());
}

// Four experts: an exchange carries a quarter of the activations, 0.5 ms inside a node; before and behind the products,
// in both directions.
TEST(Schedule, experts_that_are_cut_exchange_their_samples_twice_a_direction) {
  const auto estimate =
      estimate_of(round_transformer(4.0), round_system(), "emb=(ddp); transformer=(tp,ddp)", batch_of_four(), true);
  expect_spans(estimate, {{"EMB_f.", {0, 1}},
                          {"Attn0_f.", {1, 5}},
                          {"Attn0_f_c_act_ar.", {5, 7}},
                          {"MoE0_f_c_act_all2all1.", {7, 7.5}},
                          {"TransformerFC0_f.", {7.5, 11.5}},
                          {"MoE0_f_c_act_all2all2.", {11.5, 12}},
                          {"TransformerFC0_f_c_act_ar.", {12, 14}},
                          {"MoE0_b_c_act_all2all1.", {14, 14.5}},
                          {"TransformerFC0_b.", {14.5, 22.5}},
                          {"MoE0_b_c_act_all2all2.", {22.5, 23}},
                          {"TransformerFC0_b_c_act_ar.", {23, 25}},
                          {"TransformerFC0_b_c_wg_ar", {25, 26}},
                          {"Attn0_b.", {25, 33}},
                          {"Attn0_b_c_act_ar.", {33, 35}},
                          {"Attn0_b_c_wg_ar", {35, 36}},
                          {"EMB_b_c_ar.", {36, 36.25}},
                          {"EMB_b.", {36.25, 37.25}}});
}

TEST(Schedule, experts_that_are_copied_or_gathered_exchange_nothing) {
  for (const char* strategy : {"moe=(ddp)", "moe=(fsdp)", "moe=(fsdp,ddp)"}) {
    EXPECT_EQ(estimate_of(round_transformer(4.0), round_system(), strategy, batch_of_four()).breakdown.all_to_all,
              Seconds());
  }
}

// A recommender with transformer layers between tables and top MLP: bottom of two layers of 1 ms, one transformer layer
// of two halves of 4 ms, top of two layers of 1 ms; all dense (ddp), tables (mp).
SampleWork round_recommender() {
  SampleWork work = round_transformer();
  work.is_recommender = true;
  work.shapes.push_back({LayerClass::mlp, 2e6, 1e9, 5e6, 1.0});
  work.layers = {{Part::bottom, 0, 2}, {Part::bottom, 1, 2}, {Part::attention, 0, 0},
                 {Part::fc, 0, 1},     {Part::top, 0, 2},    {Part::top, 1, 2}};
  work.reads_embedding = 2;
  return work;
}

// Lookup: 4 samples over 4 shards, 1 MB, 1 ms. Exchange: 2 x 1 MB / 4 at 2 GB/s, 0.25 ms. Gradients: 1 ms a layer.
TEST(Schedule, a_transformer_interaction_waits_for_the_exchange_and_lets_it_go_back) {
  const auto estimate =
      estimate_of(round_recommender(), round_system(), "emb=(mp); mlp=(ddp); transformer=(ddp)", batch_of_four(), true);
  expect_spans(estimate, {{"EMB_f.", {0, 1}},
                          {"EMB_f_c_all2all.", {1, 1.25}},
                          {"MLPBot0_f.", {1, 2}},
                          {"MLPBot1_f.", {2, 3}},
                          {"Attn0_f.", {3, 7}},
                          {"TransformerFC0_f.", {7, 11}},
                          {"MLPTop0_f.", {11, 12}},
                          {"MLPTop1_f.", {12, 13}},
                          {"MLPTop1_b.", {13, 15}},
                          {"MLPTop1_b_c_wg_ar", {15, 16}},
                          {"MLPTop0_b.", {15, 17}},
                          {"MLPTop0_b_c_wg_ar", {17, 18}},
                          {"TransformerFC0_b.", {17, 25}},
                          {"TransformerFC0_b_c_wg_ar", {25, 26}},
                          {"Attn0_b.", {25, 33}},
                          {"Attn0_b_c_wg_ar", {33, 34}},
                          {"EMB_b_c_all2all.", {34, 34.25}},
                          {"MLPBot1_b.", {33, 35}},
                          {"MLPBot1_b_c_wg_ar", {35, 36}},
                          {"MLPBot0_b.", {35, 37}},
                          {"MLPBot0_b_c_wg_ar", {37, 38}},
                          {"EMB_b.", {37, 38}}});
}

// Backward ends at the lowest layer that has something to train below or in it.
TEST(Schedule, frozen_parts_are_passed_through_but_not_reduced_nor_run_below_what_trains) {
  const auto work = round_recommender();
  const auto spans_with = [&](const char* freeze) {
    RunSettings job = batch_of_four(Task::finetune);
    job.frozen = frozen_from(freeze, work).value();
    return spans(estimate_of(work, round_system(), "emb=(mp); mlp=(ddp); transformer=(ddp)", job, true));
  };
  const auto only_tables = spans_with("mlp,transformer");
  EXPECT_TRUE(only_tables.contains("Attn0_b."));
  EXPECT_TRUE(only_tables.contains("EMB_b."));
  EXPECT_FALSE(only_tables.contains("MLPBot1_b."));
  EXPECT_FALSE(only_tables.contains("MLPTop1_b_c_wg_ar"));
  const auto only_top = spans_with("emb,bottom,transformer");
  EXPECT_TRUE(only_top.contains("MLPTop0_b."));
  EXPECT_FALSE(only_top.contains("TransformerFC0_b."));
  EXPECT_FALSE(only_top.contains("EMB_b."));
  const auto only_bottom = spans_with("emb,top,transformer");
  EXPECT_TRUE(only_bottom.contains("MLPBot0_b_c_wg_ar"));
  EXPECT_TRUE(only_bottom.contains("Attn0_b."));
  EXPECT_FALSE(only_bottom.contains("Attn0_b_c_wg_ar"));
  EXPECT_FALSE(only_bottom.contains("EMB_b_c_all2all."));
}

// Tables split over nodes and copied between them are not reduced; the other way round they are, inside nodes.
TEST(Schedule, of_copied_tables_only_the_innermost_copies_are_reduced) {
  const auto work = round_recommender();
  const auto reduced = [&](const char* tables) {
    const std::string text = std::string(tables) + "; mlp=(fsdp); transformer=(fsdp)";
    return milliseconds(estimate_of(work, round_system(), text, batch_of_four()).breakdown.all_reduce);
  };
  EXPECT_NEAR(reduced("emb=(mp)"), 0.0, kCrumb);
  EXPECT_NEAR(reduced("emb=(mp,ddp)"), 0.0, kCrumb);
  EXPECT_NEAR(reduced("emb=(ddp,mp)"), 0.1, kCrumb);  // 2 samples x 1 MB / 2 shards at 10 GB/s
  EXPECT_NEAR(reduced("emb=(ddp)"), 0.25, kCrumb);    // 1 MB at 4 GB/s
}

}  // namespace
}  // namespace orrery::madmax
