// A model's layers as operators: for the slice of a layer that one rank holds, the kernels of the forward and backward
// pass, the weights, the saved activations, and the boundaries where other ranks take part.
//
// Notation: s sequence, b micro-batch, h hidden, a heads, t tensor-parallel degree, c context-parallel degree;
// a rank of a tensor-parallel group sees tokens = b s / c, of which split_tokens = tokens / t are its own with
// sequence parallelism.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/kernel.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/hardware/storage_format.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operator_tags.hpp"
#include "orrery/workload/tables.hpp"

namespace orrery::workload {

using hardware::Kernel;
using hardware::KernelKind;

// Where other ranks take part in a layer. Lowering turns boundaries into collectives (parallel/blocks_writer.cpp); an
// operator with a boundary has no kernels. `boundary_bytes` is the size as nccl-tests count it.
enum class Boundary : std::uint8_t {
  none,
  // Tensor parallelism, over tp; bytes: the whole tensor, tokens h e.
  enter,   // the operators that follow work on a slice and need their whole input
  leave,   // the operators before made partial sums of a whole tensor
  reduce,  // a small all-reduce of the forward pass only (the vocabulary-parallel loss: maximum, target logit and sum
           // of exponentials of each token, one fp32 value each; bytes: all three together)
  gather,  // forward pass only: every rank gets the whole tensor, of which each has computed its tokens
  // Experts: split_tokens x active copies of a token go to the ranks of their experts, over ep, and come back.
  dispatch,      // all-to-all; bytes: all that one rank sends, split_tokens active h e (capped by capacity)
  combine,       // the same in the opposite direction
  expert_enter,  // as enter, over etp, of the tokens that a rank has received; bytes: the gathered tensor
  expert_leave,  // as leave, over etp: partial sums are reduced and scattered
  // Context parallelism, over cp.
  exchange,     // ring attention: keys and values of all ranks are sent around the ring, overlapped with the core that
                // follows; bytes: all of them, b s 2 kv e / t. Backward sends them again, with their gradients
  to_heads,     // all-to-all from a part of the sequence with all heads to the whole sequence with a part of the heads
  to_sequence,  // the reverse; bytes of both: the tensor of one rank
  // Embedding tables. Over the ranks that one copy of the tables is sharded over, GroupKind::tables; bytes: of the rank
  // that sends most.
  lookup_indices,  // all-to-all of the forward pass only: row indices go to the ranks that hold the rows
  pool,            // all-to-all: whole vectors of all samples of the group -> all vectors of a rank's own samples
  pool_sum,  // reduce-scatter: partial sums of all vectors of all samples of the group -> the same; back: all-gather
  // Backward pass only: gradients of table rows, between ranks that hold the same rows. Over GroupKind::table_copies,
  // or dp where `everywhere`.
  share_sum,   // all-reduce; bytes: whole tables
  share_rows,  // all-gather of rows and their gradients; bytes: those of all ranks
  // Tables in the second memory tier (Slice::offloads_tables).
  fetch_rows,   // forward pass only: the rows that are looked up are loaded
  stream_rows,  // backward pass only: the rows that are updated, with their state, are loaded, and stored when updated
};

// A collective that is overlapped with the operators between two ends: both ends have the same boundary. The forward
// pass starts the collective at the first end and waits at the second; the backward pass the other way round.
enum class End : std::uint8_t { both, first, second };

// Weights that their own backward kernel updates in place (embedding tables with a sparse optimizer): their gradients
// are not kept, reduced or sharded with the others.
struct InPlaceWeights {
  Bytes weights, state;
  Bytes gradients;  // exchanged by ranks with the same weights
  Bytes fetched;    // of weights in the second memory tier: the most that is on the device at once

  friend bool operator==(const InPlaceWeights&, const InPlaceWeights&) = default;
};

// How an operator's forward kernel grows with each generated token, which makes the KV cache longer.
struct Growth {
  std::int64_t n = 0;  // of Kernel::n
  Flops flops;
  Bytes bytes;
  std::int64_t most = 0;  // tokens after which the attention window is full and growth stops; 0: no window

  friend bool operator==(const Growth&, const Growth&) = default;
};

// A dispatch or combine that sends inside a node and between nodes at the same time: each token once to every node that
// has experts for it, which forwards it, or every copy straight to its expert's rank.
struct NodeDispatch {
  double copies = 0.0;  // experts per token; 0: an all-to-all of all copies, one dimension after the other
  // Group-limited routing: a token uses experts of `active_groups` of `groups` alone, which are next to each other.
  double groups = 1.0, active_groups = 1.0;
  bool low_latency = false;  // every copy, and nothing is forwarded

  // Of `places` that share the experts evenly, the expected number that a token is sent to.
  [[nodiscard]] double places_reached(double places) const;

  friend bool operator==(const NodeDispatch&, const NodeDispatch&) = default;
};

// Weight matrices of one shape, which Muon orthogonalizes one by one: a fused projection is one matrix.
struct Matrices {
  double count = 0;
  std::int64_t rows = 0, columns = 0;

  [[nodiscard]] double elements() const { return count * static_cast<double>(rows) * static_cast<double>(columns); }
  friend bool operator==(const Matrices&, const Matrices&) = default;
};

struct Operator {
  std::string_view name;  // "attention.qkv"; a static string
  OperatorTag tag = OperatorTag::residual;
  Boundary boundary = Boundary::none;
  Bytes boundary_bytes;
  Bytes boundary_back_bytes;   // dispatch, combine: of the backward pass, in the opposite direction
  NodeDispatch node_dispatch;  // dispatch, combine
  End end = End::both;
  bool everywhere = false;  // share_sum, share_rows: over all replicas

  Kernel forward;
  Kernel alone;            // its forward pass without the operators before it, where these do its work
  Kernel backward_input;   // gradient of the input (or the only backward kernel)
  Kernel backward_weight;  // gradient of the weight, when there is one and it is trained
  Growth growth;           // Pass::decode only

  double parameters = 0;    // trained weights in this slice, elements
  Matrices matrices;        // of these, matrices
  double frozen = 0;        // weights in this slice that are not trained (under an adapter)
  bool expert = false;      // weights of routed experts, which are replicated over other ranks than dense ones
  bool wide = false;        // a GEMM with weights of at least 16 bits in inference
  InPlaceWeights in_place;  // in addition
  Bytes converted;          // copy of stored weights that a kernel writes in the GEMM's format before the GEMM

  Bytes saved;        // activations kept from forward to backward by this rank
  Bytes saved_input;  // of these, the operator's input, which operators with tag `input_from` make
  OperatorTag input_from = OperatorTag::residual;  // residual: made again only when the whole layer is
};

// The part of an operator's saved activations that the backward pass recomputes when it replays the operators with
// these tags: its input if the operators that make the input are replayed, the rest if the operator itself is.
[[nodiscard]] Bytes dropped_activations(const Operator& op, TagSet replayed);

// Which pass over the model a slice is lowered for.
enum class Pass : std::uint8_t {
  train,    // forward and backward
  prefill,  // forward over a prompt; keeps only the KV cache; the head computes the last position only
  decode,   // forward over one new position per sequence, attending to `context` positions in the cache
};

enum class ContextMethod : std::uint8_t {
  ring,     // keys and values are sent around the ring of ranks (ring attention), causal work balanced
  ulysses,  // all-to-all between sequence and heads (DeepSpeed-Ulysses)
};

// Low-rank adapters (LoRA): the model's own weights are frozen, and next to a projection W [k, n] sit trained factors
// A [k, r] and B [r, n].
struct Adapter {
  enum class Targets : std::uint8_t {
    attention,  // its projections in and out
    all,        // ... and those of the MLP
  };
  std::int64_t rank = 0;  // r; 0: no adapter, every weight is trained
  Targets targets = Targets::attention;

  friend bool operator==(const Adapter&, const Adapter&) = default;
};

// Formats of storage and of attention, where they are not those that follow from the format of GEMM inputs.
struct Formats {
  std::optional<hardware::StorageFormat> weights;  // that are not trained; formats of less than 16 bits: of layers only
  std::optional<hardware::CacheFormat> cache;      // keys and values
  std::optional<hardware::Precision> attention;    // inputs of attention's GEMMs
  Quantized quantized = Quantized::all;            // inference only
  std::int64_t fp4_block = 16;   // weights that share an 8-bit scale where GEMMs are in fp4: 16 (NVFP4), 32 (MXFP4)
  bool wide_absorption = false;  // latent attention: a decode step multiplies the weights that it absorbs in 16 bits

  friend bool operator==(const Formats&, const Formats&) = default;
};

// Bytes of the narrower of a GEMM's inputs and its stored weights.
[[nodiscard]] double narrowest_element(hardware::Precision precision,
                                       const std::optional<hardware::StorageFormat>& weights);

// The layers that a job in inference quantises: those that are given, else those that the model's checkpoints of less
// than 8 bits quantise, else all.
[[nodiscard]] Quantized quantized_layers(const Model& model, std::optional<Quantized> given,
                                         hardware::Precision precision, const Formats& formats);

// Whether an answer has to name the layers that are quantised: they are not all, or not the usual ones.
[[nodiscard]] bool names_quantized(const Model& model, hardware::Precision precision, const Formats& formats);

// A warning where a checkpoint's weights have another format than inference is priced with; empty: they do not.
[[nodiscard]] std::string checkpoint_warning(const Model& model, hardware::Precision precision, const Formats& formats);

// Bytes of a stored weight that is not trained. Without a format of weights, layers are stored in the format of GEMM
// inputs; embedding and head in at least 16 bits in any case.
struct WeightElements {
  double layers = 0, ends = 0;
  double scale = 0;  // of `layers`: what a weight's scale takes, where GEMMs read weights as they are stored
};
[[nodiscard]] WeightElements weight_elements(hardware::Precision precision, const Formats& formats);

// Bytes of a kept key or value. `narrow`: as StoragePolicy::narrow_cache.
[[nodiscard]] double cache_element(hardware::Precision precision, const Formats& formats, bool narrow);

// The slice of the model one rank works on.
struct Slice {
  std::int64_t micro_batch = 1;
  std::int64_t seq = 0;            // whole sequence, all cp ranks together; of decode: 1
  std::int64_t tp = 1;             // tensor-parallel degree; must divide ffn, and heads unless they are padded
  bool sequence_parallel = false;  // norms, dropouts and residuals split along the sequence as well
  hardware::Precision precision = hardware::Precision::bf16;
  std::int64_t cp = 1;  // context-parallel degree: a rank holds seq / cp positions
  ContextMethod cp_method = ContextMethod::ring;
  std::int64_t ep = 1;   // expert-parallel degree: a rank holds count / ep routed experts
  std::int64_t etp = 1;  // tensor-parallel degree of a routed expert
  Pass pass = Pass::train;
  std::int64_t context = 0;  // decode: positions in the cache, the new one included
  Adapter adapter = {};
  TablePlan tables = {};
  std::int64_t table_ranks = 1;  // ranks that one copy of a recommender's tables is sharded over
  std::int64_t replicas = 1;     // ranks that process different samples, the same number each
  bool offloads_tables = false;  // to the second memory tier
  Formats formats = {};
  bool pads_heads = false;        // with the heads of padded_heads
  double expert_imbalance = 1.0;  // tokens of the rank whose experts get most, relative to the mean of all ranks

  friend bool operator==(const Slice&, const Slice&) = default;
};

// Operators in execution order of the forward pass. Backward runs them in reverse.
// FLOPs summed over tp slices equal those of the whole (when tp divides kv_heads, and 128 tp divides vocab); see
// operators_test.cpp.
[[nodiscard]] std::vector<Operator> embedding_operators(const Model&, const hardware::Stack&, const Slice&);
[[nodiscard]] std::vector<Operator> layer_operators(const Model&, const hardware::Stack&, const Slice&,
                                                    const LayerKind& kind = {});
[[nodiscard]] std::vector<Operator> head_operators(const Model&, const hardware::Stack&, const Slice&);

// A vision tower: patches of the images, a layer (attention inside windows, or to the whole image), the projector.
// Pass::train and Pass::prefill of a model with images (workload::with_images).
[[nodiscard]] std::vector<Operator> tower_patches(const Model&, const hardware::Stack&, const Slice&);
[[nodiscard]] std::vector<Operator> tower_layer(const Model&, const hardware::Stack&, const Slice&, bool windowed);
[[nodiscard]] std::vector<Operator> tower_projector(const Model&, const hardware::Stack&, const Slice&);
// The tensor between two of its layers on one rank.
[[nodiscard]] Bytes tower_tensor(const Model&, const hardware::Stack&, const Slice&);

// An MTP module, which predicts one additional token (DeepSeek-V3): its projection, its layer, and the head again.
[[nodiscard]] std::vector<Operator> mtp_operators(const Model&, const hardware::Stack&, const Slice&);

// Weights of the token table on one rank, padding included; a tied head uses them a second time.
[[nodiscard]] double table_parameters(const Model&, std::int64_t tp);

// Bytes of the KV cache of one sequence of `positions` in the layers of `kind`, one layer, on one rank.
// `narrow`: as StoragePolicy::narrow_cache.
[[nodiscard]] Bytes kv_cache(const Model&, const LayerKind& kind, const Slice&, std::int64_t positions,
                             bool narrow = false);

// Bytes of the states of one sequence in all layers without attention, whole model: their part of the cache, whatever
// the sequence's length.
[[nodiscard]] Bytes state_bytes(const Model&, hardware::Precision precision);

// Rows of the vocabulary that one of tp slices holds, padding included.
[[nodiscard]] std::int64_t vocabulary_rows(const Model& model, std::int64_t tp);

// Matrix FLOPs of one step on `sequences` sequences of `seq` tokens: forward and backward of every matrix product,
// without recompute; attention scores once, halved when the kernel skips the causal half, and no more than the window
// where there is one. Frozen weights have no weight gradient, a frozen vision tower no backward pass. Routed experts
// count `active` times.
[[nodiscard]] Flops model_flops(const Model&, const hardware::Stack&, std::int64_t sequences, std::int64_t seq,
                                const Adapter& adapter = {});

// Of the forward pass of a prompt, and of one generated token with `context` positions in the cache.
[[nodiscard]] Flops prefill_flops(const Model&, const hardware::Stack&, std::int64_t sequences, std::int64_t seq);
[[nodiscard]] Flops decode_flops(const Model&, std::int64_t sequences, std::int64_t context);

}  // namespace orrery::workload
