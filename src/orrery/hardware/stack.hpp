// A software-stack profile: what a framework does that a model and a plan do not specify, as a few policies. The same
// for every model, size and device count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/optimizer_kind.hpp"

namespace orrery::hardware {

enum class AttentionKernel : std::uint8_t {
  plain,  // scores, softmax and dropout each go through memory
  flash,  // one fused kernel that keeps scores on chip
};

// What the attention kernel does.
struct AttentionPolicy {
  AttentionKernel kernel = AttentionKernel::flash;
  bool causal_skip = true;  // leaves out blocks that the causal mask hides
  double rate = 1.0;        // achieved / best rate of fused attention on the accelerator
  bool native = true;       // uses the matrix instructions that are new in the accelerator's generation
};

// What is stored in the format of GEMM inputs where that format is narrower than the activations'.
struct StoragePolicy {
  bool narrow_cache = false;        // keys and values
  std::int64_t prefill_tokens = 0;  // of prompts, in one pass at most, so that activations of no more are kept; 0: all
  bool narrow_activations = false;  // the input of a gated activation, kept for backward (at least one byte)
  // Attention's output, kept once for its own backward and for the next GEMM's; 0: in the format of activations for the
  // one and in that of GEMM inputs for the other, where these differ.
  Bytes attention_output_element{0.0};
};

// Scales of GEMM inputs in fp8.
enum class Fp8Recipe : std::uint8_t {
  delayed,  // per tensor, from the largest values of earlier steps: an input is cast in one pass
  current,  // per tensor, from its own largest value: a pass before the cast finds it, and no cast is part of another
            // kernel
  block,    // per 1 x 128 elements, and per 128 x 128 of a weight (arXiv:2412.19437, section 3.3.2): cast in one pass
};
[[nodiscard]] std::string_view name_of(Fp8Recipe recipe);

// How an engine picks a token from the logits of its position.
enum class Sampling : std::uint8_t {
  greedy,  // the largest logit: one pass over each rank's slice
  top_p,   // by probability, from the most likely tokens: fp32 logits of the whole vocabulary are normalised and sorted
};

// Which operations are one kernel instead of several.
struct FusionPolicy {
  bool elementwise = true;            // bias + activation; bias + dropout + residual
  bool loss = true;                   // vocabulary loss without an fp32 copy of the logits in memory
  bool gradient_accumulation = true;  // weight-gradient GEMMs accumulate into the gradient buffer
  bool decode_rotary = false;         // rotary positions are part of the attention kernel of generated tokens
  bool heads = true;                  // inference: GEMMs and attention read and write each other's layouts; else a
                                      // prompt's heads are split, written to the cache and joined by separate kernels
  bool experts = false;               // activation and casts between the two GEMMs of experts are part of the GEMMs
  bool grouped_experts = true;        // one grouped GEMM for all experts of a rank; else they run one after another
};

// What runs concurrently with compute.
struct OverlapPolicy {
  bool tp_backward = true;       // reduction of a layer's input gradient, with the weight-gradient GEMM
  bool gradient_reduce = true;   // data-parallel reduction, with backward; default of --dp-overlap
  bool aligned_reduce = false;   // pipeline stages launch reductions at the same time, not each when its own can start
  bool parameter_gather = true;  // all-gather of sharded weights, with the next forward
  bool dispatch = false;         // dispatch and combine of one micro-batch, with kernels of another (forward of one,
                                 // backward of the other)
  double interference = 0.0;     // part of a kernel's rate that is lost while a gather or reduction runs
};

// When sharded gradients (ZeRO-2 and 3) are reduced.
enum class ReduceEvery : std::uint8_t {
  micro_batch,     // after every backward pass: a rank accumulates its shard
  step,            // after the last micro-batch: a rank accumulates whole gradients
  step_if_stages,  // with pipeline stages as step, without as micro_batch
};

// How gradients are stored and reduced.
struct GradientPolicy {
  Bytes element{4.0};                          // accumulation buffer, per weight
  double bucket_parameters = 0.0;              // weights in a bucket; 0: one bucket a layer
  double bucket_parameters_per_replica = 0.0;  // a bucket has at least so many weights for each rank of dp x cp
  ReduceEvery reduce_every = ReduceEvery::micro_batch;
  Bytes reduce_element{4.0};  // element on the wire of the data-parallel reduction
  bool norm = true;           // the norm of all gradients is computed before the optimizer (clipping)

  // Weights in a bucket of gradients that are reduced over `replicas` ranks; 0: one bucket a layer.
  [[nodiscard]] double bucket(std::int64_t replicas) const {
    return std::max(bucket_parameters, bucket_parameters_per_replica * static_cast<double>(replicas));
  }
};

enum class TokenCopies : std::uint8_t {
  per_expert,  // one copy to every expert of a token
  per_node,    // one copy to every node that has experts of a token, distributed there over scale-up links (DeepEP)
};

// How tokens travel to experts. Combine returns them in the format of activations.
struct DispatchPolicy {
  TokenCopies copies = TokenCopies::per_expert;
  // Generated tokens: one copy to every expert, straight to its rank, inside a node and between nodes at the same time,
  // by kernels that also sort and add (low-latency kernels of DeepEP).
  bool low_latency = false;
  // Where the experts of a layer are on the ranks of one tensor-parallel group: every rank has all tokens, computes its
  // experts' part, and one all-reduce adds the parts (inference engines); else tokens are dispatched.
  bool replicated_tokens = false;
  Bytes element{0.0};      // of dispatched tokens and of gradients that are dispatched; 0: as activations
  Bytes fp4_element{0.0};  // of dispatched tokens where the experts' GEMMs are in fp4; 0: as `element` says
};

struct OptimizerPolicy {
  Bytes master_element{4.0};        // master copy of a weight; 0: weights are their own master
  bool shards_are_master = false;   // ZeRO-3: the sharded weights are the master copy, and the copy that is computed
                                    // with exists only while it is gathered (PyTorch FSDP)
  bool owns_whole_tensors = false;  // ZeRO-1: a rank owns whole tensors, not an equal part of all: gradients are
                                    // all-reduced, and each owner broadcasts the weights that it has updated
  Bytes state_element{8.0};         // of Adam, or of the stack's only optimizer: state per weight, all moments together
  OptimizerKind kind = OptimizerKind::adam;  // of the job; adam: the optimizer that state_element describes

  [[nodiscard]] Bytes state() const { return state_per_weight(kind, state_element); }
  [[nodiscard]] Bytes matrix_state() const { return state_per_matrix_weight(kind, state_element); }
};

// Embedding tables of recommenders. Their optimizer is sparse: it accesses only rows that a batch has looked up.
struct TablePolicy {
  Bytes state_element{4.0};      // optimizer state per weight (Adagrad: one fp32)
  Bytes row_state_element{0.0};  // additional state per row (row-wise Adagrad: one fp32, and none per weight)
  Bytes exchange_element{0.0};   // of looked-up vectors and their gradients in the all-to-all; 0: as activations
};

enum class StageTransfer : std::uint8_t {
  whole,      // every rank of a stage sends the whole activation
  scattered,  // every rank sends 1 / tp of it and the receivers gather (without sequence parallelism)
};

enum class NodePorts : std::uint8_t {
  all,  // every device of a node uses its own port
  one,  // a collective of several devices a node, over more than two nodes, uses one port of each node: the rings of
        // its collective library (docs/models/collectives.md)
};

struct TransferPolicy {
  StageTransfer stages = StageTransfer::whole;
  NodePorts ports = NodePorts::all;
  // Of an all-reduce of few bytes between devices of one switch or mesh, by kernels of the engine: every device reads
  // the others' buffers. 0: by the collective library.
  Seconds one_shot = {};
};

// Time of the host.
struct HostPolicy {
  // To issue one kernel or collective of a forward or backward pass; if kernel_launch_time is given, one operator: its
  // first kernel, and what the framework does around it.
  Seconds launch_time;
  Seconds kernel_gap;           // on the device before each kernel that is launched one by one, not in a captured graph
  double latency_hidden = 0.0;  // part of the time of a kernel without work that passes under the kernel before
                                // (programmatic dependent launch in captured graphs)
  bool captures_requests = true;  // batches of requests run as captured graphs, which the host issues as one
  // Each other kernel of an operator: pieces of an overlapped product, casts, and products and biases of single
  // experts, which are issued expert by expert. 0: not known, and one kernel for all experts.
  Seconds kernel_launch_time;
  Seconds step_overhead;  // per step, not hidden: data loading, logging, launches
};

// What the software has; an empty list is everything.
struct StackLimits {
  std::vector<std::string> tasks;       // pretrain, finetune, inference
  std::vector<std::string> models;      // transformer, encoder-decoder, vision, recommender
  std::vector<std::string> makers;      // of accelerators: NVIDIA, AMD, Google, Intel, AWS
  std::vector<std::string> schedules;   // of the pipeline: 1f1b, interleaved, ...
  std::vector<std::string> shardings;   // stages of ZeRO: 0, 1, 2, 3; and hybrid
  std::vector<std::string> optimizers;  // adam, adam8bit, sgd, muon
  std::vector<std::string> overlaps;    // of tensor-parallel communication: none, ring, pipe
};

struct Stack {
  std::string name;
  std::string description;
  // Maker of accelerators -> the profile that describes this software there, where it differs.
  std::map<std::string, std::string> instead_on;

  AttentionPolicy attention;
  StoragePolicy storage;
  FusionPolicy fusion;
  Fp8Recipe fp8_recipe = Fp8Recipe::delayed;
  Sampling sampling = Sampling::greedy;
  double stream_traffic =
      1.0;  // traffic of element-wise kernels / least possible: copies, casts, separate accumulations
  OverlapPolicy overlap;
  GradientPolicy gradients;
  DispatchPolicy dispatch;
  OptimizerPolicy optimizer;
  TablePolicy tables;
  TransferPolicy transfers;
  HostPolicy host;
  StackLimits limits;
  bool pads_heads = false;       // attention heads are padded to a multiple of tp (workload::padded_heads)
  double memory_reserve = 0.06;  // part of device memory that tensors cannot use
  Sources sources;
};

}  // namespace orrery::hardware
