// Operators of one rank's slice -> blocks of the program: boundaries become collectives; backward runs the operators in
// reverse and replays what recompute has dropped.
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

// An upper bound of the items of a block, for lists of fixed length. (The longest block has 141 items: the backward
// pass of a mixture of experts with latent attention, adapters, full recompute and GEMMs in chunks.)
inline constexpr std::size_t kMostItems = 256;

[[nodiscard]] Block forward_block(std::string_view name, std::span<const workload::Operator> operators,
                                  const Plan& plan);

// Which gradients a backward block computes.
enum class Gradients : std::uint8_t {
  all,
  input,   // those that the previous layer needs
  weight,  // weight gradients only
};

// Operators with a tag in `replayed` run forward again (with `all` and `input`): each run of such operators, before the
// first operator whose backward pass reads their results. For a collective with two ends, `replayed` must contain both
// ends and everything between, or nothing of these.
[[nodiscard]] Block backward_block(std::string_view name, std::span<const workload::Operator> operators,
                                   const Plan& plan, const hardware::Stack& stack, workload::TagSet replayed,
                                   Gradients gradients = Gradients::all);

// Host time to launch all kernels and collectives one after another.
[[nodiscard]] Seconds host_time(const Block& block, const hardware::Stack& stack);

// A kernel that only moves bytes.
[[nodiscard]] Item stream_item(std::string_view name, Purpose purpose, Bytes bytes,
                               const hardware::HeldBytes& held = {});

// A block of one collective.
[[nodiscard]] Block collective_block(std::string_view name, Collective collective, GroupKind group, Bytes bytes);

}  // namespace orrery::parallel
