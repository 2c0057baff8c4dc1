#include "orrery/validate/outcome.hpp"

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"

namespace orrery::validate {

namespace {

Outcome outcome(const Scenario& scenario) {
  estimate::Estimator estimator(scenario.model, scenario.cluster, *scenario.stack, scenario.job);
  return {estimator.step_time(scenario.plan), estimator.memory(scenario.plan).fits};
}

Outcome outcome(const KernelScenario& scenario) {
  return {cost::kernel_cost(scenario.kernel, scenario.accelerator).time};
}

}  // namespace

OrSkip<Outcome> outcome_of(const AnyRow& row, const Parts& parts) {
  return std::visit(
      [&](const auto& kind) -> OrSkip<Outcome> {
        const auto scenario = scenario_of(kind, parts);
        if (!scenario) { return tl::make_unexpected(scenario.error()); }
        return outcome(*scenario);
      },
      row);
}

}  // namespace orrery::validate
