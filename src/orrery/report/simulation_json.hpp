// Parts of the document of a simulation. Private to the room.
#pragma once

#include <string>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/results/simulation.hpp"

namespace orrery::report {

[[nodiscard]] config::Node contention_json(const std::vector<results::SimulatedContention>& rows);
[[nodiscard]] std::string path_text(const results::Simulation& simulation);  // empty without a path
[[nodiscard]] config::Node path_json(const results::Simulation& simulation);
[[nodiscard]] std::string roofline_text(const results::Simulation& simulation);  // empty without a roofline
[[nodiscard]] config::Node roofline_json(const results::Roofline& roofline);
[[nodiscard]] std::string energy_text(const results::Simulation& simulation);  // empty without energy
[[nodiscard]] config::Node energy_json(const results::SimulatedEnergy& energy);
[[nodiscard]] std::string memory_text(const results::Simulation& simulation);  // empty without memory over time
[[nodiscard]] config::Node memory_json(const results::MemoryOverTime& memory);
// All but the tables.
[[nodiscard]] config::Node simulation_head(const results::Simulation& simulation);
[[nodiscard]] std::string with_tables(const config::Node& head, const results::Simulation& simulation,
                                      const std::vector<std::string>& tables);

}  // namespace orrery::report
