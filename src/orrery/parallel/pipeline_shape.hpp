// What both the orders and the solver of pipeline.hpp need of a shape.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/parallel/pipeline.hpp"

namespace orrery::parallel {

// Throws InternalError unless the shape has an order without deadlock.
void check_pipeline_shape(const PipelineShape& shape);

// Forwards a stage runs before it starts to alternate forward and backward. Megatron-LM,
// megatron/core/pipeline_parallel/schedules.py: p - i - 1 for 1F1B, 2 (p - i - 1) + (v - 1) p when interleaved, one
// more with pairs (get_pp_rank_microbatches; without pipeline 1), never more than there are. All of them when
// interleaved with m = p (Megatron-LM's rule until it was dropped from its main branch, before pairs came).
[[nodiscard]] std::int64_t warm_up_forwards(const PipelineShape& shape, std::int64_t stage);

// stage_order(), appended to `order`.
void append_stage_order(const PipelineShape& shape, std::int64_t stage, std::vector<PipelineTask>& order);

// The same for zero_bubble and dualpipe.
void append_zero_bubble_order(const PipelineShape& shape, std::int64_t stage, std::vector<PipelineTask>& order);
void append_dualpipe_order(const PipelineShape& shape, std::int64_t stage, std::vector<PipelineTask>& order);

// Position in DualPipe's order of the pair that ends the first iteration of step 4. Each of the m / 2 - p + r
// iterations behind it (r: the stage's distance to the nearer end) is two pairs.
[[nodiscard]] std::int64_t dualpipe_first_round(const PipelineShape& shape, std::int64_t stage);

}  // namespace orrery::parallel
