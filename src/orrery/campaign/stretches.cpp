#include "orrery/campaign/stretches.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/campaign/dates.hpp"

namespace orrery::campaign {

namespace {

constexpr double kSecondsOfHour = 3600.0;

double job_nodes(const Job& job) {
  return static_cast<double>(job.estimate.devices) / static_cast<double>(node_devices(job.cluster));
}

// Useful time per second, as a multiple of that of the job's own size.
double relative_size(const Job& job, double nodes) {
  return nodes == job_nodes(job) ? 1.0 : relative_speed(job, static_cast<std::int64_t>(nodes));
}

void add(Bar& sum, const Bar& bar, double seconds) {
  const auto each = [seconds](double& into, double share) { into += share * seconds; };
  each(sum.shares.useful, bar.shares.useful);
  each(sum.shares.pauses, bar.shares.pauses);
  each(sum.shares.lost_work, bar.shares.lost_work);
  each(sum.shares.detection, bar.shares.detection);
  each(sum.shares.restart, bar.shares.restart);
  each(sum.shares.corruption, bar.shares.corruption);
  each(sum.shares.short_of_spares, bar.shares.short_of_spares);
  each(sum.slow, bar.slow);
  each(sum.planned, bar.planned);
  each(sum.exchange, bar.exchange);
  each(sum.sites, bar.sites);
}

void add_hours(Hours& hours, const Job& job, const Spec& spec, const Stretch& stretch, const Setting& setting,
               const Bar& bar, double seconds) {
  const auto per_node = static_cast<double>(node_devices(job.cluster)) * static_cast<double>(spec.sites);
  const double devices = stretch.size.nodes * per_node, elapsed = seconds / kSecondsOfHour;
  const double down = bar.shares.detection + bar.shares.restart + bar.shares.short_of_spares + bar.planned + bar.sites;
  const double spare = static_cast<double>(setting.spares) * per_node;
  hours.busy += devices * elapsed * (1.0 - down);
  hours.down += devices * elapsed * down;
  hours.spare += spare * elapsed;
  if (stretch.usd_per_device_hour) {
    hours.at_stretch_prices += (devices + spare) * elapsed;
    hours.at_stretch_prices_usd += (devices + spare) * elapsed * *stretch.usd_per_device_hour;
  }
}

// Failures strike while the job runs, and while it restarts from storage; not in detection or while it stands. Every
// site has its own.
void add_interruptions(Course& course, const Spec& spec, const Setting& setting, const Bar& bar, double seconds) {
  const double safe_restart = setting.process.tiers ? bar.shares.restart : 0.0;
  const double stands = bar.shares.detection + bar.shares.short_of_spares + bar.planned + bar.sites + safe_restart;
  const double all = seconds * static_cast<double>(spec.sites), exposed = all * (1.0 - stands);
  const CauseRates& causes = setting.causes;
  course.nodes += causes.nodes.value() * exposed;
  course.job += causes.job.value() * exposed;
  course.reclaims += causes.reclaims.value() * exposed + causes.noticed.value() * all;
  course.corruptions += setting.process.corruptions.value() * all * bar.shares.useful;
  course.domains.resize(causes.domains.size());
  for (std::size_t i = 0; i < causes.domains.size(); ++i) { course.domains[i] += causes.domains[i].value() * exposed; }
}

}  // namespace

std::optional<Date> first_day(const Spec& spec) {
  if (!spec.start.empty()) { return date_of(spec.start); }
  if (!spec.capacity.empty()) { return date_of(spec.capacity.front().from); }
  return std::nullopt;
}

std::vector<Stretch> stretches_of(const Job& job, const Spec& spec) {
  std::vector<Stretch> stretches;
  const auto day = first_day(spec);
  for (const auto& one : spec.capacity) {
    const auto days = date_of(one.from)->day - day->day;
    Stretch stretch{Seconds(static_cast<double>(std::max<std::int64_t>(0, days)) * kDaySeconds),
                    {static_cast<double>(one.nodes), 1.0, one.reclaims_per_node_day},
                    one.usd_per_device_hour};
    if (days <= 0) { stretches.clear(); }  // replaced before the first step
    stretches.push_back(stretch);
  }
  const bool late = stretches.empty() || stretches.front().begin > Seconds(0);
  if (late) { stretches.insert(stretches.begin(), Stretch{Seconds(0), {job_nodes(job), 1.0, 0.0}, {}}); }
  if (!(spec.early_failures > Seconds(0)) || spec.early_failure_factor == 1.0) { return stretches; }
  std::vector<Stretch> cut;
  for (const auto& stretch : stretches) {
    const bool is_new = cut.empty() || cut.back().begin < spec.early_failures;
    if (is_new && stretch.begin > spec.early_failures && !cut.empty()) {
      Stretch rest = cut.back();
      rest.begin = spec.early_failures;
      rest.size.rate_factor = 1.0;
      cut.push_back(rest);
    }
    cut.push_back(stretch);
    if (stretch.begin < spec.early_failures) { cut.back().size.rate_factor = spec.early_failure_factor; }
  }
  if (cut.back().begin < spec.early_failures) {
    Stretch rest = cut.back();
    rest.begin = spec.early_failures;
    rest.size.rate_factor = 1.0;
    cut.push_back(rest);
  }
  return cut;
}

std::int64_t busy_nodes(const Job& job) {
  const auto at_least_one = [](std::int64_t count) { return std::max<std::int64_t>(1, count); };
  const auto& estimate = job.estimate;
  const std::int64_t replica = at_least_one(estimate.devices / at_least_one(estimate.plan.number("dp")));
  const std::int64_t replicas = at_least_one(estimate.global_batch / at_least_one(estimate.plan.number("micro_batch")));
  return (replicas * replica + node_devices(job.cluster) - 1) / node_devices(job.cluster);
}

std::vector<std::string> capacity_warnings(const Job& job, const Spec& spec) {
  const std::int64_t busy = busy_nodes(job);
  std::vector<std::string> out;
  for (const auto& one : spec.capacity) {
    if (one.nodes <= busy) { continue; }
    out.push_back(
        fmt::format("--capacity: {} nodes from {}: the global batch of {} keeps at most {} node{} busy; the "
                    "others do no work, but fail, cost and stop the job",
                    one.nodes, one.from, job.estimate.global_batch, busy, busy == 1 ? "" : "s"));
  }
  return out;
}

Course course_of(const Job& job, const Spec& spec, const std::vector<Stretch>& stretches, Seconds work, double rate) {
  Course course;
  double left = work.value(), now = 0.0;
  for (std::size_t i = 0; i < stretches.size() && left > 0.0; ++i) {
    const Stretch& stretch = stretches[i];
    const Setting setting = setting_of(job, spec, rate, stretch.size);
    const double size = relative_size(job, stretch.size.nodes);
    const double end = i + 1 < stretches.size() ? stretches[i + 1].begin.value() : HUGE_VAL;
    Bar bar = bar_of(setting);
    if (i == 0 && size > 0.0) {
      bar = bar_of(setting, Seconds(std::min(left / size, bar.shares.useful * (end - now))));
    }
    const double speed = bar.shares.useful * size;
    const double seconds = speed > 0.0 ? std::min(left / speed, end - now) : end - now;
    if (i == 0) {
      course.first = setting;
      course.seconds.waits = bar.waits;
    }
    add(course.seconds, bar, seconds);
    add_hours(course.hours, job, spec, stretch, setting, bar, seconds);
    add_interruptions(course, spec, setting, bar, seconds);
    course.variance += luck_of(setting.process, Seconds(bar.shares.useful * seconds)).variance;
    left -= seconds * speed;
    now += seconds;
  }
  course.elapsed = Seconds(now);
  course.interruptions = course.nodes + course.job + course.reclaims + course.corruptions;
  for (const double failures : course.domains) { course.interruptions += failures; }
  return course;
}

}  // namespace orrery::campaign
