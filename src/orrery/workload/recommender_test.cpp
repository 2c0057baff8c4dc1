// Descriptions of recommenders and their errors.
#include "orrery/workload/recommender.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/workload/catalogue.hpp"
#include "orrery/workload/operators.hpp"
#include "orrery/workload/records.hpp"
#include "orrery/workload/test_recommenders.hpp"

namespace orrery::workload::recommender_test {
namespace {

using test::any_recommender;
using test::completed_recommender;
using test::small_recommender;
using ::testing::HasSubstr;

const auto kDraw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };

std::string objection(const Recommender& r) {
  const auto wrong = inconsistency(r);
  return wrong ? std::string(wrong->field) + ": " + wrong->message : "";
}

// Five vectors of 8: ten dot products, and the bottom MLP's output.
TEST(Recommender, dot_products_of_all_pairs_stand_next_to_the_bottom_output) {
  const auto layers = dense_layers(small_recommender());
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].in, 40);
  EXPECT_EQ(layers[0].out, 10 + 8);
  EXPECT_EQ(layers[1].in, 18);
  EXPECT_EQ(layers[2].out, 1);
  EXPECT_TRUE(layers[2].closes);
}

// Tables 4 x 1000 x 8; bottom 4 x 16 + 16 + 16 x 8 + 8; top 18 x 32 + 32 + 32 + 1. A sample reads 3 rows of each table.
TEST(Recommender, weights_by_hand) {
  const auto count = parameter_count(completed_recommender(small_recommender()));
  EXPECT_EQ(count.embedding, 32000);
  EXPECT_EQ(count.layers, 80 + 136 + 608 + 33);
  EXPECT_EQ(count.active, 4 * 3 * 8 + 80 + 136 + 608 + 33);
}

// 6 FLOPs per multiplication, 4 in the first layer: GEMMs 4 x 16, 16 x 8, 5 x 5 x 8, 18 x 32, 32.
TEST(Recommender, model_flops_by_hand) {
  const Model model = completed_recommender(small_recommender());
  const double multiplications = 64 + 128 + 200 + 576 + 32;
  EXPECT_DOUBLE_EQ(model_flops(model, {}, 10, 1).value(), 10 * (6 * multiplications - 2 * 64));
  EXPECT_DOUBLE_EQ(prefill_flops(model, {}, 10, 1).value(), 10 * 2 * multiplications);
}

// DCNv2 (MLPerf): 27 x 128 = 3456 numbers, three layers of two factors of rank 512 and a bias.
TEST(Recommender, low_rank_cross_layers_have_two_factors_and_a_bias) {
  Recommender r = small_recommender();
  r.bottom = {128};
  r.tables = {{26, 1000, 128, 1.0}};
  r.interaction = {InteractionKind::cross, 3, 512};
  const auto layers = dense_layers(r);
  EXPECT_EQ(layers[1].in, 3456);
  EXPECT_EQ(dense_parameters(r, layers[1]), 2 * 3456 * 512 + 3456);
  EXPECT_EQ(layers.size(), 1U + 3U + 2U);
}

RC_GTEST_PROP(Recommender, operators_hold_the_weights_that_are_counted, ()) {
  const Recommender r = any_recommender(kDraw);
  RC_PRE(!inconsistency(r));
  const Model model = completed_recommender(r);
  Slice slice;
  slice.micro_batch = kDraw(1, 100);
  slice.seq = 1;
  slice.tables.sharding = TableSharding::table;
  double dense = 0, tables = 0;
  const auto add = [&](const std::vector<Operator>& operators) {
    for (const auto& op : operators) {
      dense += op.parameters;
      tables += op.in_place.weights.value();
    }
  };
  add(embedding_operators(model, {}, slice));
  for (std::int64_t i = 0; i < model.depth(); ++i) { add(layer_operators(model, {}, slice, layer_kind(model, i))); }
  add(head_operators(model, {}, slice));
  const auto count = parameter_count(model);
  RC_ASSERT(dense == static_cast<double>(count.layers));
  const double element = hardware::element_size(r.table_precision).value();
  RC_ASSERT(std::abs(tables - element * static_cast<double>(count.embedding)) <= 1e-9 * tables);
}

// Four tokens of 8 are 32 numbers; `output` sets how many of them the top MLP reads.
TEST(Recommender, the_top_mlp_reads_all_tokens_unless_output_is_given) {
  Recommender r = small_recommender();
  r.interaction = {InteractionKind::transformer, 2, 0, 2, 16, 4, 8};
  const auto all = dense_layers(r);
  EXPECT_EQ(all[3].part, DensePart::top);
  EXPECT_EQ(all[3].in, 32);
  r.interaction.output = 5;
  const auto some = dense_layers(r);
  EXPECT_EQ(some[3].part, DensePart::join);
  EXPECT_EQ(some[4].in, 5);
  EXPECT_EQ(objection(r), "");
  r.interaction.output = -1;
  EXPECT_THAT(objection(r), HasSubstr("recommender.interaction: -1 is not a size"));
}

TEST(Recommender, those_of_mad_max_print_and_read_back) {
  int recommenders = 0;
  const auto listed = list_mad_max_models(ORRERY_DATA_DIR).value();
  EXPECT_EQ(listed.size(), 33U);
  for (const auto& entry : listed) {
    EXPECT_EQ(entry.unverified, 0) << entry.name;
    const Model model = load_model(ORRERY_DATA_DIR, entry.name).value();
    if (!model.is_recommender()) { continue; }
    ++recommenders;
    const auto node = config::parse_yaml(describe(model), "again").value();
    const auto* const printed = node.find("recommender");
    ASSERT_NE(printed, nullptr) << entry.name;
    EXPECT_EQ(config::Described<Recommender>::record().read(*printed).value(), model.recommender) << entry.name;
    EXPECT_EQ(model.recommender.dense_precision, hardware::Precision::fp32) << entry.name;
  }
  EXPECT_EQ(recommenders, 13);
}

TEST(Recommender, what_is_wrong_is_named) {
  Recommender r = small_recommender();
  EXPECT_EQ(objection(r), "");
  r.tables.clear();
  EXPECT_THAT(objection(r), HasSubstr("recommender.tables: tables is empty; a recommender needs"));
  r = small_recommender();
  r.tables.push_back({1, 10, 16, 1.0});
  EXPECT_THAT(objection(r),
              HasSubstr("table 1 has width 16, the bottom MLP's output has width 8; a dot interaction needs"));
  r.interaction.kind = InteractionKind::concat;
  EXPECT_EQ(objection(r), "");
  r.interaction.kind = InteractionKind::cross;
  EXPECT_THAT(objection(r), HasSubstr("needs layers of at least 1"));
  r = small_recommender();
  r.top_experts = {4, 5};
  EXPECT_THAT(objection(r), HasSubstr("top_experts.active is 5; 1 to top_experts.count 4 is accepted"));
  r = small_recommender();
  r.bottom.clear();
  EXPECT_THAT(objection(r), HasSubstr("need each other"));
}

}  // namespace
}  // namespace orrery::workload::recommender_test
