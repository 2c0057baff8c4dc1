// The evaluator of a search, implemented by the estimator.
#pragma once

#include <optional>

#include "orrery/api/inputs.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/explore/evaluator.hpp"
#include "orrery/explore/space_walk.hpp"

namespace orrery::api {

class PlanEvaluator final : public explore::Evaluator {
 public:
  PlanEvaluator(const Inputs& inputs, const explore::Space& space)
      : estimator_(inputs.model, inputs.cluster, inputs.stack, space.job()), lowest_memory_(space.lowest_memory()) {}

  Seconds bound(const explore::Point& point) override { return of(point).step_time_bound(point.plan); }
  bool may_fit(const explore::Point& point) override { return of(point).may_fit(point.plan, lowest_memory_); }
  std::optional<explore::Price> price(const explore::Point& point) override {
    const auto price = of(point).price(point.plan);
    if (!price) { return std::nullopt; }
    return explore::Price{price->step_time, price->memory};
  }
  Seconds unlimited_step_time(const explore::Point& point) override { return of(point).step_time(point.plan); }

 private:
  estimate::Estimator& of(const explore::Point& point) {
    estimator_.set_global_batch(point.global_batch);
    return estimator_;
  }

  estimate::Estimator estimator_;
  parallel::LowestMemory lowest_memory_;
};

}  // namespace orrery::api
