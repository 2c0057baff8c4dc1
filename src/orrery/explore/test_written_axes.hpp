// Random spaces for tests of walks: every axis written as text and as the same values in C++.
//
// Axes of hand_written_axes() have their values, idle values and effects written down here a second time, independent
// of the table of choices. All other axes of the table are generated from it, so that a new choice is walked from its
// first day.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/explore/point.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::explore::test {

using parallel::Plan;
using parallel::Recompute;
using parallel::ScheduleKind;
using parallel::TpOverlap;
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

inline Values listed(const std::vector<std::int64_t>& list) {
  Values values;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool repeats = std::any_of(values.begin(), values.end(), [&](const auto& v) { return v.first == list[i]; });
    if (!repeats) { values.emplace_back(list[i], static_cast<int>(i)); }
  }
  return values;
}

inline Values divisors(std::int64_t whole) {
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
inline std::int64_t replicas(const Setting& s, const State& at, std::int64_t pp) {
  return s.cluster.devices / (at.plan.tp * at.plan.cp * pp);
}

inline const std::vector<std::int64_t> kBoth{0, 1}, kThree{0, 1, 2};

inline Written listing(const std::string& name, std::string text, std::vector<std::int64_t> values) {
  return {
      name, std::move(text), {}, [values = std::move(values)](const Setting&, const State&) { return listed(values); }};
}

inline std::vector<Written> ways_of_degree(const std::string& name) {
  if (name == "tp") {
    return {{name, "divisors(devices)", {}, [](const Setting& s, const State&) { return divisors(s.cluster.devices); }},
            listing(name, "[1, 2, 1]", {1, 2, 1}),
            {name, "powers(2) where tp <= node_size", {}, [](const Setting& s, const State&) {
               return those(listed({1, 2, 4, 8, 16}), [&](auto tp) { return tp <= s.cluster.node_size(); });
             }}};
  }
  if (name == "cp") { return {listing(name, "[1, 2]", {1, 2}), listing(name, "powers(3, 3)", {1, 3})}; }
  if (name == "pp") {
    return {{name, "divisors(layers)", {}, [](const Setting& s, const State&) { return divisors(s.model.depth()); }},
            listing(name, "1..3", {1, 2, 3}),
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
            listing(name, "1..2", {1, 2})};
  }
  return {};
}

inline std::vector<Written> ways_of_choice(const std::string& name) {
  if (name == "schedule") { return {listing(name, "[1f1b, interleaved, zero-bubble]", {1, 2, 3})}; }
  if (name == "recompute") {
    return {listing(name, "[full, attention, none]", {2, 1, 0}), listing(name, "[none, full]", {0, 2})};
  }
  if (name == "recompute_layers") {
    return {listing(name, "[0, 2]", {0, 2}),
            {name, "[1, 0 where recompute == full]", {"recompute"}, [](const Setting&, const State& at) {
               return at.plan.recompute == Recompute::full ? listed({1, 0}) : listed({1});
             }}};
  }
  if (name == "tp_comm") { return {listing(name, "[all_reduce, p2p_scatter, reduce_scatter_all_gather]", kThree)}; }
  if (name == "sequence_parallel") { return {listing(name, "[true, false]", {1, 0})}; }
  if (name == "zero") {
    return {listing(name, "[0, 1, 3]", {0, 1, 3}),
            {name, "0..2 where tp < 4 or zero == 0", {"tp"}, [](const Setting&, const State& at) {
               return those(listed({0, 1, 2}), [&](auto zero) { return at.plan.tp < 4 || zero == 0; });
             }}};
  }
  if (name == "shard") { return {listing(name, "[0, 2]", {0, 2})}; }
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
  if (name == "cp_method") { return {listing(name, "[ulysses, ring]", {1, 0})}; }
  if (name == "tp_overlap") {
    return {listing(name, "[none, ring, pipe]", kThree),
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
  if (name.starts_with("tier.")) { return {listing(name, "[0, 1]", kBoth), listing(name, "[1]", {1})}; }
  if (name == "fused_activation") { return {listing(name, "[true, false]", {1, 0}), listing(name, "true", {1})}; }
  return {listing(name, "[true, false]", {1, 0})};
}

// In an order in which each may depend on those before it.
inline const std::vector<std::string>& hand_written_axes() {
  static const std::vector<std::string> names{"tp",
                                              "cp",
                                              "pp",
                                              "ep",
                                              "etp",
                                              "vpp",
                                              "schedule",
                                              "recompute",
                                              "recompute_layers",
                                              "tp_comm",
                                              "sequence_parallel",
                                              "zero",
                                              "optimizer_sharding",
                                              "shard",
                                              "dp_overlap",
                                              "gather_overlap",
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

// The part of the table that an axis is generated from; null: it is written down here.
inline const parallel::PlanPart* generated_from(const std::string& name) {
  static const auto generated = [] {
    std::map<std::string, const parallel::PlanPart*> parts;
    for (const auto& choice : parallel::plan_choices()) {
      for (const auto& part : choice.parts) { parts.emplace(part.axis, &part); }
    }
    for (const auto& written : hand_written_axes()) { parts.erase(written); }
    return parts;
  }();
  const auto found = generated.find(name);
  return found == generated.end() ? nullptr : found->second;
}

// The others of the table follow in its order, which puts them behind what they depend on.
inline const std::vector<std::string>& all_axes() {
  static const auto names = [] {
    auto list = hand_written_axes();
    for (std::size_t i = 0; i < parallel::kPlanFields; ++i) {
      const std::string name(parallel::part_of(static_cast<parallel::PlanField>(i)).axis);
      if (generated_from(name) != nullptr) { list.push_back(name); }
    }
    return list;
  }();
  return names;
}

// Numbers of every degree or of none, both states of a switch, all names.
inline std::vector<Written> generated_ways(const std::string& name, const parallel::PlanPart& part) {
  using parallel::ChoiceKind;
  const auto& choice = parallel::choice_of(part.field);
  if (part.field == parallel::PlanField::dp) {
    return {
        {name, "divisors(devices)", {}, [](const Setting& s, const State&) { return divisors(s.cluster.devices); }}};
  }
  if (choice.kind == ChoiceKind::number) { return {listing(name, "[0, 2, 1]", {0, 2, 1})}; }
  if (choice.kind != ChoiceKind::name) { return {listing(name, "[true, false]", {1, 0})}; }
  std::vector<std::int64_t> values(choice.names.size());
  std::iota(values.begin(), values.end(), 0);
  return {listing(name, fmt::format("[{}]", fmt::join(choice.names, ", ")), values)};
}

inline std::vector<Written> ways(const std::string& name) {
  if (const auto* part = generated_from(name)) { return generated_ways(name, *part); }
  auto degrees = ways_of_degree(name);
  return degrees.empty() ? ways_of_choice(name) : degrees;
}

// ---- what goes without saying, in the words of docs/format/space.md
// ------------------------------------------------------

inline bool alone(const Setting& s, const std::string& name, const State& at) {
  const Plan& plan = at.plan;
  if (const auto* part = generated_from(name)) {
    return part->is_idle != nullptr && part->is_idle({s.model, plan, s.second_tier()});
  }
  const bool one_copy = plan.cp * plan.dp == 1 && (!s.model.has_experts() || plan.expert_replicas() == 1);
  if (name == "ep" || name == "etp") { return !s.model.has_experts(); }
  if (name == "vpp" || name == "schedule" || name == "tier.pp") { return plan.pp == 1; }
  if (name == "cp_method" || name == "tier.cp") { return plan.cp == 1; }
  if (name == "sequence_parallel" || name == "tp_overlap" || name == "tier.tp") { return plan.tp == 1; }
  if (name == "zero" || name == "optimizer_sharding" || name == "dp_overlap") { return one_copy; }
  if (name == "gather_overlap") { return one_copy || plan.zero == 0 || !plan.dp_overlap; }
  if (name == "recompute_layers") { return plan.recompute == Recompute::none; }
  if (name == "shard") { return plan.zero == 0; }
  if (name == "tier.dp") { return plan.dp == 1; }
  const bool replays_all = plan.recompute == Recompute::full && plan.recompute_layers == 0;
  if (name == "offload_activations" && replays_all) { return true; }
  if (name.starts_with("offload")) { return !s.second_tier(); }
  if (name == "ag_redo") { return at.tp_comm != 2 || plan.recompute == Recompute::full; }
  return false;
}

inline std::int64_t nothing(const std::string& name) {
  if (const auto* part = generated_from(name)) { return part->idle; }
  return name == "ep" || name == "etp" || name == "vpp" || name == "schedule" || name == "gather_overlap" ? 1 : 0;
}

using Meaning = std::function<void(State&, std::int64_t)>;

inline std::int8_t place(std::int64_t degree, std::int64_t value) {
  return static_cast<std::int8_t>(degree > 1 ? value : -1);
}

inline Meaning generated_meaning(const parallel::PlanPart& part) {
  return [&part](State& at, std::int64_t value) {
    part.set(at.plan, part.effect != nullptr ? part.effect(at.plan, value) : value);
  };
}

inline Meaning meaning(const std::string& name) {
  if (const auto* part = generated_from(name)) { return generated_meaning(*part); }
  static const std::map<std::string, Meaning> table{
      {"tp", [](State& at, auto value) { at.plan.tp = value; }},
      {"cp", [](State& at, auto value) { at.plan.cp = value; }},
      {"pp", [](State& at, auto value) { at.plan.pp = value; }},
      {"ep", [](State& at, auto value) { at.plan.ep = value; }},
      {"etp", [](State& at, auto value) { at.plan.etp = value; }},
      {"vpp", [](State& at, auto value) { at.plan.vpp = value; }},
      {"schedule", [](State& at, auto value) { at.plan.schedule = static_cast<ScheduleKind>(value); }},
      {"recompute", [](State& at, auto value) { at.plan.recompute = static_cast<Recompute>(value); }},
      {"recompute_layers", [](State& at, auto value) { at.plan.recompute_layers = value; }},
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
      {"gather_overlap", [](State& at, auto value) { at.plan.gather_overlap = value != 0; }},
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

}  // namespace orrery::explore::test
