// A model's layers as operators: for the slice of a layer that one rank holds, the kernels of the forward and backward
// pass, the weights, and what is kept in between.
//
// Notation: s sequence, b micro-batch, h hidden, a heads, t tensor-parallel degree; tokens = b s.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/kernel.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::workload {

using hardware::Kernel;
using hardware::KernelKind;

// Where tensor parallelism cuts the layer. `enter`: what follows works on a slice, its input is needed whole.
// `leave`: what came before made partial sums of a whole tensor. Lowering turns these into collectives.
// `reduce`: a small all-reduce of the forward pass only (the vocabulary-parallel loss: maximum, target logit and sum of
// exponentials of each token, one fp32 value each; boundary_bytes is all three together).
enum class Boundary : std::uint8_t { none, enter, leave, reduce };

struct Operator {
  std::string_view name;  // "attention.qkv"; a static string
  Boundary boundary = Boundary::none;
  Bytes boundary_bytes;  // whole tensor that crosses: tokens * h * element for enter and leave

  Kernel forward;
  Kernel backward_input;   // gradient of the input (or the only backward kernel)
  Kernel backward_weight;  // gradient of the weight, when there is one

  double parameters = 0;        // weights in this slice, elements
  Bytes saved;                  // activations kept from forward to backward by this rank
  bool attention_core = false;  // scores, softmax, dropout, context: what selective recompute drops and redoes
};

// The slice of the model one rank works on.
struct Slice {
  std::int64_t micro_batch = 1;
  std::int64_t seq = 0;
  std::int64_t tp = 1;             // tensor-parallel degree; must divide heads, ffn
  bool sequence_parallel = false;  // norms, dropouts and residuals split along the sequence as well
  hardware::Precision precision = hardware::Precision::bf16;
};

// Operators in execution order of the forward pass. Backward runs them in reverse.
// FLOPs summed over tp slices equal those of the whole (when tp divides kv_heads, and 128 tp divides vocab); see
// operators_test.cpp.
[[nodiscard]] std::vector<Operator> embedding_operators(const Model&, const hardware::Stack&, const Slice&);
[[nodiscard]] std::vector<Operator> layer_operators(const Model&, const hardware::Stack&, const Slice&);
[[nodiscard]] std::vector<Operator> head_operators(const Model&, const hardware::Stack&, const Slice&);

// Rows of the vocabulary that one of tp slices holds, padding included.
[[nodiscard]] std::int64_t vocabulary_rows(const Model& model, std::int64_t tp);

// Matrix FLOPs of one training step on `sequences` sequences of `seq` tokens: forward and backward of every matrix
// product, without recompute; attention scores once, halved when the kernel skips the causal half.
[[nodiscard]] Flops model_flops(const Model&, const hardware::Stack&, std::int64_t sequences, std::int64_t seq);

}  // namespace orrery::workload
