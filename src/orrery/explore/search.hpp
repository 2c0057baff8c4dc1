// The best plans of a space, exact: every point is either priced or has a bound above the K-th best.
//
// Points are walked, not stored: whatever the size of the space, a search keeps one wave of families, the bounds of at
// most a million families, the best candidates and the result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "orrery/explore/evaluator.hpp"
#include "orrery/explore/point.hpp"
#include "orrery/results/plan.hpp"

namespace orrery::explore {

// Enumerates a space: families in a fixed order, and the plans of each. Not thread-safe; a family may come from another
// walk over the same space.
class Walk {
 public:
  virtual ~Walk() = default;
  virtual void families(const std::function<void(const Family&)>& visit) = 0;
  virtual void members(const Family& family, const std::function<void(const Member&)>& visit) = 0;
};

using WalkFactory = std::function<std::unique_ptr<Walk>()>;

// From which plans the K best are selected.
enum class Among : std::uint8_t {
  layouts,  // the best plan of every combination of tp, cp, pp, dp, ep, etp
  plans,    // all plans: the K best may differ only in a choice with little effect
};

struct SearchOptions {
  std::size_t top = 5;
  Among among = Among::layouts;
  bool exhaustive = false;  // price every plan: verifies the pruned result
  bool front = false;       // also find the Pareto front of time and memory; prices every plan
  bool per_sample = false;  // batches differ between points: minimize time per sequence instead of per step
  int threads = 0;          // 0: one per hardware thread
  std::function<void(std::int64_t done, std::int64_t points)> progress =
      {};  // number of finished points; called occasionally, from one thread; (0, 0) while points are still counted
};

struct Candidate {
  Point point;
  Price price;
  Order order{};            // of its first point
  std::int64_t points = 1;  // number of points that mean this plan
};

struct SearchResult {
  results::SpaceCounts space;
  std::vector<Candidate> best;   // fastest first; ties in the order of the space
  std::vector<Candidate> front;  // Pareto front of time and memory, fastest first
};

// The result and the counts do not depend on the number of threads.
[[nodiscard]] SearchResult search(const WalkFactory& walks, const EvaluatorFactory& evaluators,
                                  const SearchOptions& options);

}  // namespace orrery::explore
