#include "orrery/explore/search.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <utility>

#include "orrery/core/parallel_for.hpp"

namespace orrery::explore {

using parallel::Plan;

namespace {

// Number of families: per wave, priced first, and priced between two updates of the pruning limit. Constants, so that
// pruning does not depend on the number of threads.
constexpr std::size_t kWave = 4096;
constexpr std::size_t kFirst = 256, kFirstOfLayout = 8;
constexpr std::size_t kFewestPriced = 4, kMostPriced = 128;
constexpr std::size_t kMostBounds = std::size_t{1} << 20U;  // that the second walk need not find again: 8 MiB
constexpr std::size_t kMostAtOnce = 64;                     // families that a thread takes at a time

// The objective: seconds per step, or per sequence.
double score_of(Seconds step_time, const Point& point, const SearchOptions& options) {
  return options.per_sample ? step_time.value() / static_cast<double>(point.global_batch) : step_time.value();
}

struct Scored {
  double score = 0;
  Candidate candidate;
};

bool before(const Scored& a, const Scored& b) {
  return a.score < b.score || (a.score == b.score && a.candidate.order < b.candidate.order);
}

bool same_layout(const Plan& a, const Plan& b) {
  return a.tp == b.tp && a.cp == b.cp && a.pp == b.pp && a.dp == b.dp && a.ep == b.ep && a.etp == b.etp &&
         a.tables.sharding == b.tables.sharding;
}

// The K best so far; ties in the order of the space.
class Best {
 public:
  Best(std::size_t top, Among among) : top_(top), among_(among) {}

  void offer(const Scored& scored) {
    if (entries_.size() == top_ && !before(scored, entries_.back())) { return; }
    if (among_ == Among::layouts && !replaces_its_layout(scored)) { return; }
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), scored, before), scored);
    if (entries_.size() > top_) { entries_.pop_back(); }
  }

  // A plan like `plan` with a score above the limit cannot be among the K best: K better ones, or a better one of its
  // layout, exist. A plan at exactly the limit may be earlier in the order of the space, so only greater bounds are
  // pruned.
  [[nodiscard]] double limit(const Plan& plan) const {
    if (among_ == Among::layouts) {
      const auto same = of_layout(plan);
      if (same != entries_.end()) { return same->score; }
    }
    return entries_.size() < top_ ? std::numeric_limits<double>::infinity() : entries_.back().score;
  }

  [[nodiscard]] std::vector<Candidate> candidates() const {
    std::vector<Candidate> list;
    for (const auto& entry : entries_) { list.push_back(entry.candidate); }
    return list;
  }
  [[nodiscard]] const std::vector<Scored>& entries() const { return entries_; }

 private:
  [[nodiscard]] std::vector<Scored>::const_iterator of_layout(const Plan& plan) const {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const Scored& entry) { return same_layout(entry.candidate.point.plan, plan); });
  }

  // Removes the entry of the same layout if `scored` is better; false if it is not.
  bool replaces_its_layout(const Scored& scored) {
    const auto same = of_layout(scored.candidate.point.plan);
    if (same == entries_.end()) { return true; }
    if (!before(scored, *same)) { return false; }
    entries_.erase(same);
    return true;
  }

  std::size_t top_;
  Among among_;
  std::vector<Scored> entries_;
};

// Pareto front of score and memory: fastest first, memory decreasing.
class Front {
 public:
  void offer(const Scored& scored) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), scored.score,
                                     [](const Scored& entry, double score) { return entry.score < score; });
    const Bytes memory = memory_of(scored);
    if (at != entries_.begin() && memory_of(*std::prev(at)) <= memory) { return; }
    if (at != entries_.end() && at->score == scored.score) {
      const bool is_dominated = memory_of(*at) < memory || (memory_of(*at) == memory && before(*at, scored));
      if (is_dominated) { return; }
    }
    const auto behind =
        std::find_if(at, entries_.end(), [&](const Scored& entry) { return memory_of(entry) < memory; });
    entries_.insert(entries_.erase(at, behind), scored);
  }
  [[nodiscard]] std::vector<Candidate> candidates() const {
    std::vector<Candidate> list;
    for (const auto& entry : entries_) { list.push_back(entry.candidate); }
    return list;
  }
  [[nodiscard]] const std::vector<Scored>& entries() const { return entries_; }

 private:
  static Bytes memory_of(const Scored& scored) { return scored.candidate.price.memory; }
  std::vector<Scored> entries_;
};

// Results of some families.
struct PartialResult {
  explicit PartialResult(const SearchOptions& options) : best(std::max<std::size_t>(1, options.top), options.among) {}

  void add(const PartialResult& other) {
    for (const Scored& scored : other.best.entries()) { best.offer(scored); }
    for (const Scored& scored : other.front.entries()) { front.offer(scored); }
    counts.evaluated += other.counts.evaluated;
    counts.priced += other.counts.priced;
    counts.plans += other.counts.plans;
    counts.feasible += other.counts.feasible;
    counts.rejected_memory += other.counts.rejected_memory;
    counts.rejected_network += other.counts.rejected_network;
    counts.rejected_invalid += other.counts.rejected_invalid;
  }

  Best best;
  Front front;
  results::SpaceCounts counts;
};

struct Bounded {
  Family family;
  double bound = 0;
};

bool bound_order(const Bounded& a, const Bounded& b) {
  return a.bound < b.bound || (a.bound == b.bound && a.family.number < b.family.number);
}

class Search {
 public:
  Search(const WalkFactory& walks, const EvaluatorFactory& evaluators, const SearchOptions& options)
      : options_(options),
        threads_(options.threads > 0 ? options.threads : hardware_threads()),
        found_(options),
        walk_(walks()) {
    for (int i = 0; i < threads_; ++i) { workers_.push_back({walks(), evaluators()}); }
  }

  SearchResult run() {
    if (prunes()) {
      find_first();
      evaluate_rest();
    } else {
      evaluate_all();
    }
    found_.counts.points = points_;
    found_.counts.pruned = points_ - found_.counts.evaluated;
    return {found_.counts, found_.best.candidates(), found_.front.candidates()};
  }

 private:
  struct Worker {
    std::unique_ptr<Walk> walk;
    std::unique_ptr<Evaluator> evaluator;
  };

  [[nodiscard]] bool prunes() const { return !options_.exhaustive && !options_.front; }

  // Walks all families and passes them on in waves.
  template <class Take>
  void in_waves(Take take) {
    std::vector<Bounded> wave;
    wave.reserve(kWave);
    walk_->families([&](const Family& family) {
      wave.push_back({family, 0.0});
      if (wave.size() < kWave) { return; }
      take(wave);
      wave.clear();
    });
    if (!wave.empty()) { take(wave); }
  }

  void evaluate_all() {
    in_waves([&](const std::vector<Bounded>& wave) {
      for (const Bounded& one : wave) { points_ += one.family.points; }
      evaluate(wave);
      report();
    });
  }

  // First walk: counts points and prices the families with the lowest bounds.
  void find_first() {
    std::vector<Bounded> lowest;
    in_waves([&](std::vector<Bounded>& wave) {
      for (const Bounded& one : wave) { points_ += one.family.points; }
      set_bounds(wave);
      keep_bounds(wave);
      lowest.insert(lowest.end(), wave.begin(), wave.end());
      std::sort(lowest.begin(), lowest.end(), bound_order);
      keep_the_first(lowest);
      if (options_.progress) { options_.progress(0, 0); }
    });
    for (const Bounded& one : lowest) { first_.push_back(one.family.number); }
    std::sort(first_.begin(), first_.end());
    evaluate_in_order(lowest);
  }

  void keep_bounds(const std::vector<Bounded>& wave) {
    for (const Bounded& one : wave) {
      const bool is_next = one.family.number == static_cast<std::int64_t>(bounds_.size());
      if (is_next && bounds_.size() < kMostBounds) { bounds_.push_back(one.bound); }
    }
  }

  // Keeps the first families in order; only a few of each layout if one plan per layout is searched.
  void keep_the_first(std::vector<Bounded>& families) const {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < families.size() && kept < kFirst; ++i) {
      const Plan& plan = families[i].family.first.plan;
      const auto same = std::count_if(families.begin(), families.begin() + static_cast<std::ptrdiff_t>(kept),
                                      [&](const Bounded& one) { return same_layout(one.family.first.plan, plan); });
      if (options_.among == Among::layouts && same >= static_cast<std::ptrdiff_t>(kFirstOfLayout)) { continue; }
      std::swap(families[kept++], families[i]);
    }
    families.resize(kept);
  }

  // Second walk: prices families that the first walk has not priced and the limit does not rule out.
  void evaluate_rest() {
    std::vector<Bounded> open;
    in_waves([&](std::vector<Bounded>& wave) {
      set_bounds(wave);
      for (const Bounded& one : wave) {
        const bool is_done = std::binary_search(first_.begin(), first_.end(), one.family.number);
        if (!is_done && is_open(one)) { open.push_back(one); }
      }
      std::sort(open.begin(), open.end(), bound_order);
      evaluate_in_order(open);
      open.clear();
      for (const Bounded& one : wave) { finished_ += one.family.points; }
      report();
    });
  }

  void set_bounds(std::vector<Bounded>& wave) {
    each(wave.size(), [&](Worker& worker, std::size_t i) {
      const Family& family = wave[i].family;
      if (const auto number = static_cast<std::size_t>(family.number); number < bounds_.size()) {
        wave[i].bound = bounds_[number];
        return;
      }
      wave[i].bound = std::numeric_limits<double>::infinity();
      if (family.verdict != Verdict::possible) { return; }
      wave[i].bound = score_of(worker.evaluator->bound(family.first), family.first, options_);
    });
  }

  [[nodiscard]] bool is_open(const Bounded& one) const { return one.bound <= found_.best.limit(one.family.first.plan); }

  // Starts with few families, so that early results prune others.
  void evaluate_in_order(const std::vector<Bounded>& families) {
    std::vector<Bounded> next;
    std::size_t count = kFewestPriced;
    for (const Bounded& one : families) {
      if (is_open(one)) { next.push_back(one); }
      if (next.size() < count) { continue; }
      evaluate(next);
      next.clear();
      count = std::min(2 * count, kMostPriced);
      report();
    }
    evaluate(next);
  }

  void evaluate(const std::vector<Bounded>& families) {
    std::vector<PartialResult> parts(workers_.size(), PartialResult(options_));
    each(families.size(), [&](Worker& worker, std::size_t i) {
      auto& part = parts[static_cast<std::size_t>(&worker - workers_.data())];
      const Family& family = families[i].family;
      evaluate_family(worker, family, found_.best.limit(family.first.plan), part);
    });
    for (const PartialResult& part : parts) { found_.add(part); }
  }

  void evaluate_family(Worker& worker, const Family& family, double limit, PartialResult& part) {
    const bool may_skip = prunes() && family.verdict == Verdict::possible;
    auto& counts = part.counts;
    if (may_skip && !worker.evaluator->may_fit(family.first)) {
      counts.evaluated += family.points;
      counts.rejected_memory += family.points;
      return;
    }
    worker.walk->members(family, [&](const Member& member) {
      counts.evaluated += member.points;
      if (member.verdict == Verdict::network) { counts.rejected_network += member.points; }
      if (member.verdict == Verdict::invalid) { counts.rejected_invalid += member.points; }
      if (member.verdict != Verdict::possible) { return; }
      ++counts.plans;
      const auto price = worker.evaluator->price(member.point);
      if (!price) {
        counts.rejected_memory += member.points;
        return;
      }
      counts.priced += member.points;
      counts.feasible += member.points;
      const Scored scored{score_of(price->step_time, member.point, options_),
                          {member.point, *price, member.order, member.points}};
      if (scored.score <= limit) { part.best.offer(scored); }
      if (options_.front) { part.front.offer(scored); }
    });
  }

  // Calls body(worker, i) for i in [0, count). Workers take runs of consecutive families, which share cached slices.
  // The assignment to workers does not change the result.
  template <class Body>
  void each(std::size_t count, Body body) {
    const std::size_t run = std::clamp<std::size_t>(count / (8 * workers_.size()), 1, kMostAtOnce);
    std::atomic<std::size_t> next{0};
    parallel_for(workers_.size(), threads_, [&](std::size_t w) {
      for (std::size_t begin = next.fetch_add(run); begin < count; begin = next.fetch_add(run)) {
        for (std::size_t i = begin; i < std::min(begin + run, count); ++i) { body(workers_[w], i); }
      }
    });
  }

  void report() const {
    if (options_.progress) { options_.progress(std::max(found_.counts.evaluated, finished_), points_); }
  }

  const SearchOptions& options_;
  int threads_;
  PartialResult found_;
  std::unique_ptr<Walk> walk_;
  std::vector<Worker> workers_;
  std::int64_t points_ = 0;
  std::int64_t finished_ = 0;        // points that the second walk has priced or ruled out
  std::vector<double> bounds_;       // of the first families, found by the first walk
  std::vector<std::int64_t> first_;  // numbers of the families priced by the first walk, ascending
};

}  // namespace

SearchResult search(const WalkFactory& walks, const EvaluatorFactory& evaluators, const SearchOptions& options) {
  return Search(walks, evaluators, options).run();
}

}  // namespace orrery::explore
