// Memory of one rank of a pipeline stage.
//
// Covers weights, gradients, optimizer state, activations kept by the schedule at its fullest moment, the working
// buffers listed in docs/models/memory.md, the KV cache of inference, and what is moved to a second memory tier. Leaves
// out: allocator fragmentation and library contexts (the stack's reserve stands for them), and temporaries inside one
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

// What one part of a model (the embedding, a layer of a kind, the head) takes on a rank before any sharding over
// replicas. Activations are of one micro-batch.
struct PartSizes {
  double dense = 0, expert = 0;  // trained weights, elements
  double frozen = 0, frozen_expert = 0;
  Bytes dense_bytes, expert_bytes;  // all weights as stored, frozen ones included
  workload::Held held;              // updated where they lie, neither sharded nor moved
  Activations activations;
  Bytes working;       // of a pass that keeps nothing: the largest kernel's input and output
  Bytes kv_cache;      // of all sequences of the replica
  bool turns = false;  // its backward follows its forward at once (head, modules for further tokens)
};

// `repeat` identical parts in a row of a chunk; no part: the border between two chunks.
struct PartUse {
  OptionalPartId part;
  std::int64_t repeat = 1;

  friend bool operator==(const PartUse&, const PartUse&) = default;
};
inline constexpr PartUse kNextChunk{{}, 0};

// What a stage adds up to: the same for all stages of a class.
struct StageSizes {
  double dense = 0, expert = 0, frozen = 0, frozen_expert = 0;
  Bytes dense_bytes, expert_bytes;
  workload::Held held;
  std::vector<double> chunk_kept;  // bytes of one micro-batch, by chunk
  Bytes layer_dropped;             // by recompute: the most of a part
  Bytes layer_transient;           // the most of a part
  Bytes chunk_deferred;            // of the fullest chunk: what its weight tasks read of what recompute has dropped
  Bytes turning;                   // kept by parts whose backward follows at once
  Bytes working;
  Bytes kv_cache;
  // The most of two parts that follow each other: the one at work and its neighbour, which is being fetched or sent
  // off.
  struct Neighbours {
    double dense = 0, expert = 0;
    Bytes dense_bytes, expert_bytes, kept;
  } neighbours;
};

// `shape`: the parts of every chunk in the order of the forward pass.
[[nodiscard]] StageSizes stage_sizes(std::span<const PartUse> shape, const IdVector<PartId, PartSizes>& parts);

// Bytes of the master copy of a weight; none when weights are stored in 32 bits and are their own.
[[nodiscard]] Bytes master_element(const hardware::Stack& stack, Bytes weight_element);

// `stage` decides how many micro-batches are in flight. `weight_element`: bytes of a trained weight as stored, and of a
// gradient as backward makes it.
[[nodiscard]] MemoryNeed stage_memory(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage,
                                      const Job& job, const Plan& plan, const hardware::Stack& stack,
                                      Bytes weight_element);

// The most that plans which are otherwise alike do to need little: how far replicas share what they hold, and what they
// move to the second tier.
struct Leanest {
  int zero = 0;
  Offload offload = {};
};

// What no plan goes below that differs from `plan` in zero (up to the leanest's), shard, and offload (of no more than
// the leanest's):
//   device    all that may be sharded is, all that may be moved is, and no buffer that sharding asks for is there
//   together  on the device and in the second tier: as above, and nothing moved
struct LeastMemory {
  Bytes device, together;
};
[[nodiscard]] LeastMemory least_memory(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage,
                                       const Job& job, const Plan& plan, const Leanest& leanest,
                                       const hardware::Stack& stack, Bytes weight_element);

}  // namespace orrery::parallel
