// The update of a rank's weights at the end of a step.
//
// Muon (kellerjordan.github.io/posts/muon; arXiv:2502.16982) orthogonalizes the momentum of each matrix X [m, n], m <=
// n, in five Newton-Schulz iterations of three products, in 16 bits:
//   A = X X^T,  B = b A + c A A,  X <- a X + B X:  2 (2 m^2 n + m^3) FLOPs
// Tensor-parallel slices of a matrix are orthogonalized on their own (Megatron-Core: --muon-tp-mode blockwise). Under
// ZeRO-1 and 2 whole matrices are distributed over the replicas (its layer-wise distributed optimizer), so each
// orthogonalizes its share; under ZeRO-3 every replica gathers the momentum in 16 bits and orthogonalizes all matrices.
// Left out: an uneven share of the replicas (they get the mean, or the largest matrix if that is more), the copies in
// 16 bits in memory (activations are gone by then).
#pragma once

#include <span>

#include "orrery/parallel/lower_parts.hpp"
#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

// Reads the gradient, reads and writes master copy and moments, writes the weight; where shards are the master copy,
// reads and writes these and the moments. Offloaded state is read and written concurrently, in both directions: the
// time is that of the bytes of one direction. `dense`, `expert`: trained weights of the rank before sharding;
// `matrices`: of these, those that Muon orthogonalizes.
// With OptimizerDevice::host it is one call, a TierTransfer::update, and `matrices` must be empty.
[[nodiscard]] Block optimizer_block(const LoweringContext& context, double dense, double expert,
                                    std::span<const Orthogonalized> matrices);

}  // namespace orrery::parallel
