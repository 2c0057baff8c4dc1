// The best plans of a space, exactly: every point is either priced or shown by a bound to be worse than the K-th best.
//
// Points are walked, never stored: what a search holds is a wave of families, the few that look best, and the answer,
// however large the space is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "orrery/explore/evaluator.hpp"
#include "orrery/explore/point.hpp"
#include "orrery/results/plan.hpp"

namespace orrery::explore {

// A way through a space: its families in an order that never changes, and the plans of each. Used by one thread at a
// time; a family may come from another walk of the same space.
class Walk {
 public:
  virtual ~Walk() = default;
  virtual void families(const std::function<void(const Family&)>& visit) = 0;
  virtual void members(const Family& family, const std::function<void(const Member&)>& visit) = 0;
};

using WalkFactory = std::function<std::unique_ptr<Walk>()>;

// Which plans the K best are taken from.
enum class Among : std::uint8_t {
  layouts,  // of every combination of tp, cp, pp, dp, ep, etp the best
  plans,    // all of them: the first K may be the same but for a choice that hardly matters
};

struct SearchOptions {
  std::size_t top = 5;
  Among among = Among::layouts;
  bool exhaustive = false;  // price every plan: proves what pruning answers
  bool front = false;       // find what beats everything in time or memory, too: prices every plan
  bool per_sample = false;  // batches differ from point to point: the least time per sequence wins, not per step
  int threads = 0;          // 0: one per hardware thread
  std::function<void(std::int64_t done, std::int64_t points)> progress =
      {};  // of points settled; now and then, from one thread
};

struct Candidate {
  Point point;
  Price price;
  Order order{};            // of its first point
  std::int64_t points = 1;  // that mean this plan
};

struct SearchResult {
  results::SpaceCounts space;
  std::vector<Candidate> best;   // fastest first; ties in the order of the space
  std::vector<Candidate> front;  // every one faster than all that need less memory; fastest first
};

// The answer and the counts do not depend on the number of threads.
[[nodiscard]] SearchResult search(const WalkFactory& walks, const EvaluatorFactory& evaluators,
                                  const SearchOptions& options);

}  // namespace orrery::explore
