// Memory of one rank of a pipeline stage.
//
// Includes weights, gradients, optimizer state, activations at the fullest moment of the schedule, the working buffers
// listed in docs/models/memory.md, the KV cache of inference, and what is offloaded to a second memory tier. Not
// included: allocator fragmentation and library contexts (covered by the stack's reserve), temporaries inside one
// kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/recompute.hpp"

namespace orrery::parallel {

struct Part;
using PartId = Id<Part>;  // position of a part of the model in the lists of a LoweredSlice
using OptionalPartId = OptionalId<Part>;

// Matrices that Muon orthogonalizes, among the trained weights.
struct Orthogonalized {
  workload::Matrices matrices;
  bool expert = false;
};

// Elements of matrices among the trained weights of a rank that Muon orthogonalizes.
struct MatrixWeights {
  double dense = 0, expert = 0;
};
[[nodiscard]] MatrixWeights matrix_weights(std::span<const Orthogonalized> matrices);

// Trained tensors of a part or a stage: the weights of an operator, or of one of its experts, count as one.
struct Tensors {
  double dense = 0, expert = 0;  // number
  double largest = 0;            // weights of the largest one

  void add(const Tensors& other, double times) {
    dense += times * other.dense;
    expert += times * other.expert;
    largest = std::max(largest, other.largest);
  }
};

// Memory of one part of a model (the embedding, a layer of a kind, the head) on a rank, before any sharding over
// replicas. Activations are of one micro-batch.
struct PartSizes {
  double dense = 0, expert = 0;  // trained weights, elements
  double frozen = 0, frozen_expert = 0;
  Tensors tensors;
  Bytes dense_bytes, expert_bytes;       // all weights as stored, frozen ones included
  workload::InPlaceWeights in_place;     // updated in place, not sharded over replicas
  std::vector<Orthogonalized> matrices;  // with Muon
  Activations activations;
  Bytes converted;                // largest copy of a weight in the format of its GEMM
  Bytes working;                  // of a pass that keeps nothing: input and output of the largest kernel
  Bytes decoding;                 // the same of a pass that generates tokens
  Bytes kv_cache;                 // of all sequences of the replica
  bool backward_follows = false;  // backward runs directly after forward (head, MTP modules)
};

// `repeat` identical consecutive parts of a chunk; no part: the border between two chunks.
struct PartUse {
  OptionalPartId part;
  std::int64_t repeat = 1;

  friend bool operator==(const PartUse&, const PartUse&) = default;
};
inline constexpr PartUse kNextChunk{{}, 0};

// Memory of a stage before sharding; the same for all stages of a class.
struct StageSizes {
  double dense = 0, expert = 0, frozen = 0, frozen_expert = 0;
  Tensors tensors;
  Bytes dense_bytes, expert_bytes;
  workload::InPlaceWeights in_place;
  std::vector<Orthogonalized> matrices;  // with Muon
  std::vector<double> chunk_kept;        // bytes of one micro-batch, by chunk
  std::vector<double> chunk_dropped;     // bytes that recompute drops of the largest part, by chunk
  Bytes layer_transient;                 // the largest part
  Bytes chunk_deferred;  // largest chunk: what its weight tasks read of the activations that recompute has dropped
  Bytes converted;       // largest copy of a weight in the format of its GEMM
  Bytes kept_briefly;    // by parts whose backward runs directly after forward
  Bytes working, decoding;
  Bytes kv_cache;
  // The largest pair of consecutive parts: the one that runs, and its neighbour, which is being fetched or stored.
  struct Neighbours {
    double dense = 0, expert = 0;
    Bytes dense_bytes, expert_bytes, kept;
  } neighbours;
};

// `shape`: the parts of all chunks in the order of the forward pass.
[[nodiscard]] StageSizes stage_sizes(std::span<const PartUse> shape, const IdVector<PartId, PartSizes>& parts);

// Whether the shards of the optimizer state are whole tensors.
[[nodiscard]] inline bool owns_whole_tensors(const hardware::Stack& stack, const Plan& plan) {
  return plan.zero == 1 && stack.optimizer.owns_whole_tensors;
}

// Bytes of a trained weight in a rank's memory.
struct WeightCopies {
  Bytes stored;  // the weight
  Bytes master;  // its master copy, part of the optimizer state; none if the stored weight is its own master
};
// Ranks over which one copy is sharded; 1: not sharded.
struct Shards {
  double dense = 1, expert = 1;

  [[nodiscard]] Bytes part_of(Bytes dense_bytes, Bytes expert_bytes) const {
    return dense_bytes / dense + expert_bytes / expert;
  }
  [[nodiscard]] double part_of(double dense_count, double expert_count) const {
    return dense_count / dense + expert_count / expert;
  }
};
// Of what is sharded from ZeRO stage `zero` on: 1 optimizer state, 3 weights.
[[nodiscard]] Shards shards_from(const Plan& plan, int zero);

// `weight_element`: bytes of the weight that is computed with. Weights of 32 bits are their own master, and so are all
// weights, those of experts with one replica, too, under ZeRO-3 in stacks with OptimizerPolicy::shards_are_master.
[[nodiscard]] WeightCopies weight_copies(const hardware::Stack& stack, Bytes weight_element, const Plan& plan);

// Whether each micro-batch's gradients are reduced to shards, so that whole gradients exist only for the layers in
// backward. Otherwise a rank accumulates whole gradients, also under ZeRO-2 and 3 (ReduceEvery::step).
[[nodiscard]] bool reduces_every_micro_batch(const Plan& plan, const hardware::Stack& stack);

// Whether gradient reductions overlap with the backward pass. Data fetched from the second tier for a backward would be
// serialized with the reductions of the last backward, so these then wait for its end; reductions in every micro-batch
// do not.
[[nodiscard]] bool reduces_under_backward(const Plan& plan, const hardware::Stack& stack);

// Stored weights of one rank: `dense_bytes` and `expert_bytes` of all weights as they are computed with, of which
// `dense` and `expert` are trained.
[[nodiscard]] Bytes stored_weights(const hardware::Stack& stack, const Plan& plan, Bytes weight_element,
                                   Bytes dense_bytes, Bytes expert_bytes, double dense, double expert);
// Optimizer state of one rank, master copies included. `matrices`: of these weights.
[[nodiscard]] Bytes optimizer_state(const hardware::Stack& stack, const Plan& plan, Bytes weight_element, double dense,
                                    double expert, const MatrixWeights& matrices = {});

// What the host needs to update the weights of one rank in its own memory, one HostUpdate per step.
struct HostOptimizer {
  Bytes stored;     // state, and weights where they are neither their own master copy nor offloaded
  Bytes touched;    // of its memory, by one update: state and master copy are read and written, gradients read, weights
                    // written
  Bytes gradients;  // to the host
  Bytes weights;    // back to the device; none where offloaded weights are updated in place
};
[[nodiscard]] HostOptimizer host_optimizer(const hardware::Stack& stack, const Plan& plan, Bytes weight_element,
                                           double dense, double expert);

// The number of micro-batches in flight depends on `stage`. `weight_element`: bytes of a trained weight as stored, and
// of its gradient.
[[nodiscard]] MemoryNeed stage_memory(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage,
                                      const Job& job, const Plan& plan, const hardware::Stack& stack,
                                      Bytes weight_element);

// The lowest-memory choices among otherwise identical plans: the highest ZeRO stage, and all allowed offloads.
struct LowestMemory {
  int zero = 0;
  Offload offload = {};
  OptimizerDevice optimizer_device = OptimizerDevice::device;
};

// A lower bound of the memory of every plan that differs from `plan` in zero, shard, offload and
// optimizer_device, up to `lowest_memory`:
//   device    everything is sharded and offloaded that may be, without the buffers that sharding needs
//   together  device and second tier: as above, without offload
struct LeastMemory {
  Bytes device, together;
};
[[nodiscard]] LeastMemory least_memory(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage,
                                       const Job& job, const Plan& plan, const LowestMemory& lowest_memory,
                                       const hardware::Stack& stack, Bytes weight_element);

}  // namespace orrery::parallel
