#include "orrery/campaign/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

#include "orrery/campaign/spares.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/parallel_for.hpp"
#include "orrery/core/random.hpp"

namespace orrery::campaign {

namespace {

using Heap = std::priority_queue<double, std::vector<double>, std::greater<>>;  // ends of repairs

// One campaign. All times in seconds.
class Run {
 public:
  Run(const Process& process, RandomStream random)
      : process_(process), random_(random), rate_(process.failures().value()) {
    next_failure_ = wait_for(rate_);
    next_corruption_ = wait_for(process.corruptions.value());
    for (const auto& nodes : process.nodes) {
      const double groups = nodes.rate.value() * process.repair.value();
      for (std::int64_t left = poisson(random_, groups); left > 0; --left) { start_repairs(nodes.nodes); }
    }
  }

  // Until this much work is done for the first time: its own time, in which it never waits for others.
  double time_of(double work) {
    if (now_ == 0.0) { stand_until_repaired(); }
    while (true) {
      const double to_end = wall_of(work - done_), to_corruption = wall_of(next_corruption_ - retained_);
      const double to_failure = next_failure_ - now_;
      if (to_end <= std::min(to_failure, to_corruption)) { return now_ + to_end; }
      if (to_corruption <= to_failure) {
        corrupt(to_corruption);
      } else {
        fail_after(to_failure);
      }
    }
  }

  [[nodiscard]] const SimulatedCampaign& counts() const { return out_; }

 private:
  double wait_for(double rate) { return rate > 0.0 ? exponential(random_, rate) : HUGE_VAL; }

  // Wall time of this much useful work from here, with the pauses of the checkpoints on the way. Sites take checkpoints
  // at the same points of the work.
  [[nodiscard]] double wall_of(double work) const {
    if (!(work > 0.0)) { return 0.0; }
    const double useful = piece_useful();
    if (!std::isfinite(useful) || !std::isfinite(work)) { return work; }
    const double before = process_.sites > 1 ? done_ / useful - std::floor(done_ / useful + kRounding) : 0.0;
    return work + std::floor(work / useful + std::max(0.0, before)) * (piece_length() - useful);
  }
  static constexpr double kRounding = 1e-6;  // of a position in checkpoint intervals
  [[nodiscard]] double piece_useful() const {
    return process_.tiers ? process_.tiers->memory.useful.value() : process_.interval.useful.value();
  }
  [[nodiscard]] double piece_length() const {
    return process_.tiers ? process_.tiers->piece_length().value() : process_.interval.length().value();
  }

  void keep(double work) {
    done_ += work;
    retained_ += work;
  }

  void corrupt(double wall) {
    now_ += wall;
    keep(next_corruption_ - retained_);
    ++out_.corruptions;
    done_ -= uniform(random_) * process_.validate_every.value() + process_.validation_latency.value();
    next_corruption_ = retained_ + wait_for(process_.corruptions.value());
    go_down(process_.tiers ? Downtime{process_.tiers->storage_downtime, Seconds(0)} : process_.downtime);
  }

  void fail_after(double wall) {
    ++out_.failures;
    now_ += wall;
    Downtime downtime = process_.downtime;
    if (process_.tiers) {
      const Tiers& tiers = *process_.tiers;
      const double pieces = std::floor(wall / piece_length());
      const bool is_kept = uniform(random_) < tiers.recoverable;
      const double whole = static_cast<double>(tiers.pieces), position = piece_ + pieces;
      const double kept = is_kept ? position : std::floor(position / whole) * whole;
      keep((kept - piece_) * piece_useful());
      piece_ = kept - std::floor(kept / whole) * whole;
      downtime = {is_kept ? tiers.memory_downtime : tiers.storage_downtime, Seconds(0)};
    } else {
      const double saved = std::floor((wall - process_.interval.flush.value()) / piece_length());
      if (saved > 0.0) { keep(saved * piece_useful()); }
    }
    break_nodes();
    go_down(downtime);
  }

  // Which failure it was: nodes of it go to repair.
  void break_nodes() {
    double at = uniform(random_) * rate_ - process_.job_failures.value();
    for (const auto& nodes : process_.nodes) {
      if (at < 0.0) { return; }
      if (at < nodes.rate.value()) {
        start_repairs(nodes.nodes);
        return;
      }
      at -= nodes.rate.value();
    }
  }

  // The nodes of a group are repaired together.
  void start_repairs(std::int64_t nodes) {
    if (!process_.spares) { return; }
    const double end = now_ + exponential(random_, 1.0 / process_.repair.value());
    for (std::int64_t i = 0; i < nodes; ++i) { repairs_.push(end); }
  }

  void stand_until_repaired() {
    while (process_.spares) {
      while (!repairs_.empty() && repairs_.top() <= now_) { repairs_.pop(); }
      if (static_cast<std::int64_t>(repairs_.size()) <= *process_.spares) { return; }
      out_.stood = true;
      const double repaired = repairs_.top();
      if (next_failure_ < repaired) {  // nodes also fail while the job stands
        now_ = next_failure_;
        next_failure_ = now_ + wait_for(rate_);
        break_nodes();
      } else {
        now_ = repaired;
        next_failure_ = std::max(next_failure_, now_);
      }
    }
  }

  // Detection, a node for the failed one, a restart that failures may strike.
  void go_down(const Downtime& downtime) {
    while (true) {
      now_ += downtime.unprotected.value();
      next_failure_ = now_ + wait_for(rate_);
      stand_until_repaired();
      if (next_failure_ - now_ >= downtime.restart.value()) {
        now_ += downtime.restart.value();
        return;
      }
      ++out_.failures;
      now_ = next_failure_;
      break_nodes();
    }
  }

  const Process& process_;
  RandomStream random_;
  double rate_;
  double now_ = 0.0, done_ = 0.0, retained_ = 0.0, piece_ = 0.0;
  double next_failure_ = 0.0, next_corruption_ = 0.0;
  Heap repairs_;
  SimulatedCampaign out_;
};

Seconds sorted_value(const std::vector<double>& sorted, double p) {
  const auto last = static_cast<double>(sorted.size() - 1);
  const double at = p * last, below = std::floor(at);
  const auto i = static_cast<std::size_t>(below);
  const double next = sorted[std::min(i + 1, sorted.size() - 1)];
  return Seconds(sorted[i] + (at - below) * (next - sorted[i]));
}

// Of a job that runs (not down, not standing), per second of elapsed time without corruption and shortage.
Shares running_shares(const Process& process) {
  const double lam = process.failures().value();
  Shares out;
  if (process.tiers) {
    const Tiers& tiers = *process.tiers;
    const double q = tiers.recoverable;
    const double down = q * tiers.memory_downtime.value() + (1.0 - q) * tiers.storage_downtime.value();
    const double running = 1.0 / (1.0 + lam * down);
    out.useful = tiers_ettr(Hertz(lam), tiers);
    out.pauses = out.useful * (tiers.piece_length() / tiers.memory.useful - 1.0);
    out.lost_work = running - out.useful - out.pauses;
    const double detection = std::min(process.downtime.unprotected.value(), down);
    out.detection = lam * running * detection;
    out.restart = 1.0 - running - out.detection;
    return out;
  }
  const Interval& interval = process.interval;
  out.useful = ettr(Hertz(lam), interval, process.downtime);
  if (!(lam > 0.0)) {
    out.pauses = 1.0 - out.useful;
    return out;
  }
  const double attempts = std::exp(lam * process.downtime.restart.value());
  const double cycle = attempts * (1.0 / lam + process.downtime.unprotected.value());
  const double running = 1.0 / lam / cycle;
  if (interval.length() > Seconds(0)) { out.pauses = out.useful * (interval.pause / interval.useful); }
  out.lost_work = running - out.useful - out.pauses;
  out.detection = attempts * process.downtime.unprotected.value() / cycle;
  out.restart = 1.0 - running - out.detection;
  return out;
}

// Mean time from a failure until the job runs again.
double recovery(const Process& process) {
  if (process.tiers) { return process.tiers->storage_downtime.value(); }
  const double lam = process.failures().value(), restart = process.downtime.restart.value();
  const double down = process.downtime.unprotected.value();
  if (!(lam > 0.0)) { return down + restart; }
  return std::expm1(lam * restart) / lam + std::exp(lam * restart) * down;
}

}  // namespace

Hertz Process::failures() const {
  Hertz rate = job_failures;
  for (const auto& one : nodes) { rate += one.rate; }
  return rate;
}

Shares shares_of(const Process& process) {
  Shares shares = running_shares(process);
  // Of one second of retained work, lam_s L is lost again, and lam_s recoveries follow.
  const double hits = process.corruptions.value();
  const double lost = hits * (process.validate_every.value() / 2.0 + process.validation_latency.value());
  const double per_work = 1.0 / shares.useful + hits * recovery(process);
  const double useful = (1.0 - lost) / per_work, scale = 1.0 / (per_work * shares.useful);
  const auto scaled = [scale](double& part) { part *= scale; };
  scaled(shares.pauses);
  scaled(shares.lost_work);
  scaled(shares.detection);
  scaled(shares.restart);
  shares.useful = useful;
  shares.corruption = 1.0 - shares.total();
  if (!process.spares) { return shares; }
  std::vector<RepairClass> classes;
  for (const auto& one : process.nodes) { classes.push_back({one.nodes, one.rate * process.repair}); }
  const double stands = shortage(*process.spares, repair_distribution(classes)).share;
  for (double* part :
       {&shares.useful, &shares.pauses, &shares.lost_work, &shares.detection, &shares.restart, &shares.corruption}) {
    *part *= 1.0 - stands;
  }
  shares.short_of_spares = stands;
  return shares;
}

Luck luck_of(const Process& process, Seconds work) {
  Process lucky = process;
  lucky.spares.reset();
  const Shares shares = shares_of(lucky);
  Luck out{work / shares.useful, 0.0};
  if (!process.tiers && process.interval.useful > Seconds(0) && is_finite(process.interval.useful)) {
    const double intervals = work / process.interval.useful;
    out.variance = intervals * interval_variance(process.failures(), process.interval, process.downtime);
  } else if (process.tiers) {  // failures are a Poisson count, each with its mean loss
    const double lam = process.failures().value();
    const double failures = lam * out.mean.value();
    const double loss = lam > 0.0 ? (1.0 - shares.useful - shares.pauses) / lam : 0.0;
    out.variance = 2.0 * failures * loss * loss;
  }
  return out;
}

SimulatedCampaign simulate_campaign(const Process& process, Seconds work, std::uint64_t seed, std::uint64_t number) {
  if (process.sites == 1) {
    Run run(process, stream_of(seed, number));
    const double elapsed = run.time_of(work.value());
    SimulatedCampaign out = run.counts();
    out.elapsed = Seconds(elapsed);
    return out;
  }
  const auto sites = static_cast<std::uint64_t>(process.sites);
  std::vector<Run> runs;
  for (std::uint64_t site = 0; site < sites; ++site) {
    runs.emplace_back(process, stream_of(seed, number * sites + site));
  }
  std::vector<double> before(sites, 0.0);  // own times at the last exchange
  SimulatedCampaign out;
  for (double done = 0.0; done < work.value();) {
    done = std::min(work.value(), done + process.round.value());
    double longest = 0.0;
    for (std::size_t i = 0; i < sites; ++i) {
      const double time = runs[i].time_of(done);
      longest = std::max(longest, time - before[i]);
      before[i] = time;
    }
    out.elapsed += Seconds(longest);
  }
  for (const Run& run : runs) {
    out.failures += run.counts().failures;
    out.corruptions += run.counts().corruptions;
    out.stood = out.stood || run.counts().stood;
  }
  return out;
}

SimulatedCampaigns simulate_campaigns(const Process& process, Seconds work, std::int64_t count, std::uint64_t seed,
                                      int threads, const std::function<void(std::int64_t)>& progress) {
  ORRERY_ASSERT(count >= 1);
  std::vector<SimulatedCampaign> runs(static_cast<std::size_t>(count));
  constexpr std::int64_t kBatch = 1024;
  for (std::int64_t first = 0; first < count; first += kBatch) {
    const auto batch = static_cast<std::size_t>(std::min(kBatch, count - first));
    parallel_for(batch, threads, [&](std::size_t i) {
      const auto number = static_cast<std::size_t>(first) + i;
      runs[number] = simulate_campaign(process, work, seed, number);
    });
    if (progress) { progress(first + static_cast<std::int64_t>(batch)); }
  }
  SimulatedCampaigns out;
  out.count = count;
  std::vector<double> times;
  double sum = 0.0, squares = 0.0, failures = 0.0, corruptions = 0.0;
  for (const auto& run : runs) {
    times.push_back(run.elapsed.value());
    sum += run.elapsed.value();
    failures += static_cast<double>(run.failures);
    corruptions += static_cast<double>(run.corruptions);
    out.stood += run.stood ? 1 : 0;
  }
  const auto n = static_cast<double>(count);
  out.mean = Seconds(sum / n);
  for (const double time : times) { squares += (time - sum / n) * (time - sum / n); }
  if (count > 1) { out.standard_error = Seconds(std::sqrt(squares / (n - 1.0) / n)); }
  std::sort(times.begin(), times.end());
  out.p10 = sorted_value(times, 0.1);
  out.p50 = sorted_value(times, 0.5);
  out.p90 = sorted_value(times, 0.9);
  out.failures = failures / n;
  out.corruptions = corruptions / n;
  return out;
}

}  // namespace orrery::campaign
