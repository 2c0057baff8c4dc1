// Memory of one rank of a pipeline stage.
//
// Includes weights, gradients, optimizer state, activations at the fullest moment of the schedule, the working buffers
// listed in docs/models/memory.md, the KV cache of inference, and what is offloaded to a second memory tier. Not
// included: allocator fragmentation and library contexts (covered by the stack's reserve), temporaries inside one
// kernel.
#pragma once

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

// Memory of one part of a model (the embedding, a layer of a kind, the head) on a rank, before any sharding over
// replicas. Activations are of one micro-batch.
struct PartSizes {
  double dense = 0, expert = 0;  // trained weights, elements
  double frozen = 0, frozen_expert = 0;
  Bytes dense_bytes, expert_bytes;    // all weights as stored, frozen ones included
  workload::InPlaceWeights in_place;  // updated in place, neither sharded nor offloaded
  Activations activations;
  Bytes converted;                // largest copy of a weight in the format of its GEMM
  Bytes working;                  // of a pass that keeps nothing: input and output of the largest kernel
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
  Bytes dense_bytes, expert_bytes;
  workload::InPlaceWeights in_place;
  std::vector<double> chunk_kept;  // bytes of one micro-batch, by chunk
  Bytes layer_dropped;             // dropped by recompute: the largest part
  Bytes layer_transient;           // the largest part
  Bytes chunk_deferred;  // largest chunk: what its weight tasks read of the activations that recompute has dropped
  Bytes converted;       // largest copy of a weight in the format of its GEMM
  Bytes kept_briefly;    // by parts whose backward runs directly after forward
  Bytes working;
  Bytes kv_cache;
  // The largest pair of consecutive parts: the one that runs, and its neighbour, which is being fetched or stored.
  struct Neighbours {
    double dense = 0, expert = 0;
    Bytes dense_bytes, expert_bytes, kept;
  } neighbours;
};

// `shape`: the parts of all chunks in the order of the forward pass.
[[nodiscard]] StageSizes stage_sizes(std::span<const PartUse> shape, const IdVector<PartId, PartSizes>& parts);

// Bytes of the master copy of a weight; none if weights are stored in 32 bits.
[[nodiscard]] Bytes master_element(const hardware::Stack& stack, Bytes weight_element);

// The number of micro-batches in flight depends on `stage`. `weight_element`: bytes of a trained weight as stored, and
// of its gradient.
[[nodiscard]] MemoryNeed stage_memory(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage,
                                      const Job& job, const Plan& plan, const hardware::Stack& stack,
                                      Bytes weight_element);

// The lowest-memory choices among otherwise identical plans: the highest ZeRO stage, and all allowed offloads.
struct LowestMemory {
  int zero = 0;
  Offload offload = {};
};

// A lower bound of the memory of every plan that differs from `plan` in zero, shard and offload, up to `lowest_memory`:
//   device    everything is sharded and offloaded that may be, without the buffers that sharding needs
//   together  device and second tier: as above, without offload
struct LeastMemory {
  Bytes device, together;
};
[[nodiscard]] LeastMemory least_memory(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage,
                                       const Job& job, const Plan& plan, const LowestMemory& lowest_memory,
                                       const hardware::Stack& stack, Bytes weight_element);

}  // namespace orrery::parallel
