// Activation recompute: which operators of a layer the backward pass runs again (replays) instead of keeping their
// activations. A choice is a set of operator tags; what is kept (lower_slice.cpp, memory.cpp) and what is replayed
// (blocks.cpp) follows from the tags. Embedding, head and MTP modules are never replayed.
#pragma once

#include <span>

#include "orrery/parallel/plan.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {

// The operators that a choice replays, in the layers that it applies to.
[[nodiscard]] workload::TagSet replayed_tags(Recompute choice, const RecomputeModules& modules = {});
[[nodiscard]] inline workload::TagSet replayed_tags(const Plan& plan) {
  return replayed_tags(plan.recompute, plan.recompute_modules);
}

// Whether a plan recomputes some layers of a chunk and not others.
[[nodiscard]] inline bool recomputes_some_layers(const Plan& plan) {
  return plan.recompute_layers > 0 && plan.recompute != Recompute::none;
}

// Whether the weight gradients of a layer read activations that operators with this tag have saved. Activations that
// they do not read are freed after the input gradients; the others are kept until the weight task, if the schedule has
// one.
[[nodiscard]] bool weight_gradients_read(workload::OperatorTag tag);
// The same for any of these tags.
[[nodiscard]] bool weight_gradients_read(workload::TagSet tags);

// Activations of one part of the model and one micro-batch, from forward to backward.
struct Activations {
  Bytes whole;      // without recompute
  Bytes kept;       // if the operators in `replayed` run again
  Bytes transient;  // bytes of the dropped activations that no weight gradient reads
};

// `input`: the part's input. It is kept in place of activations that are replayed from it.
[[nodiscard]] Activations activations(std::span<const workload::Operator> operators, workload::TagSet replayed,
                                      Bytes input);

}  // namespace orrery::parallel
