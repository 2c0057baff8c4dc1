// A simulated plan beside its estimate.
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/simulation.hpp"
#include "orrery/report/simulation_json.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::format_seconds;
using config::json_object;

Seconds of_ns(std::uint64_t nanoseconds) { return Seconds(static_cast<double>(nanoseconds) * 1e-9); }
Seconds of_ps(std::uint64_t picoseconds) { return Seconds(static_cast<double>(picoseconds) * 1e-12); }

std::string exact(Seconds time) { return format_seconds(time, 6); }

// "+1.2 %"; "equal" within a millionth.
std::string against(Seconds time, Seconds other) {
  const double part = time / other - 1.0;
  if (!(std::abs(part) >= 1e-6)) { return "equal"; }
  return std::abs(part) < 1e-4 ? fmt::format("{:+.4f} %", 100.0 * part) : fmt::format("{:+.2f} %", 100.0 * part);
}

std::string times_text(const results::PlanSimulation& plan) {
  const Seconds estimate = plan.estimate.step_time, unshared = of_ns(plan.unshared_ns),
                simulated = of_ns(plan.simulation.makespan_ns());
  Table table;
  table.column("", Table::Align::left).column("time").column("against estimate", Table::Align::left);
  table.row({"estimate", exact(estimate), ""});
  table.row({"simulated", exact(simulated), against(simulated, estimate)});
  table.row({"  without contention", exact(unshared), against(unshared, estimate)});
  return table.text();
}

std::string contention_text(const results::PlanSimulation& plan) {
  const auto& rows = plan.simulation.contention;
  const std::uint64_t makespan = plan.simulation.makespan_ns();
  if (rows.empty()) { return "no resource was asked for twice\n"; }
  Table table;
  table.column("calls of", Table::Align::left).column("shared with", Table::Align::left);
  table.column("dimension", Table::Align::left).column("time together").column("lost");
  for (const auto& row : rows) {
    table.row({row.kind, row.other, row.dimension, format_seconds(of_ps(row.together_ps)),
               format_seconds(of_ps(row.lost_ps))});
  }
  std::string text = "calls that shared a full port (means over all devices)\n" + table.text(2);
  if (makespan == plan.unshared_ns) { return text + "  the step is not longer for it\n"; }
  for (const auto& cost : plan.apart) {
    const double gain = static_cast<double>(makespan) - static_cast<double>(cost.apart_ns);
    const std::string change =
        std::abs(gain) < 1.0
            ? "as long as now"
            : fmt::format("{} {}", format_seconds(Seconds(std::abs(gain) * 1e-9)), gain > 0 ? "shorter" : "longer");
    text += fmt::format("  separate ports for {}: the step is {}\n", cost.kind, change);
  }
  return text;
}

}  // namespace

std::string plan_simulation_text(const results::PlanSimulation& plan, TextStyle style) {
  std::string text = job_header(plan.estimate, style) + "\n" + simulation_text(plan.simulation, style);
  text += "\n" + times_text(plan) + "\n" + contention_text(plan);
  if (!plan.chosen.empty()) { text += wrapped_list("chosen: ", plan.chosen); }
  for (const std::string& note : plan.notes) { text += wrapped("note: ", note); }
  return text;
}

std::string plan_simulation_json(const results::PlanSimulation& plan, const std::vector<std::string>& tables) {
  config::Node head = simulation_head(plan.simulation);
  const auto apart = config::json_list(plan.apart, [](const results::SharingCost& cost) {
    return json_object({{"kind", cost.kind}, {"step_s", of_ns(cost.apart_ns)}});
  });
  config::add_fields(head, {{"plan", json_object({{"estimate_step_s", plan.estimate.step_time},
                                                  {"simulated_step_s", of_ns(plan.simulation.makespan_ns())},
                                                  {"unshared_step_s", of_ns(plan.unshared_ns)},
                                                  {"contention", contention_json(plan.simulation.contention)},
                                                  {"separate_ports", apart},
                                                  {"chosen", plan.chosen},
                                                  {"notes", plan.notes}})}});
  return with_tables(head, plan.simulation, tables);
}

}  // namespace orrery::report
