// The best plans of a space, exactly: every point is either priced or shown by a bound to be worse than the K-th best.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "orrery/explore/evaluator.hpp"
#include "orrery/explore/space.hpp"
#include "orrery/results/plan.hpp"

namespace orrery::explore {

struct SearchOptions {
  std::size_t top = 5;
  bool exhaustive = false;  // price every point: proves what pruning answers
  int threads = 0;          // 0: one per hardware thread
  std::function<void(std::int64_t done, std::int64_t points)> progress;  // called between batches, from one thread
};

struct Candidate {
  parallel::Plan plan;
  Seconds step_time;
};

struct SearchResult {
  results::SpaceCounts space;
  std::vector<Candidate> best;  // fastest first; ties in the order of the space
};

// The answer and the counts do not depend on the number of threads.
[[nodiscard]] SearchResult search(const std::vector<parallel::Plan>& space, const EvaluatorFactory& evaluators,
                                  const SearchOptions& options);

}  // namespace orrery::explore
