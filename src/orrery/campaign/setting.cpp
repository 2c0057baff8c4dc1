#include "orrery/campaign/setting.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/campaign/sites.hpp"
#include "orrery/campaign/spares.hpp"
#include "orrery/campaign/waiting.hpp"
#include "orrery/campaign/wide_area.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"

namespace orrery::campaign {

namespace {

constexpr double kYearSeconds = 365.0 * kDaySeconds;
const BytesPerSecond kStoragePerNode(
    1e9);                              // Llama 3: 2 TB/s sustained for 2,048 nodes (arXiv:2407.21783, section 3.3.1)
const BytesPerSecond kHostLink(25e9);  // where the cluster does not state the link to host memory

BytesPerSecond host_link(const hardware::Cluster& cluster) {
  const BytesPerSecond stated = cluster.second_tier.rate();
  return stated > BytesPerSecond(0) ? stated : kHostLink;
}

double per_day(double count) { return count / kDaySeconds; }

// Rates of everything that interrupts the job.
void add_failures(Setting& setting, const Job& job, const Spec& spec, double rate, const Size& size) {
  Process& process = setting.process;
  const double nodes = size.nodes, per_node = static_cast<double>(node_devices(job.cluster)) / kRatedNode;
  const double failing = per_day(nodes * per_node * rate / 1000.0) * size.rate_factor;
  process.job_failures = Hertz(per_day(spec.job_failures_per_day) + failing * (1.0 - spec.repair_share));
  process.nodes.push_back({Hertz(failing * spec.repair_share), 1});
  setting.causes.nodes = Hertz(failing);
  setting.causes.job = Hertz(per_day(spec.job_failures_per_day));
  for (const auto& domain : spec.domains) {
    const double groups = nodes / static_cast<double>(domain.nodes);
    setting.causes.domains.emplace_back(per_day(groups * domain.failures_per_1000_days / 1000.0));
    process.nodes.push_back({setting.causes.domains.back(), domain.nodes});
  }
  const double devices = nodes * static_cast<double>(node_devices(job.cluster));
  process.corruptions = Hertz(devices * spec.corruptions_per_device_year / kYearSeconds);
  process.validate_every = spec.validate_every;
  process.validation_latency = spec.validation_latency;
  process.repair = spec.repair;
}

results::CheckpointFacts checkpoint_of(const Job& job, const Spec& spec, double nodes) {
  results::CheckpointFacts facts;
  const double devices = nodes * static_cast<double>(node_devices(job.cluster));
  facts.total = Bytes(job.parameters * spec.checkpoint_bytes_per_parameter.value_or(job.bytes_per_parameter));
  facts.per_device = facts.total / devices;
  facts.storage = spec.storage_bandwidth.value_or(kStoragePerNode * nodes);
  const Seconds write = facts.total / facts.storage;
  const Seconds copy = facts.per_device / host_link(job.cluster);
  facts.pause = spec.checkpoint_pause.value_or(spec.checkpoint_barrier + (spec.checkpoint_async ? copy : write));
  facts.flush = spec.checkpoint_async ? spec.checkpoint_flush.value_or(write) : Seconds(0);
  facts.load = max(write, copy);
  return facts;
}

// Copies in memory that a failure of each kind leaves.
double recoverable_share(const Process& process, const Spec& spec) {
  double lost = 0.0;
  for (const auto& nodes : process.nodes) {
    const bool keeps = spec.memory_across == Across::rack || nodes.nodes < spec.memory_copies;
    if (!keeps || spec.memory_copies < 2) { lost += nodes.rate.value(); }
  }
  const double all = process.failures().value();
  return all > 0.0 ? 1.0 - lost / all : 1.0;
}

// Expected time of restarts of `length` until one of them is not struck.
Seconds until_restarted(Hertz rate, Seconds length) {
  return rate > Hertz(0) ? Seconds(std::expm1(rate * length) / rate.value()) : length;
}

// Reclaimed nodes: failures, or stops without lost work if a checkpoint fits into the notice. Such stops begin while
// the job runs; a reclaim in a restart begins it again. The process knows failures alone, so its restart R' takes as
// long under them as the restart R under both: (e^(lam R') - 1) / lam = (e^(mu R) - 1) / mu, mu = lam + reclaims.
void add_reclaims(Setting& setting, const Spec& spec, const Size& size) {
  Process& process = setting.process;
  const Hertz rate(per_day(size.nodes * (spec.reclaims_per_node_day + size.reclaims_per_node_day)));
  if (spec.reclaim_notice < setting.checkpoint.pause + setting.checkpoint.flush) {
    process.job_failures += rate;
    setting.causes.reclaims = rate;
    return;
  }
  setting.causes.noticed = rate;
  const Hertz failures = process.failures();
  const Seconds restart = until_restarted(failures + rate, setting.restart);
  process.downtime.restart = failures > Hertz(0) ? Seconds(std::log1p(failures * restart) / failures.value()) : restart;
}

// Share of stops with notice: each takes a checkpoint and restarts, after a time in which the job runs.
double share_of_notices(const Setting& setting) {
  if (!(setting.causes.noticed > Hertz(0))) { return 0.0; }
  const Hertz all = setting.process.failures() + setting.causes.noticed;
  const Seconds each = setting.checkpoint.pause + setting.checkpoint.flush + until_restarted(all, setting.restart);
  const Shares shares = shares_of(setting.process);
  const double running = 1.0 - shares.detection - shares.restart - shares.short_of_spares;
  const double stopped = setting.causes.noticed * each * running;
  return stopped / (1.0 + stopped);
}

void set_intervals(Setting& setting, const Spec& spec) {
  Process& process = setting.process;
  auto& facts = setting.checkpoint;
  const Hertz rate = process.failures();
  const Seconds pause = facts.pause + spec.flush_slowdown * facts.flush;
  if (!spec.memory_checkpoint_every) {
    process.interval = spec.checkpoint_every ? Interval{*spec.checkpoint_every, pause, facts.flush}
                                             : best_interval(rate, pause, facts.flush);
    facts.useful = process.interval.useful;
    facts.interval = process.interval.length();
    return;
  }
  Tiers tiers;
  tiers.memory = {*spec.memory_checkpoint_every, spec.memory_checkpoint_pause, Seconds(0)};
  tiers.storage_pause = pause;
  tiers.recoverable = facts.recoverable = recoverable_share(process, spec);
  const Downtime& down = process.downtime;
  tiers.memory_downtime = down.unprotected + down.restart - facts.load;
  tiers.storage_downtime = down.unprotected + down.restart + facts.flush;  // a failure in a flush returns further
  const double least = std::max(1.0, std::ceil(facts.flush / tiers.memory.length()));
  // Where every failure leaves a copy, storage is written once a day nevertheless.
  const auto daily = static_cast<std::int64_t>(std::max(1.0, std::floor(kDaySeconds / tiers.memory.length().value())));
  tiers.pieces =
      spec.checkpoint_every
          ? static_cast<std::int64_t>(std::max(1.0, std::round(*spec.checkpoint_every / tiers.memory.useful)))
          : std::max(static_cast<std::int64_t>(least), std::min(daily, best_pieces(rate, tiers)));
  facts.memory_interval = tiers.memory.length();
  facts.useful = tiers.memory.useful * static_cast<double>(tiers.pieces);
  facts.interval = tiers.piece_length() * static_cast<double>(tiers.pieces);
  process.tiers = tiers;
}

void set_spares(Setting& setting, const Job& job, const Spec& spec, double nodes) {
  std::vector<RepairClass> classes;
  for (const auto& one : setting.process.nodes) { classes.push_back({one.nodes, one.rate * spec.repair}); }
  setting.in_repair = repair_distribution(classes);
  setting.spares = spec.spares.value_or(spares_for(spec.spares_probability, setting.in_repair));
  if (spec.when_short == WhenShort::wait) {
    setting.process.spares = setting.spares;
    return;
  }
  setting.shrunk = shrunk_throughput(job, static_cast<std::int64_t>(std::llround(nodes)), setting.spares,
                                     setting.in_repair, spec.regroup);
}

}  // namespace

double tokens_per_step(const Job& job, const Spec& spec) {
  const auto& estimate = job.estimate;
  return static_cast<double>(estimate.global_batch) * static_cast<double>(std::max<std::int64_t>(1, estimate.seq)) *
         static_cast<double>(spec.sites);
}

std::int64_t node_devices(const hardware::Cluster& cluster) {
  constexpr std::int64_t kWidestNode = 16;
  if (!cluster.dimensions.empty() && cluster.dimensions.front().host > 0) { return cluster.dimensions.front().host; }
  const std::int64_t inner = std::min(cluster.node_size(), cluster.devices);
  return inner <= kWidestNode ? inner : static_cast<std::int64_t>(kRatedNode);
}

std::int64_t replica_nodes(const Job& job) {
  const std::int64_t dp = std::max<std::int64_t>(1, job.estimate.plan.number("dp"));
  const std::int64_t devices = std::max<std::int64_t>(1, job.estimate.devices / dp);
  const std::int64_t node = node_devices(job.cluster);
  return (devices + node - 1) / node;
}

double relative_speed(const Job& job, std::int64_t nodes) {
  const std::int64_t per_node = node_devices(job.cluster), replica = replica_nodes(job);
  const std::int64_t whole = nodes / replica * replica;
  if (whole * per_node == job.estimate.devices) { return 1.0; }
  if (job.speed) { return job.speed(whole * per_node); }
  return static_cast<double>(whole * per_node) / static_cast<double>(job.estimate.devices);
}

double shrunk_throughput(const Job& job, std::int64_t nodes, std::int64_t spares, std::span<const double> in_repair,
                         bool regroup) {
  const double all = relative_speed(job, nodes);
  if (!(all > 0.0)) { return 0.0; }
  // A plan may be faster with fewer replicas, which could then stand idle: missing nodes never help.
  const auto speed = [&](std::int64_t left) { return std::min(1.0, relative_speed(job, left) / all); };
  const double fixed = fixed_throughput(nodes, replica_nodes(job), spares, in_repair, speed);
  if (!regroup) { return fixed; }
  return std::max(fixed, regrouped_throughput(nodes, replica_nodes(job), spares, in_repair, speed));
}

Setting setting_of(const Job& job, const Spec& spec, double rate, const Size& size) {
  Setting setting;
  Process& process = setting.process;
  add_failures(setting, job, spec, rate, size);
  setting.checkpoint = checkpoint_of(job, spec, size.nodes);
  const double doublings = std::log2(std::max(1.0, size.nodes));
  process.downtime = {spec.detection,
                      spec.restart + spec.queue + spec.restart_per_doubling * doublings + setting.checkpoint.load};
  setting.restart = process.downtime.restart;
  add_reclaims(setting, spec, size);
  set_intervals(setting, spec);
  set_spares(setting, job, spec, size.nodes);
  setting.planned = share_of_notices(setting);
  const double per_node = static_cast<double>(node_devices(job.cluster)) / kRatedNode;
  const double slow =
      per_day(size.nodes * per_node * spec.slowdowns_per_1000_node_days / 1000.0) * spec.slowdown.value();
  setting.slowness = 1.0 + std::expm1(-slow) * (1.0 - 1.0 / spec.slowdown_factor);
  const double maintained = std::min(1.0, spec.maintenance_per_day * spec.maintenance.value() / kDaySeconds);
  setting.planned = 1.0 - (1.0 - setting.planned) * (1.0 - maintained);
  if (spec.sites > 1) {
    const auto round = round_of(spec, job.estimate.step_time, job.parameters);
    setting.utilization = round.utilization * kept_share(spec, round.length);
    process.sites = spec.sites;
    process.round = round.length / (setting.slowness * setting.shrunk);
  }
  const Seconds window = process.validate_every + process.validation_latency;
  if (setting.checkpoint.interval > Seconds(0)) {
    setting.checkpoint.kept = 1 + static_cast<std::int64_t>(std::ceil(window / setting.checkpoint.interval));
    setting.checkpoint.needed = setting.checkpoint.total / setting.checkpoint.interval;
  }
  return setting;
}

std::vector<Diagnostic> domain_problems(const Job& job, const Spec& spec) {
  const std::int64_t per_node = node_devices(job.cluster);
  std::int64_t nodes = (std::max(job.cluster.devices, job.estimate.devices) + per_node - 1) / per_node;
  for (const auto& one : spec.capacity) { nodes = std::max(nodes, one.nodes); }
  std::vector<Diagnostic> found;
  for (const auto& domain : spec.domains) {
    if (domain.nodes <= nodes) { continue; }
    found.push_back({{"", 0, 0, "--domains"},
                     fmt::format("{}: {} nodes fail together, but the cluster has {}; valid: 1 to {}", domain.of,
                                 domain.nodes, nodes, nodes)});
  }
  return found;
}

std::vector<Diagnostic> capacity_problems(const Job& job, const Spec& spec) {
  const std::int64_t replica = replica_nodes(job);
  std::vector<Diagnostic> found;
  for (const auto& one : spec.capacity) {
    if (one.nodes >= replica) { continue; }
    found.push_back({{"", 0, 0, "--capacity"},
                     fmt::format("{} from {}: a replica of the plan needs {}", counted(one.nodes, "node"), one.from,
                                 counted(replica, "node"))});
  }
  return found;
}

std::vector<Diagnostic> progress_problems(const Spec& spec, const Setting& setting, const Size& size) {
  constexpr double kLeastUseful = 1e-6;
  const double useful = bar_of(setting).shares.useful;
  if (useful >= kLeastUseful) { return {}; }  // false for NaN
  const Hertz rate = setting.process.failures();
  const std::string every = config::format_seconds(Seconds(rate > Hertz(0) ? 1.0 / rate.value() : HUGE_VAL));
  if (spec.checkpoint_every && *spec.checkpoint_every * rate > 1.0) {
    return {{{"", 0, 0, "--checkpoint-every"},
             fmt::format("{}: a failure every {} loses the work since the last checkpoint: the job cannot progress; "
                         "take one at least every {}",
                         config::format_seconds(*spec.checkpoint_every), every, every)}};
  }
  if (setting.checkpoint.flush * rate > 1.0) {
    return {{{"", 0, 0, "--checkpoint-flush"},
             fmt::format("{}: a failure every {} comes before a checkpoint is written: the job cannot progress",
                         config::format_seconds(setting.checkpoint.flush), every)}};
  }
  return {{{"", 0, 0, "--devices"},
           fmt::format("{}: a failure every {}, and {}: the job cannot progress; less than 1e-6 of the time is useful",
                       counted(std::llround(size.nodes), "node"), every, counted(setting.spares, "spare"))}};
}

std::vector<Diagnostic> problems(const Job& job, const Spec& spec, const Setting& setting) {
  using config::format_seconds;
  std::vector<Diagnostic> found;
  const auto& facts = setting.checkpoint;
  if (spec.checkpoint_every && facts.interval < facts.flush) {
    found.push_back({{"", 0, 0, "--checkpoint-every"},
                     fmt::format("{}: the flush of {} takes {}, longer than the interval; write every {} or longer, or "
                                 "give storage of {}",
                                 format_seconds(*spec.checkpoint_every), config::format_bytes(facts.total),
                                 format_seconds(facts.flush), format_seconds(facts.flush),
                                 config::format_rate(facts.total / facts.interval))});
  }
  const Hertz rate = setting.process.failures() + setting.causes.noticed;
  const Seconds mean(rate > Hertz(0) ? 1.0 / rate.value() : HUGE_VAL);
  const Seconds needed = max(setting.restart, facts.pause);
  if (mean < needed) {
    const double devices = static_cast<double>(job.estimate.devices);
    const auto largest = static_cast<std::int64_t>(devices * (mean / needed));
    const bool of_restart = setting.restart >= facts.pause;
    found.push_back(
        {{"", 0, 0, "--devices"},
         fmt::format("{}: a failure{} every {}, faster than {} of {}: the job cannot progress; {}",
                     job.estimate.devices, setting.causes.noticed > Hertz(0) ? " or reclaim" : "", format_seconds(mean),
                     of_restart ? "a restart" : "a checkpoint", format_seconds(needed),
                     largest > 0 ? "at most " + counted(largest, "device") + " can" : "nor can a smaller one")});
  }
  const double lost = setting.process.corruptions * (spec.validate_every / 2.0 + spec.validation_latency);
  if (lost >= 1.0) {
    found.push_back(
        {{"", 0, 0, "--validate-every"},
         fmt::format("{}: corruption strikes {:.3g} times between validations; validate more often",
                     format_seconds(spec.validate_every), setting.process.corruptions * spec.validate_every)});
  }
  return found;
}

namespace {

// Every part but planned stops, and `one`.
void scale_others(Bar& bar, double factor, const double* one) {
  for (double* part :
       {&bar.shares.useful, &bar.shares.pauses, &bar.shares.lost_work, &bar.shares.detection, &bar.shares.restart,
        &bar.shares.corruption, &bar.shares.short_of_spares, &bar.slow, &bar.exchange, &bar.sites}) {
    if (part != one) { *part *= factor; }
  }
}

// Of one site, without planned stops.
Bar bar_of_site(const Setting& setting) {
  Bar bar;
  bar.shares = shares_of(setting.process);
  double& useful = bar.shares.useful;
  bar.slow = useful * (1.0 - setting.slowness);
  useful -= bar.slow;
  bar.shares.short_of_spares += useful * (1.0 - setting.shrunk);
  useful *= setting.shrunk;
  bar.exchange = useful * (1.0 - setting.utilization);
  useful *= setting.utilization;
  return bar;
}

// A round of the site takes `round` / useful time (of the process) on average, and then the wait for the others.
Bar with_others(Bar bar, const Setting& setting) {
  if (setting.process.sites > 1 && setting.process.round > Seconds(0)) {
    const double process_useful = bar.shares.useful / (setting.slowness * setting.shrunk * setting.utilization);
    bar.waits = waiting_for_sites(setting.process, bar.shares.short_of_spares);
    bar.sites = 1.0 - 1.0 / (1.0 + bar.waits / setting.process.round * process_useful);
    scale_others(bar, 1.0 - bar.sites, &bar.sites);
  }
  bar.planned = setting.planned;
  scale_others(bar, 1.0 - setting.planned, nullptr);
  return bar;
}

}  // namespace

Bar bar_of(const Setting& setting) { return with_others(bar_of_site(setting), setting); }

Bar bar_of(const Setting& setting, Seconds work) {
  Bar bar = bar_of_site(setting);
  const double stands = bar.shares.short_of_spares;
  if (setting.process.spares && bar.shares.useful > 0.0 && stands < 1.0) {
    const Seconds running = work * ((1.0 - stands) / bar.shares.useful);
    const Seconds waiting = waiting_for_nodes(setting.process, running);
    bar.shares.short_of_spares = waiting / (running + waiting);
    scale_others(bar, (1.0 - bar.shares.short_of_spares) / (1.0 - stands), &bar.shares.short_of_spares);
  }
  return with_others(bar, setting);
}

}  // namespace orrery::campaign
