// Rows ran, so their plans were possible. Where columns contradict each other, or the rules of a plan, this is the plan
// that is nearest to what they say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/estimate/request.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::validate {

// Degrees of the request divide `devices`.
//
//   dp               what the other degrees leave of the devices, whatever is stated
//   ep               1 without experts; else the largest degree up to the stated one that divides experts and ranks
//   sequence split   on where experts and tp need it; off where tp does not divide the sequence
//   the sequence     rounded up to what context parallelism (and, with experts, tp) divides: libraries pad it
//   batches          those of the busiest replica: of sequences that replicas do not share evenly it has one more, and
//                    passes that the micro-batch does not divide are as many, of even size
//   chunks           as many as there are layers for; one where micro-batches do not go round the stages evenly
//   recommenders     have neither a sequence nor layers to cut: replicas only
//
// Says what was changed: "global_batch 30 -> 32".
[[nodiscard]] std::vector<std::string> make_possible(estimate::Request& request, const workload::Model& model,
                                                     std::int64_t devices);

// Of a row that states no degree at all: one replica for each device, unless some would have nothing to do. Then as few
// tensor-parallel ranks, of one node, as leave every replica a sequence.
[[nodiscard]] std::int64_t open_tensor_parallelism(const workload::Model& model, std::int64_t devices,
                                                   std::int64_t node, std::int64_t batch);

}  // namespace orrery::validate
