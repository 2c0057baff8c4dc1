// A transformer language model as numbers: everything about the network that costs time, memory or traffic.
//
// Covers decoder-only dense transformers (GPT-2/3, NeoX, OPT, BLOOM, Llama, Mistral, Qwen2). Left out so far: mixtures
// of experts, latent attention, encoders, adapters; sliding windows (the window is kept, and attention is
// counted as if every query saw the whole sequence).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::workload {

enum class Normalisation : std::uint8_t { layernorm, rmsnorm };
enum class Activation : std::uint8_t { gelu, relu, silu };
enum class Position : std::uint8_t { learned, rotary, alibi };

struct Model {
  std::string name;
  std::string description;

  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // = heads without grouped-query attention
  std::int64_t head_dim = 0;  // hidden / heads unless stated
  std::int64_t ffn = 0;       // width of the MLP's inner layer
  std::int64_t vocab = 0;     // rows of the embedding as stored
  std::int64_t max_seq = 0;   // longest sequence; rows of a learned position table

  bool gated_mlp = false;        // two input projections, act(a) * b
  bool tied_embeddings = false;  // head shares the embedding's weights
  bool qkv_bias = false;
  bool attention_output_bias = false;
  bool mlp_bias = false;
  bool parallel_residual = false;  // attention and MLP read the same norm's input (NeoX: two norms all the same)
  bool embedding_norm = false;     // a norm after the embedding (BLOOM)
  bool final_norm = true;
  std::int64_t position_rows = 0;   // rows of a learned position table, when it is not max_seq (OPT adds 2)
  std::int64_t sliding_window = 0;  // positions that a query looks back; 0 = all of them
  double dropout = 0.0;             // hidden and attention dropout probability during pre-training

  Normalisation norm = Normalisation::layernorm;
  Activation activation = Activation::gelu;
  Position position = Position::learned;
  hardware::Sources sources;

  // Width of queries, and of keys (= of values), over all heads.
  [[nodiscard]] std::int64_t query_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return kv_heads * head_dim; }
};

// The same model with what may be left open filled in: kv_heads, head_dim, and the rows of a learned position table.
[[nodiscard]] Model completed(Model model);

struct Inconsistency {
  std::string_view field;  // the member to blame, e.g. "hidden"
  std::string message;
};

// What keeps the numbers from describing a network: hidden that does not divide by heads, sizes below 1 or beyond
// reason. Values that `completed` fills in may be 0.
[[nodiscard]] std::optional<Inconsistency> inconsistency(const Model& model);

struct ParameterCount {
  std::int64_t embedding = 0;  // token and position tables, embedding norm
  std::int64_t layer = 0;      // one transformer layer
  std::int64_t head = 0;       // final norm and, when untied, the output projection
  std::int64_t total = 0;      // embedding + layers * layer + head
};

// Trainable weights of a completed, consistent model.
//
//   layer = h (w_q + 2 w_kv) + w_q h  [+ w_q + 2 w_kv]  [+ h]      attention: projections, their biases
//         + (1 + g) h f               [+ g f + h]                  MLP: g = 2 when gated, else 1; f its inner width
//         + 2 n                                                    n = 2 h for layernorm, h for rmsnorm
//
// with w_q = heads x head_dim, w_kv = kv_heads x head_dim. Both norms are counted with a parallel residual, too.
[[nodiscard]] ParameterCount parameter_count(const Model& model);

}  // namespace orrery::workload
