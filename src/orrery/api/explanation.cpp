#include "orrery/api/explanation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/text.hpp"

namespace orrery::api {

using results::Estimate;

namespace {

struct Share {
  std::string_view name;
  Seconds time;
};

std::array<Share, 7> shares(const results::Breakdown& b) {
  return {{{"compute", b.compute},
           {"recompute", b.recompute},
           {"exposed communication", b.exposed_comm},
           {"pipeline bubble", b.bubble},
           {"optimizer", b.optimizer},
           {"offload", b.offload},
           {"host", b.host}}};
}

std::string percent(double fraction) { return fmt::format("{:.1f} %", 100.0 * fraction); }

std::string where_the_time_goes(const Estimate& best) {
  auto parts = shares(best.breakdown);
  std::stable_sort(parts.begin(), parts.end(), [](const Share& a, const Share& b) { return a.time > b.time; });
  std::vector<std::string> texts;
  for (const auto& part : parts) {
    const double fraction = part.time / best.step_time;
    if (fraction >= 0.0005) { texts.push_back(fmt::format("{} {}", part.name, percent(fraction))); }
  }
  return "step: " + join(texts, ", ");
}

std::string what_binds(const Estimate& best) {
  const auto& m = best.memory;
  const double used = m.total() / m.capacity;
  const std::array<std::pair<std::string_view, Bytes>, 5> classes = {{{"weights", m.weights},
                                                                      {"gradients", m.gradients},
                                                                      {"optimizer state", m.optimizer},
                                                                      {"activations", m.activations},
                                                                      {"buffers", m.buffers}}};
  const auto* largest = std::max_element(classes.begin(), classes.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
  const char* verdict = used > 0.9 ? "memory binds: a little more per device would admit plans that do not fit now"
                                   : "memory leaves room";
  return fmt::format("memory: {} of {} on stage {} ({}), most of it {} ({}); {}", config::format_bytes(m.total()),
                     config::format_bytes(m.capacity), m.stage, percent(used), largest->first,
                     config::format_bytes(largest->second), verdict);
}

std::string communication(const Estimate& best) {
  std::vector<std::string> texts;
  for (const auto& group : best.comm_by_group) {
    if (group.total <= Seconds(0)) { continue; }
    texts.push_back(fmt::format("{} {} of which {} exposed", group.group, config::format_seconds(group.total),
                                config::format_seconds(group.exposed)));
  }
  return texts.empty() ? "communication: none" : "communication: " + join(texts, "; ");
}

// How two plans differ, "micro_batch 2 instead of 1, zero 1 instead of 0".
std::string plan_difference(const results::PlanSummary& other, const results::PlanSummary& best) {
  std::vector<std::string> texts;
  const auto number = [&](std::string_view name, std::int64_t theirs, std::int64_t ours) {
    if (theirs != ours) { texts.push_back(fmt::format("{} {} instead of {}", name, theirs, ours)); }
  };
  number("tp", other.tp, best.tp);
  number("pp", other.pp, best.pp);
  number("dp", other.dp, best.dp);
  number("vpp", other.vpp, best.vpp);
  number("micro-batch", other.micro_batch, best.micro_batch);
  number("zero", other.zero, best.zero);
  if (other.recompute != best.recompute) {
    texts.push_back(fmt::format("recompute {} instead of {}", other.recompute, best.recompute));
  }
  if (other.sequence_parallel != best.sequence_parallel) {
    texts.emplace_back(other.sequence_parallel ? "with sequence parallelism" : "without sequence parallelism");
  }
  return texts.empty() ? "the same plan" : join(texts, ", ");
}

std::string runner_up(const Estimate& other, const Estimate& best) {
  const auto theirs = shares(other.breakdown), ours = shares(best.breakdown);
  std::vector<std::pair<Seconds, std::string_view>> changes;
  for (std::size_t i = 0; i < ours.size(); ++i) { changes.emplace_back(theirs[i].time - ours[i].time, ours[i].name); }
  const auto magnitude = [](const auto& a, const auto& b) {
    return std::abs(a.first.value()) > std::abs(b.first.value());
  };
  std::stable_sort(changes.begin(), changes.end(), magnitude);
  std::vector<std::string> texts;
  for (const auto& [change, name] : changes) {
    if (texts.size() == 3 || std::abs(change / best.step_time) < 0.0005) { break; }
    texts.push_back(fmt::format("{} {}{}", name, change > Seconds(0) ? "+" : "-",
                                config::format_seconds(Seconds(std::abs(change.value())))));
  }
  const std::string why = texts.empty() ? "nothing that shows" : join(texts, ", ");
  return fmt::format("runner-up ({}) loses {}: {}", plan_difference(other.plan, best.plan),
                     percent(other.step_time / best.step_time - 1.0), why);
}

}  // namespace

std::vector<std::string> explanation(const std::vector<Estimate>& best) {
  ORRERY_ASSERT(!best.empty());
  std::vector<std::string> lines = {where_the_time_goes(best[0]), what_binds(best[0]), communication(best[0])};
  if (best.size() > 1) { lines.push_back(runner_up(best[1], best[0])); }
  return lines;
}

}  // namespace orrery::api
