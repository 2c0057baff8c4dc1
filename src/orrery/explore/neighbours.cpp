#include "orrery/explore/neighbours.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::explore {

using parallel::Plan;
using parallel::PlanField;

namespace {

using parallel::PlanChoice;
using Choices = std::vector<const PlanChoice*>;

// Degrees come first, because they determine the batch and the layers of a rank. Lines of an explanation have this
// order.
Choices compared_choices() {
  Choices list =
      parallel::choices_from({"tp", "cp", "pp", "ep", "etp", "vpp", "micro_batch", "cp_method", "sequence_parallel",
                              "recompute", "zero", "tp_overlap", "dp_overlap", "shard", "offload", "placement"});
  std::erase_if(list, [](const PlanChoice* choice) { return !choice->is_explained; });
  std::stable_partition(list.begin(), list.end(), [](const PlanChoice* choice) { return choice->is_degree; });
  return list;
}

const Choices& compared() {
  static const Choices list = compared_choices();
  return list;
}

// The value of a choice, in the order of its axis; of several parts the first is the most significant.
std::int64_t value_of(const PlanChoice& choice, const Plan& plan) {
  if (choice.parts.size() == 1) { return choice.parts.front().get(plan); }
  std::int64_t number = 0;
  for (const auto& part : choice.parts) { number = 16 * number + part.get(plan) + 1; }
  return number;
}

// The only choice in which two plans differ. If one degree differs, that degree, whatever else differs. Null if there
// is none or more than one.
const PlanChoice* choice_between(const Plan& a, const Plan& b) {
  const bool etp_equals_tp = a.tp != b.tp && a.etp == a.tp && b.etp == b.tp;
  const PlanChoice* found = nullptr;
  for (const PlanChoice* choice : compared()) {
    if (found != nullptr && found->is_degree && !choice->is_degree) { break; }
    const bool follows = etp_equals_tp && choice->parts.front().field == PlanField::etp;
    if (follows || value_of(*choice, a) == value_of(*choice, b)) { continue; }
    if (found != nullptr) { return nullptr; }
    found = choice;
  }
  return found;
}

// The points with the same values as `plan` in all choices that do not follow from `changed`.
std::vector<Point> keeping_choices(std::vector<Point> points, const Plan& plan, const PlanChoice& changed) {
  if (!changed.is_degree) { return points; }
  const PlanField degree = changed.parts.front().field;
  const bool may_copy = degree == PlanField::tp || degree == PlanField::cp || degree == PlanField::pp;
  for (const PlanField field :
       {PlanField::recompute, PlanField::zero, PlanField::sequence_parallel, PlanField::cp_method}) {
    const bool has_no_effect = (field == PlanField::zero && plan.replicas() == 1 && may_copy) ||
                               (field == PlanField::sequence_parallel && plan.tp == 1) ||
                               (field == PlanField::cp_method && plan.cp == 1);
    if (has_no_effect) { continue; }
    const auto value = parallel::part_of(field).get;
    std::vector<Point> same;
    std::copy_if(points.begin(), points.end(), std::back_inserter(same),
                 [&](const Point& other) { return value(other.plan) == value(plan); });
    if (!same.empty()) { points = std::move(same); }
  }
  return points;
}

// The points at the nearest values of an axis.
struct Nearest {
  std::vector<Point> below, above;
};

// The index of the point with the lowest time(point), visited in `order` of their bounds; nothing if none has a time.
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
  const auto fastest_of_all = least(
      points, bounds, order, [&](const Point& point) { return std::optional(evaluator.unlimited_step_time(point)); });
  const auto fitting = least(points, bounds, order, [&](const Point& point) {
    const auto price = evaluator.price(point);
    return price ? std::optional(price->step_time) : std::nullopt;
  });
  ORRERY_ASSERT(fastest_of_all);
  if (!fitting || *fitting == *fastest_of_all) { return {points[*fastest_of_all], {}}; }
  return {points[*fitting], points[*fastest_of_all]};
}

std::vector<Point> points_of(Walk& walk, const std::function<bool(const Plan&)>& is_selected) {
  std::vector<Family> families;
  walk.families([&](const Family& family) {
    if (family.verdict == Verdict::possible && is_selected(family.first.plan)) { families.push_back(family); }
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

// Whether a family may contain a neighbouring plan; choices in which its plans differ are not compared.
bool may_be_near(Plan family, const Plan& plan) {
  bool is_own = true;
  for (const PlanChoice* choice : compared()) {
    const bool varies =
        std::any_of(choice->parts.begin(), choice->parts.end(), [](const auto& part) { return part.inner; });
    if (varies) {
      for (const auto& part : choice->parts) { part.set(family, part.get(plan)); }
    }
    is_own &= value_of(*choice, family) == value_of(*choice, plan);
  }
  return is_own || choice_between(family, plan) != nullptr;
}

std::string name_of(const PlanChoice& choice) { return parallel::flag_of(choice).substr(2); }

}  // namespace

std::vector<Neighbour> neighbours(Walk& walk, const Point& point, Evaluator& evaluator) {
  const Plan& plan = point.plan;
  std::vector<Nearest> nearest(compared().size());
  for (const Point& other : points_of(walk, [&](const Plan& family) { return may_be_near(family, plan); })) {
    const PlanChoice* const choice = choice_between(other.plan, plan);
    if (choice == nullptr) { continue; }
    const auto value = [choice](const Plan& one) { return value_of(*choice, one); };
    auto& near =
        nearest[static_cast<std::size_t>(std::find(compared().begin(), compared().end(), choice) - compared().begin())];
    const bool is_below = value(other.plan) < value(plan);
    auto& place = is_below ? near.below : near.above;
    const std::int64_t nearer = place.empty() ? 0 : value(other.plan) - value(place.front().plan);
    if (is_below ? nearer > 0 : nearer < 0) { place.clear(); }
    if (place.empty() || nearer == 0) { place.push_back(other); }
  }
  std::vector<Neighbour> found;
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    for (auto* points : {&nearest[i].below, &nearest[i].above}) {
      if (points->empty()) { continue; }
      const auto kept = keeping_choices(std::move(*points), plan, *compared()[i]);
      found.push_back({name_of(*compared()[i]), fastest(kept, evaluator)});
    }
  }
  return found;
}

}  // namespace orrery::explore
