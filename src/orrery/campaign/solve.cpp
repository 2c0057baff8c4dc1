#include "orrery/campaign/solve.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "orrery/campaign/causes.hpp"
#include "orrery/campaign/dates.hpp"
#include "orrery/campaign/spares.hpp"
#include "orrery/campaign/stretches.hpp"
#include "orrery/campaign/wide_area.hpp"
#include "orrery/config/units_text.hpp"

namespace orrery::campaign {

namespace {

using config::format_seconds;
using results::Campaign;

struct Rates {
  double middle = kUsualFailures, low = kFewFailures, high = kManyFailures;
};

Rates rates_of(const Spec& spec) {
  Rates rates;
  rates.middle = spec.failures_per_1000_node_days.value_or(kUsualFailures);
  rates.low = spec.failures_low.value_or(rates.middle / 2.0);
  rates.high = spec.failures_high.value_or(rates.middle * 2.0);
  return rates;
}

// Full-speed time of these tokens.
Seconds work_of(const Job& job, const Spec& spec, double tokens) {
  return job.estimate.step_time * (tokens * spec.loss_factor / tokens_per_step(job, spec));
}

// The largest tokens for which `fits`, by bisection.
template <class Fits>
double largest_tokens(double least, const Fits& fits) {
  double low = least, high = kMostTokens;
  if (!fits(low)) { return 0.0; }
  if (fits(high)) { return high; }
  for (int i = 0; i < 100; ++i) {
    const double middle = std::sqrt(low * high);
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

double usd_of(const Job& job, const Spec& spec, const Course& course) {
  const auto energy = energy_of(job, spec, course.hours);
  const auto money = money_of(job, spec, course.hours, energy);
  return money ? money->usd : HUGE_VAL;
}

Result<double> tokens_of(const Job& job, const Spec& spec, const std::vector<Stretch>& stretches, double rate) {
  if (!spec.tokens.empty()) { return *count_of(spec.tokens); }
  if (spec.steps) { return static_cast<double>(*spec.steps) * tokens_per_step(job, spec); }
  const auto course = [&](double tokens) { return course_of(job, spec, stretches, work_of(job, spec, tokens), rate); };
  if (spec.budget_usd) {
    if (!std::isfinite(usd_of(job, spec, course(1e9)))) {
      return fail({"", 0, 0, "--budget-usd"}, "needs a price: --usd-per-device-hour and --price-date");
    }
    const double least = tokens_per_step(job, spec);
    const double tokens =
        largest_tokens(least, [&](double count) { return usd_of(job, spec, course(count)) <= *spec.budget_usd; });
    if (tokens < least) {
      return fail({"", 0, 0, "--budget-usd"}, fmt::format("{:g}: pays for no step; the first one costs {:.2f} USD",
                                                          *spec.budget_usd, usd_of(job, spec, course(least))));
    }
    if (tokens >= kMostTokens) {
      return fail({"", 0, 0, "--budget-usd"},
                  fmt::format("{:g}: pays for more than 1000000T tokens", *spec.budget_usd));
    }
    return tokens;
  }
  const double days = static_cast<double>(date_of(spec.until)->day - first_day(spec)->day);
  if (days <= 0.0) { return fail({"", 0, 0, "--until"}, fmt::format("{} is not after the start", spec.until)); }
  const double least = tokens_per_step(job, spec);
  const double tokens =
      largest_tokens(least, [&](double count) { return course(count).elapsed.value() <= days * kDaySeconds; });
  if (tokens < least) {
    return fail({"", 0, 0, "--until"}, fmt::format("{}: {} days are not enough for one step", spec.until, days));
  }
  return tokens;
}

// The ratio of two times as a logarithm; 0 where one of them is not finite.
double log_ratio(Seconds a, Seconds b) {
  return is_finite(a) && is_finite(b) && b > Seconds(0) ? std::log(a / b) : 0.0;
}

constexpr double kDecile = 1.2815515655446004;  // the 0.9 quantile of the standard normal distribution

void set_days(Campaign& out, const Job& job, const Spec& spec, const std::vector<Stretch>& stretches,
              const Course& course, Seconds work, const Rates& rates) {
  const Seconds few = course_of(job, spec, stretches, work, rates.low).elapsed;
  const Seconds many = course_of(job, spec, stretches, work, rates.high).elapsed;
  double fast = 0.0, slow = 0.0;
  if (const auto& range = job.estimate.uncertainty) {
    const double step = job.estimate.step_time.value();
    const auto with_step = [&](Seconds one) {
      return course_of(job, spec, stretches, work * (one.value() / step), rates.middle).elapsed;
    };
    fast = log_ratio(with_step(range->p10), course.elapsed);
    slow = log_ratio(with_step(range->p90), course.elapsed);
  }
  out.luck_days = std::sqrt(course.variance) / kDaySeconds;
  const double luck = kDecile * std::sqrt(course.variance) / course.elapsed.value();
  const double down = std::hypot(fast, log_ratio(few, course.elapsed), luck);
  const double up = std::hypot(slow, log_ratio(many, course.elapsed), luck);
  const double days = course.elapsed.value() / kDaySeconds;
  out.days = {days * std::exp(-down), days, days * std::exp(up)};
  out.useful_days = work.value() / kDaySeconds;
  if (const auto day = first_day(spec)) {
    constexpr double kRounding = 1e-6;  // days: a campaign that ends at midnight ends on the day that begins
    const auto end = [&](double after) { return text_of(day_after(*day, Seconds((after + kRounding) * kDaySeconds))); };
    out.start = text_of(*day);
    out.end = end(out.days.p50);
    out.end_p10 = end(out.days.p10);
    out.end_p90 = end(out.days.p90);
  }
}

void add_cause(Campaign& out, const std::string& name, double count) {
  if (!(count > 0.0)) { return; }
  const auto same =
      std::find_if(out.causes.begin(), out.causes.end(), [&](const auto& one) { return one.name == name; });
  if (same == out.causes.end()) {
    out.causes.push_back({name, count});
  } else {
    same->interruptions += count;
  }
}

// Expected interruptions at the given rate of nodes, and their 80 % interval: that of the rate over the same days and
// Poisson's own, as independent factors. The causes sum to them.
void set_interruptions(Campaign& out, const Spec& spec, const Course& course, const Rates& rates) {
  const double expected = course.interruptions;
  const auto at = [&](double rate, double sign) {
    if (!(expected > 0.0)) { return 0.0; }
    const double nodes = rates.middle > 0.0 ? course.nodes * rate / rates.middle : course.nodes;
    const double mean = expected - course.nodes + nodes;
    const double of_rate = mean > 0.0 ? std::log(mean / expected) : 0.0;
    return expected * std::exp(sign * std::hypot(of_rate, kDecile / std::sqrt(expected)));
  };
  out.interruptions = {at(rates.low, -1.0), expected, at(rates.high, 1.0)};
  if (expected > 0.0) { out.mean_time_between_interruptions_s = course.elapsed.value() / expected; }
  double all = 0.0;
  for (const auto& cause : kLlama3Causes) { all += cause.count; }
  for (const auto& cause : kLlama3Causes) { add_cause(out, std::string(cause.name), course.nodes * cause.count / all); }
  for (std::size_t i = 0; i < course.domains.size(); ++i) {
    add_cause(out, "domain " + spec.domains[i].of, course.domains[i]);
  }
  add_cause(out, "job", course.job);
  add_cause(out, "reclaims", course.reclaims);
  add_cause(out, "silent corruption", course.corruptions);
}

void add_part(Campaign& out, const Course& course, const char* name, double seconds, std::string formula) {
  const double share = seconds / course.elapsed.value();
  if (share > 0.0 || out.bar.empty()) { out.bar.push_back({name, share, std::move(formula)}); }
}

std::string formula_of_useful(const Process& process, const results::CheckpointFacts& facts, const std::string& lam) {
  if (process.tiers) {
    return fmt::format(
        "n w1 / E[n pieces]: n {}, w1 {}, {:.1f} % of failures leave a copy, {}, downtime {} with one, {} without",
        process.tiers->pieces, format_seconds(process.tiers->memory.useful), 100.0 * process.tiers->recoverable, lam,
        format_seconds(process.tiers->memory_downtime), format_seconds(process.tiers->storage_downtime));
  }
  if (!is_finite(facts.useful)) { return "no failures: no checkpoint is taken"; }
  return fmt::format("u e^(-lam F) / (e^(lam P) - 1) / (e^(lam R) (1/lam + D)): u {}, P {}, F {}, {}, D {}, R {}",
                     format_seconds(facts.useful), format_seconds(facts.interval), format_seconds(facts.flush), lam,
                     format_seconds(process.downtime.unprotected), format_seconds(process.downtime.restart));
}

std::string formula_of_pauses(const Process& process, const results::CheckpointFacts& facts) {
  const std::string storage = fmt::format("C {} every {}", format_seconds(facts.pause), format_seconds(facts.interval));
  if (!process.tiers) { return storage; }
  return fmt::format("{} every {}, and {}", format_seconds(process.tiers->memory.pause),
                     format_seconds(process.tiers->memory.length()), storage);
}

std::string formula_of_lost_work(const Process& process, const results::CheckpointFacts& facts,
                                 const std::string& lam) {
  if (!process.tiers) { return fmt::format("about P/2 + F per failure, {}", lam); }
  return fmt::format("about {} per failure that leaves a copy in memory ({:.1f} %), {} per other one, {}",
                     format_seconds(process.tiers->memory.length() / 2.0), 100.0 * process.tiers->recoverable,
                     format_seconds(facts.interval / 2.0), lam);
}

void set_bar(Campaign& out, const Spec& spec, const Course& course) {
  const Process& process = course.first.process;
  const Shares& parts = course.seconds.shares;
  const double rate = process.failures().value();
  const std::string lam =
      rate > 0.0 ? fmt::format("lam 1/({})", format_seconds(Seconds(1.0 / rate))) : std::string("no failures");
  const auto& facts = out.checkpoint;
  add_part(out, course, "useful", parts.useful, formula_of_useful(process, facts, lam));
  add_part(out, course, "pauses", parts.pauses, formula_of_pauses(process, facts));
  add_part(out, course, "lost_work", parts.lost_work, formula_of_lost_work(process, facts, lam));
  add_part(out, course, "detection", parts.detection, format_seconds(spec.detection) + " per failure");
  add_part(out, course, "restart", parts.restart,
           fmt::format("{} per restart: {} to start, queue {}, load {}", format_seconds(course.first.restart),
                       format_seconds(course.first.restart - spec.queue - facts.load), format_seconds(spec.queue),
                       format_seconds(facts.load)));
  add_part(out, course, "corruption", parts.corruption,
           fmt::format("{:.3g} hits, each {} / 2 of work and a restart", course.corruptions,
                       format_seconds(spec.validate_every)));
  add_part(out, course, "short_of_spares", parts.short_of_spares,
           spec.when_short == WhenShort::wait ? "P(nodes in repair > spares)" : "replicas without a node");
  add_part(out, course, "stragglers", course.seconds.slow, "nodes that are slow for a while");
  add_part(out, course, "planned", course.seconds.planned, "maintenance, and reclaims with notice");
  add_part(out, course, "exchange", course.seconds.exchange, "exchanges between sites that compute does not hide");
  add_part(out, course, "other_sites", course.seconds.sites,
           fmt::format("{} in a round of {}: the slowest of {} sites takes longer by that",
                       format_seconds(course.seconds.waits), format_seconds(process.round), spec.sites));
  out.ettr = parts.useful / course.elapsed.value();
}

void set_spare_rows(Campaign& out, const Job& job, const Course& course) {
  const Setting& setting = course.first;
  const auto nodes = static_cast<std::int64_t>(out.nodes);
  std::vector<std::int64_t> rows = {0, setting.spares};
  for (const double p : {0.5, 0.9, 0.99, 0.999}) { rows.push_back(spares_for(p, setting.in_repair)); }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  for (const auto spares : rows) {
    const double short_share = shortage(spares, setting.in_repair).share;
    out.spares.push_back({spares, 1.0 - short_share, 1.0 - short_share,
                          shrunk_throughput(job, nodes, spares, setting.in_repair, false),
                          shrunk_throughput(job, nodes, spares, setting.in_repair, true), spares == setting.spares});
  }
}

void set_interval_costs(Campaign& out, const Job& job, const Spec& spec, const std::vector<Stretch>& stretches,
                        Seconds work, double rate) {
  const auto days_with = [&](double factor) {
    Spec other = spec;
    other.checkpoint_every = out.checkpoint.useful * factor;
    return course_of(job, other, stretches, work, rate).elapsed.value() / kDaySeconds;
  };
  if (stretches.size() > 1) { return; }  // each has its best interval
  if (!is_finite(out.checkpoint.useful) || !(out.checkpoint.useful > Seconds(0))) { return; }
  out.checkpoint.halved = days_with(0.5);
  out.checkpoint.doubled = days_with(2.0);
}

void set_wide_area(Campaign& out, const Job& job, const Spec& spec) {
  if (spec.sites <= 1) { return; }
  const auto round = round_of(spec, job.estimate.step_time, job.parameters);
  const auto synchronous = synchronous_round(spec, job.estimate.step_time, job.parameters);
  results::WideArea area;
  area.sites = spec.sites;
  area.local_steps = spec.local_steps;
  area.round = round.length;
  area.exchange = round.exchange;
  area.exposed = round.exposed;
  area.compute_utilization = round.utilization;
  area.sent_per_round = sent_by_site(spec.aggregate, spec.sites, Bytes(job.parameters * spec.outer_bits / 8.0));
  area.reduction = traffic_reduction(spec.local_steps, 16.0, spec.outer_bits);
  area.synchronous_utilization = synchronous.utilization;
  area.loss_factor = spec.loss_factor;
  area.aggregate = config::enum_name(spec.aggregate);
  area.faster_than_synchronous =
      round.utilization * kept_share(spec, round.length) / (synchronous.utilization * spec.loss_factor);
  out.wide_area = area;
}

// ETTR against size: one node to 16 times the job, at the given rate; and the largest size at which half of the time is
// useful.
void set_sizes(Campaign& out, Job job, const Spec& spec, double rate) {
  job.speed = {};  // another size of the job would have another plan
  const auto useful = [&](std::int64_t nodes) {
    return bar_of(setting_of(job, spec, rate, {static_cast<double>(nodes), 1.0, 0.0})).shares.useful;
  };
  constexpr std::int64_t kLargest = 16, kMostNodes = std::int64_t{1} << 20;
  constexpr double kHalf = 0.5;
  for (std::int64_t nodes = 1; nodes <= kLargest * out.nodes; nodes *= 2) {
    out.by_size.push_back({nodes * out.node_devices, useful(nodes)});
  }
  std::int64_t low = 0, high = 0;
  for (const auto& size : out.by_size) {
    if (size.ettr >= kHalf) { low = size.devices / out.node_devices; }
  }
  for (high = std::max<std::int64_t>(1, 2 * low); low > 0 && high <= kMostNodes && useful(high) >= kHalf; high *= 2) {
    low = high;
  }
  if (low == 0 || high > kMostNodes) { return; }
  while (high - low > std::max<std::int64_t>(1, low / 100)) {  // to 1 %
    const std::int64_t middle = (low + high) / 2;
    (useful(middle) >= kHalf ? low : high) = middle;
  }
  out.largest_devices = low * out.node_devices;
}

std::vector<Diagnostic> problems_of_sizes(const Job& job, const Spec& spec, const std::vector<Stretch>& stretches,
                                          double rate) {
  auto found = problems(job, spec, setting_of(job, spec, rate, stretches.front().size));
  for (const auto& stretch : stretches) {
    if (!found.empty()) { break; }
    found = progress_problems(spec, setting_of(job, spec, rate, stretch.size), stretch.size);
  }
  return found;
}

// Sites that never exchange, and exchanges that would be hidden behind more compute than a round has.
std::vector<Diagnostic> problems_of_steps(const Job& job, const Spec& spec, double tokens) {
  if (spec.sites == 1) { return {}; }
  const double steps = tokens * spec.loss_factor / tokens_per_step(job, spec);
  if (steps < static_cast<double>(spec.local_steps)) {
    return {{{"", 0, 0, "--local-steps"},
             fmt::format("{}: each site takes {:.0f} steps in the whole campaign and never exchanges", spec.local_steps,
                         steps)}};
  }
  const Seconds compute = job.estimate.step_time * static_cast<double>(spec.local_steps);
  if (spec.outer_overlap * static_cast<double>(spec.outer_fragments) > compute) {
    return {{{"", 0, 0, "--outer-overlap"},
             fmt::format("{}: {} steps between exchanges take {}; valid: at most that, for all fragments together",
                         format_seconds(spec.outer_overlap), spec.local_steps, format_seconds(compute))}};
  }
  return {};
}

std::vector<std::string> left_out(const Job& job, const Spec& spec) {
  std::vector<std::string> out = {
      "failures that depend on each other, other than in domains; their rate is constant (daytime: 1 to 2 % of the "
      "speed)"};
  if (spec.slowdowns_per_1000_node_days == 0.0) {
    out.emplace_back(
        "nodes that are slow for a while (about 72 min at 1.34 times the step time in 16 of 27 jobs of 512 "
        "GPUs or more): --slowdowns-per-1000-node-days");
  }
  if (spec.maintenance_per_day == 0.0) {
    out.emplace_back("planned stops (Llama 3: 0.87 a day, 1 % of the time): --maintenance-per-day");
  }
  if (spec.when_short == WhenShort::shrink && !job.speed) {
    out.emplace_back("the step time of a plan with fewer replicas: throughput is proportional to them");
  }
  if (!spec.capacity.empty()) {
    out.emplace_back(job.speed ? "a new plan for every size: the plan keeps its degrees but for replicas"
                               : "a new plan for every size: throughput is proportional to whole replicas");
  }
  if (!job.cluster.nodes.empty()) {
    out.emplace_back(
        "which kind of node is missing: all kinds fail alike, and throughput is proportional to the replicas left");
  }
  if (spec.sites > 1) { out.emplace_back("the effect of local steps on the loss: --loss-factor is an input"); }
  return out;
}

void set_warnings(Campaign& out, const Job& job, const Spec& spec) {
  out.warnings = campaign::warnings(spec);
  for (auto& warning : capacity_warnings(job, spec)) { out.warnings.push_back(std::move(warning)); }
  if (!out.energy) { return; }
  for (auto& warning : power_warnings(job, spec)) { out.warnings.push_back(std::move(warning)); }
}

// Why the simulation may differ from the closed form by more than its standard error; empty: it should not. With
// domains the closed form knows the share of waiting for a node of campaigns that are long against a repair
// (waiting.hpp).
std::string limits_of_comparison(const Setting& setting, Seconds work, const SimulatedCampaigns& runs) {
  constexpr double kLong = 10.0;
  constexpr std::int64_t kEnough = 30;  // campaigns of which a mean has a standard error
  const double share = bar_of(setting).shares.short_of_spares;
  const bool can_wait = setting.process.spares && share > 0.0;
  if (!can_wait) { return {}; }
  if (runs.stood < kEnough) {
    return fmt::format(
        "{} of them waited for a node, which is rare ({:.2g} of the time in the closed form): the "
        "standard error may be too small",
        runs.stood, share);
  }
  const auto& nodes = setting.process.nodes;
  const bool has_groups =
      std::any_of(nodes.begin(), nodes.end(), [](const auto& one) { return one.nodes > 1 && one.rate > Hertz(0); });
  if (has_groups && work < setting.process.repair * kLong) {
    return fmt::format(
        "shorter than ten repairs of {}, with domains: the closed form's time without a spare is "
        "approximate",
        format_seconds(setting.process.repair));
  }
  return {};
}

// Rounds of sites are stepped through one by one: a limit of minutes.
std::vector<Diagnostic> problems_of_rounds(const Process& process, Seconds work, std::int64_t count) {
  constexpr double kMost = 1e10;
  if (process.sites == 1) { return {}; }
  const double each = std::ceil(work / process.round) * static_cast<double>(process.sites);
  if (each * static_cast<double>(count) <= kMost) { return {}; }
  const auto most = static_cast<std::int64_t>(kMost / each);
  return {{{"", 0, 0, "--simulate"},
           most > 0 ? fmt::format("{}: each campaign has {:.3g} rounds of sites; valid: at most {}", count, each, most)
                    : fmt::format("a campaign has {:.3g} rounds of sites, too many to simulate", each)}};
}

}  // namespace

Result<Campaign> solve(const Job& job, const Spec& spec) {
  if (auto found = campaign::problems(spec); !found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  for (auto* check : {domain_problems, capacity_problems}) {
    if (auto found = check(job, spec); !found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  }
  const Rates rates = rates_of(spec);
  const auto stretches = stretches_of(job, spec);
  const Setting setting = setting_of(job, spec, rates.middle, stretches.front().size);
  if (auto found = problems_of_sizes(job, spec, stretches, rates.middle); !found.empty()) {
    return tl::make_unexpected(Failure{std::move(found)});
  }
  ORRERY_TRY(tokens, tokens_of(job, spec, stretches, rates.middle));
  if (auto found = problems_of_steps(job, spec, tokens); !found.empty()) {
    return tl::make_unexpected(Failure{std::move(found)});
  }
  Campaign out;
  out.estimate = job.estimate;
  out.chosen = job.chosen;
  out.tokens = tokens;
  out.steps = tokens * spec.loss_factor / tokens_per_step(job, spec);
  out.failures_per_1000_node_days = rates.middle;
  out.failures_low = rates.low;
  out.failures_high = rates.high;
  out.failure_counts = config::enum_name(spec.failure_counts);
  out.formula = config::enum_name(spec.formula);
  out.node_devices = node_devices(job.cluster);
  out.nodes = (job.estimate.devices + out.node_devices - 1) / out.node_devices;
  out.replica_nodes = replica_nodes(job);
  const Seconds work = work_of(job, spec, tokens);
  const Course course = course_of(job, spec, stretches, work, rates.middle);
  out.checkpoint = course.first.checkpoint;
  set_days(out, job, spec, stretches, course, work, rates);
  set_interruptions(out, spec, course, rates);
  set_bar(out, spec, course);
  if (spec.formula == Formula::meta) {
    out.ettr = meta_ettr(setting.process.failures(), out.checkpoint.interval, out.checkpoint.pause,
                         setting.process.downtime.unprotected + setting.process.downtime.restart);
  }
  set_spare_rows(out, job, course);
  set_interval_costs(out, job, spec, stretches, work, rates.middle);
  out.device_hours = course.hours.job();
  out.spare_device_hours = course.hours.spare;
  out.energy = energy_of(job, spec, course.hours);
  out.money = money_of(job, spec, course.hours, out.energy);
  out.carbon = carbon_of(job, spec, course.hours, out.energy);
  set_wide_area(out, job, spec);
  set_sizes(out, job, spec, rates.middle);
  set_warnings(out, job, spec);
  out.not_modelled = left_out(job, spec);
  return out;
}

Result<results::CampaignSimulation> simulated(const Job& job, const Spec& spec, const Campaign& campaign,
                                              std::int64_t count, std::uint64_t seed, int threads,
                                              const std::function<void(std::int64_t)>& progress) {
  const auto stretches = stretches_of(job, spec);
  if (stretches.size() > 1) {
    return fail({"", 0, 0, "--simulate"},
                "is valid for a campaign of one size and rate; leave out capacity and early "
                "failures");
  }
  const Setting setting = setting_of(job, spec, campaign.failures_per_1000_node_days, stretches.front().size);
  // Effects that are no events here (slow nodes, fewer replicas, exchanges, planned stops) are factors on the time.
  const double speed = setting.slowness * setting.shrunk * setting.utilization;
  const Seconds work(campaign.useful_days * kDaySeconds / speed);
  if (auto found = problems_of_rounds(setting.process, work, count); !found.empty()) {
    return tl::make_unexpected(Failure{std::move(found)});
  }
  const auto runs = simulate_campaigns(setting.process, work, count, seed, threads, progress);
  const double days = 1.0 / kDaySeconds / (1.0 - setting.planned);
  results::CampaignSimulation out;
  out.campaigns = count;
  out.mean_days = runs.mean.value() * days;
  out.standard_error_days = runs.standard_error.value() * days;
  out.days = {runs.p10.value() * days, runs.p50.value() * days, runs.p90.value() * days};
  out.interruptions = runs.failures + runs.corruptions;
  out.closed_form_days = campaign.days.p50;
  out.note = limits_of_comparison(setting, work, runs);
  return out;
}

}  // namespace orrery::campaign
