#include "orrery/validate/outcome.hpp"

#include <algorithm>
#include <array>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/priced.hpp"
#include "orrery/estimate/spread.hpp"
#include "orrery/network/group.hpp"
#include "orrery/parallel/blocks.hpp"
#include "orrery/parallel/lowerer.hpp"

namespace orrery::validate {

namespace {

Outcome outcome(const Scenario& scenario) {
  estimate::Estimator estimator(scenario.model, scenario.cluster, *scenario.stack, scenario.job);
  return {estimator.step_time(scenario.plan), estimate::kinds_of(scenario.job, scenario.model, scenario.cluster),
          scenario.taken_as, estimator.memory(scenario.plan).fits};
}

std::vector<results::Share> terms(const Scenario& scenario) {
  estimate::Estimator estimator(scenario.model, scenario.cluster, *scenario.stack, scenario.job);
  const results::Estimate estimate = estimator.estimate(scenario.plan);
  const auto& parts = estimate.breakdown;
  std::vector<results::Share> shares;
  const auto add = [&](std::string name, Seconds time) {
    if (time > 1e-9 * estimate.step_time) { shares.push_back({std::move(name), time.value()}); }
  };
  add("compute", parts.compute);
  add("recompute", parts.recompute);
  for (const auto& group : estimate.comm_by_group) { add("exposed " + group.group, group.exposed); }
  add("bubble", parts.bubble);
  add("optimizer", parts.optimizer);
  add("offload", parts.offload);
  add("host", parts.host);
  return shares;
}

bool is_attention_core(std::string_view name) {
  constexpr std::array kCore = {std::string_view{"attention.scores"}, std::string_view{"attention.softmax"},
                                std::string_view{"attention.dropout"}, std::string_view{"attention.context"},
                                std::string_view{"attention.flash"}};
  return std::find(kCore.begin(), kCore.end(), name) != kCore.end();
}

Scenario scenario_in(const CommandScenario& command) {
  return {command.model, command.cluster, &command.stack, command.job, command.plan, {}};
}

// The kernels of the attention core of the first layer, forward.
Outcome attention_outcome(const CommandScenario& command) {
  parallel::Lowerer lowerer(command.model, command.cluster, command.stack);
  const parallel::LoweredSlice& slice = lowerer.slice(command.job, command.plan);
  Seconds time;
  for (const auto& item : slice.blocks[*slice.parts[slice.runs.front().part].forward]->items) {
    if (item.kernel() == nullptr || !is_attention_core(item.name)) { continue; }
    time += cost::kernel_cost(item.kernel()->kernel, command.cluster.accelerator).time;
  }
  return {time, estimate::kinds_of("kernels", command.cluster.accelerator.basis)};
}

Outcome outcome(const CommandScenario& command) {
  return command.attention_only ? attention_outcome(command) : outcome(scenario_in(command));
}
std::vector<results::Share> terms(const CommandScenario& command) { return terms(scenario_in(command)); }

std::vector<std::string> kinds_of_parts(const hardware::Cluster& cluster) {
  return estimate::kinds_of("parts", hardware::weakest_ground(cluster).basis);
}

// Kernels and collectives between the norm before the experts and the residual after them.
bool is_expert_item(const parallel::Item& item) {
  return item.name.starts_with("experts.") || item.name.starts_with("shared.");
}

Outcome outcome(const PassScenario& pass) {
  const Scenario& of = pass.job;
  parallel::Lowerer lowerer(of.model, of.cluster, *of.stack);
  const parallel::LoweredSlice& slice = lowerer.slice(of.job, of.plan);
  const parallel::Part& layer = slice.parts[slice.runs.front().part];
  parallel::Block block{"experts", {}, {}};
  for (const auto& item : slice.blocks[*(pass.backward ? layer.backward : layer.forward)]->items) {
    if (is_expert_item(item)) { block.items.push_back(item); }
  }
  ORRERY_ASSERT(std::all_of(block.items.begin(), block.items.end(), [](const auto& i) { return !i.waits_for(); }));
  block.launch = parallel::host_time(block, *of.stack);
  return {estimate::price_block(block, network::Fabric(of.cluster), parallel::make_mesh(of.cluster, of.plan)).time,
          kinds_of_parts(of.cluster)};
}

Outcome outcome(const AllToAllScenario& scenario) {
  const network::Fabric fabric(scenario.cluster);
  return {estimate::price_call(scenario.call, fabric, parallel::make_mesh(scenario.cluster, scenario.plan)),
          kinds_of_parts(scenario.cluster)};
}

Outcome outcome(const KernelScenario& scenario) {
  return {cost::kernel_cost(scenario.kernel, scenario.accelerator).time,
          estimate::kinds_of("kernels", scenario.accelerator.basis), scenario.taken_as};
}

// Bounds of the same time, not parts of it.
std::vector<results::Share> terms(const KernelScenario& scenario) {
  const auto cost = cost::kernel_cost(scenario.kernel, scenario.accelerator);
  return {{"compute", cost.compute.value()}, {"memory", cost.memory.value()}, {"latency", cost.latency.value()}};
}

std::vector<results::Share> terms(const CollectiveScenario&) { return {}; }

Outcome outcome(const CollectiveScenario& scenario) {
  const network::Fabric fabric(scenario.cluster);
  network::Group group;
  for (std::size_t d = 0; d < scenario.cluster.dimensions.size(); ++d) {
    const std::int64_t members = scenario.cluster.dimensions[d].size;
    if (members > 1) { group.extents.push_back({static_cast<int>(d), members}); }
  }
  const auto kinds = estimate::kinds_of_collective(group, scenario.cluster);
  if (!scenario.collective) { return {fabric.transfer(scenario.bytes, group.extents.back().dimension), kinds}; }
  const Seconds time = fabric.price(*scenario.collective, scenario.bytes, group, scenario.algorithm).time;
  if (is_finite(time)) { return {time, kinds}; }
  // The algorithm is not available for this collective or network; libraries then choose another one.
  return {fabric.price(*scenario.collective, scenario.bytes, group, CollectiveAlgorithm::automatic).time, kinds,
          "algo -> automatic (not available for this call)"};
}

}  // namespace

std::vector<results::Share> terms_of(const AnyRow& row, const Parts& parts) {
  if (std::holds_alternative<ExpertRow>(row)) { return {}; }
  return std::visit(
      [&](const auto& kind) -> std::vector<results::Share> {
        const auto scenario = scenario_of(kind, parts);
        if (!scenario) { return {}; }
        return terms(*scenario);
      },
      row);
}

namespace {

template <class AnyScenario>
Skippable<Outcome> outcome_unless_skipped(const Skippable<AnyScenario>& scenario) {
  if (!scenario) { return tl::make_unexpected(scenario.error()); }
  return outcome(*scenario);
}

}  // namespace

Skippable<Outcome> outcome_of(const AnyRow& row, const Parts& parts) {
  if (const auto* part = std::get_if<ExpertRow>(&row)) {
    return measured_by(part->metric) == Measured::pass ? outcome_unless_skipped(pass_of(*part, parts))
                                                       : outcome_unless_skipped(all_to_all_of(*part, parts));
  }
  return std::visit(
      [&](const auto& kind) -> Skippable<Outcome> {
        const auto scenario = scenario_of(kind, parts);
        return outcome_unless_skipped(scenario);
      },
      row);
}

}  // namespace orrery::validate
