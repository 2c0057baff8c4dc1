// The parts of a layer; each function appends its operators to a list in forward order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/workload/operators_kernels.hpp"

namespace orrery::workload {

// The attention core's sizes on one rank before context parallelism redistributes them.
struct Core {
  struct Names {
    std::string_view scores, softmax, dropout, context, flash, decode, exchange, to_heads, to_sequence;
  };
  const Names* names = nullptr;
  std::int64_t heads = 0;      // of queries
  std::int64_t kv_heads = 0;   // of keys and values
  std::int64_t key_dim = 0;    // of a query or key head
  std::int64_t value_dim = 0;  // of a value head
  bool causal = true;
  bool relative = false;        // a bias per head, query and key is added to the scores
  bool values_in_keys = false;  // values are part of the keys (latent cache)
  bool fixed_keys = false;      // in a decode step the keys do not grow: those of the encoder's output
  std::int64_t window = 0;      // positions that a query looks back; 0: all of them
};

// Bytes of the core's inputs and output on this rank, in the core's layout.
struct CoreTensors {
  double query = 0, key = 0, value = 0;  // this rank's own
  double output = 0;
};
[[nodiscard]] CoreTensors core_tensors(const Sizes& z, const Core& core);

// (query, key) pairs of one head and sequence of s positions that a causal or two-sided window leaves: s^2 / 2 or s^2
// without one; s w - w^2 / 2 or 2 s w - w^2 for w < s. Exact to 1 / s: a query's own position counts one half.
[[nodiscard]] double visible_pairs(double s, double window, bool causal);

// The core with its context-parallel collectives; in a decode step, one kernel over the cache.
void append_core(std::vector<Operator>& list, const hardware::Stack& stack, const Sizes& z, const Core& core);

// Projections, positions, core. Starts with boundary `enter` and ends before `leave`.
void append_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                      const LayerKind& kind);
void append_latent_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                             const Sizes& z, const LayerKind& kind);
void append_cross_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                            const Sizes& z);

// A mixer other than attention; starts with boundary `enter` and ends before `leave`.
void append_mixer(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z);

// Two GEMMs with an activation between them: of a dense MLP, shared experts, or a rank's routed experts.
struct Mlp {
  Linear::Names in, out;
  std::string_view activation;
  OperatorTag tag = OperatorTag::mlp_projection;  // of the GEMMs
  OperatorTag activation_tag = OperatorTag::mlp_activation;
  double rows = 0;
  std::int64_t ffn = 0;                        // inner width on this rank
  double input = 0;                            // elements of its input that it keeps
  OperatorTag input_from = OperatorTag::norm;  // tag of the operators that make the input
  double bias_out = 0;  // elements of the second GEMM's bias, if it is not part of the residual operator
  bool expert = false;
  std::int64_t groups = 1;  // as in Linear
  double groups_read = 1;
  bool fused = false;  // the activation and the casts after it, in both directions, are part of the GEMMs
};
void append_mlp(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                const Mlp& mlp);
// The MLP of a dense layer; `input`: elements to keep.
[[nodiscard]] Mlp dense_mlp(const Model& model, const Sizes& z, double input);

// Parts of a recommender (operators_tables.cpp, operators_dense.cpp): tables and bottom MLP; a layer after them; the
// loss.
[[nodiscard]] std::vector<Operator> table_operators(const Model& model, const hardware::Stack& stack,
                                                    const Slice& slice);
[[nodiscard]] std::vector<Operator> dense_operators(const Model& model, const hardware::Stack& stack,
                                                    const Slice& slice, const LayerKind& kind);
[[nodiscard]] std::vector<Operator> answer_operators(const Model& model, const hardware::Stack& stack,
                                                     const Slice& slice);

// A layer of an MLP on `samples` samples: a GEMM with a bias, and a relu unless it is the last layer.
struct Connected {
  std::string_view name, activation;
  double samples = 0;
  std::int64_t in = 0, out = 0;
  bool relu = true;
  bool expert = false;
  std::int64_t groups = 1;  // as in Linear
};
void append_connected(std::vector<Operator>& list, const hardware::Stack& stack, const Sizes& z,
                      const Connected& layer);

// Of `places` that have `things` each, the expected number of things in use in the place that uses most, where each is
// in use with `probability`, independently of the others.
[[nodiscard]] double expected_most(std::int64_t things, double probability, std::int64_t places);
// Router, shared experts, dispatch, routed experts, combine; ends before the residual.
void append_experts(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z);

}  // namespace orrery::workload
