// A simulation as text and as a JSON document (orrery.simulate/1).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "orrery/report/text.hpp"
#include "orrery/results/plan_simulation.hpp"
#include "orrery/results/simulation.hpp"

namespace orrery::report {

// Ranks with equal results, as inclusive ranges, in the order of their first ranks.
struct RankClass {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranks;
  results::SimulatedRank result;
};
[[nodiscard]] std::vector<RankClass> rank_classes(const results::RankRuns<results::SimulatedRank>& ranks);

[[nodiscard]] std::string simulation_text(const results::Simulation& simulation, TextStyle style = {});
// `tables`: names from simulation_tables.hpp; they are lists of rows under "tables".
[[nodiscard]] std::string simulation_json(const results::Simulation& simulation,
                                          const std::vector<std::string>& tables = {});

// A simulated plan beside its estimate: the same text and document with more lines, and the object "plan".
[[nodiscard]] std::string plan_simulation_text(const results::PlanSimulation& plan, TextStyle style = {});
[[nodiscard]] std::string plan_simulation_json(const results::PlanSimulation& plan,
                                               const std::vector<std::string>& tables = {});

// The spans as a Chrome trace, for Perfetto: one process per rank, with rows for the host, the accelerator and
// communication, and as many rows for receives as overlap.
[[nodiscard]] std::string simulation_timeline(const results::Simulation& simulation);

}  // namespace orrery::report
