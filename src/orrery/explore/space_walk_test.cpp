// Random spaces, walked in families, against all their combinations from plain nested loops that share no code for
// expressions, families, levels or counting.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/explore/space_walk.hpp"
#include "orrery/explore/test_written_axes.hpp"
#include "orrery/explore/test_written_spaces.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::explore::space_walk_test {
namespace {

using parallel::Plan;
using parallel::ScheduleKind;
using test::all_axes;
using test::any_axes;
using test::any_setting;
using test::made;
using test::Setting;
using test::State;
using test::text_of;
using test::Values;
using test::ways;
using test::Written;

using Key = std::vector<std::int64_t>;

Key key_of(const Plan& plan, std::int64_t batch) {
  Key key;
  key.reserve(parallel::kPlanFields + 1);
  for (const auto& choice : parallel::plan_choices()) {
    for (const auto& part : choice.parts) { key.push_back(part.get(plan)); }
  }
  key.push_back(batch);
  return key;
}

struct Found {
  std::int64_t points = 0, invalid = 0, network = 0;
  std::map<Key, std::pair<std::int64_t, Order>>
      plans;  // possible plans: number of points, and the order of the first one

  void add(const Key& key, std::int64_t count, const Order& order) {
    const auto [at, is_new] = plans.emplace(key, std::pair{count, order});
    if (is_new) { return; }
    at->second.first += count;
    at->second.second = std::min(at->second.second, order);
  }
};

constexpr std::int64_t kMostCompared = 6'000;  // keeps the loops short

class Loops {
 public:
  Loops(const Setting& setting, const std::vector<Written>& written) : s_(setting), written_(written) {
    for (const auto& axis : written) {
      const auto found = std::find(all_axes().begin(), all_axes().end(), axis.name);
      axes_.push_back(static_cast<std::size_t>(found - all_axes().begin()));
    }
    for (const auto& name : all_axes()) { meanings_.push_back(test::meaning(name)); }
  }

  Found run() {
    State at;
    at.plan.zero = 1;  // the default of `estimate`
    at.positions.resize(all_axes().size());
    over(0, at);
    return std::move(found_);
  }

 private:
  [[nodiscard]] const Written* find(const std::string& name) const {
    const auto found = std::find_if(written_.begin(), written_.end(), [&](const auto& w) { return w.name == name; });
    return found == written_.end() ? nullptr : &*found;
  }

  void over(std::size_t axis, const State& at) {
    if (found_.points > kMostCompared) { return; }
    if (axis == all_axes().size()) { return judge(at); }
    const std::string& name = all_axes()[axis];
    const Written* written = find(name);
    if (written == nullptr) { return leave_out(name, axis, at); }
    const Values values = test::alone(s_, name, at) ? Values{{test::nothing(name), 0}} : written->values(s_, at);
    for (const auto& [value, position] : values) {
      State next = at;
      if (!fits(name, value, next)) { continue; }
      meanings_[axis](next, value);
      next.positions[axis] = position;
      over(axis + 1, next);
    }
  }

  // Choices without an axis follow from the others.
  void leave_out(const std::string& name, std::size_t axis, State at) {
    if (name == "pp" && !fits(name, 1, at)) { return; }
    if (name == "etp") { at.plan.etp = s_.model.has_experts() && at.plan.ep == 1 ? at.plan.tp : 1; }
    const bool split = find("tp_comm") == nullptr && s_.model.has_experts() && at.plan.tp > 1;
    if (name == "sequence_parallel" && find("tp_comm") == nullptr) { at.plan.sequence_parallel = split; }
    if (name == "schedule") {
      at.plan.schedule = at.plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b;
    }
    over(axis + 1, at);
  }

  bool fits(const std::string& name, std::int64_t value, State& at) const {
    const Plan& p = at.plan;
    const std::int64_t devices = s_.cluster.devices;
    if (name == "tp") { return devices % value == 0; }
    if (name == "cp") { return devices / p.tp % value == 0; }
    if (name == "ep") { return p.stage_ranks() % value == 0; }
    if (name == "etp") { return p.stage_ranks() / p.ep % value == 0; }
    if (name == "micro_batch") { return at.batch / p.dp % value == 0; }
    if (name == "shard") { return value == 0 || p.replicas() % value == 0; }
    if (name == "schedule") { return (value == 2) == (p.vpp > 1); }
    if (name == "dp") { return value == p.dp; }
    if (name == "table_ranks") { return value == 0 || p.stage_ranks() % value == 0; }
    if (name != "pp") { return true; }
    if (devices / p.tp / p.cp % value != 0) { return false; }
    at.plan.dp = devices / p.tp / p.cp / value;
    at.batch = s_.max_batch > 0 ? s_.max_batch / at.plan.dp * at.plan.dp : s_.job.global_batch;
    return at.batch > 0 && at.batch % at.plan.dp == 0;
  }

  void judge(const State& at) {
    ++found_.points;
    parallel::Job job = s_.job;
    job.global_batch = at.batch;
    if (!parallel::is_placed(s_.cluster, at.plan)) {
      ++found_.network;
    } else if (!parallel::is_valid(s_.model, job, at.plan, s_.cluster.devices)) {
      ++found_.invalid;
    } else {
      found_.add(key_of(at.plan, at.batch), 1, order_of(at));
    }
  }

  [[nodiscard]] Order order_of(const State& at) const {
    Order order{};
    for (std::size_t i = 0; i < axes_.size(); ++i) { order[i] = static_cast<std::uint16_t>(at.positions[axes_[i]]); }
    return order;
  }

  const Setting& s_;
  const std::vector<Written>& written_;
  std::vector<std::size_t> axes_;        // index of each axis of the file in all_axes()
  std::vector<test::Meaning> meanings_;  // of all_axes()
  Found found_;
};

// What no bound depends on is the same in all plans then.
Key bound_reads(const Point& point) {
  static const auto inner = [] {
    std::vector<const parallel::PlanPart*> parts;
    for (const auto& choice : parallel::plan_choices()) {
      for (const auto& part : choice.parts) {
        if (part.inner) { parts.push_back(&part); }
      }
    }
    return parts;
  }();
  const Plan usual;
  Plan plan = point.plan;
  for (const auto* part : inner) { part->set(plan, part->get(usual)); }
  return key_of(plan, point.global_batch);
}

// Groups whose communication a bound depends on.
void expect_same_slices(const Setting& s, const Plan& a, const Plan& b) {
  EXPECT_TRUE(parallel::slice_groups(s.cluster, a) == parallel::slice_groups(s.cluster, b));
}

void expect_possible(const Setting& s, const Point& point) {
  parallel::Job job = s.job;
  job.global_batch = point.global_batch;
  EXPECT_TRUE(parallel::is_placed(s.cluster, point.plan));
  EXPECT_TRUE(parallel::is_valid(s.model, job, point.plan, s.cluster.devices));
}

void add_family(const Setting& s, const Family& family, SpaceWalk& walk, Found& found) {
  std::int64_t points = 0;
  std::set<Verdict> verdicts;
  const Key shared = bound_reads(family.first);
  walk.members(family, [&](const Member& member) {
    points += member.points;
    verdicts.insert(member.verdict);
    EXPECT_EQ(bound_reads(member.point), shared);
    if (member.verdict == Verdict::possible) { expect_same_slices(s, member.point.plan, family.first.plan); }
    if (member.verdict == Verdict::network) { found.network += member.points; }
    if (member.verdict == Verdict::invalid) { found.invalid += member.points; }
    if (member.verdict == Verdict::possible) {
      found.add(key_of(member.point.plan, member.point.global_batch), member.points, member.order);
    }
  });
  EXPECT_EQ(points, family.points);
  EXPECT_GT(points, 0);
  EXPECT_TRUE(verdicts.contains(family.verdict));
  if (family.verdict != Verdict::possible) { EXPECT_FALSE(verdicts.contains(Verdict::possible)); }
  if (verdicts.contains(Verdict::possible)) { expect_possible(s, family.first); }
  found.points += points;
}

Found walked(const Setting& s, const Space& space) {
  Found found;
  std::vector<Family> families;
  SpaceWalk walk(space);
  walk.families([&](const Family& family) {
    EXPECT_EQ(family.number, static_cast<std::int64_t>(families.size()));
    families.push_back(family);
    return true;
  });
  // Members of families in another order, by another walk: a walk keeps no state that changes results.
  SpaceWalk other(space);
  for (std::size_t i = 0; i < families.size(); ++i) {
    add_family(s, families[(i * 7919) % families.size()], other, found);
    if (families.size() % 7919 == 0) { ADD_FAILURE() << "choose another stride"; }
  }
  EXPECT_EQ(space.points(), found.points);
  return found;
}

// Reports the first difference only; there may be thousands.
void expect_the_same(const Found& found, const Found& expected) {
  EXPECT_EQ(found.plans.size(), expected.plans.size());
  for (const auto& [plan, what] : expected.plans) {
    const auto at = found.plans.find(plan);
    ASSERT_TRUE(at != found.plans.end()) << fmt::format("{}", fmt::join(plan, " "));
    ASSERT_EQ(at->second, what) << fmt::format("{}", fmt::join(plan, " "));
  }
}

// The walk against the loops, with and without invalid points.
std::int64_t compare(const Setting& s, const std::vector<Written>& axes) {
  const Found expected = Loops(s, axes).run();
  if (expected.points > kMostCompared) { return 0; }
  const std::string text = text_of(s, axes, true);
  SCOPED_TRACE(text);
  const Found found = walked(s, made(s, text));
  EXPECT_EQ(found.points, expected.points);
  EXPECT_EQ(found.network, expected.network);
  EXPECT_EQ(found.invalid, expected.invalid);
  expect_the_same(found, expected);
  const Found valid = walked(s, made(s, text_of(s, axes, false)));
  EXPECT_EQ(valid.network + valid.invalid, 0);
  expect_the_same(valid, expected);
  return expected.points;
}

TEST(SpaceWalk, visits_every_plan_once_with_its_multiplicity_and_first_position) {
  std::int64_t seen = 0;
  std::uint64_t spaces = 0;
  const std::uint64_t seeds = orrery::test::kSanitizers ? 20 : 100;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    parallel::test::SeededRandom random(seed);
    const Setting s = any_setting(random);
    auto axes = any_axes(random);
    if (axes.empty()) { axes.push_back(ways("tp").front()); }
    SCOPED_TRACE(seed);
    const std::int64_t points = compare(s, axes);
    seen += points;
    spaces += points > 0 ? 1 : 0;
    if (HasFailure()) { return; }
  }
  EXPECT_GT(seen, 300 * static_cast<std::int64_t>(seeds));
  EXPECT_GT(spaces, orrery::test::kSanitizers ? seeds / 3 : seeds / 2);
}

// A point has a position on each of them.
TEST(SpaceWalk, takes_a_space_that_writes_every_axis) {
  parallel::test::SeededRandom random(0);
  Setting s = any_setting(random);
  std::vector<Written> axes;
  for (const auto& name : all_axes()) {
    if (name != "tp_comm" && name != "optimizer_sharding") { axes.push_back(ways(name).front()); }
  }
  EXPECT_GT(axes.size(), 32U);
  const Space space = made(s, text_of(s, axes, true));
  EXPECT_EQ(space.axes().size(), axes.size());
  SpaceWalk walk(space), of_members(space);
  std::int64_t points = 0;
  walk.families([&](const Family& family) {
    of_members.members(family, [&](const Member& member) { points += member.points; });
    return points < 100'000;
  });
  EXPECT_GT(points, 0);
}

}  // namespace
}  // namespace orrery::explore::space_walk_test
