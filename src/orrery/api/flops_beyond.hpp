// FLOPs that the kernels of a training step execute and that the estimate's HFU does not count. Private to the room.
//
// HFU counts the matrix products of the model and of recompute. Kernels execute more: a fused attention core computes
// its scores again in the backward pass, tensor-parallel ranks compute the same where heads or experts do not divide,
// rows that pad the vocabulary are multiplied, some kernels compute pairs outside sliding windows, and some optimizers
// have matrix products.
#pragma once

#include <vector>

#include "orrery/api/inputs.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/simulation.hpp"

namespace orrery::api {

// `executed`: FLOPs of all ranks in one step; `hfu`: those of the estimate. The parts add up to executed - hfu; those
// below 1e-5 of `executed` are left out. What no rule names is "other": of models with a frozen vision tower a part of
// its attention, whose operators have the names of the layers'. Empty for inference.
[[nodiscard]] std::vector<results::FlopsPart> flops_beyond_hfu(const parallel::Program& program, const Inputs& inputs,
                                                               double executed, double hfu);

}  // namespace orrery::api
