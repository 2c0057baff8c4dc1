// Operators of one rank's slice -> blocks of the program: boundaries become collectives, backward runs the operators in
// reverse, recompute runs forward kernels again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {

// No block has more items: who walks one may keep a list of this length. (The longest that lowering makes is the
// backward pass of a mixture of experts behind latent attention, with adapters, full recompute and products in pieces:
// 141.)
inline constexpr std::size_t kMostItems = 256;

[[nodiscard]] Block forward_block(std::string_view name, std::span<const workload::Operator> operators,
                                  const Plan& plan);

// Which gradients a backward block makes.
enum class Gradients : std::uint8_t {
  all,
  input,   // those that flow on to the layer before
  weight,  // what `input` left over
};

// `recompute` says what of the forward pass was not kept and is run again first (by `all` and `input`).
[[nodiscard]] Block backward_block(std::string_view name, std::span<const workload::Operator> operators,
                                   const Plan& plan, const hardware::Stack& stack, Recompute recompute,
                                   Gradients gradients = Gradients::all);

// What the host takes to issue all kernels and collectives, one behind the other.
[[nodiscard]] Seconds host_time(const Block& block, const hardware::Stack& stack);

// A block of one collective.
[[nodiscard]] Block collective_block(std::string_view name, Collective collective, GroupKind group, Bytes bytes);

}  // namespace orrery::parallel
