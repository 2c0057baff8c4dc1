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

// A column of the ranking. Columns in which all plans have the default value are left out.
struct PlanColumn {
  std::string_view name, header;
  std::string_view default_value;
  bool training_only = false;
  bool of_sequences = false;  // not for recommenders
};

constexpr std::string_view kAlways = "\x01";
constexpr bool kTraining = true, kSequences = true;

// Columns with their own header, default or position; other choices follow if they are not at their default.
constexpr std::array<PlanColumn, 19> kColumns{{
    {"tp", "tp", kAlways, false, kSequences},
    {"cp", "cp", "1"},
    {"cp_method", "cp-method", "ring"},
    {"ep", "ep", "1"},
    {"etp", "etp", "1"},
    {"pp", "pp", kAlways, false, kSequences},
    {"dp", "dp", kAlways},
    {"vpp", "vpp", kAlways, kTraining, kSequences},
    {"micro_batch", "mb", kAlways},
    {"sequence_parallel", "sp", kAlways, false, kSequences},
    {"zero", "zero", kAlways, kTraining},
    {"shard", "shard", "0"},
    {"schedule", "schedule", "1f1b", kTraining},
    {"tp_overlap", "tp-overlap", "none"},
    {"offload", "offload", ""},
    {"placement", "placement", ""},
    {"table_sharding", "tables", ""},
    {"table_ranks", "table ranks", "1"},
    {"replicate_tables_below", "replicated below", "0"},
}};
// Not in the ranking; recompute has its column at the end.
constexpr std::array<std::string_view, 6> kLeftOut{"recompute",         "dp_overlap",         "first_stage_layers",
                                                   "last_stage_layers", "embedding_as_layer", "head_as_layer"};

std::string cell(const results::PlanSummary& plan, std::string_view name) {
  const bool interleaves = name == "schedule" && plan.number("vpp") > 1;  // shown by vpp
  const bool has_no_context = name == "cp_method" && plan.number("cp") <= 1;
  return interleaves ? "1f1b" : has_no_context ? "ring" : plan.text(name);
}

struct ShownColumn {
  std::string_view name;
  std::string header;
};

bool has_place(std::string_view name) {
  return std::any_of(kColumns.begin(), kColumns.end(), [&](const PlanColumn& column) { return column.name == name; }) ||
         std::find(kLeftOut.begin(), kLeftOut.end(), name) != kLeftOut.end();
}

std::vector<ShownColumn> shown_columns(const std::vector<results::Estimate>& best) {
  const bool serves = best.front().inference.has_value(), samples_only = best.front().samples_only;
  std::vector<ShownColumn> shown;
  for (const PlanColumn& column : kColumns) {
    if ((serves && column.training_only) || (samples_only && column.of_sequences)) { continue; }
    const bool departs = std::any_of(best.begin(), best.end(), [&](const auto& one) {
      return one.plan.find(column.name) != nullptr && cell(one.plan, column.name) != column.default_value;
    });
    if (departs) { shown.push_back({column.name, std::string(column.header)}); }
  }
  for (const auto& value : best.front().plan.values) {
    const bool departs = std::any_of(best.begin(), best.end(), [&](const auto& one) {
      const auto* const other = one.plan.find(value.name);
      return other != nullptr && other->departs;
    });
    if (has_place(value.name) || !departs) { continue; }
    std::string header(value.name);
    std::replace(header.begin(), header.end(), '_', '-');
    shown.push_back({value.name, std::move(header)});
  }
  return shown;
}

std::string ranking(const std::vector<results::Estimate>& best) {
  const std::vector<ShownColumn> shown = shown_columns(best);
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
  const bool generates = serves && !best.front().samples_only;
  if (generates) { table.column("TTFT").column("TPOT"); }
  table.column("MFU").column(best.front().samples_only ? "samples/s" : "tokens/s");
  for (const auto& column : shown) { table.column(column.header); }
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
    if (generates) {
      row.push_back(config::format_seconds(one.inference->time_to_first_token));
      row.push_back(config::format_seconds(one.inference->time_per_output_token));
    }
    row.insert(row.end(), {percent(one.mfu), config::format_count(one.tokens_per_s)});
    for (const auto& column : shown) { row.push_back(cell(one.plan, column.name)); }
    if (!serves) { row.push_back(one.plan.text("recompute")); }
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
  const bool has_cost = any([](const results::DeviceRow& row) { return row.cost.has_value(); });
  const bool has_energy = any([](const results::DeviceRow& row) { return row.energy.has_value(); });
  Table table;
  table.column("devices").column("step time").column("samples/s");
  if (has_cost) { table.column("cost/step"); }
  if (has_energy) { table.column("energy/step"); }
  table.column("", Table::Align::left);
  for (const auto& row : rows) {
    std::vector<std::string> cells = {grouped(row.devices)};
    if (!row.feasible) {
      cells.resize(has_cost && has_energy ? 5 : has_cost || has_energy ? 4 : 3, "-");
      cells.emplace_back(row.impossible.empty() ? "no plan fits" : row.impossible);
    } else {
      cells.insert(cells.end(), {config::format_seconds(row.step_time, 4), config::format_count(row.samples_per_s)});
      if (has_cost) { cells.push_back(row.cost ? dollars(row.cost->amount) : "-"); }
      if (has_energy) { cells.push_back(row.energy ? joules(row.energy->amount) : "-"); }
      cells.emplace_back(row.within ? "" : "over the limit");
    }
    table.row(std::move(cells));
  }
  std::string text = "\nfastest plan for each number of devices\n" + table.text();
  const auto basis = [&](auto known, std::string_view name) {
    const auto with = std::find_if(rows.begin(), rows.end(), known);
    if (with == rows.end()) { return std::string(); }
    return wrapped(fmt::format("{}: ", name), name == "cost" ? with->cost->basis : with->energy->basis);
  };
  text += basis([](const results::DeviceRow& row) { return row.cost.has_value(); }, "cost");
  text += basis([](const results::DeviceRow& row) { return row.energy.has_value(); }, "energy");
  return text;
}

// The choices that the search did not vary.
std::string not_searched_lines(const std::vector<std::string>& choices, TextStyle style) {
  if (choices.empty()) { return ""; }
  const std::string text =
      wrapped("", "not searched (set with the flag in brackets; most are in --space wide): " + join(choices, "; "));
  return dim(text.substr(0, text.size() - 1), style) + "\n";
}

// Without the wall time: the same input gives the same text, except for the rate in the last line.
std::string space_lines(const results::PlanSearch& search) {
  const auto& space = search.space;
  std::string counts = fmt::format(
      "{} points: {} evaluated, {} pruned by a bound. Of the evaluated points, {} were priced, {} fit, {} exceed "
      "memory",
      grouped(space.points), grouped(space.evaluated), grouped(space.pruned), grouped(space.priced),
      grouped(space.feasible), grouped(space.rejected_memory));
  if (space.rejected_network > 0) {
    counts += fmt::format(", {} do not match the network dimensions", grouped(space.rejected_network));
  }
  if (space.rejected_invalid > 0) {
    counts += fmt::format(", {} are invalid for the model or the schedule", grouped(space.rejected_invalid));
  }
  if (!search.without_effect.empty()) {
    counts += fmt::format(". {} distinct plans; axes without effect on this model: {}", grouped(space.plans),
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

// Quoted for a shell where necessary.
std::string in_quotes(const std::string& word) {
  return word.find_first_of(" '\"$&();*?|<>") == std::string::npos ? word : "'" + word + "'";
}

}  // namespace

std::string sample_text(const results::Sample& sample) {
  std::string text =
      fmt::format("{} random points of {} (seed {})\n", grouped(static_cast<long long>(sample.sampled.size())),
                  grouped(sample.points), sample.seed);
  for (const auto& point : sample.sampled) {
    text += fmt::format("\npoint {}: {}", grouped(point.number), point.verdict);
    if (point.is_possible()) {
      text += fmt::format(", {} per step of {} sequences, {} per device\n", config::format_seconds(point.step_time, 4),
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

namespace {

// "plan 1: 40 heads padded to 48 (+20 % of attention's work)".
std::string padding_lines(const std::vector<results::Estimate>& best) {
  std::string text;
  const std::string& first = best.front().padding;
  if (std::all_of(best.begin(), best.end(), [&](const auto& one) { return one.padding == first; })) {
    return first.empty() ? text : wrapped("all plans: ", first);
  }
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (best[i].padding.empty()) { continue; }
    text += wrapped(fmt::format("plan {}: ", i + 1), best[i].padding);
  }
  return text;
}

// Whether the order of the best plans is within what the model can tell. The interval has the error that all plans of
// the job share, so it is a limit, not the error of their difference.
std::string interval_line(const std::vector<results::Estimate>& best) {
  const auto& range = best.front().uncertainty;
  if (!range) { return ""; }
  const auto inside = static_cast<std::size_t>(
      std::find_if(best.begin(), best.end(), [&](const auto& one) { return one.step_time > range->p90; }) -
      best.begin());
  std::string text = fmt::format("80 % interval of the first: {} to {}", config::format_seconds(range->p10),
                                 config::format_seconds(range->p90));
  if (inside > 1) {
    text += inside == best.size() && inside == 2 ? "; the second is inside it"
                                                 : fmt::format("; plans 1 to {} are inside it", inside);
  }
  return text + "\n";
}

}  // namespace

namespace {

// Of the best plans, if the objective is of campaigns.
std::string campaigns_table(const results::PlanSearch& search) {
  if (search.campaigns.empty()) { return {}; }
  Table table;
  for (const char* header : {"campaign of plan", "days", "useful", "USD", "MWh", "t CO2e"}) { table.column(header); }
  const auto figure = [](const std::optional<double>& value, double unit) {
    return value ? fmt::format("{:.4g}", *value / unit) : std::string("-");
  };
  for (std::size_t i = 0; i < search.campaigns.size(); ++i) {
    const auto& one = search.campaigns[i];
    table.row({std::to_string(i + 1), fmt::format("{:.4g}", one.days), percent(one.ettr),
               one.usd ? dollars(*one.usd) : std::string("-"), figure(one.kwh, 1e3), figure(one.co2_kg, 1e3)});
  }
  return fmt::format("\n{}(of the {} plans with the shortest steps)\n", table.text(), search.campaigns_of);
}

}  // namespace

std::string plan_text(const results::PlanSearch& search, TextStyle style) {
  std::string text;
  if (search.best.empty()) {
    text = "no plan fits\n";
  } else {
    text = job_header(search.best.front(), style) + "\n" + ranking(search.best);
    text += interval_line(search.best) + padding_lines(search.best);
    text += dim("mb: micro-batch, sp: sequence parallelism, comm: exposed communication", style) + "\n";
  }
  text += campaigns_table(search);
  if (!search.by_devices.empty()) { text += by_devices_table(search); }
  if (!search.front.empty()) {
    text += fmt::format("\nPareto front of time{} and memory\n", search.by_devices.empty() ? "" : ", devices");
    text += ranking(search.front);
  }
  text += not_searched_lines(search.not_searched, style) + "\n" + space_lines(search);
  text += what_if_lines(search.what_if);
  if (!search.explanation.empty()) { text += "\n"; }
  for (const auto& reason : search.explanation) { text += wrapped("- ", reason); }
  return text;
}

}  // namespace orrery::report
