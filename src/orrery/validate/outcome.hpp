// What a row's scenario comes to.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/results/validation.hpp"
#include "orrery/validate/rules.hpp"

namespace orrery::validate {

struct Outcome {
  Seconds time;                         // of a step, of a batch of requests, of a kernel, of a collective
  std::vector<std::string> kinds = {};  // of jobs that err alike, the narrowest first; empty: no job
  std::string taken_as = {};            // what of the row does not go together, and what it was taken as
  bool feasible = true;                 // what the memory model says; rows ran, so it should say nothing else
};

// What the time is made of, as far as it is told apart; the parts of a step add up to it.
[[nodiscard]] std::vector<results::Share> terms_of(const AnyRow& row, const Parts& parts);

[[nodiscard]] OrSkip<Outcome> outcome_of(const AnyRow& row, const Parts& parts);

}  // namespace orrery::validate
