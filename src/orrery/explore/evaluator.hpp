// What a search knows about plans: how much memory they need, how long a step takes, and a time it can never beat.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "orrery/core/units.hpp"
#include "orrery/parallel/plan.hpp"

namespace orrery::explore {

// Used by one thread at a time. Every function needs a valid plan and is a pure function of it.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  // A time that step_time(plan) never goes below, far cheaper to get. Sound: pruning by it changes no answer.
  [[nodiscard]] virtual Seconds bound(const parallel::Plan& plan) = 0;
  // Time of a step; nothing when the plan does not fit in memory.
  [[nodiscard]] virtual std::optional<Seconds> step_time(const parallel::Plan& plan) = 0;
  // The same whether or not it fits.
  [[nodiscard]] virtual Seconds unlimited_step_time(const parallel::Plan& plan) = 0;
};

// Makes one evaluator for each thread of a search.
using EvaluatorFactory = std::function<std::unique_ptr<Evaluator>()>;

}  // namespace orrery::explore
