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

enum : std::size_t {
  kTp,
  kCp,
  kPp,
  kEp,
  kEtp,
  kVpp,
  kMicroBatch,
  kCpMethod,
  kSequenceParallel,
  kRecompute,
  kZero,
  kTpOverlap,
  kDpOverlap,
  kShard,
  kOffload,
  kPlacement,
  kTableSharding,
  kTableRanks,
  kReplicated,
  kNeighbourAxes
};
constexpr std::size_t kCuts = kEtp + 1;  // the axes that cut the batch or the layers come first

std::int64_t digits(std::initializer_list<int> values) {
  std::int64_t number = 0;
  for (const int value : values) { number = 16 * number + value + 1; }
  return number;
}

constexpr std::array<Axis, kNeighbourAxes> kAxes{{
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
    {"tp-overlap", [](const Plan& plan) { return static_cast<std::int64_t>(plan.tp_overlap); }},
    {"dp-overlap", [](const Plan& plan) { return std::int64_t{plan.dp_overlap ? 1 : 0}; }},
    {"shard", [](const Plan& plan) { return plan.shard; }},
    {"offload",
     [](const Plan& plan) {
       return digits({plan.offload.weights ? 1 : 0, plan.offload.activations ? 1 : 0, plan.offload.optimizer ? 1 : 0});
     }},
    {"placement",
     [](const Plan& plan) {
       return digits({plan.placement.tp, plan.placement.cp, plan.placement.dp, plan.placement.pp});
     }},
    {"table-sharding", [](const Plan& plan) { return static_cast<std::int64_t>(plan.tables.sharding); }},
    {"table-ranks", [](const Plan& plan) { return plan.tables.ranks; }},
    {"replicate-tables-below", [](const Plan& plan) { return plan.tables.replicated_below; }},
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

// Those of the points that keep the choices of `plan` which do not follow from `axis`.
std::vector<Point> keeping_choices(std::vector<Point> points, const Plan& plan, std::size_t axis) {
  if (axis >= kCuts) { return points; }
  for (const std::size_t choice : {kRecompute, kZero, kSequenceParallel, kCpMethod}) {
    const bool says_nothing = (choice == kZero && plan.replicas() == 1 && axis <= kPp) ||
                              (choice == kSequenceParallel && plan.tp == 1) || (choice == kCpMethod && plan.cp == 1);
    if (says_nothing) { continue; }
    const auto value = kAxes[choice].value;
    std::vector<Point> alike;
    std::copy_if(points.begin(), points.end(), std::back_inserter(alike),
                 [&](const Point& other) { return value(other.plan) == value(plan); });
    if (!alike.empty()) { points = std::move(alike); }
  }
  return points;
}

// The points at the nearest values of an axis.
struct Nearest {
  std::vector<Point> below, above;
};

// The position of the least time(point) among `points`, taken in `order` of their bounds; nothing where none has a
// time.
template <class Time>
std::optional<std::size_t> least(std::span<const Point> points, const std::vector<Seconds>& bounds,
                                 const std::vector<std::size_t>& order, Time time) {
  std::optional<std::size_t> best;
  auto best_time = infinite<Seconds>();
  for (const std::size_t i : order) {
    if (bounds[i] > best_time) { break; }
    const std::optional<Seconds> one = time(points[i]);
    if (!one || *one > best_time || (best && *one == best_time && i > *best)) { continue; }
    best = i;
    best_time = *one;
  }
  return best;
}

}  // namespace

Fastest fastest(std::span<const Point> points, Evaluator& evaluator) {
  ORRERY_ASSERT(!points.empty());
  std::vector<Seconds> bounds;
  for (const Point& point : points) { bounds.push_back(evaluator.bound(point)); }
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
  const auto at_all = least(points, bounds, order,
                            [&](const Point& point) { return std::optional(evaluator.unlimited_step_time(point)); });
  const auto fitting = least(points, bounds, order, [&](const Point& point) {
    const auto price = evaluator.price(point);
    return price ? std::optional(price->step_time) : std::nullopt;
  });
  ORRERY_ASSERT(at_all);
  if (!fitting || *fitting == *at_all) { return {points[*at_all], {}}; }
  return {points[*fitting], points[*at_all]};
}

std::vector<Point> points_of(Walk& walk, const std::function<bool(const Plan&)>& wanted) {
  std::vector<Family> families;
  walk.families([&](const Family& family) {
    if (family.verdict == Verdict::possible && wanted(family.first.plan)) { families.push_back(family); }
  });
  std::vector<std::pair<Order, Point>> found;
  for (const Family& family : families) {
    walk.members(family, [&](const Member& member) {
      if (member.verdict == Verdict::possible) { found.emplace_back(member.order, member.point); }
    });
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Point> points;
  for (auto& [order, point] : found) { points.push_back(point); }
  return points;
}

namespace {

// Whether a family may hold a plan one choice away: what its plans differ in is left out of the comparison.
bool may_be_near(Plan family, const Plan& plan) {
  family.zero = plan.zero;
  family.dp_overlap = plan.dp_overlap;
  family.shard = plan.shard;
  family.offload = plan.offload;
  family.placement = plan.placement;
  const bool is_own =
      std::all_of(kAxes.begin(), kAxes.end(), [&](const Axis& axis) { return axis.value(family) == axis.value(plan); });
  return is_own || axis_between(family, plan).has_value();
}

}  // namespace

std::vector<Neighbour> neighbours(Walk& walk, const Point& point, Evaluator& evaluator) {
  const Plan& plan = point.plan;
  std::array<Nearest, kAxes.size()> nearest;
  for (const Point& other : points_of(walk, [&](const Plan& family) { return may_be_near(family, plan); })) {
    const auto axis = axis_between(other.plan, plan);
    if (!axis) { continue; }
    const auto value = kAxes[*axis].value;
    const bool is_below = value(other.plan) < value(plan);
    auto& place = is_below ? nearest[*axis].below : nearest[*axis].above;
    const std::int64_t nearer = place.empty() ? 0 : value(other.plan) - value(place.front().plan);
    if (is_below ? nearer > 0 : nearer < 0) { place.clear(); }
    if (place.empty() || nearer == 0) { place.push_back(other); }
  }
  std::vector<Neighbour> found;
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    for (auto* points : {&nearest[i].below, &nearest[i].above}) {
      if (points->empty()) { continue; }
      const auto kept = keeping_choices(std::move(*points), plan, i);
      found.push_back({std::string(kAxes[i].name), fastest(kept, evaluator)});
    }
  }
  return found;
}

}  // namespace orrery::explore
