// Random spaces walked in families against all their combinations in one plain nest of loops, which knows nothing of
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

#include "orrery/config/node.hpp"
#include "orrery/explore/space_walk.hpp"
#include "orrery/explore/test_spaces.hpp"
#include "orrery/parallel/mesh.hpp"

namespace orrery::explore {
namespace {

using parallel::Plan;
using parallel::Recompute;
using parallel::ScheduleKind;
using parallel::TpOverlap;
using parallel::test::any_flag;
using parallel::test::any_of;
using Values = std::vector<std::pair<std::int64_t, int>>;  // and positions

struct Setting {
  workload::Model model;
  parallel::Job job;
  hardware::Cluster cluster;
  std::int64_t max_batch = 0;

  [[nodiscard]] bool second_tier() const { return cluster.second_tier.memory > Bytes(0); }
};

// A point on the way: the plan so far, what was chosen by name, and positions by name.
struct State {
  Plan plan;
  std::int64_t batch = 0;
  std::int64_t tp_comm = 0;
  std::vector<int> positions;  // of the axes of all_axes()
};

// One way to write an axis: the text, what has to be written before it, and the same in C++.
struct Written {
  std::string name, text;
  std::vector<std::string> after;
  std::function<Values(const Setting&, const State&)> values;
};

Values listed(const std::vector<std::int64_t>& list) {
  Values values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool repeats = std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.first == list[i]; });
    if (!repeats) { values.emplace_back(list[i], static_cast<int>(i)); }
  }
  return values;
}

Values divisors(std::int64_t whole) {
  std::vector<std::int64_t> list;
  for (std::int64_t d = 1; d <= whole; ++d) {
    if (whole % d == 0) { list.push_back(d); }
  }
  return listed(list);
}

template <class Holds>
Values those(Values values, Holds holds) {
  std::erase_if(values, [&](const auto& value) { return !holds(value.first); });
  return values;
}

// Degrees that do not divide are dropped by the walk anyway; conditions on dp must not divide by them.
std::int64_t replicas(const Setting& s, const State& at, std::int64_t pp) {
  return s.cluster.devices / (at.plan.tp * at.plan.cp * pp);
}

const std::vector<std::int64_t> kBoth{0, 1}, kThree{0, 1, 2};

std::vector<Written> ways(const std::string& name) {
  const auto list = [&](std::string text, std::vector<std::int64_t> values) {
    return Written{name, std::move(text), {}, [values](const Setting&, const State&) { return listed(values); }};
  };
  if (name == "tp") {
    return {{name, "divisors(devices)", {}, [](const Setting& s, const State&) { return divisors(s.cluster.devices); }},
            list("[1, 2, 1]", {1, 2, 1}),
            {name, "powers(2) where tp <= node_size", {}, [](const Setting& s, const State&) {
               return those(listed({1, 2, 4, 8, 16}), [&](auto tp) { return tp <= s.cluster.node_size(); });
             }}};
  }
  if (name == "cp") { return {list("[1, 2]", {1, 2}), list("powers(3, 3)", {1, 3})}; }
  if (name == "pp") {
    return {{name, "divisors(layers)", {}, [](const Setting& s, const State&) { return divisors(s.model.depth()); }},
            list("1..3", {1, 2, 3}),
            {name, "\"[4, 2, 1] where dp <= 4\"", {"tp", "cp"}, [](const Setting& s, const State& at) {
               return those(listed({4, 2, 1}), [&](auto pp) { return replicas(s, at, pp) <= 4; });
             }}};
  }
  if (name == "ep") {
    return {{name, "divisors(experts)", {}, [](const Setting& s, const State&) {
               return divisors(std::max<std::int64_t>(1, s.model.experts.count));
             }}};
  }
  if (name == "etp") {
    return {{name, "[1, tp]", {"tp"}, [](const Setting&, const State& at) { return listed({1, at.plan.tp}); }}};
  }
  if (name == "vpp") {
    return {{name,
             "divisors(layers/pp)",
             {"pp"},
             [](const Setting& s, const State& at) { return divisors(s.model.depth() / at.plan.pp); }},
            list("1..2", {1, 2})};
  }
  if (name == "schedule") { return {list("[1f1b, interleaved, zero-bubble]", {1, 2, 3})}; }
  if (name == "recompute") { return {list("[full, attention, none]", {2, 1, 0}), list("[none, full]", {0, 2})}; }
  if (name == "tp_comm") { return {list("[all_reduce, p2p_scatter, reduce_scatter_all_gather]", kThree)}; }
  if (name == "sequence_parallel") { return {list("[true, false]", {1, 0})}; }
  if (name == "zero") {
    return {list("[0, 1, 3]", {0, 1, 3}),
            {name, "0..2 where tp < 4 or zero == 0", {"tp"}, [](const Setting&, const State& at) {
               return those(listed({0, 1, 2}), [&](auto zero) { return at.plan.tp < 4 || zero == 0; });
             }}};
  }
  if (name == "shard") { return {list("[0, 2]", {0, 2})}; }
  if (name == "micro_batch") {
    return {{name,
             "divisors(batch/dp)",
             {"tp", "cp", "pp"},
             [](const Setting&, const State& at) { return divisors(at.batch / at.plan.dp); }},
            {name,
             "1, 2 where (micro_batch*seq) % (3*tp) == 0",
             {"tp"},
             [](const Setting& s, const State& at) {
               return those(listed({1, 2}), [&](auto size) { return size * s.job.seq % (3 * at.plan.tp) == 0; });
             }},
            {name, "[1, 2 where zero == 0]", {"zero"}, [](const Setting&, const State& at) {
               return at.plan.zero == 0 ? listed({1, 2}) : listed({1});
             }}};
  }
  if (name == "cp_method") { return {list("[ulysses, ring]", {1, 0})}; }
  if (name == "tp_overlap") {
    return {list("[none, ring, pipe]", kThree),
            {name,
             "none, ring where not (recompute == full)",
             {"recompute"},
             [](const Setting&, const State& at) {
               return at.plan.recompute == Recompute::full ? Values{} : listed({0, 1});
             }},
            {name, "[ring, none where tp_comm == p2p_scatter]", {"tp_comm"}, [](const Setting&, const State& at) {
               return at.tp_comm == 1 ? listed({1, 0}) : listed({1});
             }}};
  }
  if (name.starts_with("tier.")) { return {list("[0, 1]", kBoth), list("[1]", {1})}; }
  if (name == "fused_activation") { return {list("[true, false]", {1, 0}), list("true", {1})}; }
  return {list("[true, false]", {1, 0})};
}

// In an order in which each may depend on those before it.
const std::vector<std::string>& all_axes() {
  static const std::vector<std::string> names{"tp",
                                              "cp",
                                              "pp",
                                              "ep",
                                              "etp",
                                              "vpp",
                                              "schedule",
                                              "recompute",
                                              "tp_comm",
                                              "sequence_parallel",
                                              "zero",
                                              "optimizer_sharding",
                                              "shard",
                                              "dp_overlap",
                                              "offload_weights",
                                              "offload_activations",
                                              "offload_optimizer",
                                              "micro_batch",
                                              "cp_method",
                                              "tp_overlap",
                                              "ag_redo",
                                              "fused_activation",
                                              "tier.tp",
                                              "tier.cp",
                                              "tier.dp",
                                              "tier.pp"};
  return names;
}

// ---- what goes without saying, in the words of docs/format/space.md
// ------------------------------------------------------

bool alone(const Setting& s, const std::string& name, const State& at) {
  const Plan& plan = at.plan;
  const bool one_copy = plan.cp * plan.dp == 1 && (!s.model.has_experts() || plan.expert_replicas() == 1);
  if (name == "ep" || name == "etp") { return !s.model.has_experts(); }
  if (name == "vpp" || name == "schedule" || name == "tier.pp") { return plan.pp == 1; }
  if (name == "cp_method" || name == "tier.cp") { return plan.cp == 1; }
  if (name == "sequence_parallel" || name == "tp_overlap" || name == "tier.tp") { return plan.tp == 1; }
  if (name == "zero" || name == "optimizer_sharding" || name == "dp_overlap") { return one_copy; }
  if (name == "shard") { return plan.zero == 0; }
  if (name == "tier.dp") { return plan.dp == 1; }
  if (name == "offload_activations" && plan.recompute == Recompute::full) { return true; }
  if (name.starts_with("offload")) { return !s.second_tier(); }
  if (name == "ag_redo") { return at.tp_comm != 2 || plan.recompute == Recompute::full; }
  return false;
}

std::int64_t nothing(const std::string& name) {
  return name == "ep" || name == "etp" || name == "vpp" || name == "schedule" ? 1 : 0;
}

using Meaning = std::function<void(State&, std::int64_t)>;

std::int8_t place(std::int64_t degree, std::int64_t value) { return static_cast<std::int8_t>(degree > 1 ? value : -1); }

const Meaning& meaning(const std::string& name) {
  static const std::map<std::string, Meaning> table{
      {"tp", [](State& at, auto value) { at.plan.tp = value; }},
      {"cp", [](State& at, auto value) { at.plan.cp = value; }},
      {"pp", [](State& at, auto value) { at.plan.pp = value; }},
      {"ep", [](State& at, auto value) { at.plan.ep = value; }},
      {"etp", [](State& at, auto value) { at.plan.etp = value; }},
      {"vpp", [](State& at, auto value) { at.plan.vpp = value; }},
      {"schedule", [](State& at, auto value) { at.plan.schedule = static_cast<ScheduleKind>(value); }},
      {"recompute", [](State& at, auto value) { at.plan.recompute = static_cast<Recompute>(value); }},
      {"tp_comm",
       [](State& at, auto value) {
         at.tp_comm = value;
         at.plan.sequence_parallel = value == 2 && at.plan.tp > 1;
       }},
      {"sequence_parallel", [](State& at, auto value) { at.plan.sequence_parallel = value != 0; }},
      {"zero", [](State& at, auto value) { at.plan.zero = static_cast<int>(value); }},
      {"optimizer_sharding", [](State& at, auto value) { at.plan.zero = static_cast<int>(value); }},
      {"shard", [](State& at, auto value) { at.plan.shard = value; }},
      {"dp_overlap", [](State& at, auto value) { at.plan.dp_overlap = value != 0; }},
      {"offload_weights", [](State& at, auto value) { at.plan.offload.weights = value != 0; }},
      {"offload_activations", [](State& at, auto value) { at.plan.offload.activations = value != 0; }},
      {"offload_optimizer", [](State& at, auto value) { at.plan.offload.optimizer = value != 0; }},
      {"micro_batch", [](State& at, auto value) { at.plan.micro_batch = value; }},
      {"cp_method", [](State& at, auto value) { at.plan.cp_method = static_cast<workload::ContextMethod>(value); }},
      {"tp_overlap",
       [](State& at, auto value) {
         at.plan.tp_overlap = at.plan.sequence_parallel ? static_cast<TpOverlap>(value) : TpOverlap::none;
       }},
      {"ag_redo", [](State&, auto) {}},
      {"fused_activation", [](State&, auto) {}},
      {"tier.tp", [](State& at, auto value) { at.plan.placement.tp = place(at.plan.tp, value); }},
      {"tier.cp", [](State& at, auto value) { at.plan.placement.cp = place(at.plan.cp, value); }},
      {"tier.dp", [](State& at, auto value) { at.plan.placement.dp = place(at.plan.dp, value); }},
      {"tier.pp", [](State& at, auto value) { at.plan.placement.pp = place(at.plan.pp, value); }}};
  return table.at(name);
}

// ---- the nest of loops
// -----------------------------------------------------------------------------------------------

using Key = std::vector<std::int64_t>;

Key key_of(const Plan& p, std::int64_t batch) {
  return {p.tp,
          p.cp,
          p.pp,
          p.dp,
          p.ep,
          p.etp,
          p.vpp,
          p.micro_batch,
          p.sequence_parallel,
          p.zero,
          p.shard,
          static_cast<std::int64_t>(p.recompute),
          static_cast<std::int64_t>(p.schedule),
          p.dp_overlap,
          static_cast<std::int64_t>(p.tp_overlap),
          static_cast<std::int64_t>(p.cp_method),
          p.offload.weights,
          p.offload.activations,
          p.offload.optimizer,
          p.placement.tp,
          p.placement.cp,
          p.placement.dp,
          p.placement.pp,
          batch};
}

struct Found {
  std::int64_t points = 0, invalid = 0, network = 0;
  std::map<Key, std::pair<std::int64_t, Order>> plans;  // possible ones: points, and the first of them

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
  }

  Found run() {
    State at;
    at.plan.zero = 1;  // what `estimate` takes
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
    const Values values = alone(s_, name, at) ? Values{{nothing(name), 0}} : written->values(s_, at);
    for (const auto& [value, position] : values) {
      State next = at;
      if (!fits(name, value, next)) { continue; }
      meaning(name)(next, value);
      next.positions[axis] = position;
      over(axis + 1, next);
    }
  }

  // What no axis says follows from the others.
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
  std::vector<std::size_t> axes_;  // where the written ones stand in all_axes()
  Found found_;
};

// ---- random spaces
// ---------------------------------------------------------------------------------------------------

// Written in any order that puts what an axis depends on before it; tiers stand together.
template <class Range>
std::vector<Written> any_order(Range&& range, std::vector<Written> axes) {
  std::vector<Written> ordered;
  std::set<std::string> waiting;
  for (const auto& axis : axes) { waiting.insert(axis.name); }
  while (!axes.empty()) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto& after = axes[i].after;
      const bool waits =
          std::any_of(after.begin(), after.end(), [&](const auto& name) { return waiting.contains(name); });
      if (!waits) { ready.push_back(i); }
    }
    const auto next = ready[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(ready.size())))];
    waiting.erase(axes[next].name);
    ordered.push_back(axes[next]);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(next));
  }
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const auto& axis) { return !axis.name.starts_with("tier."); });
  return ordered;
}

template <class Range>
std::vector<Written> any_axes(Range&& range) {
  std::vector<Written> axes;
  const bool peers = any_flag(range);
  std::set<std::string> there;
  for (const auto& name : all_axes()) {
    const bool other_name = peers ? name == "sequence_parallel" || name == "zero"
                                  : name == "tp_comm" || name == "optimizer_sharding" || name == "ag_redo";
    if (other_name || range(0, 5) < 2) { continue; }
    auto some = ways(name);
    std::erase_if(some, [&](const Written& way) {
      return std::any_of(way.after.begin(), way.after.end(), [&](const auto& before) {
        const bool is_degree = before == "tp" || before == "cp" || before == "pp";
        return !is_degree && !there.contains(before);
      });
    });
    if (name == "ag_redo" && !there.contains("tp_comm")) { continue; }
    axes.push_back(some[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(some.size())))]);
    there.insert(name);
  }
  return any_order(range, axes);
}

template <class Range>
Setting any_setting(Range&& range) {
  Setting s;
  s.model = parallel::test::llama(any_of(range, {2, 4, 6, 12}), 512, 8, any_flag(range) ? 4 : 8, 768, 1024);
  if (range(0, 3) == 0) { s.model.experts = test::any_experts(range); }
  s.job = {any_of(range, {4, 8, 12, 24}), any_of(range, {24, 48, 64, 96}), hardware::Precision::bf16,
           parallel::Task::pretrain};
  s.cluster =
      parallel::test::cluster_of(any_flag(range) ? std::vector<std::int64_t>{4, 3} : std::vector<std::int64_t>{4, 2});
  if (range(0, 3) == 0) { s.cluster.second_tier = {}; }
  if (any_flag(range)) {
    s.max_batch = range(3, 26);
    s.job.global_batch = 0;
  }
  return s;
}

std::string text_of(const Setting& s, const std::vector<Written>& axes, bool count_invalid) {
  std::string text = fmt::format("count_invalid: {}\n", count_invalid);
  if (s.max_batch > 0) { text += fmt::format("max_batch: {}\n", s.max_batch); }
  text += "axes:\n";
  bool in_tiers = false;
  for (const auto& axis : axes) {
    const bool is_tier = axis.name.starts_with("tier.");
    if (is_tier && !in_tiers) { text += "  tier:\n"; }
    in_tiers = is_tier;
    text += fmt::format("{}{}: {}\n", is_tier ? "    " : "  ", is_tier ? axis.name.substr(5) : axis.name, axis.text);
  }
  return text;
}

Space made(const Setting& s, const std::string& text) {
  const auto file = space_of(config::parse_yaml(text, "space.yaml").value());
  EXPECT_TRUE(file) << file.error().text() << "\n" << text;
  const auto space = Space::make(*file, s.model, s.job, s.cluster, {}, true);
  EXPECT_TRUE(space) << space.error().text() << "\n" << text;
  return *space;
}

Key bound_reads(const Point& point) {
  Plan plan = point.plan;
  plan.zero = 0;
  plan.shard = 0;
  plan.dp_overlap = true;
  plan.offload = {};
  plan.placement.cp = plan.placement.dp = plan.placement.pp = -1;
  return key_of(plan, point.global_batch);
}

void add_family(const Setting& s, const Family& family, SpaceWalk& walk, Found& found) {
  std::int64_t points = 0;
  std::set<Verdict> verdicts;
  walk.members(family, [&](const Member& member) {
    points += member.points;
    verdicts.insert(member.verdict);
    EXPECT_EQ(bound_reads(member.point), bound_reads(family.first));
    if (member.verdict == Verdict::network) { found.network += member.points; }
    if (member.verdict == Verdict::invalid) { found.invalid += member.points; }
    if (member.verdict == Verdict::possible) {
      found.add(key_of(member.point.plan, member.point.global_batch), member.points, member.order);
    }
  });
  EXPECT_EQ(points, family.points);
  EXPECT_GT(points, 0);
  EXPECT_TRUE(verdicts.contains(family.verdict) || family.first.plan.shard > 0 || verdicts.contains(Verdict::invalid));
  if (family.verdict != Verdict::possible) { EXPECT_FALSE(verdicts.contains(Verdict::possible)); }
  if (verdicts.contains(Verdict::possible)) { EXPECT_TRUE(parallel::is_placed(s.cluster, family.first.plan)); }
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
  // Members of families in another order, by another walk: nothing of a walk leaks into the next.
  SpaceWalk other(space);
  for (std::size_t i = 0; i < families.size(); ++i) {
    add_family(s, families[(i * 7919) % families.size()], other, found);
    if (families.size() % 7919 == 0) { ADD_FAILURE() << "choose another stride"; }
  }
  EXPECT_EQ(space.points(), found.points);
  return found;
}

// Says the first difference only: there are thousands of plans.
void expect_the_same(const Found& found, const Found& wanted) {
  EXPECT_EQ(found.plans.size(), wanted.plans.size());
  for (const auto& [plan, what] : wanted.plans) {
    const auto at = found.plans.find(plan);
    ASSERT_TRUE(at != found.plans.end()) << fmt::format("{}", fmt::join(plan, " "));
    ASSERT_EQ(at->second, what) << fmt::format("{}", fmt::join(plan, " "));
  }
}

// The walk against the loops, with invalid points and without.
std::int64_t compare(const Setting& s, const std::vector<Written>& axes) {
  const Found wanted = Loops(s, axes).run();
  if (wanted.points > kMostCompared) { return 0; }
  const std::string text = text_of(s, axes, true);
  SCOPED_TRACE(text);
  const Found found = walked(s, made(s, text));
  EXPECT_EQ(found.points, wanted.points);
  EXPECT_EQ(found.network, wanted.network);
  EXPECT_EQ(found.invalid, wanted.invalid);
  expect_the_same(found, wanted);
  const Found valid = walked(s, made(s, text_of(s, axes, false)));
  EXPECT_EQ(valid.network + valid.invalid, 0);
  expect_the_same(valid, wanted);
  return wanted.points;
}

TEST(SpaceWalk, goes_through_every_combination_once_with_its_multiplicity_and_first_place) {
  std::int64_t seen = 0, spaces = 0;
  for (std::uint64_t seed = 0; seed < 160; ++seed) {
    parallel::test::Dice dice(seed);
    const Setting s = any_setting(dice);
    auto axes = any_axes(dice);
    if (axes.empty()) { axes.push_back(ways("tp").front()); }
    SCOPED_TRACE(seed);
    const std::int64_t points = compare(s, axes);
    seen += points;
    spaces += points > 0 ? 1 : 0;
    if (HasFailure()) { return; }
  }
  EXPECT_GT(seen, 50'000);
  EXPECT_GT(spaces, 80);
}

}  // namespace
}  // namespace orrery::explore
