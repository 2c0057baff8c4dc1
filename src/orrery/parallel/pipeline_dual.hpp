// The solver of DualPipe: that of pipeline_walk.hpp, on a shorter schedule if the long one becomes periodic.
//
// Call r a stage's distance to the nearer end, its iterations those of step 4 (two pairs each, see
// pipeline_order_split.cpp), A(j) and C(j) the ends of iteration j's pairs. Counting micro-batches through steps 1 to
// 4:
//   A(j) of a stage needs its own C(j - 1) and A(j - 1) of the stage one nearer to the end (forward and backward alike)
//   C(j) needs its own A(j) and C(j) of the stage one nearer to the middle; in the middle, A(j) of the other middle
//        stage
// So x(j), the A(j) and C(j) of all stages, 2 p numbers, follows from x(j - 1) alone, by the same max-plus linear map
// in every iteration that all stages have (1 .. m / 2 - p; number 0 differs in the middle). The part before does not
// depend on m, and the part after depends only on x(m / 2 - p), the latest numbers. As in pipeline_wave.hpp: if x(j)
// equals x(j - d) + c in every number, d more iterations add c to everything after them. So a schedule with fewer
// micro-batches whose last full iteration shows such d and c, and which has n d iterations less, has the same ends
// minus n c. Integers make the test an equality.
//
// Complexity: O(p m), or O(p (p + transient + period)) if that is much shorter; less than two solutions of the whole
// schedule if it is never periodic.
#pragma once

#include "orrery/parallel/pipeline.hpp"

namespace orrery::parallel {

// Fills stage_end and last_backward_start, which must have their sizes.
void solve_dualpipe(const PipelineShape& shape, const PipelineTimes& times, PipelineStorage& storage,
                    PipelineSolution& solution);

}  // namespace orrery::parallel
