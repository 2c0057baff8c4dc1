#include "orrery/api/explanation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/text.hpp"

namespace orrery::api {

using config::format_bytes;
using config::format_seconds;
using results::Estimate;
using results::PlanSummary;

namespace {

// Smaller differences, as a share of a step, are not mentioned.
constexpr double kSignificant = 0.0005;

struct Share {
  std::string name;
  Seconds time;
};

std::vector<Share> shares(const results::Breakdown& b) {
  return {{"compute", b.compute},
          {"recompute", b.recompute},
          {"exposed communication", b.exposed_comm},
          {"pipeline bubble", b.bubble},
          {"optimizer", b.optimizer},
          {"offload", b.offload},
          {"host", b.host}};
}

// The breakdown with exposed communication by group if the groups sum to it.
std::vector<Share> finer_shares(const Estimate& estimate) {
  auto parts = shares(estimate.breakdown);
  Seconds left = estimate.breakdown.exposed_comm;
  for (const auto& group : estimate.comm_by_group) { left -= group.exposed; }
  if (std::abs(left / estimate.step_time) > kSignificant) { return parts; }
  std::erase_if(parts, [](const Share& part) { return part.name == "exposed communication"; });
  for (const auto& group : estimate.comm_by_group) {
    parts.push_back({fmt::format("exposed {} communication", group.group), group.exposed});
  }
  return parts;
}

// The number of steps of `other` that process as many sequences as one step of `best`; spaces may let the plan
// determine the batch.
double steps_of(const Estimate& other, const Estimate& best) {
  if (other.global_batch == best.global_batch) { return 1.0; }
  return static_cast<double>(best.global_batch) / static_cast<double>(other.global_batch);
}

// How much longer `other` takes for the same sequences, as a fraction.
double relative_slowdown(const Estimate& other, const Estimate& best) {
  return steps_of(other, best) * (other.step_time / best.step_time) - 1.0;
}

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100.0 * fraction); }

std::string where_the_time_goes(const Estimate& best) {
  auto parts = shares(best.breakdown);
  std::stable_sort(parts.begin(), parts.end(), [](const Share& a, const Share& b) { return a.time > b.time; });
  std::vector<std::string> texts;
  for (const auto& part : parts) {
    const double fraction = part.time / best.step_time;
    if (fraction >= kSignificant) { texts.push_back(fmt::format("{} {}", part.name, percent(fraction))); }
  }
  return (best.inference ? "batch: " : "step: ") + join(texts, ", ");
}

// Order of sentences; other choices follow.
constexpr std::array<std::string_view, 18> kFirst{
    "tp",       "cp",          "pp",         "dp",    "ep",        "etp",
    "vpp",      "micro_batch", "cp_method",  "zero",  "recompute", "sequence_parallel",
    "schedule", "tp_overlap",  "dp_overlap", "shard", "offload",   "placement"};

std::vector<std::string_view> choices_of(const PlanSummary& plan) {
  std::vector<std::string_view> names(kFirst.begin(), kFirst.end());
  for (const auto& value : plan.values) {
    if (!value.is_derived && std::find(names.begin(), names.end(), value.name) == names.end()) {
      names.push_back(value.name);
    }
  }
  return names;
}

std::string spelled(std::string_view name) {
  std::string flag(name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::string value_of(const PlanSummary& plan, std::string_view name) {
  if (name == "cp_method" && plan.number("cp") <= 1) { return ""; }
  std::string text = plan.text(name);
  if (text.empty() && name == "offload") { return "none"; }
  if (text.empty() && name == "placement") { return "by rank"; }
  return text;
}

// `axis`: name of the flag without dashes.
std::string value_on(const PlanSummary& plan, std::string_view axis) {
  std::string name(axis);
  std::replace(name.begin(), name.end(), '-', '_');
  return value_of(plan, name);
}

// How two plans differ, "micro-batch 2 instead of 1, zero 1 instead of 0". Differences that follow from another one are
// omitted.
std::string plan_difference(const PlanSummary& other, const PlanSummary& best) {
  std::vector<std::string> texts;
  for (const std::string_view name : choices_of(best)) {
    const std::string theirs = value_of(other, name), ours = value_of(best, name);
    const bool follows = (name == "cp_method" && other.number("cp") != best.number("cp")) ||
                         (name == "schedule" && other.number("vpp") != best.number("vpp"));
    if (theirs == ours || follows) { continue; }
    if (name == "sequence_parallel") {
      texts.emplace_back(other.is_on(name) ? "with sequence parallelism" : "without sequence parallelism");
    } else {
      texts.push_back(fmt::format("{} {} instead of {}", spelled(name), theirs, ours));
    }
  }
  return texts.empty() ? "the same plan" : join(texts, ", ");
}

// A value of an axis and what follows from it, "2 (with vpp 4, micro-batch 1)". Values without alternatives are
// omitted.
std::string value_and_followers(const PlanSummary& other, std::string_view axis, const PlanSummary& best) {
  const auto theirs = [&](std::string_view name) { return other.number(name); };
  const auto ours = [&](std::string_view name) { return best.number(name); };
  const bool is_copied = theirs("dp") * theirs("cp") > 1 && ours("dp") * ours("cp") > 1;
  const bool etp_equals_tp = theirs("etp") == theirs("tp") && ours("etp") == ours("tp") && ours("tp") > 1;
  const auto is_implied = [&](std::string_view name) {
    return spelled(name) == axis || name == "dp" || name == "schedule" ||
           (name == "vpp" && (theirs("pp") == 1 || axis == "schedule")) ||
           (name == "sequence_parallel" && theirs("tp") == 1) || (name == "cp_method" && theirs("cp") == 1) ||
           (name == "dp_overlap" && !is_copied) || (name == "etp" && (theirs("tp") == 1 || etp_equals_tp));
  };
  std::vector<std::string> texts;
  for (const std::string_view name : choices_of(best)) {
    const std::string value = value_of(other, name);
    if (value == value_of(best, name) || is_implied(name)) { continue; }
    texts.push_back(fmt::format("{} {}", spelled(name), value));
  }
  const std::string value = value_on(other, axis);
  return texts.empty() ? value : fmt::format("{} (with {})", value, join(texts, ", "));
}

// The parts of a step with the largest differences, "recompute +1.25 s, pipeline bubble -250 ms".
std::string time_difference(const Estimate& other, const Estimate& best, std::size_t most) {
  const auto theirs = finer_shares(other), ours = finer_shares(best);
  std::vector<std::pair<Seconds, std::string>> changes;
  const auto add = [&](const std::string& name, Seconds change) {
    const auto known = std::find_if(changes.begin(), changes.end(), [&](const auto& c) { return c.second == name; });
    if (known == changes.end()) {
      changes.emplace_back(change, name);
    } else {
      known->first += change;
    }
  };
  for (const auto& part : theirs) { add(part.name, steps_of(other, best) * part.time); }
  for (const auto& part : ours) { add(part.name, -1.0 * part.time); }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first.value()) > std::abs(b.first.value()); });
  std::vector<std::string> texts;
  for (const auto& [change, name] : changes) {
    if (texts.size() == most || std::abs(change / best.step_time) < kSignificant) { break; }
    texts.push_back(fmt::format("{} {}{}", name, change > Seconds(0) ? "+" : "-",
                                format_seconds(Seconds(std::abs(change.value())))));
  }
  return texts.empty() ? "no significant difference" : join(texts, ", ");
}

std::string runner_up(const Estimate& other, const Estimate& best) {
  return fmt::format("runner-up ({}) is {} slower: {}", plan_difference(other.plan, best.plan),
                     percent(relative_slowdown(other, best)), time_difference(other, best, 3));
}

using MemoryParts = std::array<std::pair<std::string_view, Bytes>, 6>;

MemoryParts memory_parts(const results::Memory& m) {
  return {{{"weights", m.weights},
           {"gradients", m.gradients},
           {"optimizer state", m.optimizer},
           {"activations", m.activations},
           {"buffers", m.buffers},
           {"KV cache", m.kv_cache}}};
}

// "memory: 61.2 GiB instead of 70.1 GiB of 75.2 GiB: activations -8.9 GiB".
std::string memory_difference(const results::Memory& other, const results::Memory& one) {
  const MemoryParts theirs = memory_parts(other), ours = memory_parts(one);
  std::vector<std::pair<double, std::string_view>> changes;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    changes.emplace_back((theirs[i].second - ours[i].second).value(), ours[i].first);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::vector<std::string> texts;
  for (const auto& [change, name] : changes) {
    if (std::abs(change) < kSignificant * one.total().value()) { break; }
    texts.push_back(fmt::format("{} {}{}", name, change > 0 ? "+" : "-", format_bytes(Bytes(std::abs(change)))));
  }
  const std::string whole =
      texts.empty() ? fmt::format("memory: {} as well", format_bytes(other.total()))
                    : fmt::format("memory: {} instead of {}", format_bytes(other.total()), format_bytes(one.total()));
  return fmt::format("{} of {}{}{}{}", whole, format_bytes(other.capacity), texts.empty() ? "" : ": ",
                     join(texts, ", "), other.fits() ? "" : "; does not fit");
}

// Alternatives that are faster but do not fit in memory.
std::string memory_limit(const Estimate& best, const std::vector<Alternative>& alternatives) {
  std::vector<std::string> faster;
  for (const auto& one : alternatives) {
    const Estimate& other = one.beyond_memory ? *one.beyond_memory : one.estimate;
    const double change = relative_slowdown(other, best);
    if (!one.searched || other.feasible || change >= -kSignificant) { continue; }
    faster.push_back(fmt::format("{} {}", one.axis, value_and_followers(other.plan, one.axis, best.plan)));
  }
  if (!faster.empty()) {
    return fmt::format("memory is the limit: {} would be faster but {} not fit", join(faster, ", "),
                       faster.size() == 1 ? "does" : "do");
  }
  const double used = best.memory.total() / best.memory.capacity;
  if (!alternatives.empty()) { return "memory is not the limit: every faster neighbouring plan fits"; }
  return used > 0.9 ? "memory is almost full: with more per device, other plans would fit" : "memory is not the limit";
}

std::string memory(const Estimate& best, const std::vector<Alternative>& alternatives) {
  const auto& m = best.memory;
  const MemoryParts classes = memory_parts(m);
  const auto* largest = std::max_element(classes.begin(), classes.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format("memory: {} of {} on stage {} ({}), most of it {} ({}); {}", format_bytes(m.total()),
                     format_bytes(m.capacity), m.stage, percent(m.total() / m.capacity), largest->first,
                     format_bytes(largest->second), memory_limit(best, alternatives));
}

std::string communication(const Estimate& best) {
  std::vector<std::string> texts;
  for (const auto& group : best.comm_by_group) {
    if (group.total <= Seconds(0)) { continue; }
    texts.push_back(fmt::format("{} {} of which {} exposed", group.group, format_seconds(group.total),
                                format_seconds(group.exposed)));
  }
  return texts.empty() ? "communication: none" : "communication: " + join(texts, "; ");
}

// "4 (with micro-batch 1) would be 3.1 % slower (exposed dp communication +120 ms)", "2 would be 2.0 % faster (...),
// but needs 92.1 GiB".
std::string alternative_text(const Alternative& one, const Estimate& best) {
  const Estimate& other = one.estimate;
  const double change = relative_slowdown(other, best);
  const std::string value = value_and_followers(other.plan, one.axis, best.plan);
  const std::string why =
      std::abs(change) < kSignificant ? std::string() : " (" + time_difference(other, best, 2) + ")";
  const std::string effect = std::abs(change) < kSignificant
                                 ? std::string("take the same time")
                                 : fmt::format("be {} {}", percent(std::abs(change)), change > 0 ? "slower" : "faster");
  if (other.feasible) {
    const char* but = one.searched ? "" : "; it is searched only if --schedule sets it";
    return fmt::format("{} would {}{}{}", value, effect, why, but);
  }
  const std::string unless = one.searched ? ""
                                          : fmt::format(" (other plans with this schedule may fit: --schedule {})",
                                                        other.plan.text("schedule"));
  return fmt::format("{} would {}{}, but needs {}{}", value, effect, why, format_bytes(other.memory.total()), unless);
}

std::vector<std::string> by_axis(const Estimate& best, const std::vector<Alternative>& alternatives) {
  std::vector<std::string> lines;
  std::string_view axis;
  for (const auto& one : alternatives) {
    if (one.axis == axis) {
      lines.back() += "; " + alternative_text(one, best);
    } else {
      lines.push_back(fmt::format("{} {}: {}", one.axis, value_on(best.plan, one.axis), alternative_text(one, best)));
    }
    axis = one.axis;
  }
  return lines;
}

}  // namespace

std::vector<std::string> explanation(const std::vector<Estimate>& best, const std::vector<Alternative>& alternatives) {
  ORRERY_ASSERT(!best.empty());
  std::vector<std::string> lines = {where_the_time_goes(best[0]), memory(best[0], alternatives),
                                    communication(best[0])};
  if (best.size() > 1) { lines.push_back(runner_up(best[1], best[0])); }
  for (auto& line : by_axis(best[0], alternatives)) { lines.push_back(std::move(line)); }
  return lines;
}

std::vector<std::string> difference(const Estimate& other, const Estimate& one) {
  const double change = relative_slowdown(other, one);
  const std::string parts = time_difference(other, one, shares(one.breakdown).size() + one.comm_by_group.size());
  const std::string speed = std::abs(change) < kSignificant
                                ? std::string("the same time")
                                : fmt::format("{} {}", percent(std::abs(change)), change > 0 ? "slower" : "faster");
  std::string plan = plan_difference(other.plan, one.plan);
  if (other.devices != one.devices) {
    plan = fmt::format("{} devices instead of {}, {}", other.devices, one.devices, plan);
  }
  std::vector<std::string> lines = {"plan: " + plan,
                                    fmt::format("{}: {}: {}", one.inference ? "batch" : "step", speed, parts),
                                    memory_difference(other.memory, one.memory)};
  if (other.devices != one.devices && other.cost && one.cost) {
    const double cost = steps_of(other, one) * (other.cost->amount / one.cost->amount) - 1.0;
    lines.push_back(fmt::format("cost per step: {} {}", percent(std::abs(cost)), cost < 0 ? "lower" : "higher"));
  }
  return lines;
}

}  // namespace orrery::api
