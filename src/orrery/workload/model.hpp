// A model as numbers: everything about the network that costs time, memory or traffic.
//
// Covers decoder-only language models, dense or with mixtures of experts (GPT, Llama, Mixtral, Qwen, DeepSeek, Gemma,
// ...), with a vision tower (Qwen2.5-VL, Llama 4, Gemma 3), encoder-decoders (T5), vision encoders (ViT), state-space
// and linear-attention models and hybrids (Mamba, Jamba, Nemotron-H, Qwen3-Next) and recommenders (DLRM). Left out so
// far: convolutions beyond the patch embedding and those of state-space layers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/storage_format.hpp"
#include "orrery/workload/layer_functions.hpp"
#include "orrery/workload/mixer.hpp"
#include "orrery/workload/recommender.hpp"
#include "orrery/workload/rope.hpp"
#include "orrery/workload/tower.hpp"

namespace orrery::workload {

// How a router turns logits into weights of experts.
enum class RouterScore : std::uint8_t { softmax, sigmoid };
enum class Position : std::uint8_t {
  learned,  // a table of max_seq rows
  rotary,
  alibi,
  none,
  relative,  // T5: a bias per head and bucket of distance, added to the scores; one table per stack of layers
};

// Buckets of distance of a relative position table: every published T5.
inline constexpr std::int64_t kRelativeBuckets = 32;

// Mixture of experts: which layers have one instead of a dense MLP, and its sizes.
struct Experts {
  std::int64_t count = 0;          // routed experts of a layer; 0: every MLP is dense
  std::int64_t active = 0;         // experts that a token is sent to (top-k)
  std::int64_t ffn = 0;            // inner width of one routed expert
  std::int64_t shared_ffn = 0;     // inner width of the experts that every token passes, together; 0: none
  bool shared_gate = false;        // their output is scaled by a gate of one number a token (Qwen2-MoE)
  std::int64_t first_dense = 0;    // leading layers with a dense MLP
  std::int64_t every = 1;          // of the others, every n-th has experts: layer i if (i + 1 - first_dense) % n == 0
  std::int64_t groups = 0;         // experts form this many groups of equal size
  std::int64_t active_groups = 0;  // a token's experts come from this many groups (node-limited routing); 0: from all
  double capacity_factor = 0.0;    // an expert takes capacity_factor times its even share of tokens; 0: dropless
  // Of the router, without effect on cost.
  RouterScore score = RouterScore::softmax;
  bool score_norm = true;     // the weights of a token's experts are scaled to a sum of 1
  double score_scale = 1.0;   // ... and multiplied by this (DeepSeek-V3: 2.5)
  bool balance_bias = false;  // a bias per expert that only the choice uses, set by a rule (DeepSeek-V3)

  friend bool operator==(const Experts&, const Experts&) = default;
};

// Multi-head latent attention (DeepSeek-V2): queries, keys and values through narrow projections, part of each head
// rotated. All zero: ordinary attention.
struct LatentAttention {
  std::int64_t query_rank = 0;  // rank of the query projection; 0: full rank
  std::int64_t kv_rank = 0;     // rank of the key-value projection, the width of the KV cache; 0: no MLA
  std::int64_t nope_dim = 0;    // part of a query or key head without rotary position
  std::int64_t rope_dim = 0;    // part with it; of keys, shared by all heads
  std::int64_t value_dim = 0;   // a value head

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

// A vision model's input and output: square patches, one class token, a classifier on top.
struct Vision {
  std::int64_t image = 0;  // side of the image, pixels; 0: not a vision model
  std::int64_t patch = 0;  // side of a patch
  std::int64_t channels = 3;
  std::int64_t classes = 0;  // rows of the classifier; 0: none

  [[nodiscard]] std::int64_t tokens() const { return (image / patch) * (image / patch) + 1; }
  friend bool operator==(const Vision&, const Vision&) = default;
};

// The role of a layer in a recommender; none: a transformer layer.
enum class DensePart : std::uint8_t {
  none,
  join,  // reads the vectors of a sample and writes the input of the next layer
  dot,
  cross,
  transformer,
  top,
};

// What distinguishes one layer of a model from another.
struct LayerKind {
  bool experts = false;     // a mixture of experts instead of the dense MLP
  bool encoder = false;     // of an encoder: every position attends to every other
  bool cross = false;       // a third half layer attends to the encoder's output
  std::int64_t window = 0;  // positions that a query looks back; 0 = all of them
  // Of a recommender.
  DensePart part = DensePart::none;
  std::int64_t in = 0, out = 0;  // numbers per sample that it reads, and writes
  bool opens = false;            // the first layer of a top MLP with experts: sends samples to their experts
  bool closes = false;           // the last of the top MLP

  MixerKind mixer = MixerKind::attention;
  bool mlp = true;  // the layer has an MLP, or experts

  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

// Layers whose weights and GEMM inputs have a format of less than 16 bits. The others keep 16: the modules that the
// quantisation of a checkpoint leaves out.
enum class Quantized : std::uint8_t {
  all,
  but_qkv,        // all but attention's projections to queries, keys and values
  but_attention,  // all but attention's projections
  experts,        // routed experts alone
};

// Number formats of a quantised checkpoint, as a config.json states them.
struct Checkpoint {
  std::string method;                              // "fp8", "awq"; empty: it is not quantised
  std::optional<hardware::StorageFormat> weights;  // absent: the method or its format is not known
  std::optional<hardware::Precision> inputs;       // of GEMMs; absent: only weights are quantised
};

struct Model {
  std::string name;
  std::string description;

  std::int64_t layers = 0;          // of the decoder, or of the only stack
  std::int64_t encoder_layers = 0;  // of an encoder in front (T5)
  std::int64_t mtp_layers = 0;      // multi-token prediction (MTP) modules after the last layer (DeepSeek-V3)
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  // = heads without grouped-query attention
  std::int64_t head_dim = 0;  // hidden / heads unless stated
  std::int64_t ffn = 0;       // width of the MLP's inner layer
  std::int64_t vocab = 0;     // rows of the embedding as stored; 0 for a vision model
  std::int64_t max_seq = 0;   // longest sequence; rows of a learned position table

  bool gated_mlp = false;        // two input projections, act(a) * b
  bool tied_embeddings = false;  // head shares the embedding's weights
  bool qkv_bias = false;
  bool attention_output_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;                        // queries and keys are normalised head by head (Qwen3, Gemma 3, ViT-22B)
  bool qk_norm_wide = false;                   // ... all heads together, with a weight per channel (OLMo 2)
  bool attention_gate = false;                 // attention's output is multiplied by a projected gate (Qwen3-Next)
  Quantized quantized_4_bit = Quantized::all;  // layers that its checkpoints in 4 bits quantise
  bool pre_norms = true;           // a norm before attention and before the MLP; false: after them only (OLMo 2)
  bool post_norms = false;         // an additional norm after attention and after the MLP (Gemma 2)
  bool causal = true;              // a position attends to earlier ones only; false: a lone encoder (ViT)
  bool parallel_residual = false;  // attention and MLP read the same residual stream (NeoX: a norm each)
  bool shared_norm = false;        // ... and one norm serves both (Falcon, Phi, ViT-22B)
  bool embedding_norm = false;     // a norm after the embedding (BLOOM)
  bool final_norm = true;
  std::int64_t position_rows = 0;   // rows of a learned position table, when it is not max_seq (OPT adds 2)
  std::int64_t sliding_window = 0;  // positions that a query looks back; 0 = all of them
  std::int64_t global_every = 0;    // every n-th layer attends to all positions; 0: none does
  double dropout = 0.0;             // hidden and attention dropout probability during pre-training

  // Without effect on cost; launch files state them.
  double norm_eps = 0.0;            // added to the variance by norms; 0: not described
  double attention_soft_cap = 0.0;  // scores are capped: cap tanh(score / cap); 0: not capped (Gemma 2)
  double logit_soft_cap = 0.0;      // as are logits
  bool attention_sinks = false;     // a learned logit per head in the softmax (gpt-oss)
  Rope rope;                        // of rotary positions

  Normalisation norm = Normalisation::layernorm;
  Activation activation = Activation::gelu;
  Position position = Position::learned;
  Experts experts;
  LatentAttention latent;
  Mixer mixer;  // of layers without attention
  // A letter per layer, each of which is one half: M mixer, * attention, - MLP, E experts (Nemotron-H); empty: layers
  // have both, and mixer.attention_every tells which.
  std::string pattern;
  Vision vision;
  Tower tower;              // in front of a language model
  Recommender recommender;  // if it has tables, the model is a recommender and the fields above are not used
  hardware::Sources sources;
  Checkpoint checkpoint;              // of the file that it was read from; not part of a description
  std::vector<std::string> warnings;  // about the file that it was read from; not part of a description

  [[nodiscard]] bool has_experts() const { return experts.count > 0; }
  [[nodiscard]] bool is_latent() const { return latent.kv_rank > 0; }
  [[nodiscard]] bool has_mixers() const { return mixer.kind != MixerKind::attention; }
  // Whether any layer has attention, and a dense MLP.
  [[nodiscard]] bool has_attention() const;
  [[nodiscard]] bool has_dense_layers() const;
  [[nodiscard]] bool is_vision() const { return vision.image > 0; }
  [[nodiscard]] bool has_tower() const { return tower.layers > 0; }
  [[nodiscard]] bool is_recommender() const { return !recommender.tables.empty(); }
  // Positions of a sample if the model defines them; 0: the job does.
  [[nodiscard]] std::int64_t own_seq() const { return is_vision() ? vision.tokens() : is_recommender() ? 1 : 0; }
  // Layers that pipeline stages divide: encoder, then decoder; in a recommender, the layers after its tables. MTP
  // modules belong to the head.
  [[nodiscard]] std::int64_t depth() const { return encoder_layers + layers; }
  // Width of queries, and of keys (= of values), over all heads.
  [[nodiscard]] std::int64_t query_width() const { return heads * head_dim; }
  [[nodiscard]] std::int64_t kv_width() const { return kv_heads * head_dim; }
};

// The same model with optional sizes filled in: kv_heads; head_dim (with latent attention nope_dim + rope_dim);
// ffn when no layer has a dense MLP (that of one expert); max_seq of a vision model (its tokens); the rows of a learned
// position table. A recommender's sizes as a transformer are those of one position, one wide.
[[nodiscard]] Model completed(Model model);

// The kind of layer `layer`, 0 <= layer < depth(): encoder layers first.
[[nodiscard]] LayerKind layer_kind(const Model& model, std::int64_t layer);

// The kind of the layer inside an MTP module: that of the last layer of the model.
[[nodiscard]] LayerKind mtp_kind(const Model& model);

// Attention heads, of the whole model.
struct Heads {
  std::int64_t query = 0, kv = 0;

  friend bool operator==(const Heads&, const Heads&) = default;
};

// The heads that tp ranks compute with if the software pads them (AWS neuronx-distributed): query heads up to the next
// multiple of tp. Key-value heads stay if tp divides them; as many as query heads stay as many; otherwise they are
// replicated up to tp, or, if they do not divide tp, to one per query head (get_shardable_head_counts in
// aws-neuron/neuronx-distributed-inference modules/attention/gqa.py@00612a66a8). Query heads are a multiple of
// key-value heads, and tp divides both.
[[nodiscard]] Heads padded_heads(const Model& model, std::int64_t tp);

// The model with those heads: its weights are the sum of the attention weights of all ranks.
[[nodiscard]] Model padded(Model model, std::int64_t tp);

struct Inconsistency {
  std::string_view field;  // the member with the error, e.g. "hidden"
  std::string message;
};

// Why the sizes do not describe a network: heads that do not divide hidden, sizes out of range. Values that `completed`
// fills in may be 0.
[[nodiscard]] std::optional<Inconsistency> inconsistency(const Model& model);

struct ParameterCount {
  std::int64_t embedding = 0;  // token, patch and position tables (relative ones too), class token, embedding norm; a
                               // recommender's tables
  std::int64_t layers = 0;     // all transformer layers, and MTP modules
  std::int64_t head = 0;       // final norm (also of the encoder) and, if untied, the output projection; classifier
  std::int64_t tower = 0;      // the vision tower, with its projector
  std::int64_t total = 0;      // embedding + layers + head + tower
  std::int64_t active = 0;     // weights that a token of text uses: total minus the routed experts it is not sent to
                               // and the vision tower
  std::int64_t mtp = 0;        // the part of `layers` in MTP modules
};

// Weights of one layer of a completed, consistent model: docs/models/models.md has the formulas. `mlp_bias` gives
// routed experts and their router biases, too. Left out: DeepSeek-V3's bias of the router (one number per expert, set
// by a rule and not by a gradient), attention sinks (one number per head), a bias of the output projection.
[[nodiscard]] std::int64_t layer_parameters(const Model& model, const LayerKind& kind);

// Weights of one MTP module: two norms, a projection from 2 hidden to hidden, a layer of
// mtp_kind, a norm. It shares embedding and head with the model (DeepSeek-V3, arXiv:2412.19437, section 2.2).
[[nodiscard]] std::int64_t mtp_parameters(const Model& model);

// Trainable weights of a completed, consistent model.
[[nodiscard]] ParameterCount parameter_count(const Model& model);

// Bytes of keys and values that a generated token leaves behind in all layers together, whole model, where each
// element takes `element` bytes. Layers with a window stop growing at its length; this is the growth before. Latent
// attention keeps kv_rank + rope_dim elements per layer; other mixers have a state of constant size; a model that sees
// all positions at once keeps nothing. Keys and values of an encoder's output are the same for every token and not
// counted.
[[nodiscard]] double kv_bytes_per_token(const Model& model, double element);

}  // namespace orrery::workload
