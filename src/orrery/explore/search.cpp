#include "orrery/explore/search.hpp"

#include <algorithm>
#include <numeric>

#include "orrery/core/parallel_for.hpp"

namespace orrery::explore {

using parallel::Plan;

namespace {

// Points are taken in order of their bound, a batch at a time. The batch size is fixed, so that what is pruned does not
// depend on the number of threads.
constexpr std::size_t kBatch = 1024;

// Evaluates positions of `order` on several threads, each with an evaluator of its own.
class Workers {
 public:
  Workers(const EvaluatorFactory& factory, int threads) : threads_(threads > 0 ? threads : hardware_threads()) {
    for (int i = 0; i < threads_; ++i) { evaluators_.push_back(factory()); }
  }

  // body(evaluator, i) for i in [first, last), contiguous slices to each worker.
  template <class Body>
  void each(std::size_t first, std::size_t last, Body body) {
    const std::size_t workers = evaluators_.size();
    const std::size_t count = last - first;
    parallel_for(workers, threads_, [&](std::size_t w) {
      const std::size_t begin = first + count * w / workers;
      const std::size_t end = first + count * (w + 1) / workers;
      for (std::size_t i = begin; i < end; ++i) { body(*evaluators_[w], i); }
    });
  }

 private:
  int threads_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;
};

// The K fastest so far. Equal times keep the order of the space.
class Best {
 public:
  explicit Best(std::size_t top) : top_(top) {}

  void offer(std::size_t point, Seconds time) {
    const Entry entry{time, point};
    if (entries_.size() == top_ && !before(entry, entries_.back())) { return; }
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry, before), entry);
    if (entries_.size() > top_) { entries_.pop_back(); }
  }

  // No plan with a bound above this can be among the K fastest. A plan at exactly this time might still come first in
  // the order of the space, so only greater bounds are pruned.
  [[nodiscard]] Seconds threshold() const {
    return entries_.size() < top_ ? infinite<Seconds>() : entries_.back().time;
  }

  [[nodiscard]] std::vector<Candidate> candidates(const std::vector<Plan>& space) const {
    std::vector<Candidate> list;
    for (const auto& entry : entries_) { list.push_back({space[entry.point], entry.time}); }
    return list;
  }

 private:
  struct Entry {
    Seconds time;
    std::size_t point;
  };
  static bool before(const Entry& a, const Entry& b) {
    return a.time < b.time || (a.time == b.time && a.point < b.point);
  }

  std::size_t top_;
  std::vector<Entry> entries_;
};

std::vector<std::size_t> by_bound(const std::vector<Seconds>& bounds) {
  std::vector<std::size_t> order(bounds.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
  return order;
}

}  // namespace

SearchResult search(const std::vector<Plan>& space, const EvaluatorFactory& evaluators, const SearchOptions& options) {
  Workers workers(evaluators, options.threads);
  std::vector<Seconds> bounds(space.size());
  if (!options.exhaustive) {
    workers.each(0, space.size(), [&](Evaluator& evaluator, std::size_t i) { bounds[i] = evaluator.bound(space[i]); });
  }
  const std::vector<std::size_t> order = by_bound(bounds);

  SearchResult result;
  result.space.points = static_cast<std::int64_t>(space.size());
  Best best(std::max<std::size_t>(1, options.top));
  std::vector<std::optional<Seconds>> times(kBatch);
  std::size_t next = 0;
  while (next < order.size() && bounds[order[next]] <= best.threshold()) {
    const std::size_t last = std::min(next + kBatch, order.size());
    workers.each(next, last,
                 [&](Evaluator& evaluator, std::size_t i) { times[i - next] = evaluator.step_time(space[order[i]]); });
    for (std::size_t i = next; i < last; ++i) {
      ++result.space.evaluated;
      if (times[i - next]) {
        ++result.space.feasible;
        best.offer(order[i], *times[i - next]);
      }
    }
    next = last;
    if (options.progress) { options.progress(static_cast<std::int64_t>(next), result.space.points); }
  }
  result.space.pruned = result.space.points - result.space.evaluated;
  result.space.priced = result.space.feasible;
  result.space.rejected_memory = result.space.evaluated - result.space.feasible;
  result.best = best.candidates(space);
  return result;
}

}  // namespace orrery::explore
