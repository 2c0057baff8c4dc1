// Operators of one rank's slice -> blocks of the program: boundaries become collectives, backward runs the operators in
// reverse and replays what recompute did not keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/parallel/recompute.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {

// An upper bound of the items of a block, for lists of fixed length. (The longest block that lowering makes has 141
// items: the backward pass of a mixture of experts with latent attention, adapters, full recompute and GEMMs in
// chunks.)
inline constexpr std::size_t kMostItems = 256;

[[nodiscard]] Block forward_block(std::string_view name, std::span<const workload::Operator> operators,
                                  const Plan& plan);

// Which gradients a backward block makes.
enum class Gradients : std::uint8_t {
  all,
  input,   // those that the layer before needs
  weight,  // the rest
};

// Operators with a tag in `replayed` run forward again (with `all` and `input`): each run of such operators before the
// first operator whose backward pass reads what they make. Of operators whose collective has two ends, `replayed` has
// to contain both ends and everything between, or neither.
[[nodiscard]] Block backward_block(std::string_view name, std::span<const workload::Operator> operators,
                                   const Plan& plan, const hardware::Stack& stack, workload::TagSet replayed,
                                   Gradients gradients = Gradients::all);

// Host time to launch all kernels and collectives, one after the other.
[[nodiscard]] Seconds host_time(const Block& block, const hardware::Stack& stack);

// A block of one collective.
[[nodiscard]] Block collective_block(std::string_view name, Collective collective, GroupKind group, Bytes bytes);

}  // namespace orrery::parallel
