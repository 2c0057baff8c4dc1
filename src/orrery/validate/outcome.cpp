#include "orrery/validate/outcome.hpp"

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/network/group.hpp"

namespace orrery::validate {

namespace {

Outcome outcome(const Scenario& scenario) {
  estimate::Estimator estimator(scenario.model, scenario.cluster, *scenario.stack, scenario.job);
  return {estimator.step_time(scenario.plan), estimator.memory(scenario.plan).fits};
}

Outcome outcome(const KernelScenario& scenario) {
  return {cost::kernel_cost(scenario.kernel, scenario.accelerator).time};
}

Outcome outcome(const CollectiveScenario& scenario) {
  const network::Fabric fabric(scenario.cluster);
  network::Group group;
  for (std::size_t d = 0; d < scenario.cluster.dimensions.size(); ++d) {
    const std::int64_t members = scenario.cluster.dimensions[d].size;
    if (members > 1) { group.extents.push_back({static_cast<int>(d), members}); }
  }
  if (!scenario.collective) { return {fabric.transfer(scenario.bytes, group.extents.back().dimension)}; }
  return {fabric.price(*scenario.collective, scenario.bytes, group, scenario.algorithm).time};
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
