#include <cmath>
#include <string>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"
#include "orrery/report/text.hpp"

namespace orrery::report {

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string step_share(Seconds part, const results::Estimate& estimate) {
  return estimate.step_time > Seconds(0) ? percent(part / estimate.step_time) : std::string("-");
}

std::string ranking(const std::vector<results::Estimate>& best) {
  Table table;
  table.column("#");
  for (const char* header : {"step time", "MFU", "tokens/s", "tp", "pp", "dp", "vpp", "mb", "sp", "zero"}) {
    table.column(header);
  }
  table.column("recompute", Table::Align::left).column("GiB used").column("bubble").column("comm");
  for (std::size_t i = 0; i < best.size(); ++i) {
    const auto& one = best[i];
    const auto& plan = one.plan;
    table.row({std::to_string(i + 1), config::format_seconds(one.step_time, 4), percent(one.mfu),
               config::format_count(one.tokens_per_s), std::to_string(plan.tp), std::to_string(plan.pp),
               std::to_string(plan.dp), std::to_string(plan.vpp), std::to_string(plan.micro_batch),
               plan.sequence_parallel ? "on" : "off", std::to_string(plan.zero), plan.recompute,
               fmt::format("{:.1f}/{:.1f}", one.memory.total().value() / kGiB, one.memory.capacity.value() / kGiB),
               step_share(one.breakdown.bubble, one), step_share(one.breakdown.exposed_comm, one)});
  }
  return table.text();
}

// No wall time here: the same question gives the same text, but for the rate on its last line.
std::string space_lines(const results::PlanSearch& search) {
  const auto& space = search.space;
  std::string counts = fmt::format(
      "{} points: {} evaluated, {} ruled out by a bound. Of the evaluated, {} were priced, {} fit, {} lack "
      "memory",
      grouped(space.points), grouped(space.evaluated), grouped(space.pruned), grouped(space.priced),
      grouped(space.feasible), grouped(space.rejected_memory));
  if (space.rejected_network > 0) { counts += fmt::format(", {} lack a network", grouped(space.rejected_network)); }
  std::string text = wrapped("", counts + ".");
  if (search.wall_s > 0) {
    const double rate = std::round(static_cast<double>(space.points) / search.wall_s);
    text += fmt::format("{} points/s\n", config::format_count(rate));
  }
  return text;
}

}  // namespace

std::string plan_text(const results::PlanSearch& search, TextStyle style) {
  std::string text;
  if (search.best.empty()) {
    text = "no plan fits\n";
  } else {
    text = job_header(search.best.front(), style) + "\n" + ranking(search.best);
    text += dim("mb: micro-batch, sp: sequence-parallel, comm: communication that nothing hides", style) + "\n";
  }
  text += "\n" + space_lines(search);
  if (!search.explanation.empty()) { text += "\n"; }
  for (const auto& reason : search.explanation) { text += wrapped("- ", reason); }
  return text;
}

}  // namespace orrery::report
