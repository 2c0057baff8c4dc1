#include "orrery/explore/neighbours.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery::explore {

using parallel::Plan;

namespace {

struct Axis {
  std::string_view name;
  std::int64_t (*value)(const Plan&);  // its order is that of the axis
};

enum : std::size_t { kTp, kCp, kPp, kEp, kEtp, kVpp, kMicroBatch, kCpMethod, kSequenceParallel, kRecompute, kZero };

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

// The one axis on which two plans differ, and nothing where there are none or several.
std::optional<std::size_t> only_difference(const Plan& a, const Plan& b, bool inference) {
  std::array<bool, kAxes.size()> differs{};
  for (std::size_t i = 0; i < kAxes.size(); ++i) { differs[i] = kAxes[i].value(a) != kAxes[i].value(b); }
  if (differs[kTp]) {
    if (a.etp == a.tp && b.etp == b.tp) { differs[kEtp] = false; }
    if (a.tp == 1 || b.tp == 1) { differs[kSequenceParallel] = false; }
  }
  if (a.cp == 1 || b.cp == 1) { differs[kCpMethod] = false; }
  // A batch of requests is cut into a number of micro-batches; their size follows.
  if (inference) { differs[kMicroBatch] = a.micro_batch * a.dp != b.micro_batch * b.dp; }
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    if (!differs[i]) { continue; }
    if (found) { return std::nullopt; }
    found = i;
  }
  return found;
}

// The nearest plans on an axis.
struct Nearest {
  const Plan* below = nullptr;
  const Plan* above = nullptr;
};

}  // namespace

std::vector<Neighbour> neighbours(const std::vector<Plan>& space, const Plan& plan, bool inference) {
  std::array<Nearest, kAxes.size()> nearest;
  for (const Plan& other : space) {
    const auto axis = only_difference(other, plan, inference);
    if (!axis) { continue; }
    const auto value = kAxes[*axis].value;
    auto& [below, above] = nearest[*axis];
    const bool is_below = value(other) < value(plan);
    const Plan*& place = is_below ? below : above;
    if (place == nullptr || (is_below ? value(other) > value(*place) : value(other) < value(*place))) {
      place = &other;
    }
  }
  std::vector<Neighbour> found;
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    for (const Plan* near : {nearest[i].below, nearest[i].above}) {
      if (near != nullptr) { found.push_back({std::string(kAxes[i].name), *near}); }
    }
  }
  return found;
}

}  // namespace orrery::explore
