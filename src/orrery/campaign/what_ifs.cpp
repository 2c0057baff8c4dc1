#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/campaign/solve.hpp"
#include "orrery/campaign/stretches.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"

namespace orrery::campaign {

namespace {

using config::format_seconds;
using results::CampaignChange;

struct Question {
  std::string change, flags;
  Spec spec;
};

void ask(std::vector<Question>& questions, std::string change, std::string flags, Spec spec) {
  questions.push_back({std::move(change), std::move(flags), std::move(spec)});
}

void ask_about_recovery(std::vector<Question>& questions, const Spec& spec) {
  const Seconds fast(10.0);
  if (spec.detection > fast) {
    Spec other = spec;
    other.detection = fast;
    ask(questions, fmt::format("detection {} -> {}", format_seconds(spec.detection), format_seconds(fast)),
        "--detection 10s", other);
  }
  if (spec.restart > Seconds(20)) {
    Spec other = spec;
    other.restart = spec.restart / 2.0;
    ask(questions, fmt::format("restart {} -> {}", format_seconds(spec.restart), format_seconds(other.restart)),
        fmt::format("--restart {:g}s", other.restart.value()), other);
  }
  if (spec.queue > Seconds(0)) {
    Spec other = spec;
    other.queue = Seconds(0);
    ask(questions, "no queue for nodes after a failure", "--queue 0", other);
  }
  if (spec.maintenance_per_day > 0.0) {
    Spec other = spec;
    other.maintenance_per_day = 0.0;
    ask(questions, "no planned stops", "--maintenance-per-day 0", other);
  }
}

void ask_about_checkpoints(std::vector<Question>& questions, const Spec& spec, const results::Campaign& now) {
  if (!spec.checkpoint_async) {
    Spec other = spec;
    other.checkpoint_async = true;
    other.checkpoint_pause.reset();
    ask(questions, "checkpoints written in the background", "--checkpoint-async", other);
  }
  if (spec.checkpoint_every) {
    Spec other = spec;
    other.checkpoint_every.reset();
    ask(questions, "the best checkpoint interval", "without --checkpoint-every", other);
  }
  if (!spec.memory_checkpoint_every) {
    Spec other = spec;
    const bool has_domains = !spec.domains.empty();
    other.memory_checkpoint_every = max(now.estimate.step_time, Seconds(30.0));
    other.memory_across = has_domains ? Across::rack : Across::node;
    ask(questions, "copies in the memory of peers",
        fmt::format("--memory-checkpoint-every {:g}s{}", other.memory_checkpoint_every->value(),
                    has_domains ? " --memory-across rack" : ""),
        other);
  }
  if (now.checkpoint.storage > BytesPerSecond(0)) {
    Spec other = spec;
    other.storage_bandwidth = now.checkpoint.storage * 4.0;
    ask(questions,
        fmt::format("storage {} -> {}", config::format_rate(now.checkpoint.storage),
                    config::format_rate(*other.storage_bandwidth)),
        fmt::format("--storage-bandwidth {:g}GB/s", other.storage_bandwidth->value() / 1e9), other);
  }
}

void ask_about_nodes(std::vector<Question>& questions, const Spec& spec, const results::Campaign& now) {
  Spec fewer = spec;
  fewer.failures_per_1000_node_days = now.failures_per_1000_node_days / 2.0;
  fewer.failures_low = now.failures_low / 2.0;
  fewer.failures_high = now.failures_high / 2.0;
  if (now.failures_per_1000_node_days > 0.0) {
    ask(questions, "half the failures (bad nodes taken out)",
        fmt::format("--failures-per-1000-node-days {:g}", *fewer.failures_per_1000_node_days), fewer);
  }
  for (const auto& row : now.spares) {
    if (row.chosen || spec.spares == row.spares) { continue; }
    Spec other = spec;
    other.spares = row.spares;
    ask(questions, counted(row.spares, "spare node"), fmt::format("--spares {}", row.spares), other);
  }
  if (spec.when_short == WhenShort::wait && now.estimate.plan.number("dp") > 1) {
    Spec other = spec;
    other.when_short = WhenShort::shrink;
    other.regroup = true;
    ask(questions, "fewer replicas instead of waiting for a node", "--when-short shrink --regroup", other);
    other.spares = 0;
    ask(questions, "fewer replicas, and no spare nodes", "--when-short shrink --regroup --spares 0", other);
  }
}

// Changes that cost nothing or save money, by days; then by days per dollar; then those that lose days.
std::pair<int, double> order_of(const CampaignChange& change) {
  if (change.days_saved <= 0.0) { return {2, -change.days_saved}; }
  if (change.usd_change.value_or(0.0) <= 0.0) { return {0, -change.days_saved}; }
  return {1, -change.days_saved / *change.usd_change};
}

}  // namespace

std::vector<CampaignChange> what_ifs(const Job& job, const Spec& spec, const results::Campaign& now) {
  std::vector<Question> questions;
  ask_about_recovery(questions, spec);
  ask_about_checkpoints(questions, spec, now);
  ask_about_nodes(questions, spec, now);
  std::vector<CampaignChange> changes;
  for (auto& [change, flags, other] : questions) {
    // The same work, also where it followed from a date or a budget.
    other.tokens = fmt::format("{}", now.tokens);
    other.steps.reset();
    other.until.clear();
    other.budget_usd.reset();
    const auto then = solve(job, other);
    if (!then || !std::isfinite(then->days.p50)) { continue; }
    CampaignChange result{std::move(change), std::move(flags), now.days.p50 - then->days.p50, std::nullopt};
    if (now.money && then->money) { result.usd_change = then->money->usd - now.money->usd; }
    const bool pays = result.usd_change.value_or(0.0) < 0.0 && result.days_saved > -0.1 * now.days.p50;
    if (result.days_saved <= 0.0 && !pays) { continue; }
    changes.push_back(std::move(result));
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return order_of(a) < order_of(b); });
  return changes;
}

}  // namespace orrery::campaign
