// Energy of a simulated job.
#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/simulation.hpp"
#include "orrery/report/simulation_json.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

std::string energy_text(const results::Simulation& simulation) {
  if (!simulation.energy) { return {}; }
  const results::SimulatedEnergy& energy = *simulation.energy;
  constexpr double kNanosecond = 1e-9;
  const double total = energy.joules(), run = kNanosecond * static_cast<double>(simulation.makespan_ns());
  std::string text =
      fmt::format("\nenergy: {}, {} W for each device on average\n", joules(total),
                  run > 0 ? fmt::format("{:.4g}", total / run / static_cast<double>(simulation.ranks.size())) : "-");
  Table table;
  table.column("of", Table::Align::left).column("energy").column("share").column("figures", Table::Align::left);
  for (const results::EnergyPart& part : energy.parts) {
    table.row({part.name, joules(part.joules), percent(total > 0 ? part.joules / total : 0.0), part.basis});
  }
  text += table.text();
  if (!energy.missing.empty()) { text += wrapped("not counted (no figure): ", join(energy.missing, "; ")); }
  return text;
}

config::Node energy_json(const results::SimulatedEnergy& energy) {
  return config::json_object({{"total_J", energy.joules()},
                              {"parts", config::json_list(energy.parts,
                                                          [](const results::EnergyPart& part) {
                                                            return config::json_object({{"name", part.name},
                                                                                        {"energy_J", part.joules},
                                                                                        {"basis", part.basis}});
                                                          })},
                              {"missing", energy.missing}});
}

}  // namespace orrery::report
