#include "orrery/jobs/simulate.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numbers>
#include <numeric>
#include <queue>
#include <span>

#include "orrery/core/error.hpp"
#include "orrery/jobs/policy.hpp"
#include "orrery/jobs/servers.hpp"

namespace orrery::jobs {

namespace {

constexpr std::int64_t kBatches = 50;
constexpr std::size_t kScanned = 1000;  // jobs behind the first that may overtake

constexpr int kSkewSample = 50'000;  // values whose extremes bound a skew-normal limit

enum class Fate : std::uint8_t { started, refused, over_limit, no_place, unfinished };

struct Job {
  std::int64_t number = 0;
  std::size_t kind = 0;
  std::size_t choice = 0;  // index of the width
  std::int64_t width = 0;
  double arrival = 0.0, time = 0.0;
  double deadline = HUGE_VAL;
};

struct Running {
  double end = 0.0;
  std::int64_t number = 0;
  Placement placement;

  friend bool operator>(const Running& a, const Running& b) {
    return a.end != b.end ? a.end > b.end : a.number > b.number;
  }
};

// The next kind and its limit; arrival times.
class Source {
 public:
  explicit Source(const File& file) : file_(file), random_(stream_of(static_cast<std::uint64_t>(file.seed), 0)) {
    double sum = 0.0;
    for (const auto& kind : file.kinds) { cumulative_.push_back(sum += kind.weight); }
    if (!file.limit_skew) { return; }
    RandomStream sample = stream_of(static_cast<std::uint64_t>(file.seed), 1);
    for (int i = 0; i < kSkewSample; ++i) {
      const double value = skew_normal(sample, *file.limit_skew);
      least_ = std::min(least_, value);
      most_ = std::max(most_, value);
    }
  }

  double arrival(std::int64_t number) {
    const Arrivals& arrivals = file_.arrivals;
    switch (arrivals.process) {
      case Process::trace: return arrivals.times[static_cast<std::size_t>(number)].value();
      case Process::fixed: return static_cast<double>(number) * arrivals.interarrival.value();
      case Process::poisson: return now_ += exponential(random_, 1.0 / arrivals.interarrival.value());
    }
    throw_internal_error("known process", __FILE__, __LINE__);
  }

  std::size_t kind() {
    if (!file_.balanced) {
      const double at = uniform(random_) * cumulative_.back();
      const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
      return std::min(static_cast<std::size_t>(found - cumulative_.begin()), cumulative_.size() - 1);
    }
    if (pool_.empty()) {
      for (std::size_t i = 0; i < file_.kinds.size(); ++i) { pool_.push_back(i); }
    }
    const auto at = static_cast<std::ptrdiff_t>(random_.below(static_cast<std::int64_t>(pool_.size())));
    const std::size_t kind = pool_[static_cast<std::size_t>(at)];
    pool_.erase(pool_.begin() + at);
    return kind;
  }

  // Acceptable time / sequential time, in steps of 0.01; absent without limits.
  std::optional<double> limit() {
    if (file_.limit.empty()) { return std::nullopt; }
    const double low = file_.limit[0], high = file_.limit[1];
    const double drawn =
        file_.limit_skew ? std::clamp(high * skewed_part(), low, high) : low + uniform(random_) * (high - low);
    return std::max(0.01, std::round(drawn * 100.0) / 100.0);
  }

  // A skew-normal value, moved from the extremes of a sample to [0, 1], as PAC-ML's code does.
  double skewed_part() { return (skew_normal(random_, *file_.limit_skew) - least_) / (most_ - least_); }

  // Of shape a (Azzalini 1985): delta |u| + sqrt(1 - delta^2) v for normal u and v.
  static double skew_normal(RandomStream& random, double shape) {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform(random)));
    const double angle = 2.0 * std::numbers::pi * uniform(random);
    const double u = radius * std::cos(angle), v = radius * std::sin(angle);
    const double delta = shape / std::sqrt(1.0 + shape * shape);
    return delta * std::abs(u) + std::sqrt(1.0 - delta * delta) * v;
  }

  double service(Service service) { return service == Service::fixed ? 1.0 : exponential(random_, 1.0); }
  RandomStream& random() { return random_; }

 private:
  const File& file_;
  RandomStream random_;
  std::vector<double> cumulative_;
  std::vector<std::size_t> pool_;
  double now_ = 0.0, least_ = HUGE_VAL, most_ = -HUGE_VAL;
};

ServerNetwork network_of(const File& file) {
  ServerNetwork network;
  network.ramp = file.fabric == Fabric::ramp;
  if (network.ramp) {
    network.groups = file.shape[0];
    network.racks = file.shape[1];
    network.per_rack = file.shape[2];
  }
  network.bandwidth = file.server_bandwidth;
  network.latency = file.latency;
  network.io_latency = file.io_latency;
  return network;
}

// Times of a kind by width: as given, or those of its operators on an empty cluster.
std::vector<Seconds> times_of(const File& file, const Kind& kind) {
  if (!kind.times.empty()) { return kind.times; }
  const Servers empty(file);
  std::vector<Seconds> times;
  for (const auto width : kind.widths) {
    if (kind.step.operators.empty()) {
      times.push_back(kind.sequential / static_cast<double>(width) + (width > 1 ? kind.communication : Seconds(0)));
      continue;
    }
    const auto places = place_pieces(kind.step, pieces_of(kind.step, width, file.quantum), empty);
    ORRERY_ASSERT(places.has_value());
    times.push_back(step_time(kind.step, *places, network_of(file)) * static_cast<double>(kind.steps));
  }
  return times;
}

class Simulation {
 public:
  explicit Simulation(const File& file) : file_(file), policy_(policy_of(file.policy)), servers_(file), source_(file) {
    count_ = file.arrivals.process == Process::trace ? static_cast<std::int64_t>(file.arrivals.times.size())
                                                     : file.arrivals.count;
    if (file.arrivals.end) { end_ = file.arrivals.end->value(); }
    for (const auto& kind : file.kinds) { times_.push_back(times_of(file, kind)); }
    out_.kinds.resize(file.kinds.size());
    blocked_in_.assign(kBatches, 0);
    records_ = count_ <= results::kListedJobs;
  }

  results::JobsResult run(const std::function<void(std::int64_t)>& progress) {
    for (std::int64_t number = 0; number < count_; ++number) {
      const double now = source_.arrival(number);
      if (now >= end_) {
        count_ = number;
        cut_ = true;
        break;
      }
      complete_until(now);
      now_ = now;
      arrive(number);
      if (progress && number % 65'536 == 0) { progress(number); }
    }
    complete_until(HUGE_VAL);
    out_.horizon_s = std::min(now_, end_);
    return finished();
  }

 private:
  void complete_until(double now) {
    while (!running_.empty() && running_.top().end <= now) {
      now_ = running_.top().end;
      servers_.release(running_.top().placement);
      running_.pop();
      start_waiting();
    }
  }

  void arrive(std::int64_t number) {
    const std::size_t kind = source_.kind();
    const Kind& of = file_.kinds[kind];
    const double factor = source_.service(of.service);
    std::vector<Seconds>& times = scaled_;
    times.assign(times_[kind].begin(), times_[kind].end());
    for (Seconds& time : times) { time *= factor; }
    const auto share = source_.limit();
    JobView view{widths_now(of), times, of.sequential * factor, std::nullopt};
    view.times = view.times.first(view.widths.size());
    if (share) { view.limit = view.sequential * *share; }
    ++out_.kinds[kind].arrived;
    Job job{number, kind, 0, 0, now_, 0.0, HUGE_VAL};
    if (view.widths.empty()) { return block(job, Fate::no_place); }
    const auto chosen = policy_->width_of(view, source_.random());
    if (!chosen) { return block(job, Fate::refused); }
    job.choice = *chosen;
    job.width = of.widths[*chosen];
    job.time = times[*chosen].value();
    if (view.limit) { job.deadline = now_ + view.limit->value(); }
    if (now_ + job.time > job.deadline) { return block(job, Fate::over_limit); }
    if (of.operators.empty() && !servers_.could_fit(job.width)) { return block(job, Fate::no_place); }
    if (waiting_.empty() && start(job)) { return; }
    const bool may_wait = !file_.queue || static_cast<std::int64_t>(waiting_.size()) < *file_.queue;
    if (!may_wait) { return block(job, Fate::no_place); }
    waiting_.push_back(job);
    if (policy_->overtakes()) { overtake(); }
  }

  // Without a queue a job takes one of the widths that the free servers allow.
  [[nodiscard]] std::span<const std::int64_t> widths_now(const Kind& kind) const {
    const std::span<const std::int64_t> all(kind.widths);
    if (file_.queue != 0) { return all; }
    const auto end = std::upper_bound(all.begin(), all.end(), servers_.free());
    return all.first(static_cast<std::size_t>(end - all.begin()));
  }

  std::optional<Placement> place(const Job& job) {
    const Kind& of = file_.kinds[job.kind];
    if (of.step.operators.empty()) { return servers_.place(job.width); }
    const auto places = place_pieces(of.step, pieces_of(of.step, job.width, file_.quantum), servers_);
    if (!places) { return std::nullopt; }
    std::vector<std::int32_t> used;
    for (const auto& on : *places) { used.insert(used.end(), on.begin(), on.end()); }
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    return servers_.take(std::move(used));
  }

  bool start(Job job) {
    auto placement = place(job);
    if (!placement) { return false; }
    job.width = placement->width;
    const auto width = static_cast<double>(job.width);
    busy_ += width * (std::min(now_ + job.time, end_) - std::min(now_, end_));
    running_.push({now_ + job.time, job.number, std::move(*placement)});
    if (now_ + job.time > end_) {
      block(job, Fate::unfinished);
      return true;
    }
    const double wait = now_ - job.arrival;
    waits_.push_back(wait);
    auto& kind = out_.kinds[job.kind];
    kind.mean_wait_s += wait;
    kind.mean_time_s += job.time;
    kind.mean_width += width;
    in_system_.resize(file_.kinds.size());
    in_system_[job.kind] += wait + job.time;
    const double slowdown = job.time > 0.0 ? (wait + job.time) / job.time : 1.0;
    slowdowns_ += slowdown;
    speeds_ += 1.0 / slowdown;
    squares_ += 1.0 / (slowdown * slowdown);
    record(job, now_, now_ + job.time, nullptr);
    return true;
  }

  void block(const Job& job, Fate fate) {
    ++out_.kinds[job.kind].blocked;
    ++blocked_in_[static_cast<std::size_t>(job.number * kBatches / count_)];
    const char* reason = "no place";
    if (fate == Fate::refused) { reason = "refused"; }
    if (fate == Fate::over_limit) { reason = "limit"; }
    if (fate == Fate::unfinished) { reason = "unfinished"; }
    out_.refused += fate == Fate::refused ? 1 : 0;
    out_.over_limit += fate == Fate::over_limit ? 1 : 0;
    out_.no_place += fate == Fate::no_place ? 1 : 0;
    out_.unfinished += fate == Fate::unfinished ? 1 : 0;
    record(job, now_, now_, reason);
  }

  void record(const Job& job, double start, double end, const char* reason) {
    if (!records_) { return; }
    const bool blocked = reason != nullptr;
    out_.jobs.push_back({job.number, file_.kinds[job.kind].name, job.width, job.arrival, start, end, blocked,
                         blocked ? std::string(reason) : std::string()});
  }

  void start_waiting() {
    while (!waiting_.empty()) {
      const Job& first = waiting_.front();
      if (now_ + first.time > first.deadline) {
        block(first, Fate::over_limit);
      } else if (!start(first)) {
        break;
      }
      waiting_.pop_front();
    }
    if (policy_->overtakes() && waiting_.size() > 1) { overtake(); }
  }

  // EASY backfill: the first job has a reservation at the earliest moment with enough free servers; later jobs start
  // if they end before it, or leave enough servers for it.
  void overtake() {
    if (waiting_.empty() || servers_.free() == 0) { return; }
    auto [reserved, spare] = reservation(waiting_.front().width);
    std::size_t scanned = 0;
    for (auto job = waiting_.begin() + 1; job != waiting_.end() && scanned < kScanned; ++scanned) {
      const bool in_time = now_ + job->time <= reserved;
      if ((in_time || job->width <= spare) && start(*job)) {
        if (!in_time) { spare -= job->width; }
        job = waiting_.erase(job);
      } else {
        ++job;
      }
    }
  }

  std::pair<double, std::int64_t> reservation(std::int64_t width) const {
    auto ends = running_;
    std::int64_t free = servers_.free();
    double at = now_;
    while (free < width && !ends.empty()) {
      free += ends.top().placement.width;
      at = ends.top().end;
      ends.pop();
    }
    return {at, free - width};
  }

  results::JobsResult finished() {
    out_.policy = config::enum_name(file_.policy);
    out_.fabric = config::enum_name(file_.fabric);
    out_.servers = file_.servers;
    out_.arrived = count_;
    const auto started = static_cast<double>(std::max<std::size_t>(1, waits_.size()));
    for (std::size_t i = 0; i < out_.kinds.size(); ++i) {
      auto& kind = out_.kinds[i];
      kind.kind = file_.kinds[i].name;
      const auto runs = static_cast<double>(std::max<std::int64_t>(1, kind.arrived - kind.blocked));
      kind.mean_wait_s /= runs;
      kind.mean_time_s /= runs;
      kind.mean_width /= runs;
      kind.blocking_rate =
          kind.arrived > 0 ? static_cast<double>(kind.blocked) / static_cast<double>(kind.arrived) : 0.0;
      kind.mean_in_system = i < in_system_.size() && out_.horizon_s > 0.0 ? in_system_[i] / out_.horizon_s : 0.0;
      out_.blocked += kind.blocked;
    }
    if (count_ > 0) { out_.blocking_rate = static_cast<double>(out_.blocked) / static_cast<double>(count_); }
    out_.blocking_standard_error = batch_error();
    if (out_.horizon_s > 0.0) { out_.utilisation = busy_ / (static_cast<double>(file_.servers) * out_.horizon_s); }
    out_.mean_slowdown = slowdowns_ / started;
    out_.fairness = squares_ > 0.0 ? speeds_ * speeds_ / (started * squares_) : 1.0;
    double sum = 0.0, waited = 0.0;
    for (const double wait : waits_) {
      sum += wait;
      waited += wait > 0.0 ? 1.0 : 0.0;
    }
    out_.mean_wait_s = sum / started;
    out_.waited_share = waited / started;
    out_.mean_wait_standard_error_s = wait_error();
    std::sort(waits_.begin(), waits_.end());
    if (!waits_.empty()) {
      out_.p50_wait_s = waits_[waits_.size() / 2];
      out_.p99_wait_s = waits_[std::min(waits_.size() - 1, waits_.size() * 99 / 100)];
    }
    std::sort(out_.jobs.begin(), out_.jobs.end(), [](const auto& a, const auto& b) { return a.number < b.number; });
    return std::move(out_);
  }

  // Of `waits_` in the order of starts: neighbours wait alike, batches hardly.
  [[nodiscard]] double wait_error() const {
    const std::size_t size = waits_.size() / kBatches;
    if (size < 10) { return 0.0; }
    double squares = 0.0;
    for (std::size_t batch = 0; batch < kBatches; ++batch) {
      const auto* const first = waits_.data() + batch * size;
      const double mean = std::accumulate(first, first + size, 0.0) / static_cast<double>(size);
      squares += (mean - out_.mean_wait_s) * (mean - out_.mean_wait_s);
    }
    return std::sqrt(squares / (kBatches - 1.0) / kBatches);
  }

  [[nodiscard]] double batch_error() const {
    if (count_ < 10 * kBatches || cut_) { return 0.0; }  // an early end cuts batches off
    const double size = static_cast<double>(count_) / kBatches;
    double squares = 0.0;
    for (const auto blocked : blocked_in_) {
      const double difference = static_cast<double>(blocked) / size - out_.blocking_rate;
      squares += difference * difference;
    }
    return std::sqrt(squares / (kBatches - 1.0) / kBatches);
  }

  const File& file_;
  std::unique_ptr<Policy> policy_;
  Servers servers_;
  Source source_;
  std::int64_t count_ = 0;
  std::vector<std::vector<Seconds>> times_;
  std::vector<Seconds> scaled_;
  std::deque<Job> waiting_;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  std::vector<double> waits_, in_system_;
  std::vector<std::int64_t> blocked_in_;
  double end_ = HUGE_VAL;
  double now_ = 0.0, busy_ = 0.0, slowdowns_ = 0.0, speeds_ = 0.0, squares_ = 0.0;
  bool records_ = false, cut_ = false;
  results::JobsResult out_;
};

}  // namespace

results::JobsResult simulate_jobs(const File& file, const std::function<void(std::int64_t)>& progress) {
  return Simulation(file).run(progress);
}

}  // namespace orrery::jobs
