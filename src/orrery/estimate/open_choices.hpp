// The choices of a plan that a request leaves open: vpp, schedule, micro-batch, sequence-parallel and recompute.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/request.hpp"

namespace orrery::estimate {

// All valid combinations of the open choices; what is given, and what is not listed above, is as in `plan`. vpp goes up
// to the layers of a stage, micro-batches over all divisors of a replica's batch, the schedule is 1f1b or, with several
// chunks, interleaved. In inference only micro-batch and sequence-parallel vary. In the order of ties: fewer chunks,
// smaller micro-batches, without sequence-parallel, less recompute first.
[[nodiscard]] std::vector<parallel::Plan> open_plans(const Request& request, const workload::Model& model,
                                                     const hardware::Cluster& cluster, const hardware::Stack& stack,
                                                     const parallel::Plan& plan);

// The fastest of `plans` that fits in memory, the first of equal ones; if none fits, the one with the lowest memory, in
// inference the fastest.
struct OpenChoice {
  parallel::Plan plan;
  bool fits = false;
  // One entry per open choice with several valid values.
  struct Field {
    parallel::PlanField field = parallel::PlanField::tp;
    // The fastest plan with another value of this choice, and how much longer its step takes: 0.05 is 5 %. Nothing:
    // plans with other values do not fit.
    struct RunnerUp {
      parallel::Plan plan;
      double slower = 0.0;
    };
    std::optional<RunnerUp> runner_up;
  };
  std::vector<Field> fields;
};
// `plans` must not be empty. Exact: what is not priced has a lower bound above every answer it could change.
[[nodiscard]] OpenChoice fastest(Estimator& estimator, const std::vector<parallel::Plan>& plans);

}  // namespace orrery::estimate
