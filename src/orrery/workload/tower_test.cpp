// Vision towers: counts of released checkpoints by hand, files that describe them, images of a job.
#include "orrery/workload/tower.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/config/node.hpp"
#include "orrery/config/record.hpp"
#include "orrery/workload/catalogue.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operators.hpp"
#include "orrery/workload/records.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::tower_test {
namespace {

using ::testing::HasSubstr;

Model fixture(const std::string& name) {
  const auto model = load_model("/nonexistent",
                                std::string(ORRERY_SOURCE_DATA_DIR) + "/../tests/fixtures/hf/" + name + "/config.json");
  EXPECT_TRUE(model) << model.error().text();
  return *model;
}

Result<Model> seen(const std::string& name, std::int64_t images, std::optional<std::int64_t> side,
                   std::int64_t seq = 100'000) {
  return with_images(fixture(name), images, side, seq);
}

// 32 layers of 4 x 1280^2 + 4 x 1280 and 3 x 1280 x 3420 + 2 x 3420 + 1280 and two norms; patches of 2 x 14 x 14 x 3
// values; a norm and 5120 x 5120 and 5120 x 3584 with biases.
TEST(Tower, of_qwen2_5_vl_has_the_parameters_of_the_released_checkpoint) {
  const Model model = fixture("qwen2.5-vl-7b");
  const std::int64_t layer = 4 * 1280 * 1280 + 4 * 1280 + 3 * 1280 * 3420 + 2 * 3420 + 1280 + 2 * 1280;
  EXPECT_EQ(parameters(model.tower), 32 * layer + 1176 * 1280 + 1280 + 5120 * 5120 + 5120 + 5120 * 3584 + 3584);
  EXPECT_EQ(parameter_count(model).tower, 676'550'144);
  EXPECT_EQ(parameter_count(model).total, 8'292'166'656);
  EXPECT_TRUE(model.warnings.empty()) << model.warnings.front();
}

TEST(Tower, of_qwen2_vl_has_the_parameters_of_the_released_checkpoint) {
  EXPECT_EQ(parameter_count(fixture("qwen2-vl-7b")).total, 8'291'375'616);
}

// Text: 48 layers of 62,914,560 of attention, 16 + 1 experts of 3 x 5120 x 8192, a router, two norms; two tables; norm.
TEST(Tower, of_llama_4_has_the_parameters_of_the_released_checkpoint) {
  const Model model = fixture("llama-4-scout");
  EXPECT_EQ(parameter_count(model).tower, 871'932'416);
  EXPECT_EQ(parameter_count(model).total - parameter_count(model).tower,
            48 * (62'914'560 + 17 * 3 * 5120LL * 8192 + 16 * 5120 + 2 * 5120) + 2 * 202'048LL * 5120 + 5120);
  EXPECT_EQ(model.tower.tokens(), 144);
  EXPECT_EQ(model.rope.none_every, 4);
  EXPECT_TRUE(model.warnings.empty()) << model.warnings.front();
}

TEST(Tower, of_gemma_3_averages_squares_of_four_patches) {
  const Tower tower = fixture("gemma-3-4b").tower;
  EXPECT_EQ(parameters(tower), 419'816'304);
  EXPECT_EQ(tower.tokens(), 256);
  EXPECT_EQ(tower.merge, 4);
}

TEST(Tower, attends_to_the_whole_image_in_every_eighth_layer) {
  const Tower tower = fixture("qwen2.5-vl-7b").tower;
  for (std::int64_t layer = 0; layer < tower.layers; ++layer) {
    EXPECT_EQ(tower.attends_in_windows(layer), layer % 8 != 7) << layer;
  }
}

TEST(Tower, that_is_described_in_a_file_is_read_back) {
  for (const char* name : {"qwen2.5-vl-7b", "llama-4-scout", "gemma-3-4b"}) {
    const Model model = fixture(name);
    const auto again = config::Described<Tower>::record().read(config::Described<Tower>::record().to_node(model.tower));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_EQ(*again, model.tower) << name;
  }
}

TEST(Images, have_tokens_by_their_size) {
  const auto model = seen("qwen2.5-vl-7b", 3, 448);
  ASSERT_TRUE(model) << model.error().text();
  EXPECT_EQ(model->tower.images, 3);
  EXPECT_EQ(model->tower.positions(), 1024);
  EXPECT_EQ(model->tower.tokens(), 256);
  EXPECT_EQ(seen("llama-4-scout", 1, {})->tower.positions(), 577);
}

TEST(Images, that_cannot_be_are_refused) {
  const auto refused = [](const Result<Model>& model) {
    return model ? std::string("accepted") : model.error().text();
  };
  EXPECT_THAT(refused(seen("qwen2.5-vl-7b", 1, {})), HasSubstr("--image-size: is missing"));
  EXPECT_THAT(refused(seen("qwen2.5-vl-7b", 1, 400)), HasSubstr("not a multiple of 112"));
  EXPECT_THAT(refused(seen("qwen2.5-vl-7b", 1, 400)), HasSubstr("nearest: 448"));
  EXPECT_THAT(refused(seen("qwen2.5-vl-7b", 17, 448, 4096)), HasSubstr("17 images of 256 tokens are longer"));
  EXPECT_EQ(refused(seen("qwen2.5-vl-7b", 16, 448, 4096)), "accepted");
  EXPECT_THAT(refused(seen("llama-4-scout", 1, 448)), HasSubstr("tiles"));
  EXPECT_THAT(refused(seen("llama-4-scout", 0, 336)), HasSubstr("needs --images"));
  EXPECT_THAT(refused(seen("qwen2.5-7b", 1, 448)), HasSubstr("has no vision tower"));
}

// A layer's GEMMs of one rank, forward: 2 x 1024 patches x its weights; attention: 4 x patches x keys x width.
TEST(TowerOperators, compute_a_layer_on_patches_in_windows_or_on_whole_images) {
  const Model model = *seen("qwen2.5-vl-7b", 1, 448);
  hardware::Stack stack;
  const Slice slice = test::slice(1, 4096);
  const auto flops = [](const std::vector<Operator>& list) {
    double sum = 0.0;
    for (const auto& op : list) { sum += op.forward.flops.value(); }
    return sum;
  };
  const double gemms = 2.0 * 1024 * (4 * 1280 * 1280 + 3 * 1280 * 3420);
  EXPECT_DOUBLE_EQ(flops(tower_layer(model, stack, slice, false)), gemms + 4.0 * 1024 * 1024 * 1280);
  EXPECT_DOUBLE_EQ(flops(tower_layer(model, stack, slice, true)), gemms + 4.0 * 1024 * 64 * 1280);
  EXPECT_DOUBLE_EQ(flops(tower_patches(model, stack, slice)), 2.0 * 1024 * 1176 * 1280);
  EXPECT_DOUBLE_EQ(flops(tower_projector(model, stack, slice)), 2.0 * 256 * 5120 * (5120 + 3584));
}

// tp 8 divides 16 heads and not the 3,420 columns: every rank has the whole tower, and no collective joins its parts.
TEST(TowerOperators, are_whole_on_every_rank_that_cannot_split_them) {
  const Model model = *seen("qwen2.5-vl-7b", 2, 448);
  hardware::Stack stack;
  const auto weights = [&](std::int64_t tp) {
    double sum = 0.0;
    for (const auto& op : tower_layer(model, stack, test::slice(1, 4096, tp), true)) {
      sum += op.parameters;
      if (tp == 8) { EXPECT_EQ(op.boundary, Boundary::none) << op.name; }
    }
    return sum;
  };
  EXPECT_EQ(weights(8), weights(1));
  EXPECT_LT(weights(4), 0.3 * weights(1));
}

TEST(TowerOperators, have_no_backward_pass_under_an_adapter) {
  const Model model = *seen("qwen2.5-vl-7b", 1, 448);
  hardware::Stack stack;
  Slice slice = test::slice(1, 4096);
  slice.adapter.rank = 8;
  for (const auto& list : {tower_patches(model, stack, slice), tower_layer(model, stack, slice, false),
                           tower_projector(model, stack, slice)}) {
    for (const auto& op : list) {
      EXPECT_EQ(op.parameters, 0.0) << op.name;
      EXPECT_EQ(op.backward_input.flops + op.backward_weight.flops, Flops(0)) << op.name;
      EXPECT_EQ(op.saved, Bytes(0)) << op.name;
    }
  }
}

}  // namespace
}  // namespace orrery::workload::tower_test
