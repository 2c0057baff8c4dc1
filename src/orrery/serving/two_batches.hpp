// Two-batch overlap (SGLang), dual-batch overlap (vLLM): an iteration is divided into two halves, one of which computes
// while the tokens of the other are on their way to experts or back.
//
// The halves take turns in every layer: attention of one beside the dispatch of the other, experts beside the dispatch
// and then beside the combine of the other, attention beside the combine. For layers that are alike this is as fast as
// any order in which kernels and transfers each follow one another (property test). Of unlike layers, sums are taken: a
// lower bound.
#pragma once

#include "orrery/core/units.hpp"
#include "orrery/serving/step_price.hpp"

namespace orrery::serving {

// What follows each other in a layer with experts on several ranks, as sums over all such layers; and everything else.
struct Phases {
  Seconds attention;  // and all that is neither below nor between: router, shared experts, norms
  Seconds dispatch, experts, combine;
  Seconds others;  // layers whose tokens stay on their rank

  Phases& operator+=(const Phases& other);
  [[nodiscard]] Phases operator-(const Phases& other) const;
  [[nodiscard]] Phases operator*(double factor) const;
};

// Time of two halves that take `half` each. While tokens travel, kernels lose the part `interference` of their rate.
[[nodiscard]] Seconds time_of_two(const Phases& half, double interference);

// The same where attention becomes longer with the contexts; `attention` and the result are of the whole iteration's
// contexts, `half` has the rest of attention.
[[nodiscard]] DecodeLine line_of_two(const DecodeLine& attention, const Phases& half, double interference,
                                     std::int64_t contexts);

// No shorter than `least`; affine up to the sum of contexts where it becomes longer.
[[nodiscard]] DecodeLine at_least(DecodeLine line, std::int64_t contexts, Ticks least);

}  // namespace orrery::serving
