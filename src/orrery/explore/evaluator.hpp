// What a search requires of an estimator: memory and step time of plans, and a lower bound of the step time.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "orrery/core/units.hpp"
#include "orrery/explore/point.hpp"

namespace orrery::explore {

struct Price {
  Seconds step_time;
  Bytes memory;  // of the rank with the most memory in use
};

// Used by one thread at a time. Every function requires a possible plan and depends on the point only.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // A lower bound of the step time of all plans in the point's family, much cheaper to compute than a price. Pruning by
  // it changes no result.
  [[nodiscard]] virtual Seconds bound(const Point& point) = 0;
  // False only if no plan of the point's family fits in memory.
  [[nodiscard]] virtual bool may_fit(const Point& point) = 0;
  // Nothing if the plan does not fit in memory.
  [[nodiscard]] virtual std::optional<Price> price(const Point& point) = 0;
  // Step time, whether or not the plan fits.
  [[nodiscard]] virtual Seconds unlimited_step_time(const Point& point) = 0;
};

// Creates the evaluator of each thread of a search.
using EvaluatorFactory = std::function<std::unique_ptr<Evaluator>()>;

}  // namespace orrery::explore
