// What a search knows about plans: how much memory they need, how long a step takes, and a time it can never beat.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "orrery/core/units.hpp"
#include "orrery/explore/point.hpp"

namespace orrery::explore {

struct Price {
  Seconds step_time;
  Bytes memory;  // of the fullest rank
};

// Used by one thread at a time. Every function needs a possible plan and is a pure function of the point.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // A time that no plan of the point's family goes below, far cheaper to get. Sound: pruning by it changes no answer.
  [[nodiscard]] virtual Seconds bound(const Point& point) = 0;
  // Whether a plan of the point's family may fit in memory. Sound: where not, none does.
  [[nodiscard]] virtual bool may_fit(const Point& point) = 0;
  // Nothing when the plan does not fit in memory.
  [[nodiscard]] virtual std::optional<Price> price(const Point& point) = 0;
  // Time of a step, whether or not the plan fits.
  [[nodiscard]] virtual Seconds unlimited_step_time(const Point& point) = 0;
};

// Makes one evaluator for each thread of a search.
using EvaluatorFactory = std::function<std::unique_ptr<Evaluator>()>;

}  // namespace orrery::explore
