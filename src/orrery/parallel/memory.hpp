// Memory of one rank of a pipeline stage.
//
// Covers weights, gradients, optimizer state, activations kept by the schedule at its fullest moment, and the working
// buffers listed below. Leaves out: allocator fragmentation and library contexts (the stack's reserve stands for
// them), and temporaries inside one kernel.
#pragma once

#include <cstdint>

#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

// Sizes of one rank's slice that memory is made of; bytes for one micro-batch.
struct SliceSizes {
  double layer_parameters = 0, embedding_parameters = 0, head_parameters = 0;  // elements
  Bytes layer_kept;   // kept from forward to backward by one layer under the plan's recompute choice
  Bytes layer_whole;  // kept by one layer without any recompute: the working set of recomputing it
  Bytes embedding_kept, head_kept;
  Bytes weight_element;  // one stored weight
};

// Bytes of the master copy of a weight; none when weights are stored in 32 bits and are their own.
[[nodiscard]] Bytes master_element(const hardware::Stack& stack, Bytes weight_element);

// `stage` decides how many micro-batches are in flight.
[[nodiscard]] MemoryNeed stage_memory(const RankClass& rank_class, const PipelineShape& shape, std::int64_t stage,
                                      const Plan& plan, const hardware::Stack& stack, const SliceSizes& sizes);

}  // namespace orrery::parallel
