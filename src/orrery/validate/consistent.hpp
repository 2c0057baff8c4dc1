// Measured runs had valid plans. Where columns of a row contradict each other, or the rules of a plan, this gives the
// nearest valid plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/estimate/request.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::validate {

// Degrees of the request divide `devices`.
//
//   dp               devices / (tp x cp x pp), whatever is stated
//   ep               1 without experts; else the largest degree up to the stated one that divides experts and ranks
//   sp               on where experts with tp require it; off where tp does not divide the sequence
//   seq              rounded up to a multiple of what context parallelism (and, with experts, tp) needs: libraries pad
//   global_batch     replicas x sequences of the fullest replica; the micro-batch is reduced until it divides them
//   vpp              at most layers of a stage; 1 where micro-batches are no multiple of the stages
//   recommenders     data parallelism only: no sequence, no pipeline
//
// Returns the changes: "global_batch 30 -> 32".
[[nodiscard]] std::vector<std::string> make_consistent(estimate::Request& request, const workload::Model& model,
                                                       std::int64_t devices);

// For a row without any degree: 1 where the batch has a sequence for every device; else the smallest degree within a
// node with which every replica has a sequence.
[[nodiscard]] std::int64_t default_tensor_parallelism(const workload::Model& model, std::int64_t devices,
                                                      std::int64_t node, std::int64_t batch);

}  // namespace orrery::validate
