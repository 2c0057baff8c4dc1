#include "orrery/explore/neighbours.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>

#include "orrery/core/error.hpp"

namespace orrery::explore {

using parallel::Plan;

namespace {

struct Axis {
  std::string_view name;
  std::int64_t (*value)(const Plan&);  // its order is that of the axis
};

enum : std::size_t { kTp, kCp, kPp, kEp, kEtp, kVpp, kMicroBatch, kCpMethod, kSequenceParallel, kRecompute, kZero };
constexpr std::size_t kCuts = kEtp + 1;  // the axes that cut the batch or the layers come first

constexpr std::array<Axis, 11> kAxes{{
    {"tp", [](const Plan& plan) { return plan.tp; }},
    {"cp", [](const Plan& plan) { return plan.cp; }},
    {"pp", [](const Plan& plan) { return plan.pp; }},
    {"ep", [](const Plan& plan) { return plan.ep; }},
    {"etp", [](const Plan& plan) { return plan.etp; }},
    {"vpp", [](const Plan& plan) { return plan.vpp; }},
    {"micro-batch", [](const Plan& plan) { return plan.micro_batch; }},
    {"cp-method", [](const Plan& plan) { return static_cast<std::int64_t>(plan.cp_method); }},
    {"sequence-parallel", [](const Plan& plan) { return std::int64_t{plan.sequence_parallel ? 1 : 0}; }},
    {"recompute", [](const Plan& plan) { return static_cast<std::int64_t>(plan.recompute); }},
    {"zero", [](const Plan& plan) { return std::int64_t{plan.zero}; }},
}};

// The axis on which two plans differ, and nothing where there are none or several: the one of those that cut, whatever
// follows from it, or the only one at all.
std::optional<std::size_t> axis_between(const Plan& a, const Plan& b) {
  std::array<bool, kAxes.size()> differs{};
  for (std::size_t i = 0; i < kAxes.size(); ++i) { differs[i] = kAxes[i].value(a) != kAxes[i].value(b); }
  if (differs[kTp] && a.etp == a.tp && b.etp == b.tp) { differs[kEtp] = false; }
  const auto cuts = std::span(differs).first(kCuts);
  const bool cut = std::find(cuts.begin(), cuts.end(), true) != cuts.end();
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < (cut ? kCuts : kAxes.size()); ++i) {
    if (!differs[i]) { continue; }
    if (found) { return std::nullopt; }
    found = i;
  }
  return found;
}

// Those of the plans that keep the choices of `plan` which do not follow from `axis`.
std::vector<Plan> keeping_choices(std::vector<Plan> plans, const Plan& plan, std::size_t axis) {
  if (axis >= kCuts) { return plans; }
  for (const std::size_t choice : {kRecompute, kZero, kSequenceParallel, kCpMethod}) {
    const bool says_nothing = (choice == kZero && plan.replicas() == 1 && axis <= kPp) ||
                              (choice == kSequenceParallel && plan.tp == 1) || (choice == kCpMethod && plan.cp == 1);
    if (says_nothing) { continue; }
    const auto value = kAxes[choice].value;
    std::vector<Plan> alike;
    std::copy_if(plans.begin(), plans.end(), std::back_inserter(alike),
                 [&](const Plan& other) { return value(other) == value(plan); });
    if (!alike.empty()) { plans = std::move(alike); }
  }
  return plans;
}

// The plans at the nearest values of an axis.
struct Nearest {
  std::vector<Plan> below, above;
};

// The position of the least time(plan) among `plans`, taken in `order` of their bounds; nothing where none has a time.
template <class Time>
std::optional<std::size_t> least(std::span<const Plan> plans, const std::vector<Seconds>& bounds,
                                 const std::vector<std::size_t>& order, Time time) {
  std::optional<std::size_t> best;
  auto best_time = infinite<Seconds>();
  for (const std::size_t i : order) {
    if (bounds[i] > best_time) { break; }
    const std::optional<Seconds> one = time(plans[i]);
    if (!one || *one > best_time || (best && *one == best_time && i > *best)) { continue; }
    best = i;
    best_time = *one;
  }
  return best;
}

}  // namespace

Fastest fastest(std::span<const Plan> plans, Evaluator& evaluator) {
  ORRERY_ASSERT(!plans.empty());
  std::vector<Seconds> bounds;
  for (const Plan& plan : plans) { bounds.push_back(evaluator.bound(plan)); }
  std::vector<std::size_t> order(plans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
  const auto at_all =
      least(plans, bounds, order, [&](const Plan& plan) { return std::optional(evaluator.unlimited_step_time(plan)); });
  const auto fitting = least(plans, bounds, order, [&](const Plan& plan) { return evaluator.step_time(plan); });
  ORRERY_ASSERT(at_all);
  if (!fitting || *fitting == *at_all) { return {plans[*at_all], {}}; }
  return {plans[*fitting], plans[*at_all]};
}

std::vector<Neighbour> neighbours(const std::vector<Plan>& space, const Plan& plan, Evaluator& evaluator) {
  std::array<Nearest, kAxes.size()> nearest;
  for (const Plan& other : space) {
    const auto axis = axis_between(other, plan);
    if (!axis) { continue; }
    const auto value = kAxes[*axis].value;
    const bool is_below = value(other) < value(plan);
    auto& place = is_below ? nearest[*axis].below : nearest[*axis].above;
    const std::int64_t nearer = place.empty() ? 0 : value(other) - value(place.front());
    if (is_below ? nearer > 0 : nearer < 0) { place.clear(); }
    if (place.empty() || nearer == 0) { place.push_back(other); }
  }
  std::vector<Neighbour> found;
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    for (auto* plans : {&nearest[i].below, &nearest[i].above}) {
      if (plans->empty()) { continue; }
      const auto kept = keeping_choices(std::move(*plans), plan, i);
      found.push_back({std::string(kAxes[i].name), fastest(kept, evaluator)});
    }
  }
  return found;
}

}  // namespace orrery::explore
