// Optimizers, and the bytes of state that they keep.
#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/core/units.hpp"

namespace orrery::hardware {

// Enumerators are spelled as in configuration files.
enum class OptimizerKind : std::uint8_t {
  adam,      // and other optimizers with two moments (AdamW, LAMB)
  adam8bit,  // Adam with moments of 8 bits, one 32-bit scale per 2,048 (arXiv:2110.02861, section 2)
  sgd,       // with momentum
  muon,      // momentum of the matrices of layers, orthogonalized by Newton-Schulz; Adam for all other weights
};

[[nodiscard]] std::string_view name_of(OptimizerKind kind);

// Bytes of state per weight, in a stack whose Adam keeps `moments` per weight, both moments together: one of two
// moments for momentum, in the stack's format.
[[nodiscard]] Bytes state_per_weight(OptimizerKind kind, Bytes moments);
// The same of weights in matrices of layers, which muon treats differently.
[[nodiscard]] Bytes state_per_matrix_weight(OptimizerKind kind, Bytes moments);

}  // namespace orrery::hardware
