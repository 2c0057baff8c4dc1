// FLOPs that the kernels of a training step execute and that the estimate's HFU does not count. Private to the room.
//
// HFU counts the matrix products of the model and of recompute. Kernels execute more: a fused attention core computes
// its scores again in the backward pass, padded rows of the vocabulary are multiplied, and some optimizers have matrix
// products.
#pragma once

#include <vector>

#include "orrery/parallel/program.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::api {

// `executed`: FLOPs of all ranks in one step; `hfu`: those of the estimate. The parts add up to executed - hfu, but for
// a millionth of `executed`; what no rule names is "other". Empty for inference.
[[nodiscard]] std::vector<results::FlopsPart> flops_beyond_hfu(const parallel::Program& program,
                                                               const workload::Model& model, double executed,
                                                               double hfu);

}  // namespace orrery::api
