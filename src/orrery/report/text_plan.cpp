#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"
#include "orrery/report/text.hpp"
#include "orrery/report/what_if.hpp"

namespace orrery::report {

namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

std::string step_share(Seconds part, const results::Estimate& estimate) {
  return estimate.step_time > Seconds(0) ? percent(part / estimate.step_time) : std::string("-");
}

// One column of the ranking; those that are at their usual value everywhere are left out.
struct PlanColumn {
  std::string_view header;
  std::string (*value)(const results::PlanSummary&);
  std::string_view usual;
  bool training_only = false;
  bool of_sequences = false;  // says nothing of a recommender
};

constexpr std::string_view kAlways = "\x01";

const std::array<PlanColumn, 19>& plan_columns() {
  using Plan = results::PlanSummary;
  static const std::array<PlanColumn, 19> columns{{
      {"tp", [](const Plan& plan) { return std::to_string(plan.tp); }, kAlways, false, true},
      {"cp", [](const Plan& plan) { return std::to_string(plan.cp); }, "1"},
      {"cp by", [](const Plan& plan) { return plan.cp > 1 ? plan.cp_method : std::string("ring"); }, "ring"},
      {"ep", [](const Plan& plan) { return std::to_string(plan.ep); }, "1"},
      {"etp", [](const Plan& plan) { return std::to_string(plan.etp); }, "1"},
      {"pp", [](const Plan& plan) { return std::to_string(plan.pp); }, kAlways, false, true},
      {"dp", [](const Plan& plan) { return std::to_string(plan.dp); }, kAlways},
      {"vpp", [](const Plan& plan) { return std::to_string(plan.vpp); }, kAlways, true, true},
      {"mb", [](const Plan& plan) { return std::to_string(plan.micro_batch); }, kAlways},
      {"sp", [](const Plan& plan) { return std::string(plan.sequence_parallel ? "on" : "off"); }, kAlways, false, true},
      {"zero", [](const Plan& plan) { return std::to_string(plan.zero); }, kAlways, true},
      {"shard", [](const Plan& plan) { return std::to_string(plan.shard); }, "0"},
      {"schedule", [](const Plan& plan) { return plan.vpp > 1 ? std::string("1f1b") : plan.schedule; }, "1f1b", true},
      {"tp-overlap", [](const Plan& plan) { return plan.tp_overlap; }, "none"},
      {"offload", [](const Plan& plan) { return plan.offload; }, ""},
      {"placement", [](const Plan& plan) { return plan.placement; }, ""},
      {"tables", [](const Plan& plan) { return plan.table_sharding; }, ""},
      {"over", [](const Plan& plan) { return std::to_string(plan.table_ranks); }, "1"},
      {"replicated below", [](const Plan& plan) { return std::to_string(plan.replicate_tables_below); }, "0"},
  }};
  return columns;
}

std::vector<PlanColumn> shown_columns(const std::vector<results::Estimate>& best) {
  const bool serves = best.front().inference.has_value();
  std::vector<PlanColumn> shown;
  std::copy_if(plan_columns().begin(), plan_columns().end(), std::back_inserter(shown), [&](const PlanColumn& column) {
    if (serves && column.training_only) { return false; }
    if (best.front().samples_only && column.of_sequences) { return false; }
    return std::any_of(best.begin(), best.end(),
                       [&](const auto& one) { return column.value(one.plan) != column.usual; });
  });
  return shown;
}

std::string ranking(const std::vector<results::Estimate>& best) {
  const std::vector<PlanColumn> shown = shown_columns(best);
  const bool serves = best.front().inference.has_value();
  const bool batches_differ = std::any_of(
      best.begin(), best.end(), [&](const auto& one) { return one.global_batch != best.front().global_batch; });
  const bool devices_differ =
      std::any_of(best.begin(), best.end(), [&](const auto& one) { return one.devices != best.front().devices; });
  Table table;
  table.column("#");
  if (devices_differ) { table.column("devices"); }
  table.column(serves ? "batch time" : "step time");
  if (batches_differ) { table.column("batch").column("samples/s"); }
  const bool answers = serves && !best.front().samples_only;  // token by token
  if (answers) { table.column("first token").column("per token"); }
  table.column("MFU").column(best.front().samples_only ? "samples/s" : "tokens/s");
  for (const auto& column : shown) { table.column(std::string(column.header)); }
  if (!serves) { table.column("recompute", Table::Align::left); }
  table.column("GiB used").column("bubble").column("comm");
  for (std::size_t i = 0; i < best.size(); ++i) {
    const auto& one = best[i];
    std::vector<std::string> row = {std::to_string(i + 1)};
    if (devices_differ) { row.push_back(grouped(one.devices)); }
    row.push_back(config::format_seconds(one.step_time, 4));
    if (batches_differ) {
      row.insert(row.end(), {std::to_string(one.global_batch), config::format_count(one.samples_per_s)});
    }
    if (answers) {
      row.push_back(config::format_seconds(one.inference->time_to_first_token));
      row.push_back(config::format_seconds(one.inference->time_per_output_token));
    }
    row.insert(row.end(), {percent(one.mfu), config::format_count(one.tokens_per_s)});
    for (const auto& column : shown) { row.push_back(column.value(one.plan)); }
    if (!serves) { row.push_back(one.plan.recompute); }
    row.insert(row.end(),
               {fmt::format("{:.1f}/{:.1f}", one.memory.total().value() / kGiB, one.memory.capacity.value() / kGiB),
                step_share(one.breakdown.bubble, one), step_share(one.breakdown.exposed_comm, one)});
    table.row(std::move(row));
  }
  return table.text();
}

// The fastest plan of every number of devices.
std::string by_devices_table(const results::PlanSearch& search) {
  const auto& rows = search.by_devices;
  const auto any = [&](auto known) { return std::any_of(rows.begin(), rows.end(), known); };
  const bool costs = any([](const results::DeviceRow& row) { return row.cost.has_value(); });
  const bool draws = any([](const results::DeviceRow& row) { return row.energy.has_value(); });
  Table table;
  table.column("devices").column("step time").column("samples/s");
  if (costs) { table.column("cost a step"); }
  if (draws) { table.column("energy a step"); }
  table.column("", Table::Align::left);
  for (const auto& row : rows) {
    std::vector<std::string> cells = {grouped(row.devices)};
    if (!row.feasible) {
      cells.resize(costs && draws ? 5 : costs || draws ? 4 : 3, "-");
      cells.emplace_back("nothing fits");
    } else {
      cells.insert(cells.end(), {config::format_seconds(row.step_time, 4), config::format_count(row.samples_per_s)});
      if (costs) { cells.push_back(row.cost ? dollars(row.cost->amount) : "-"); }
      if (draws) { cells.push_back(row.energy ? joules(row.energy->amount) : "-"); }
      cells.emplace_back(row.within ? "" : "beyond the limit");
    }
    table.row(std::move(cells));
  }
  std::string text = "\nthe fastest of each number of devices\n" + table.text();
  const auto basis = [&](auto known, std::string_view name) {
    const auto with = std::find_if(rows.begin(), rows.end(), known);
    if (with == rows.end()) { return std::string(); }
    return wrapped(fmt::format("{}: ", name), name == "cost" ? with->cost->basis : with->energy->basis);
  };
  text += basis([](const results::DeviceRow& row) { return row.cost.has_value(); }, "cost");
  text += basis([](const results::DeviceRow& row) { return row.energy.has_value(); }, "energy");
  return text;
}

// What the answer does not speak for.
std::string held_lines(const std::vector<std::string>& held, TextStyle style) {
  if (held.empty()) { return ""; }
  const std::string text = wrapped("", "held, not searched (a flag sets each): " + join(held, "; "));
  return dim(text.substr(0, text.size() - 1), style) + "\n";
}

// No wall time here: the same question gives the same text, but for the rate on its last line.
std::string space_lines(const results::PlanSearch& search) {
  const auto& space = search.space;
  std::string counts = fmt::format(
      "{} points: {} evaluated, {} ruled out by a bound. Of the evaluated, {} were priced, {} fit, {} lack "
      "memory",
      grouped(space.points), grouped(space.evaluated), grouped(space.pruned), grouped(space.priced),
      grouped(space.feasible), grouped(space.rejected_memory));
  if (space.rejected_network > 0) {
    counts += fmt::format(", {} do not fill the network", grouped(space.rejected_network));
  }
  if (space.rejected_invalid > 0) {
    counts += fmt::format(", {} are none that model and schedule allow", grouped(space.rejected_invalid));
  }
  if (!search.without_effect.empty()) {
    counts += fmt::format("; {} different plans, as nothing is felt of {}", grouped(space.plans),
                          join(search.without_effect, ", "));
  }
  std::string text = wrapped("", counts + ".");
  if (search.wall_s > 0) {
    const double rate = std::round(static_cast<double>(space.points) / search.wall_s);
    text += fmt::format("{} points/s\n", config::format_count(rate));
  }
  return text;
}

}  // namespace

namespace {

// As a shell reads it.
std::string in_quotes(const std::string& word) {
  return word.find_first_of(" '\"$&();*?|<>") == std::string::npos ? word : "'" + word + "'";
}

}  // namespace

std::string sample_text(const results::Sample& sample) {
  std::string text =
      fmt::format("{} of {} points, drawn with seed {}\n", grouped(static_cast<long long>(sample.drawn.size())),
                  grouped(sample.points), sample.seed);
  for (const auto& point : sample.drawn) {
    text += fmt::format("\npoint {}: {}", grouped(point.number), point.verdict);
    if (point.is_possible()) {
      text += fmt::format(", {} a step of {} sequences, {} a device\n", config::format_seconds(point.step_time, 4),
                          grouped(point.global_batch), config::format_bytes(point.memory));
      text += "  orrery estimate";  // on one line, to be copied
      for (const auto& flag : point.flags) { text += " " + in_quotes(printable(flag)); }
      text += "\n";
    } else {
      text += "\n";
    }
  }
  return text;
}

std::string plan_text(const results::PlanSearch& search, TextStyle style) {
  std::string text;
  if (search.best.empty()) {
    text = "no plan fits\n";
  } else {
    text = job_header(search.best.front(), style) + "\n" + ranking(search.best);
    text += dim("mb: micro-batch, sp: sequence-parallel, comm: communication that nothing hides", style) + "\n";
  }
  if (!search.by_devices.empty()) { text += by_devices_table(search); }
  if (!search.front.empty()) {
    const std::string_view less = search.by_devices.empty() ? "less memory" : "less memory and no more devices";
    text += fmt::format("\nfaster than all that need {}\n", less) + ranking(search.front);
  }
  text += held_lines(search.held, style) + "\n" + space_lines(search);
  text += what_if_lines(search.what_if);
  if (!search.explanation.empty()) { text += "\n"; }
  for (const auto& reason : search.explanation) { text += wrapped("- ", reason); }
  return text;
}

}  // namespace orrery::report
