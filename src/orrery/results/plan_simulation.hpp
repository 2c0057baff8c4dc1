// A plan simulated, and the estimate of the same request. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/results/estimate.hpp"
#include "orrery/results/simulation.hpp"

namespace orrery::results {

// What shared ports cost the step: the same simulation, in which the calls of one kind have ports of their own.
struct SharingCost {
  std::string kind;
  std::uint64_t apart_ns = 0;  // makespan
};

struct PlanSimulation {
  Simulation simulation;
  Estimate estimate;
  std::uint64_t unshared_ns = 0;    // the same simulation, in which no call shares ports with another
  std::vector<SharingCost> apart;   // by kind of Simulation::contention; empty if ports cost nothing, or not simulated
  std::vector<std::string> chosen;  // values of the plan that the request does not give
  std::vector<std::string> notes;   // what the estimate has and the simulated graphs lack, or the other way round
};

}  // namespace orrery::results
