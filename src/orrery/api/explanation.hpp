// Why the best plan wins, in sentences made from its numbers and from those of plans one step away.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"

namespace orrery::api {

// The winner with one choice made otherwise and what follows from it, whether or not that fits in memory.
struct Alternative {
  std::string axis;  // as a flag spells it, "micro-batch"; "schedule"
  results::Estimate estimate;
  std::optional<results::Estimate> beyond_memory;  // faster with the same choice; does not fit, `estimate` does
  bool searched = true;                            // false: the space holds it only when it is asked for
};

// `best`: a search's answers, best first, at least one. `alternatives`: grouped by axis. In this order: where the time
// goes, what the memory is and whether it binds, communication by group, how the next answer loses, and for every axis
// what its neighbouring values would cost.
[[nodiscard]] std::vector<std::string> explanation(const std::vector<results::Estimate>& best,
                                                   const std::vector<Alternative>& alternatives);

// How `other` differs from `one`, a plan of the same job: the choices, the step time and its parts, the memory and its
// parts, the cost where the numbers of devices differ. The words and the parts are those of the runner-up in
// `explanation`.
[[nodiscard]] std::vector<std::string> difference(const results::Estimate& other, const results::Estimate& one);

}  // namespace orrery::api
