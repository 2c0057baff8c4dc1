// Sizes of the work of an operator from the shapes and types of its inputs, as a profiler writes them with
// record_shapes.
//
// Convolutions count as the matrix product of their filters with every position of the input, without regard to
// strides; operators of no known kind as a pass over their inputs and one output as large as the largest of them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::profile {

struct MatrixProduct {
  std::int64_t m = 0, n = 0, k = 0, groups = 1;

  friend auto operator<=>(const MatrixProduct&, const MatrixProduct&) = default;
};

struct WorkShape {
  enum class Kind : std::uint8_t { matrix_product, convolution, attention, pass };
  Kind kind = Kind::pass;
  MatrixProduct product;  // of attention: m queries, n keys, k head dimension, groups = sequences x heads
  double elements = 0;    // of a pass: read and written
  std::string format;     // number format of the first tensor: "bf16", "fp16", "fp32", "fp64", "int64", …
  double element_bytes = 0;
};

// The product of mm, addmm, bmm and baddbmm: their last two matrices. Nothing for other operators and other shapes.
[[nodiscard]] std::optional<MatrixProduct> matrix_product_of(std::string_view operation, std::string_view dims);

// Number format of the first input that has a floating-point one; empty if none has.
[[nodiscard]] std::string number_format_of(std::string_view types);

// `dims`: "[[64, 512], [512, 128], []]", `types`: "[\"c10::Half\", …]". Nothing if no input has a size.
[[nodiscard]] std::optional<WorkShape> work_shape_of(std::string_view operation, std::string_view dims,
                                                     std::string_view types);

// Bytes of all inputs together, at the size of the first one's elements; 0 if no input has a size.
[[nodiscard]] std::uint64_t tensor_bytes(std::string_view dims, std::string_view types);

}  // namespace orrery::profile
