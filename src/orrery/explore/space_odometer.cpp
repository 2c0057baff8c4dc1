#include "orrery/explore/space_odometer.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/parallel/mesh.hpp"

namespace orrery::explore {

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// Counts saturate at the largest number; Space::make rejects it.
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}
std::int64_t plus(std::int64_t a, std::int64_t b) { return a > kMost - b ? kMost : a + b; }

std::string value_text(Axis axis, std::int64_t value) {
  const auto choices = kind_of(axis).choices;
  return choices.empty() ? fmt::format("{}", value) : std::string(choices[static_cast<std::size_t>(value)]);
}

}  // namespace

Odometer::Odometer(const CompiledSpace& space)
    : space_(space), entries_(space.levels.size()), current_(space.levels.size(), 0), scratch_(3) {
  chosen_.member.point.plan = space.base;
  chosen_.job = space.job;
  chosen_.slots = space.slots;
}

const std::vector<Odometer::Entry>& Odometer::entries(std::size_t level) {
  const LevelMask bit = LevelMask{1} << level;
  if ((stale_ & bit) != 0) {
    build(level);
    stale_ &= ~bit;
  }
  return entries_[level];
}

void Odometer::build(std::size_t index) {
  const Level& level = space_.levels[index];
  auto& out = entries_[index];
  out.clear();
  seen_.clear();
  if (const auto only = value_without_effect(space_, level, chosen_)) { return add(level, *only, 0, out); }
  if (level.fixed) {
    if (fits(space_, level, *level.fixed, chosen_)) { add(level, *level.fixed, 0, out); }
    return;
  }
  std::int64_t position = 0;
  for (const ValueSet& set : level.values.sets) { add_set(level, set, position, out); }
}

void Odometer::add_set(const Level& level, const ValueSet& set, std::int64_t& position, std::vector<Entry>& out) {
  auto& values = scratch_[0];
  values.clear();
  EvaluationError error;
  append_values(set, chosen_.slots, slot_of(Fact::devices), values, error);
  if (!error.message.empty()) { return report(level, std::move(error)); }
  for (const std::int64_t value : values) {
    if (position >= static_cast<std::int64_t>(kMostValues)) {
      return report(level, {level.place, fmt::format("gives more than {} values", kMostValues)});
    }
    if (admits(level, set, value)) { add(level, value, position, out); }
    ++position;
  }
}

bool Odometer::admits(const Level& level, const ValueSet& set, std::int64_t value) {
  const auto& allowed = level.allowed;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end()) { return false; }
  if (!fits(space_, level, value, chosen_)) { return false; }
  if (std::string wrong = out_of_range(space_, level.axis, value); !wrong.empty()) {
    report(level, {set.place, std::move(wrong)});
    return false;
  }
  chosen_.slots[slot_of(level.axis)] = value;
  EvaluationError error;
  const bool holds = set.where.is_empty() || set.where.value(chosen_.slots, error) != 0;
  if (!error.message.empty()) { report(level, std::move(error)); }
  return holds;
}

void Odometer::add(const Level& level, std::int64_t value, std::int64_t position, std::vector<Entry>& out) {
  if (level.values.sets.size() > 1) {  // a repeated value counts once
    if (std::find(seen_.begin(), seen_.end(), value) != seen_.end()) { return; }
    seen_.push_back(value);
  }
  Entry entry{value, effect(level, value, chosen_), 1, static_cast<std::uint16_t>(position), {}};
  if (!level.counted.empty()) {
    choose(space_, level, value, chosen_);
    entry.weight = count_combinations(level, entry);
    if (entry.weight == 0) { return; }
  }
  if (level.merges) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const Entry& e) { return e.effect == entry.effect; });
    if (same != out.end()) {
      same->weight = plus(same->weight, entry.weight);
      return;
    }
  }
  out.push_back(entry);
}

// Number of combinations of the axes counted with a level. They do not depend on each other (space_compile.cpp).
std::int64_t Odometer::count_combinations(const Level& level, Entry& entry) {
  std::int64_t weight = 1;
  for (std::size_t i = 0; i < level.counted.size(); ++i) {
    weight = times(weight, count_values(level.counted[i], entry.counted[i]));
  }
  return weight;
}

std::int64_t Odometer::count_values(const Level& counted, std::uint16_t& first) {
  first = 0;
  if (counted.fixed || value_without_effect(space_, counted, chosen_)) { return 1; }
  auto& values = scratch_[1];
  auto& distinct = scratch_[2];
  distinct.clear();
  std::int64_t position = 0;
  for (const ValueSet& set : counted.values.sets) {
    values.clear();
    EvaluationError error;
    append_values(set, chosen_.slots, slot_of(Fact::devices), values, error);
    if (!error.message.empty()) { report(counted, std::move(error)); }
    for (const std::int64_t value : values) {
      const bool is_new = std::find(distinct.begin(), distinct.end(), value) == distinct.end();
      if (is_new && admits(counted, set, value)) {
        if (distinct.empty()) { first = static_cast<std::uint16_t>(position); }
        distinct.push_back(value);
      }
      ++position;
    }
  }
  return static_cast<std::int64_t>(distinct.size());
}

void Odometer::report(const Level& level, EvaluationError error) {
  if (!error_.message.empty()) { return; }
  const SlotMask used = level.values.uses();
  std::vector<std::string> before;
  for (const Level& other : space_.levels) {
    if (other.order && other.axis != level.axis && is_in(used, other.axis)) {
      before.push_back(
          fmt::format("{} is {}", axis_name(other.axis), value_text(other.axis, chosen_.slots[slot_of(other.axis)])));
    }
  }
  if ((used & mask_of(slot_of(Fact::dp))) != 0) {
    before.push_back(fmt::format("dp is {}", chosen_.slots[slot_of(Fact::dp)]));
  }
  const std::string where = before.empty() ? "" : " where " + join(before, ", ");
  error_ = {std::move(error.place), fmt::format("{}: {}{}", axis_name(level.axis), error.message, where)};
}

void Odometer::select(std::size_t index, const Entry& entry) {
  const Level& level = space_.levels[index];
  choose(space_, level, entry.value, chosen_);
  stale_ |= level.readers;
  auto& order = chosen_.member.order;
  if (level.order) { order[*level.order] = entry.position; }
  for (std::size_t i = 0; i < level.counted.size(); ++i) { order[*level.counted[i].order] = entry.counted[i]; }
}

std::int64_t Odometer::count() { return count(0); }

std::int64_t Odometer::count(std::size_t level) {
  if (level == space_.levels.size()) { return 1; }
  constexpr std::uint32_t kPace = 1 << 16;
  if (++counted_ % kPace == 0 && while_counting_) { while_counting_(); }
  const auto& list = entries(level);
  if (list.empty() || !error_.message.empty()) { return 0; }
  std::int64_t total = 0;
  if (space_.levels[level].readers == 0) {  // the following levels are the same for every value
    for (const Entry& entry : list) { total = plus(total, entry.weight); }
    select(level, list.front());
    return times(total, count(level + 1));
  }
  for (const Entry& entry : list) {
    select(level, entry);
    total = plus(total, times(entry.weight, count(level + 1)));
  }
  return total;
}

bool Odometer::groups_fill() const {
  return !space_.pins || parallel::is_placed(space_.cluster, chosen_.member.point.plan);
}

bool Odometer::is_valid() const {
  return !space_.refused &&
         parallel::is_valid(space_.model, chosen_.job, chosen_.member.point.plan, space_.cluster.devices);
}

void Odometer::families(OfFamily visit, void* object) {
  of_family_ = visit;
  object_ = object;
  family_ = {};
  static_cast<void>(walk_families(0, 1));
}

bool Odometer::walk_families(std::size_t level, std::int64_t weight) {
  if (level == space_.outer) { return show_family(weight); }
  for (const Entry& entry : entries(level)) {
    select(level, entry);
    if (!walk_families(level + 1, weight * entry.weight)) { return false; }
  }
  return true;
}

// Selects the first point whose groups fill their dimensions and, if `possible`, which the model allows; false if there
// is none.
bool Odometer::find_first(std::size_t level, bool possible) {
  if (level == space_.placed && !groups_fill()) { return false; }
  if (level == space_.levels.size()) { return !possible || is_valid(); }
  for (const Entry& entry : entries(level)) {
    select(level, entry);
    if (find_first(level + 1, possible)) { return true; }
  }
  return false;
}

// The verdict on a family. If it is possible, a possible plan is selected.
Verdict Odometer::verdict() {
  if (!find_first(space_.outer, false)) { return Verdict::network; }
  const bool possible = is_valid() || (space_.validity_varies && find_first(space_.outer, true));
  return possible ? Verdict::possible : Verdict::invalid;
}

bool Odometer::show_family(std::int64_t weight) {
  const std::int64_t all = times(weight, count(space_.outer));
  if (all == 0) { return true; }
  family_.points = all;
  family_.verdict = verdict();
  family_.first = chosen_.member.point;
  family_.at = {};
  for (std::size_t i = 0; i < space_.outer; ++i) {
    const Level& level = space_.levels[i];
    if (level.order) { family_.at[*level.order] = chosen_.member.order[*level.order]; }
  }
  if (!space_.count_invalid) {
    if (family_.verdict != Verdict::possible) { return true; }
    count_possible(weight);
    if (family_.points == 0) { return true; }
  }
  const bool continues = of_family_(object_, family_);
  ++family_.number;
  return continues;
}

// Counts possible points only; the first point is one of them.
void Odometer::count_possible(std::int64_t weight) {
  struct Sum {
    std::int64_t points = 0;
    Point first;
  } sum;
  void* const object = std::exchange(object_, &sum);
  const auto of_member = std::exchange(of_member_, [](void* to, const Member& member) {
    auto& total = *static_cast<Sum*>(to);
    if (total.points == 0) { total.first = member.point; }
    total.points += member.points;
  });
  walk_members(space_.outer, weight);
  object_ = object;
  of_member_ = of_member;
  family_.points = sum.points;
  family_.first = sum.first;
}

void Odometer::members(const Family& family, OfMember visit, void* object) {
  of_member_ = visit;
  object_ = object;
  family_.verdict = family.verdict;  // read by walk_members
  walk_members(space_.outer, replay(family.at));
}

// Selects the values `at` on the outer levels; returns the number of points that they represent.
std::int64_t Odometer::replay(const Order& at) {
  std::int64_t weight = 1;
  for (std::size_t i = 0; i < space_.outer; ++i) {
    const bool was_stale = (stale_ & (LevelMask{1} << i)) != 0;
    const auto& list = entries(i);
    const auto& order = space_.levels[i].order;
    const std::uint16_t position = order ? at[*order] : list.front().position;
    if (was_stale || list[current_[i]].position != position) {
      const auto found = std::find_if(list.begin(), list.end(), [&](const Entry& e) { return e.position == position; });
      ORRERY_ASSERT(found != list.end());
      current_[i] = static_cast<std::size_t>(found - list.begin());
      select(i, *found);
    }
    weight *= list[current_[i]].weight;
  }
  return weight;
}

void Odometer::walk_members(std::size_t level, std::int64_t weight) {
  if (level == space_.placed) {
    if (!groups_fill()) { return show(Verdict::network, times(weight, count(level))); }
    if (family_.verdict == Verdict::invalid) { return show(Verdict::invalid, times(weight, count(level))); }
  }
  if (level == space_.levels.size()) {
    return show(space_.validity_varies && !is_valid() ? Verdict::invalid : Verdict::possible, weight);
  }
  for (const Entry& entry : entries(level)) {
    select(level, entry);
    walk_members(level + 1, weight * entry.weight);
  }
}

void Odometer::show(Verdict verdict, std::int64_t points) {
  if (points == 0 || (verdict != Verdict::possible && !space_.count_invalid)) { return; }
  chosen_.member.verdict = verdict;
  chosen_.member.points = points;
  of_member_(object_, chosen_.member);
}

}  // namespace orrery::explore
