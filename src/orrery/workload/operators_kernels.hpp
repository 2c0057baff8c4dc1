// Building blocks of operators: the sizes of a slice, and the kernels and traffic of GEMMs and of streaming kernels.
//
// Traffic is compulsory traffic: every matrix or activation tensor that a kernel reads or writes is counted once.
// Vectors of one row (norm weights, biases, log-sum-exp excepted) are not counted: they are 1 / tokens of a tensor.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/workload/operators.hpp"

namespace orrery::workload {

// Bytes of one value.
inline constexpr double kFloat = 4.0;     // fp32
inline constexpr double kExpertId = 8.0;  // index of an expert (int64)
inline constexpr double kCopyRow = 4.0;   // row that a copy of a token or sample goes to (int32)

// Sizes of the part of a model that one rank holds. Element sizes are bytes.
struct Sizes {
  double tokens = 0;           // n = b s / c
  double split_tokens = 0;     // tokens that norms, dropouts and residuals see: n / t with sequence parallelism
  std::int64_t sequences = 0;  // b
  std::int64_t seq = 0;        // s; 1 in a decode step
  std::int64_t own_seq = 0;    // s / c
  std::int64_t context = 0;    // positions in the cache, in a decode step
  std::int64_t hidden = 0;     // h, never split
  std::int64_t heads = 0;      // a / t
  std::int64_t kv_heads = 0;   // key-value heads of this rank; a head is replicated when there are fewer than ranks
  std::int64_t head_dim = 0;   // d
  std::int64_t vocab = 0;      // rows of the vocabulary, padded to 128 t and divided by t
  std::int64_t tp = 1, cp = 1, ep = 1, etp = 1;
  bool ulysses = false;         // c > 1 by all-to-all
  bool training = true;         // there is a backward pass, and activations are kept for it
  bool decoding = false;        // one new position per sequence
  double dropout = 0;           // probability; 0 outside training
  double element = 0;           // an activation: that of the precision, 2 when the precision is narrower
  double cache_element = 0;     // a kept key or value
  double matrix_element = 0;    // an input of a layer's GEMMs
  double weight_element = 0;    // a weight of those that is not trained, as stored
  double weight_scale = 0;      // its scale, where GEMMs read weights as they are stored
  double end_element = 0;       // a weight of embedding and head that is not trained, as stored
  double shared_output = 0;     // attention's output, where one copy is kept for two operators; 0: each keeps its own
  double gradient_traffic = 0;  // per weight, of a weight-gradient GEMM: writes it, or accumulates into a buffer
  hardware::Precision precision = hardware::Precision::bf16;  // of a layer's GEMMs with weights
  hardware::Precision wide =
      hardware::Precision::bf16;  // of scans and of the head: bf16 when the precision is narrower than two bytes
  hardware::Precision attention = hardware::Precision::bf16;  // of attention: `wide`, unless a format is given
  std::optional<hardware::Fp8Recipe> scales;                  // of a layer's GEMMs in fp8
  Quantized quantized = Quantized::all;                       // GEMMs in `precision`; the others are in `wide`
  bool wide_absorption = false;                               // absorbed weights are in `wide`, too
  double expert_imbalance = 1.0;                              // of ranks that share experts out; 1 for one rank
  std::int64_t adapter_rank = 0;                              // r; 0: no adapter
  bool adapts_all = false;                                    // adapters also for the GEMMs of the MLP and of experts

  [[nodiscard]] bool frozen() const { return adapter_rank > 0; }
  // Elements of this rank's tokens, and of its split tokens, `width` per token.
  [[nodiscard]] double whole(std::int64_t width) const { return tokens * static_cast<double>(width); }
  [[nodiscard]] double split(std::int64_t width) const { return split_tokens * static_cast<double>(width); }
};

// Bytes of the hidden vectors of this rank's tokens.
[[nodiscard]] inline double whole_tensor(const Sizes& z) { return z.whole(z.hidden) * z.element; }

// Attention heads of one rank. Without padding, a key-value head is replicated when there are fewer than ranks.
[[nodiscard]] Heads heads_of_rank(const Model& model, const Slice& slice);

[[nodiscard]] Sizes sizes_of(const Model& model, const hardware::Stack& stack, const Slice& slice);

// Shape of batch x [m, k] x [k, n] and the bytes of one element of its inputs and of its output.
struct GemmShape {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  double input = 2, output = 2;
};

[[nodiscard]] Kernel gemm(const GemmShape& shape, hardware::Precision precision);

[[nodiscard]] Kernel stream(double bytes, int launches = 1);

// A GEMM with weights, Y[rows, n] = X[rows, k] W, or several of one shape that share the rows evenly (the experts of a
// rank, heads).
struct Linear {
  struct Names {
    std::string_view base, adapter_in, adapter_out;
  };
  Names names;
  OperatorTag tag = OperatorTag::mlp_projection;
  double rows = 0;
  std::int64_t n = 0, k = 0;
  double input = 0;  // elements of X to keep when a gradient needs them; 0: kept with another operator
  OperatorTag input_from = OperatorTag::norm;  // tag of the operators that make X
  double input_element = 0;                    // bytes of a kept element of X; 0: as the GEMM reads it
  double kept = 0;                             // bytes kept in any case
  double bias = 0;                             // elements
  bool adapted = false;                        // gets an adapter when the slice has a rank for one
  bool wide = false;                           // in the wide precision
  bool output_projection = false;              // of attention or of another mixer
  bool expert = false;                         // weights of routed experts
  bool adapter = false;                        // weights of an adapter, which are trained
  double output = 0;                           // bytes of an element of Y; 0: as every activation
  std::int64_t groups = 1;                     // number of GEMMs
  double groups_read = 1;                      // GEMMs with any row: only their weights are read
  // Narrow operands are converted by separate kernels before the GEMM; otherwise by the kernel that makes the operand.
  bool casts_input = true, casts_gradient = true;
};

// Appends the GEMM. With an adapter, the GEMMs of its two factors around it: X A before (so that a boundary before it
// is followed by a GEMM that needs its input for a weight gradient), (X A) B after it, accumulated into Y.
void append_linear(std::vector<Operator>& list, const Sizes& z, const Linear& linear);

// An operator with one streaming kernel each for forward and backward.
[[nodiscard]] Operator streamed(OperatorTag tag, std::string_view name, const Kernel& forward, const Kernel& backward);

[[nodiscard]] Operator boundary(OperatorTag tag, std::string_view name, Boundary kind, double bytes);

// Saves only its input, which operators with tag `from` make.
void save_input(Operator& op, double bytes, OperatorTag from);

// Weights of an operator that is not a GEMM: trained, unless the slice's weights are frozen.
void hold(Operator& op, const Sizes& z, double weights);

// Part of a streaming operator: passes over a tensor, and kernel launches.
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

// Norm of `rows` vectors of `width`. Forward: x in, y out. Backward: dy, x in, dx out; a second kernel completes the
// sums of the weight gradients, if there are any. Keeps its input, which operators with the same tag make.
[[nodiscard]] Operator norm(OperatorTag tag, std::string_view name, const Model& model, const Sizes& z, double rows,
                            std::int64_t width);
// Norm of the residual stream: this rank's split tokens.
[[nodiscard]] Operator norm(std::string_view name, const Model& model, const Sizes& z);

// Removes what only training needs: backward kernels and saved activations.
void keep_forward_only(std::vector<Operator>& list);

}  // namespace orrery::workload
