// A simulation as text and as a JSON document (orrery.simulate/1).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "orrery/report/text.hpp"
#include "orrery/results/simulation.hpp"

namespace orrery::report {

// Ranks with equal results, as inclusive ranges; in the order of their first ranks.
struct RankClass {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranks;
  results::SimulatedRank result;
};
[[nodiscard]] std::vector<RankClass> rank_classes(const std::vector<results::SimulatedRank>& ranks);

[[nodiscard]] std::string simulation_text(const results::Simulation& simulation, TextStyle style = {});
// `tables`: names of simulation_tables.hpp, which follow under "tables" as lists of rows.
[[nodiscard]] std::string simulation_json(const results::Simulation& simulation,
                                          const std::vector<std::string>& tables = {});

// The spans as a Chrome trace, which Perfetto shows: a process per rank; rows for the host, the accelerator,
// communication, and as many for receives as overlap.
[[nodiscard]] std::string simulation_timeline(const results::Simulation& simulation);

}  // namespace orrery::report
