// Iterations calculated by hand, for the machine and the layers of test_madmax.hpp. Times in milliseconds.
#include <map>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/madmax/test_madmax.hpp"

namespace orrery::madmax::schedule_test {
namespace {

constexpr double kTolerance = 1e-9;

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
    EXPECT_NEAR(found.at(name).first, span.first, kTolerance) << name;
    EXPECT_NEAR(found.at(name).second, span.second, kTolerance) << name;
  }
  EXPECT_EQ(found.size(), expected.size());
}

// (tp,ddp): two copies of two samples, GEMMs in two shards: 4 GFLOP x 2 / 2 = 4 ms forward. Activations 2 x 5 M x 2 B
// at 10 GB/s: 2 ms. Gradients of a layer 4 MB at 4 GB/s: 1 ms. Tables (ddp): one sample, 1 MB: 1 ms, reduced in 0.25
// ms.
TEST(Schedule, activations_of_tp_are_reduced_before_gradients) {
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
  EXPECT_NEAR(milliseconds(estimate.step_time), 35.25, kTolerance);
  EXPECT_NEAR(milliseconds(estimate.breakdown.exposed), 35.25 - 24.0 - 2.0, kTolerance);
}

// (ddp,tp): the two devices of a node are copies, and GEMMs are sharded between nodes. Gradients of half a layer, 2 MB
// at 10 GB/s: 0.2 ms. Then activations, 2 x 5 M x 2 B at 4 GB/s: 5 ms.
TEST(Schedule, gradients_of_copies_inside_nodes_are_reduced_before_activations) {
  const auto found =
      spans(estimate_of(round_transformer(), round_system(), "transformer=(ddp,tp)", batch_of_four(), true));
  EXPECT_NEAR(found.at("TransformerFC0_b_c_wg_ar").first, 27.0, kTolerance);  // 1 + 4 + 5 + 4 + 5 + 8
  EXPECT_NEAR(found.at("TransformerFC0_b_c_wg_ar").second, 27.2, kTolerance);
  EXPECT_NEAR(found.at("TransformerFC0_b_c_act_ar.").second, 32.2, kTolerance);
  EXPECT_NEAR(found.at("Attn0_b.").first, 32.2, kTolerance);
}

// (fsdp): one sample per device, 4 ms forward; a layer of 4 MB is gathered at 8 GB/s: 0.5 ms.
TEST(Schedule, weights_are_gathered_ahead_in_forward_and_after_the_scatter_in_backward) {
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

// The same for a vision model: the gather of attention is issued before the scatter and depends on nothing.
TEST(Schedule, vision_models_gather_one_half_layer_ahead_in_backward) {
  SampleWork work = round_transformer();
  work.gathers_early = true;
  const auto found = spans(estimate_of(work, round_system(), "", batch_of_four(), true));
  EXPECT_NEAR(found.at("Attn0_b_c_wgt_ag.").first, 9.5, kTolerance);
  EXPECT_NEAR(found.at("TransformerFC0_b_c_wg_rs").second, 18.0, kTolerance);
  EXPECT_NEAR(found.at("Attn0_b.").first, 17.5, kTolerance);
  EXPECT_NEAR(found.at("EMB_b.").second, 27.25, kTolerance);
}

// With (fsdp,tp) their gradients are scattered when the early gather has ended, and activations are reduced after that:
// the collective of the first level comes first.
TEST(Schedule, vision_models_scatter_gradients_before_they_reduce_activations) {
  SampleWork work = round_transformer();
  const auto later = spans(estimate_of(work, round_system(), "transformer=(fsdp,tp)", batch_of_four(), true));
  EXPECT_LE(later.at("TransformerFC0_b_c_act_ar.").second, later.at("TransformerFC0_b_c_wg_rs").first);
  work.gathers_early = true;
  const auto found = spans(estimate_of(work, round_system(), "transformer=(fsdp,tp)", batch_of_four(), true));
  EXPECT_LE(found.at("Attn0_b_c_wgt_ag.").second, found.at("TransformerFC0_b_c_wg_rs").first);
  for (const std::string layer : {"TransformerFC0", "Attn0"}) {
    EXPECT_LE(found.at(layer + "_b_c_wg_rs").second, found.at(layer + "_b_c_act_ar.").first);
  }
  EXPECT_GE(found.at("Attn0_b.").first, found.at("TransformerFC0_b_c_act_ar.").second);  // which it waits for
}

// Vision models gather their last layer even with (ddp): 4 MB x 4 devices at 8 GB/s, 2 ms of idle compute.
TEST(Schedule, vision_models_gather_their_last_layer_even_with_ddp) {
  SampleWork work = round_transformer();
  const double without =
      milliseconds(estimate_of(work, round_system(), "transformer=(ddp)", batch_of_four()).step_time);
  work.gathers_early = true;
  const auto vision = estimate_of(work, round_system(), "transformer=(ddp)", batch_of_four());
  EXPECT_NEAR(without, 27.25, kTolerance);  // 1 + 4 + 4 + 8 + 8, 1 of gradients, 0.25, 1
  EXPECT_NEAR(milliseconds(vision.step_time), 29.25, kTolerance);
  EXPECT_NEAR(milliseconds(vision.breakdown.all_gather), 2.0, kTolerance);
  EXPECT_EQ(estimate_of(work, round_system(), "transformer=(ddp)", batch_of_four(Task::inference)).breakdown.all_gather,
            Seconds());
}

// Four experts: each all-to-all moves a quarter of the activations, 0.5 ms inside a node, before and after the GEMMs,
// in forward and in backward.
TEST(Schedule, experts_with_tp_have_two_all_to_alls_per_direction) {
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

TEST(Schedule, experts_with_ddp_or_fsdp_have_no_all_to_all) {
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

// Lookup: 4 samples over 4 shards, 1 MB, 1 ms. All-to-all: 2 x 1 MB / 4 at 2 GB/s, 0.25 ms. Gradients: 1 ms per layer.
TEST(Schedule, a_transformer_interaction_waits_for_the_all_to_all) {
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

// Backward ends at the lowest layer that is trained or has trained layers below it.
TEST(Schedule, frozen_parts_above_a_trained_one_run_backward_without_reducing_gradients) {
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

// (mp,ddp), sharded inside nodes with copies between nodes, is not reduced; (ddp,mp) is, inside nodes.
TEST(Schedule, only_copies_of_tables_inside_nodes_are_reduced) {
  const auto work = round_recommender();
  const auto reduced = [&](const char* tables) {
    const std::string text = std::string(tables) + "; mlp=(fsdp); transformer=(fsdp)";
    return milliseconds(estimate_of(work, round_system(), text, batch_of_four()).breakdown.all_reduce);
  };
  EXPECT_NEAR(reduced("emb=(mp)"), 0.0, kTolerance);
  EXPECT_NEAR(reduced("emb=(mp,ddp)"), 0.0, kTolerance);
  EXPECT_NEAR(reduced("emb=(ddp,mp)"), 0.1, kTolerance);  // 2 samples x 1 MB / 2 shards at 10 GB/s
  EXPECT_NEAR(reduced("emb=(ddp)"), 0.25, kTolerance);    // 1 MB at 4 GB/s
}

}  // namespace
}  // namespace orrery::madmax::schedule_test
