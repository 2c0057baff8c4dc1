// Predicted time of a row.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/results/validation.hpp"
#include "orrery/validate/rules.hpp"

namespace orrery::validate {

struct Outcome {
  Seconds time;                         // of a step, of a batch of requests, of a kernel, of a collective
  std::vector<std::string> kinds = {};  // kinds of jobs with a known uncertainty, the narrowest first
  std::string taken_as = {};            // columns that contradict each other, and what they were taken as
  bool feasible = true;                 // fits in memory; measured runs did
};

// Terms of the time, where the prediction has them; those of a step sum to it.
[[nodiscard]] std::vector<results::Share> terms_of(const AnyRow& row, const Parts& parts);

[[nodiscard]] Skippable<Outcome> outcome_of(const AnyRow& row, const Parts& parts);

}  // namespace orrery::validate
