// The parts a layer is put together from, each appended to a list of operators in forward order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/workload/operators_kernels.hpp"

namespace orrery::workload {

// Scores, softmax and the weighted sum of values, as one rank computes them before context parallelism rearranges them.
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
  bool values_in_keys = false;  // values are a part of the keys (the latent cache)
  bool fixed_keys = false;      // in a decode step the keys stay the same: those of the encoder's output
  std::int64_t window = 0;      // positions that a query looks back; 0: all of them
};

// Bytes of what goes into the core and comes out, on this rank, in the layout that the core works in.
struct CoreTensors {
  double query = 0, key = 0, value = 0;  // its own
  double output = 0;
};
[[nodiscard]] CoreTensors core_tensors(const Sizes& z, const Core& core);

// (query, key) pairs of one head and sequence of s positions that a causal or two-sided window leaves: s^2 / 2 or s^2
// without one; s w - w^2 / 2 or 2 s w - w^2 for w < s. Exact to 1 / s: a query's own position counts one half.
[[nodiscard]] double visible_pairs(double s, double window, bool causal);

// The core with what context parallelism puts around it; in a decode step, one kernel over the cache.
void append_core(std::vector<Operator>& list, const hardware::Stack& stack, const Sizes& z, const Core& core);

// Products in and out, positions, core. Starts at its boundary `enter` and ends before `leave`.
void append_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                      const LayerKind& kind);
void append_latent_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                             const Sizes& z, const LayerKind& kind);
void append_cross_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                            const Sizes& z);

// Two products around an activation: of the dense half, of shared experts, of a rank's routed experts.
struct Mlp {
  Linear::Names in, out;
  std::string_view activation;
  OperatorTag tag = OperatorTag::mlp_projection;  // of the products
  OperatorTag activation_tag = OperatorTag::mlp_activation;
  double rows = 0;
  std::int64_t ffn = 0;                        // inner width on this rank
  double input = 0;                            // elements of its input to keep
  OperatorTag input_from = OperatorTag::norm;  // what makes the input
  double bias_out = 0;  // elements of the second product's bias, where the residual does not hold them
  bool expert = false;
  std::int64_t groups = 1;  // as in Linear
  double groups_read = 1;
  bool fused = false;  // the activation and the casts behind it, either way, are part of the products
};
void append_mlp(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                const Mlp& mlp);
// Of a dense layer; `input`: elements to keep.
[[nodiscard]] Mlp dense_mlp(const Model& model, const Sizes& z, double input);

// A recommender's parts (operators_tables.cpp, operators_dense.cpp): tables and bottom MLP; a layer behind them; what
// its answers are compared to.
[[nodiscard]] std::vector<Operator> table_operators(const Model& model, const hardware::Stack& stack,
                                                    const Slice& slice);
[[nodiscard]] std::vector<Operator> dense_operators(const Model& model, const hardware::Stack& stack,
                                                    const Slice& slice, const LayerKind& kind);
[[nodiscard]] std::vector<Operator> answer_operators(const Model& model, const hardware::Stack& stack,
                                                     const Slice& slice);

// An MLP's layer on `samples` samples: a product with a bias, and a relu behind it unless it is the last.
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

// Router, shared experts, the way to the routed ones, these, and the way back; ends before the residual.
void append_experts(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z);

}  // namespace orrery::workload
