// What operators are made of: the sizes of a slice, and the kernels and traffic of matrix products and streams.
//
// Traffic is compulsory traffic: every matrix or activation tensor that a kernel reads or writes, once. Vectors of one
// row (norm weights, biases, log-sum-exp excepted) are left out: they are 1 / tokens of a tensor.
#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/workload/operators.hpp"

namespace orrery::workload {

// Sizes of the part of a model that one rank holds. Element sizes are bytes.
struct Sizes {
  std::int64_t rows = 0;        // tokens = b s
  double tokens = 0;            // the same
  double split_tokens = 0;      // tokens that norms, dropouts and residuals see: tokens / t with sequence parallelism
  std::int64_t sequences = 0;   // b
  std::int64_t seq = 0;         // s
  std::int64_t hidden = 0;      // h, never split
  std::int64_t heads = 0;       // a / t
  std::int64_t kv_heads = 0;    // key-value heads of this rank; a head is replicated when there are fewer than ranks
  std::int64_t head_dim = 0;    // d
  std::int64_t ffn = 0;         // f / t
  std::int64_t vocab = 0;       // rows of the vocabulary, padded to 128 t and divided by t
  double element = 0;           // an activation: that of the precision, 2 when the precision is narrower
  double matrix_element = 0;    // an input of a layer's matrix products
  double gradient_traffic = 0;  // per weight, of a product that makes a weight gradient: written, or added to a buffer
  hardware::Precision precision = hardware::Precision::bf16;  // of a layer's weight products
  hardware::Precision wide =
      hardware::Precision::bf16;  // of attention and of the head: bf16 when the precision is narrower than two bytes

  [[nodiscard]] double query_width() const { return static_cast<double>(heads * head_dim); }
  [[nodiscard]] double kv_width() const { return static_cast<double>(kv_heads * head_dim); }
};

[[nodiscard]] Sizes sizes_of(const Model& model, const hardware::Stack& stack, const Slice& slice);

// Shape of batch x [m, k] x [k, n] and the bytes of one element of its inputs and of its output.
struct Product {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double input = 2, output = 2;
};

[[nodiscard]] Kernel gemm(const Product& product, hardware::Precision precision);

[[nodiscard]] Kernel stream(double bytes, int launches = 1);

// Y[rows, n] = X[rows, k] W: forward, gradient of X, gradient of W. Keeps nothing; callers say what is saved.
[[nodiscard]] Operator linear(std::string_view name, const Sizes& z, std::int64_t n, std::int64_t k);
// The same in the wide precision.
[[nodiscard]] Operator wide_linear(std::string_view name, const Sizes& z, std::int64_t n, std::int64_t k);

// An operator whose forward and backward are one stream kernel each.
[[nodiscard]] Operator streamed(std::string_view name, const Kernel& forward, const Kernel& backward);

[[nodiscard]] Operator boundary(std::string_view name, Boundary kind, Bytes bytes);

// Part of a stream operator: passes over a tensor and the kernel launches they take.
struct Traffic {
  double bytes = 0;
  int launches = 0;

  Traffic& operator+=(Traffic other) {
    bytes += other.bytes;
    launches += other.launches;
    return *this;
  }
  [[nodiscard]] Kernel kernel() const { return launches == 0 ? Kernel{} : stream(bytes, launches); }
};

// Norm over split tokens. Forward: x in, y out. Backward: dy, x in, dx out; a second kernel ends the sums of the weight
// gradients. Keeps its input.
[[nodiscard]] Operator norm(std::string_view name, const Model& model, const Sizes& sizes);

// The operators of one half of a layer, appended to a list.
void append_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z);
void append_mlp(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z);

}  // namespace orrery::workload
