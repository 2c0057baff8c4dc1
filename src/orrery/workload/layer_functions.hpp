// Functions inside a layer.
#pragma once

#include <cstdint>

namespace orrery::workload {

enum class Normalisation : std::uint8_t { layernorm, rmsnorm };
enum class Activation : std::uint8_t { gelu, relu, silu, squared_relu };

}  // namespace orrery::workload
