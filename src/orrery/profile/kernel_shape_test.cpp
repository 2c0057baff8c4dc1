#include "orrery/profile/kernel_shape.hpp"

#include <gtest/gtest.h>

namespace orrery::profile::kernel_shape_test {

using Kind = WorkShape::Kind;

TEST(WorkShape, of_a_matrix_product) {
  const auto work =
      work_shape_of("aten::addmm", "[[64],[4096,100],[100,64],[]]", R"(["c10::Half","c10::Half","c10::Half"])");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->kind, Kind::matrix_product);
  EXPECT_EQ(work->product, (MatrixProduct{4096, 64, 100, 1}));
  EXPECT_EQ(work->format, "fp16");
}

// Queries and keys of 2 sequences, 8 heads, 128 and 256 positions, head dimension 64.
TEST(WorkShape, of_attention) {
  const auto work = work_shape_of("aten::_scaled_dot_product_flash_attention",
                                  "[[2,8,128,64],[2,8,256,64],[2,8,256,64]]", R"(["c10::BFloat16"])");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->kind, Kind::attention);
  EXPECT_EQ(work->product, (MatrixProduct{128, 256, 64, 16}));
}

// 32 filters of 3 x 5 x 5 at 8 x 20 x 20 positions.
TEST(WorkShape, of_a_convolution) {
  const auto work = work_shape_of("aten::cudnn_convolution", "[[8,3,20,20],[32,3,5,5]]", R"(["float","float"])");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->kind, Kind::convolution);
  EXPECT_EQ(work->product, (MatrixProduct{3200, 32, 75, 1}));
}

// Two inputs of 1,000 and 10 elements, and an output like the larger one.
TEST(WorkShape, of_another_operator_is_a_pass_over_its_tensors) {
  const auto work = work_shape_of("aten::add", "[[10,100],[10],[]]", R"(["float","float","Scalar"])");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->kind, Kind::pass);
  EXPECT_EQ(work->elements, 2010);
  EXPECT_EQ(work->element_bytes, 4);
}

TEST(WorkShape, is_not_known_without_shapes_or_types) {
  EXPECT_FALSE(work_shape_of("aten::add", "", ""));
  EXPECT_FALSE(work_shape_of("aten::add", "[[],[]]", R"(["Scalar","Scalar"])"));
  EXPECT_FALSE(work_shape_of("aten::add", "[[3]]", R"(["Quaternion"])"));
}

TEST(TensorBytes, are_those_of_all_inputs) {
  EXPECT_EQ(tensor_bytes("[[6144]]", R"(["float"])"), 24576U);
  EXPECT_EQ(tensor_bytes("[[[3,2]],[4]]", R"(["c10::Half"])"), 20U);
}

}  // namespace orrery::profile::kernel_shape_test
