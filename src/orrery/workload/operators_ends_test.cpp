// Both ends of models other than plain decoders: images, encoders, MTP modules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::operators_ends_test {
namespace {

using hardware::Stack;

Stack plain_gradients() {
  Stack stack;
  stack.fusion.gradient_accumulation = false;
  return stack;
}

// Images of 4 x 4 with 3 channels in patches of 2 x 2: 4 patches of 12 numbers and a class token; 10 classes.
Model tiny_vit() {
  Model model = gpt(2, 8, 2, 0);
  model.vision = {4, 2, 3, 10};
  model.causal = false;
  model.tied_embeddings = false;
  model.dropout = 0.0;
  model.max_seq = model.position_rows = 5;
  return model;
}

// b = 2: 8 patches, 10 tokens.
TEST(Ends, of_a_vision_model_by_hand) {
  const Slice part = slice(2, 5);
  const auto embedding = embedding_operators(tiny_vit(), plain_gradients(), part);
  EXPECT_THAT(names(embedding), testing::ElementsAre("embedding.patches", "embedding.position"));
  const Operator& patches = find(embedding, "embedding.patches");
  expect_kernel(patches.forward, {2 * 8 * 8 * 12, (96 + 96 + 64) * 2}, "patches");
  expect_kernel(patches.backward_weight, {2 * 8 * 8 * 12, (64 + 96 + 96) * 2}, "patches, dW");
  EXPECT_EQ(patches.backward_input, Kernel{});  // images get no gradient
  EXPECT_EQ(patches.saved, Bytes(96 * 2));
  EXPECT_EQ(patches.parameters, 12 * 8 + 8 + 8);
  const auto head = head_operators(tiny_vit(), plain_gradients(), part);
  EXPECT_THAT(names(head), testing::ElementsAre("head.norm", "head.classifier", "loss"));
  expect_linear(head, "head.classifier", {2 * 2 * 10 * 8, (16 + 80 + 20) * 2});
  expect_operator(head, "loss", {0, 2 * 40}, {0, 2 * 40});
  EXPECT_EQ(find(head, "head.classifier").parameters, 8 * 10 + 10);
}

TEST(Ends, of_a_vision_model_without_classes_are_a_norm) {
  Model model = tiny_vit();
  model.vision.classes = 0;
  EXPECT_THAT(names(head_operators(model, Stack{}, slice(2, 5))), testing::ElementsAre("head.norm"));
}

// 3 x 2 x layers (4 x 8 x 8 + 2 x 8 x 32 weights, 5 tokens; two products of 25 pairs, 8 deep) + head; 2 passes of the
// patches.
TEST(Ends, model_flops_of_a_vision_model_by_hand) {
  const double layer = 5 * (256 + 512) + 2 * 25 * 8;
  EXPECT_DOUBLE_EQ(model_flops(tiny_vit(), Stack{}, 1, 5).value(), 6 * (2 * layer + 80) + 4 * (4 * 96));
}

// Two stacks of 2 heads x 4 x 4; both have 32 buckets.
TEST(Ends, of_an_encoder_and_decoder_have_relative_biases_and_two_norms) {
  Model model = gpt(1, 8, 2, 128);
  model.encoder_layers = 1;
  model.position = Position::relative;
  model.dropout = 0.0;
  const auto embedding = embedding_operators(model, Stack{}, slice(2, 4));
  expect_operator(embedding, "embedding.relative", {0, 2 * 32 * 2}, {0, 2 * 32 * 2});
  EXPECT_EQ(find(embedding, "embedding.relative").parameters, 2 * 32 * 2);
  EXPECT_THAT(
      names(head_operators(model, Stack{}, slice(2, 4))),
      testing::ElementsAre("head.encoder_norm", "head.norm", "head.enter", "head.logits", "loss", "loss.reduce"));
}

TEST(Ends, mtp_module_is_a_projection_a_layer_and_the_head) {
  Model model = llama(8, 2, 1, 16);
  model.vocab = 128;
  model.mtp_layers = 1;
  const auto list = mtp_operators(model, plain_gradients(), slice(2, 4));
  auto all = names(list);
  const auto layer = names(layer_operators(model, Stack{}, slice(2, 4)));
  all.erase(std::search(all.begin(), all.end(), layer.begin(), layer.end()), all.end() - 5);
  EXPECT_THAT(all, testing::ElementsAre("mtp.lookup", "mtp.lookup_leave", "mtp.token_norm", "mtp.hidden_norm",
                                        "mtp.enter", "mtp.projection", "mtp.leave", "head.norm", "head.enter",
                                        "head.logits", "loss", "loss.reduce"));
  expect_linear(list, "mtp.projection", {2 * 8 * 8 * 16, (128 + 128 + 64) * 2});
  EXPECT_EQ(find(list, "mtp.enter").boundary_bytes, Bytes(256));
  EXPECT_EQ(parameters(list), static_cast<double>(mtp_parameters(model)));
}

}  // namespace
}  // namespace orrery::workload::test::operators_ends_test
