// The families of models that Hugging Face configurations describe: their keys, defaults and shapes. Internal to
// huggingface.cpp. A new family is one row of a table: in huggingface_dense.cpp, _experts.cpp or _encoders.cpp
// (huggingface_families.cpp has the first seven and combines the tables). Vision towers: huggingface_towers.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::workload::huggingface {

using Count = std::int64_t;

// Keys of all families, in one struct; a family's record fills its part.
struct Fields {
  Count layers = 0;
  Count hidden = 0;
  Count heads = 0;
  Count vocab = 0;
  Count max_seq = 0;
  std::optional<Count> ffn;
  std::optional<Count> kv_heads;
  std::optional<Count> head_dim;
  std::optional<Count> embedding_width;
  std::string activation;
  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
  bool tied = false;
  bool attention_bias = false;
  bool mlp_bias = false;
  bool biases = true;
  bool qk_norm = false;
  bool parallel_residual = false;
  bool norm_first = true;
  bool norm_weights = true;
  bool no_final_norm = false;
  bool cross_attention = false;
  bool bidirectional = false;

  // Windows of attention.
  std::optional<Count> sliding_window;
  bool use_sliding_window = false;
  Count full_layers = 0;    // leading layers without the window
  Count window_period = 0;  // every n-th layer without it
  std::optional<std::vector<std::string>> layer_types;

  // Falcon and GPT-BigCode.
  bool alibi = false;
  bool multi_query = true;
  bool grouped = false;        // Falcon's "new decoder architecture"
  std::optional<Count> norms;  // norms of a layer with parallel attention and MLP

  // Mixtures of experts.
  std::optional<Count> experts;
  std::optional<Count> experts_active;
  Count expert_ffn = 0;
  std::optional<Count> shared_experts;
  Count shared_ffn = 0;
  Count first_dense = 0;
  std::optional<Count> expert_groups, expert_active_groups;
  Count expert_every = 1;
  Count dense_ffn = 0;  // of layers without experts, where it differs
  // Llama 4.
  Count attention_chunk = 0;
  std::optional<std::vector<Count>> expert_layers;  // layers with experts
  std::optional<std::vector<Count>> rope_layers;    // 1: the layer has rotary positions
  std::optional<std::vector<Count>> dense_layers;
  Count mtp_layers = 0;

  // Latent attention.
  std::optional<Count> query_rank;
  Count kv_rank = 0;
  Count nope_dim = 0;
  Count rope_dim = 0;
  Count value_dim = 0;

  // Encoder-decoders and vision.
  std::optional<Count> decoder_layers;
  Count buckets = kRelativeBuckets;
  bool encoder_decoder = true;
  Count image = 0;
  Count patch = 0;
  Count channels = 3;
  std::optional<std::map<std::string, std::string>> labels;
  std::optional<Count> label_count;
  std::optional<std::vector<std::string>> architectures;
};

// A family's keys for the sizes. Empty: the family does not have the key.
struct SizeKeys {
  std::string_view layers, hidden, heads, vocab, max_seq;
  std::string_view ffn;  // absent or null = 4 hidden where `ffn_has_default`
  std::string_view kv_heads = {};
  std::string_view head_dim = {};
  bool ffn_has_default = false;
};

struct Alias {
  std::string_view other;
  std::string_view key;
};

// A size that the published files of a family omit, and the library's default.
struct Fallback {
  std::string_view key;
  Count value;
};

struct Family {
  std::string_view model_type;
  SizeKeys keys;
  std::span<const Alias> aliases;             // other keys that the library accepts
  config::Record<Fields> (*record)();         // keys besides the sizes
  Fields (*defaults)();                       // if they differ from Fields{}
  std::string (*unsupported)(const Fields&);  // why this configuration cannot be described, or ""
  void (*shape)(const Fields&, Model&);       // sets what the family defines besides the sizes
  std::string_view activation_key = "hidden_act";
  std::span<const Fallback> fallbacks = {};
  std::string_view nested = {};                           // the part of the file to read, for models with several parts
  std::string (*note)(const Fields&) = nullptr;           // a note for the description, or ""
  void (*finish)(const config::Node&, Model&) = nullptr;  // keys with several names or types; after `shape`
  std::span<const std::string_view> finish_keys = {};     // keys that it reads, or that have no effect in this family
  // The vision tower, from the mapping "vision_config", the whole file, and the width of the language model.
  Result<Tower> (*tower)(const config::Node& vision, const config::Node& whole, Count hidden) = nullptr;
  Quantized quantized_4_bit = Quantized::all;  // by checkpoints in 4 bits
};

[[nodiscard]] Result<Tower> qwen2_vl_tower(const config::Node& vision, const config::Node& whole, Count hidden);
[[nodiscard]] Result<Tower> qwen2_5_vl_tower(const config::Node& vision, const config::Node& whole, Count hidden);
[[nodiscard]] Result<Tower> llama4_tower(const config::Node& vision, const config::Node& whole, Count hidden);
[[nodiscard]] Result<Tower> gemma3_tower(const config::Node& vision, const config::Node& whole, Count hidden);

[[nodiscard]] std::span<const Family> families();

[[nodiscard]] std::span<const Family> dense_families();
[[nodiscard]] std::span<const Family> expert_families();
[[nodiscard]] std::span<const Family> encoder_families();
[[nodiscard]] std::span<const Family> hybrid_families();

// A key of a configuration that its family does not read, and the key of the family that is spelled nearest.
struct UnreadKey {
  std::string key;
  std::optional<std::string> near;
};
[[nodiscard]] std::vector<UnreadKey> unread_keys(const config::Node& config, const Family& family);
[[nodiscard]] std::string text_of(const std::vector<UnreadKey>& keys);

// For a configuration of an unknown type, the family whose sizes it has and that leaves the fewest keys unread; empty:
// none has its sizes.
[[nodiscard]] std::string closest_family(const config::Node& config);

// Types that are planned but not supported yet.
[[nodiscard]] std::span<const std::string_view> planned_model_types();

inline constexpr config::Bounds<double> kProbability{.min = 0.0, .max = 1.0};
// Above any real size, and low enough that sums and products of two stay below 2^63; `inconsistency` has the tighter
// limits.
inline constexpr Count kMost = 1'000'000'000;
inline constexpr config::Bounds<Count> kFrom0{.min = 0, .max = kMost};
inline constexpr config::Bounds<Count> kFrom1{.min = 1, .max = kMost};
inline constexpr config::Bounds<std::optional<Count>> kSize{.min = 1, .max = kMost};
inline constexpr config::Bounds<std::optional<Count>> kSizeOrNone{.min = 0, .max = kMost};
inline constexpr SizeKeys kLlamaKeys{
    "num_hidden_layers",       "hidden_size",       "num_attention_heads", "vocab_size",
    "max_position_embeddings", "intermediate_size", "num_key_value_heads", "head_dim"};

[[nodiscard]] inline Family with_keys(Family family, std::span<const std::string_view> keys) {
  family.finish_keys = keys;
  return family;
}

// Accepts every configuration.
[[nodiscard]] std::string anything(const Fields&);

// Llama and its many relatives: rmsnorm, rotary positions, a gated MLP of silu, no biases.
[[nodiscard]] config::Record<Fields> llama_like(const char* model_type, const char* doc);
[[nodiscard]] Fields llama_defaults();
void llama_like_shape(Model& model);

void all_biases(Model& model);

// What has no effect on cost, from the part of the file that describes the model.
void read_details(const config::Node& node, Model& model);

// Number formats of the checkpoint, from "quantization_config".
[[nodiscard]] Checkpoint checkpoint_of(const config::Node& config);

// Sliding windows: which layers have one and its length, and every how many layers one has none. Returns an error for a
// rule that cannot be described.
struct Windows {
  Count window = 0;
  Count global_every = 0;
  std::string unsupported;
};
[[nodiscard]] Windows windows(const Fields& fields);
// Why its windows cannot be described; empty if they can.
[[nodiscard]] std::string windows_unsupported(const Fields& fields);
void shape_windows(const Fields& fields, Model& model);

}  // namespace orrery::workload::huggingface
