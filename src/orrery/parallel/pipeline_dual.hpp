// The solver of DualPipe: the walk of pipeline_walk.hpp, on a shorter schedule where a long one only repeats itself.
//
// Call r a stage's distance to the nearer end, its iterations those of step 4 (two pairs each, see
// pipeline_order_split.cpp), A(j) and C(j) the ends of iteration j's pairs. Counting micro-batches through steps 1 to
// 4:
//   A(j) of a stage needs its own C(j - 1) and A(j - 1) of the stage one nearer to the end (forward and backward alike)
//   C(j) needs its own A(j) and C(j) of the stage one nearer to the middle; in the middle, A(j) of the other middle
//        stage
// So x(j), the A(j) and C(j) of all stages, 2 p numbers, follow from x(j - 1) alone, by the same max-plus linear map in
// every iteration that all stages have (1 .. m / 2 - p; number 0 is special in the middle). What comes before does not
// depend on m, and what comes after follows from x(m / 2 - p) alone, whose numbers are the latest there are. As in
// pipeline_wave.hpp: if x(j) equals x(j - d) + c in every number, d more iterations add c to everything behind
// them. A schedule with fewer micro-batches whose last full iteration shows such a d and c, and which lacks n d
// iterations, therefore has the same ends but for n c. Integers make the test an equality.
//
// Complexity: O(p m), or O(p (p + transient + period)) when that is much shorter; less than two walks of the whole
// schedule when it never repeats.
#pragma once

#include "orrery/parallel/pipeline.hpp"

namespace orrery::parallel {

// Fills stage_end and last_backward_start, which have their sizes already.
void solve_dualpipe(const PipelineShape& shape, const PipelineTimes& times, PipelineStorage& storage,
                    PipelineSolution& solution);

}  // namespace orrery::parallel
