#include "orrery/report/what_if.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

std::string degrees_of(const results::PlanSummary& plan) {
  std::vector<std::string> parts;
  for (const char* name : {"tp", "cp", "ep", "etp", "pp", "dp"}) {
    const std::string_view degree(name);
    const bool is_said = degree == "tp" || degree == "pp" || degree == "dp" || plan.number(degree) > 1;
    if (is_said) { parts.push_back(fmt::format("{} {}", degree, plan.number(degree))); }
  }
  return join(parts, ", ");
}

// "at 1.31x (98.5 GiB) tp 4, pp 2, dp 8 wins with 3.200 s per step".
std::string change(const results::Flip& flip) {
  if (!flip.factor) {
    if (flip.farthest == 1.0) { return flip.up ? "no larger value was searched" : "no smaller value was searched"; }
    return fmt::format("the same degrees win {} to {:.3g}x ({})", flip.up ? "up" : "down", flip.farthest,
                       flip.value_text);
  }
  const std::string at = fmt::format("at {:.3g}x ({})", *flip.factor, flip.value_text);
  if (!flip.winner) { return at + " no plan fits"; }
  return fmt::format("{} {} wins with {} {}", at, degrees_of(flip.winner->plan),
                     config::format_seconds(flip.winner->step_time, 4),
                     flip.winner->inference ? "per batch" : "per step");
}

}  // namespace

std::string what_if_lines(const std::vector<results::Flip>& flips) {
  if (flips.empty()) { return ""; }
  std::string text = "\nwhat would change the best plan: the nearest values at which other degrees win\n";
  std::vector<std::string> names;
  for (const auto& flip : flips) {
    if (std::find(names.begin(), names.end(), flip.name) == names.end()) { names.push_back(flip.name); }
  }
  for (const auto& name : names) {
    std::vector<std::string> changes;
    for (const auto& flip : flips) {
      if (flip.name == name) { changes.push_back(change(flip)); }
    }
    text += wrapped("- ", fmt::format("{}: {}", name, join(changes, "; ")));
  }
  return text;
}

}  // namespace orrery::report
