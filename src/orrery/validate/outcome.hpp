// What a row's scenario comes to.
#pragma once

#include "orrery/core/units.hpp"
#include "orrery/validate/rules.hpp"

namespace orrery::validate {

struct Outcome {
  Seconds time;          // of a step, of a batch of requests, of a kernel, of a collective
  bool feasible = true;  // what the memory model says; rows ran, so it should say nothing else
};

[[nodiscard]] OrSkip<Outcome> outcome_of(const AnyRow& row, const Parts& parts);

}  // namespace orrery::validate
