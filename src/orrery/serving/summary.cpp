#include "orrery/serving/summary.hpp"
#include "orrery/serving/growth.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/core/text.hpp"
#include "orrery/serving/request_times.hpp"

namespace orrery::serving {

namespace {

// `ending`: the sequence that ends last.
results::ServedRequest served_request(const Workload& load, const FleetRun& run, std::size_t number,
                                      std::size_t ending) {
  const Request& request = load.requests[number];
  const Outcome &outcome = run.outcomes[number], &end = run.outcomes[ending];
  results::ServedRequest served;
  served.arrival_s = seconds_of(request.arrival);
  served.ready_s = seconds_of(outcome.ready);
  served.scheduled_s = seconds_of(outcome.scheduled);
  served.first_token_s = seconds_of(outcome.first);
  served.last_token_s = seconds_of(end.last);
  served.answered_s = seconds_of(outcome.answered);
  served.last_branch_first_token_s = seconds_of(end.first);
  served.last_branch_output = load.requests[ending].output;
  served.input = request.input;
  served.priority = request.priority;
  if (request.session >= 0) { served.session = request.session; }
  served.cached = outcome.cached;
  served.engine = outcome.engine;
  if (outcome.prefilled_by >= 0) {
    served.prefilled_by = outcome.prefilled_by;
    served.prefilled_s = seconds_of(outcome.prefilled);
    served.asked_s = seconds_of(outcome.asked);
    served.placed_s = seconds_of(outcome.placed);
  }
  const auto add = [&](std::size_t sequence) {
    const Outcome& one = run.outcomes[sequence];
    served.output += one.cut ? one.cut_tokens : load.requests[sequence].output;
    served.preemptions += one.preemptions;
  };
  add(number);
  const auto further = static_cast<std::size_t>(load.first_branch_of(static_cast<std::int64_t>(number)));
  for (std::size_t k = 0; k + 1 < static_cast<std::size_t>(load.branches); ++k) { add(further + k); }
  for (const StationTotals& station : run.stations) {
    served.stage_s.push_back(station.times[number] < 0 ? -1.0 : seconds_of(station.times[number]));
  }
  return served;
}

results::ServedRequest refused_request(const Request& request) {
  results::ServedRequest served;
  served.arrival_s = seconds_of(request.arrival);
  served.input = request.input;
  served.output = request.output;
  served.priority = request.priority;
  if (request.session >= 0) { served.session = request.session; }
  served.refused = true;
  return served;
}

// The part of requests that must be within a limit on a percentile, if those that are refused never are. A mean has no
// value then.
double needed_part(std::string_view measure) { return measure == "mean" ? 1.0 : part_within(measure); }

// Of its time before the engines: what is no stage.
double tokenisation_of(const FleetRun& run, std::size_t number, const std::vector<StationOptions>& stages,
                       double before) {
  for (std::size_t k = 0; k < run.stations.size(); ++k) {
    const Ticks time = run.stations[k].times[number];
    if (stages[k].place == StagePlace::before_prefill && time >= 0) { before -= seconds_of(time); }
  }
  return before;
}

// The first requests by arrival, which no statistic of requests counts.
class WarmUp {
 public:
  WarmUp(const Workload& load, double part) : load_(load) {
    const auto count = static_cast<std::size_t>(load.arriving());
    requests_ = warm_up_requests(count, part);
    if (load.following.empty() || requests_ == 0) { return; }
    std::vector<std::pair<Ticks, std::size_t>> arrivals;
    for (std::size_t i = 0; i < count; ++i) { arrivals.emplace_back(load.requests[i].arrival, i); }
    const auto end = arrivals.begin() + static_cast<std::ptrdiff_t>(requests_);
    std::nth_element(arrivals.begin(), end, arrivals.end());
    end_ = *end;
  }
  [[nodiscard]] std::size_t requests() const { return requests_; }
  // Later turns of sessions stand behind their first ones, and arrive after those of other sessions.
  [[nodiscard]] bool has(std::size_t i) const {
    return end_ ? std::pair(load_.requests[i].arrival, i) < *end_ : i < requests_;
  }

 private:
  const Workload& load_;
  std::size_t requests_ = 0;
  std::optional<std::pair<Ticks, std::size_t>> end_;  // sessions: the first one that counts
};

double part(double of, double whole) { return whole > 0.0 ? of / whole : 0.0; }

// What was loaded from tiers that are given: those with a rate.
void summarise_tiers(results::Serving& result, const std::vector<Pool>& pools, const FleetRun& run) {
  constexpr std::array<const char*, kTiers> kNames = {"host", "remote"};
  for (std::size_t k = 0; k < kTiers; ++k) {
    results::ServingTier tier{kNames[k], 0, 0.0, {}, {}};
    bool is_given = false;
    std::size_t engine = 0;
    for (const Pool& pool : pools) {
      is_given = is_given || (k < pool.shape.tiers.size() && pool.shape.tiers[k].token > 0);
      for (std::int64_t i = 0; i < pool.replicas; ++i) {
        const EngineTotals& totals = run.engines[engine++];
        tier.tokens += totals.tier_tokens[k];
        tier.links_in_use_s += totals.tier_s[k];
      }
    }
    if (k + 1 == kTiers) {
      tier.peak = run.store_peak;
      if (run.store_busy_s > 0.0) { tier.busy = std::min(1.0, part(run.store_busy_s, result.duration_s)); }
    }
    if (is_given) { result.tiers.push_back(std::move(tier)); }
  }
  for (const EngineTotals& totals : run.engines) {
    result.loads += totals.loads;
    result.load_wait_s += totals.load_wait_s;
  }
}

// With drafts an iteration that only decodes has several steps of one token.
std::int64_t iterations_of(const EngineTotals& totals, double tokens) {
  const double steps = std::accumulate(totals.decodes.begin(), totals.decodes.end(), 0.0,
                                       [](double sum, const DecodeUse& use) { return sum + use.steps; });
  return totals.iterations - std::llround(steps * (1.0 - 1.0 / tokens));
}

// Blocks of a request of the mean length at its end, as if nothing of it were shared but by its branches.
double mean_blocks(const Pool& pool, const Workload& load) {
  double tokens = 0;
  for (std::int64_t i = 0; i < load.arriving(); ++i) {
    const Request& request = load.requests[static_cast<std::size_t>(i)];
    tokens += real(request.input + (pool.shape.prefill_only ? 1 : load.branches * request.output));
  }
  const double blocks = tokens / real(load.arriving()) / real(pool.settings->block_tokens);
  const WindowShape& windows = pool.shape.windows;
  return blocks + real(windows.groups) * std::min(blocks, real(load.branches * windows.most));
}

void summarise_pools(results::Serving& result, const std::vector<Pool>& pools, const Workload& load,
                     const FleetRun& run, double duration) {
  std::size_t engine = 0;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    results::ServingPool& pool = result.pools[p];
    const auto count = static_cast<double>(pools[p].replicas), blocks = static_cast<double>(pools[p].shape.blocks);
    pool.fitting = part(blocks, mean_blocks(pools[p], load));
    double busy = 0, prefill = 0, held = 0, batch = 0;
    for (std::int64_t i = 0; i < pools[p].replicas; ++i) {
      const EngineTotals& totals = run.engines[engine++];
      pool.kv_peak = std::max(pool.kv_peak, static_cast<double>(totals.peak_blocks) / blocks);
      pool.iterations += iterations_of(totals, tokens_per_step(*pools[p].settings));
      busy += totals.busy_s;
      prefill += totals.prefill_s;
      held += totals.block_integral;
      batch += totals.running_integral;
      result.events += totals.events;
      result.preemptions += totals.preemptions;
    }
    const double on = pools[p].autoscale.scales() ? run.autoscaled[p].engine_seconds : duration * count;
    pool.kv_mean = part(held / blocks, on);
    pool.utilisation = part(busy, on);
    pool.prefill_share = part(prefill, busy);
    pool.mean_batch = part(batch, busy);
    result.kv_peak = std::max(result.kv_peak, pool.kv_peak);
  }
}

void summarise_stages(results::Serving& result, const std::vector<StationOptions>& stages, const FleetRun& run,
                      const WarmUp& skipped, double duration) {
  for (std::size_t k = 0; k < run.stations.size(); ++k) {
    const StationTotals& totals = run.stations[k];
    results::ServingStage& stage = result.stages[k];
    std::vector<double> waits, times;
    std::int64_t hits = 0, retrieved = 0;
    for (std::size_t i = 0; i < totals.times.size(); ++i) {
      if (skipped.has(i) || totals.times[i] < 0) { continue; }
      const std::int64_t found = totals.found.empty() ? 0 : totals.found[i];
      hits += found > 0 ? 1 : 0;
      retrieved += found;
      waits.push_back(seconds_of(totals.waits[i]));
      times.push_back(seconds_of(totals.times[i]));
    }
    stage.passed = std::ssize(times);
    stage.wait = distribution_of(std::move(waits));
    stage.time = distribution_of(std::move(times));
    if (stages[k].place != StagePlace::between_turns) { stage.share = part(stage.time.mean, result.e2e.mean); }
    if (stages[k].store) {
      stage.hits = hits;
      stage.retrieved_tokens = retrieved;
    }
    stage.mean_batch = part(static_cast<double>(totals.served), static_cast<double>(totals.batches));
    stage.mean_inside = part(totals.inside_integral, duration);
    if (stage.servers > 0) { stage.utilisation = part(totals.busy_s, duration * static_cast<double>(stage.servers)); }
  }
}

// Part of the blocks of the trace's prompts that were found in the cache; none without block ids.
std::optional<double> block_hits(const Workload& load, const FleetRun& run, const WarmUp& skipped) {
  if (load.block_tokens <= 0) { return std::nullopt; }
  double blocks = 0, found = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(load.arriving()); ++i) {
    if (skipped.has(i) || run.outcomes[i].refused) { continue; }
    blocks += static_cast<double>(load.requests[i].blocks);
    found += static_cast<double>(run.outcomes[i].cached_blocks);
  }
  return blocks > 0 ? std::optional(found / blocks) : std::nullopt;
}

// Tokens that all branches generated. `result` has those of requests already.
double summarise_branches(results::Serving& result, const Workload& load, const FleetRun& run) {
  results::ServingBranches branches;
  branches.count = load.branches;
  branches.join = load.join;
  std::int64_t generated = 0;
  for (const EngineTotals& totals : run.engines) {
    generated += totals.generated;
    branches.cut += totals.cut_branches;
    branches.cut_tokens += totals.cut_tokens;
  }
  for (auto i = static_cast<std::size_t>(load.arriving()); i < run.outcomes.size(); ++i) {
    result.recomputed_tokens += run.outcomes[i].recomputed;
    branches.cached_tokens += run.outcomes[i].cached;
  }
  branches.generated_tokens = generated;
  result.branches = branches;
  return static_cast<double>(generated);
}

// `attained`: [limit], measured requests within it.
void summarise_slo(results::Serving& result, const std::vector<std::int64_t>& attained, bool refuses) {
  for (std::size_t k = 0; k < result.slo.size(); ++k) {
    auto& level = result.slo[k];
    const auto& d = level.metric == "ttft" ? result.ttft : level.metric == "tpot" ? result.tpot : result.e2e;
    level.reached_s = d.at(level.measure);
    level.attained = part(static_cast<double>(attained[k]), static_cast<double>(result.measured));
    level.missed_by_refusals = refuses && level.attained < needed_part(level.measure);
  }
}

}  // namespace

results::Distribution distribution_of(std::vector<double> values) {
  results::Distribution d;
  if (values.empty()) { return d; }
  for (const double value : values) { d.mean += value; }
  d.mean /= static_cast<double>(values.size());
  auto from = values.begin();  // percentiles rise, so what is before the last one is not looked at again
  const auto next = [&](double p) {
    const auto at = values.begin() + nearest_rank(values.size(), p);
    std::nth_element(from, at, values.end());
    from = at;
    return *at;
  };
  d.p50 = next(0.5);
  d.p90 = next(0.9);
  d.p95 = next(0.95);
  d.p99 = next(0.99);
  d.max = *std::max_element(from, values.end());
  return d;
}

namespace {

// Times of measured requests by their priority, if they have several.
class ClassLatencies {
 public:
  explicit ClassLatencies(const Workload& load) {
    const auto end = load.requests.begin() + static_cast<std::ptrdiff_t>(load.arriving());
    several_ = std::any_of(load.requests.begin(), end,
                           [&](const Request& request) { return request.priority != load.requests.front().priority; });
  }
  void add(std::int32_t priority, const RequestTimes& times, bool has_tpot) {
    if (!several_) { return; }
    Times& of = classes_[priority];
    of.ttft.push_back(times.ttft);
    of.e2e.push_back(times.e2e);
    if (has_tpot) { of.tpot.push_back(times.tpot); }
  }
  void move_to(results::Serving& result) {
    for (auto& [priority, of] : classes_) {
      results::ServingClass one{priority, std::ssize(of.ttft)};
      one.ttft = distribution_of(std::move(of.ttft));
      one.tpot = distribution_of(std::move(of.tpot));
      one.e2e = distribution_of(std::move(of.e2e));
      result.classes.push_back(one);
    }
  }

 private:
  struct Times {
    std::vector<double> ttft, tpot, e2e;
  };
  bool several_ = false;
  std::map<std::int32_t, Times> classes_;
};

// Times of measured requests.
class Latencies {
 public:
  void add(const RequestTimes& times, bool has_tpot) {
    ttft_.push_back(times.ttft);
    e2e_.push_back(times.e2e);
    queue_.push_back(times.queue);
    prefill_.push_back(times.prefill);
    place_.push_back(times.place);
    transfer_.push_back(times.transfer);
    sending_.push_back(times.sending);
    if (has_tpot) { tpot_.push_back(times.tpot); }
  }
  void move_to(results::Serving& result, bool has_places) {
    result.ttft = distribution_of(std::move(ttft_));
    add_sending(result, has_places ? transfer_ : prefill_);
    result.tpot = distribution_of(std::move(tpot_));
    result.e2e = distribution_of(std::move(e2e_));
    result.queue = distribution_of(std::move(queue_));
    result.prefill = distribution_of(std::move(prefill_));
    if (!has_places) { return; }
    result.place = distribution_of(std::move(place_));
    result.transfer = distribution_of(std::move(transfer_));
  }

 private:
  // The wait for the server has a part of its own where it matters; else it belongs to the part before it.
  void add_sending(results::Serving& result, std::vector<double>& before) {
    constexpr double kMatters = 0.05;  // of the mean TTFT
    const double sum = std::accumulate(sending_.begin(), sending_.end(), 0.0);
    if (sum > 0.0 && sum >= kMatters * result.ttft.mean * static_cast<double>(sending_.size())) {
      result.sending = distribution_of(std::move(sending_));
      return;
    }
    for (std::size_t i = 0; i < before.size(); ++i) { before[i] += sending_[i]; }
  }

  std::vector<double> ttft_, tpot_, e2e_, queue_, prefill_, place_, transfer_, sending_;
};

}  // namespace

void summarise(results::Serving& result, const Workload& load, const std::vector<Pool>& pools, const FleetRun& run,
               const SummaryOptions& options) {
  const auto count = static_cast<std::size_t>(load.arriving());
  const WarmUp skipped(load, options.warm_up);
  Latencies latencies;
  ClassLatencies classes(load);
  double prompts = 0, cached = 0, outputs = 0, inputs = 0, tokenisation = 0;
  std::int64_t good = 0, answered = 0;
  std::vector<std::int64_t> attained(result.slo.size());
  Ticks first = kNever;
  for (std::size_t i = 0; i < count; ++i) {
    const Request& request = load.requests[i];
    const Outcome& outcome = run.outcomes[i];
    first = std::min(first, request.arrival);
    if (outcome.refused) {
      if (options.each) { result.each.push_back(refused_request(request)); }
      continue;
    }
    const std::size_t last = outcome.joined_by < 0 ? i : static_cast<std::size_t>(outcome.joined_by);
    const Outcome& end = run.outcomes[last];
    const Request& ending = load.requests[last];
    outputs += static_cast<double>(request.output);
    inputs += static_cast<double>(request.input);
    result.recomputed_tokens += outcome.recomputed;
    if (options.each) { result.each.push_back(served_request(load, run, i, last)); }
    if (skipped.has(i)) { continue; }
    const RequestTimes times = times_of(request, outcome, ending, end, options.request_overhead_s);
    latencies.add(times, ending.output > 1);
    classes.add(request.priority, times, ending.output > 1);
    tokenisation += tokenisation_of(run, i, options.stations, times.before);
    ++answered;
    prompts += static_cast<double>(request.input);
    cached += static_cast<double>(outcome.cached);
    bool all = true;
    for (std::size_t k = 0; k < result.slo.size(); ++k) {
      const auto& level = result.slo[k];
      const double time = times.of(level.metric);
      const bool within = time <= level.limit_s;
      attained[k] += within ? 1 : 0;
      all = all && within;
    }
    good += all ? 1 : 0;
  }
  if (load.branches > 1) { outputs = summarise_branches(result, load, run); }
  result.requests = static_cast<std::int64_t>(count);
  result.measured = static_cast<std::int64_t>(count - skipped.requests());
  const auto measured = static_cast<double>(result.measured);
  result.duration_s = seconds_of(run.end - first);
  latencies.move_to(result, pools.size() > 1);
  classes.move_to(result);
  if (answered == 0) {
    result.warnings.emplace_back("no request was answered after the warm-up: times of requests are not known");
  }
  result.request_overhead_s = options.request_overhead_s;
  result.tokenisation_s = part(tokenisation, real(answered));
  const auto served = static_cast<double>(static_cast<std::int64_t>(count) - run.refused);
  result.output_tokens_per_s = part(outputs, result.duration_s);
  result.total_tokens_per_s = part(outputs + inputs, result.duration_s);
  result.requests_per_s = part(served, result.duration_s);
  result.goodput_rps = part(static_cast<double>(count), result.duration_s) * part(static_cast<double>(good), measured);
  result.mean_in_system = part(run.system_integral, result.duration_s);
  if (load.clients == 0) { result.growth = growth_of(load, run); }
  result.prefix_hit_rate = part(cached, prompts);
  result.prefix_block_hit_rate = block_hits(load, run, skipped);
  summarise_slo(result, attained, run.refused > 0);
  summarise_pools(result, pools, load, run, result.duration_s);
  summarise_tiers(result, pools, run);
  summarise_stages(result, options.stations, run, skipped, result.duration_s);
}

Result<std::vector<results::ServiceLevel>> read_slo(std::string_view text) {
  constexpr std::string_view kExample = "; for example: \"ttft_p99=2s tpot_p99=50ms\"";
  const Place place{{}, 0, 0, "--slo"};
  std::vector<results::ServiceLevel> levels;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(" ,");
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (item.empty()) { continue; }
    const std::size_t equals = item.find('='), under = item.find('_');
    if (equals == std::string_view::npos || under == std::string_view::npos || under > equals) {
      return fail(place, fmt::format("{} is not a limit{}", quote(std::string(item)), kExample));
    }
    results::ServiceLevel level;
    level.metric = item.substr(0, under);
    level.measure = item.substr(under + 1, equals - under - 1);
    const auto known = [&](const std::string& value, const std::vector<std::string>& names) -> Result<void> {
      if (std::find(names.begin(), names.end(), value) != names.end()) { return {}; }
      return fail(place, fmt::format("{} in {} is not valid; valid: {}", quote(value), quote(std::string(item)),
                                     join(names, ", ")));
    };
    if (auto ok = known(level.metric, {"ttft", "tpot", "e2e"}); !ok) { return tl::make_unexpected(ok.error()); }
    if (auto ok = known(level.measure, {"mean", "p50", "p90", "p95", "p99"}); !ok) {
      return tl::make_unexpected(ok.error());
    }
    const auto time = config::parse_quantity<Seconds>(item.substr(equals + 1));
    if (!time || !(*time > Seconds(0))) {
      return fail(place, fmt::format("{} is not a time{}", quote(std::string(item.substr(equals + 1))), kExample));
    }
    level.limit_s = time->value();
    levels.push_back(std::move(level));
  }
  if (levels.empty()) { return fail(place, fmt::format("is empty{}", kExample)); }
  return levels;
}

}  // namespace orrery::serving
