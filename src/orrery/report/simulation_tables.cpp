#include "orrery/report/simulation_tables.hpp"

#include <charconv>

#include <fmt/format.h>

#include "orrery/core/error.hpp"
#include "orrery/report/csv.hpp"

namespace orrery::report {

namespace {

using results::Simulation;
using results::SimulationTables;

// Whole where it can be.
Cell nanoseconds(std::uint64_t picoseconds) {
  constexpr std::uint64_t kOne = 1000;
  if (picoseconds % kOne == 0) { return picoseconds / kOne; }
  return static_cast<double>(picoseconds) / static_cast<double>(kOne);
}

Cell count(std::uint64_t value) { return value; }
Cell perhaps(const std::optional<std::uint64_t>& value) { return value ? Cell(*value) : Cell(); }

// Of the whole run.
Cell part(std::uint64_t busy_ps, const Simulation& simulation) {
  constexpr double kPicoseconds = 1000;
  const auto whole = static_cast<double>(simulation.makespan_ns()) * kPicoseconds;
  return whole > 0 ? Cell(static_cast<double>(busy_ps) / whole) : Cell();
}

Sheet ranks(const Simulation& simulation) {
  Sheet sheet{"ranks",
              {"rank", "finish_ns", "compute_ns", "comm_ns", "memory_ns", "host_ns", "exposed_comm_ns",
               "exposed_memory_ns", "exposed_host_ns", "idle_ns", "waiting_ns"},
              {}};
  const auto& names = simulation.representatives;
  for (const results::RankTimes& times : simulation.tables->ranks) {
    const std::size_t number = sheet.rows.size();
    sheet.rows.push_back({count(names.empty() ? number : names[number]), nanoseconds(times.finish_ps),
                          nanoseconds(times.compute_ps), nanoseconds(times.comm_ps), nanoseconds(times.memory_ps),
                          nanoseconds(times.host_ps), nanoseconds(times.exposed_comm_ps),
                          nanoseconds(times.exposed_memory_ps), nanoseconds(times.exposed_host_ps),
                          nanoseconds(times.idle_ps), nanoseconds(times.waiting_ps)});
  }
  return sheet;
}

Sheet dimensions(const Simulation& simulation) {
  Sheet sheet{"dimensions",
              {"dimension", "topology", "ranks", "messages", "bytes", "links", "link_messages", "link_bytes", "busy_ns",
               "queued_ns", "busiest_ns", "busiest_part"},
              {}};
  for (const results::SimulatedDimension& row : simulation.tables->dimensions) {
    const bool has_links = row.links > 0;
    const auto of_links = [&](const Cell& cell) { return has_links ? cell : Cell(); };
    sheet.rows.push_back({count(row.dimension), row.topology, count(row.ranks), perhaps(row.messages),
                          perhaps(row.bytes), count(row.links), of_links(count(row.link_messages)),
                          of_links(count(row.link_bytes)), of_links(nanoseconds(row.busy_ps)),
                          of_links(nanoseconds(row.queued_ps)), of_links(nanoseconds(row.busiest_ps)),
                          of_links(part(row.busiest_ps, simulation))});
  }
  return sheet;
}

Cell end_of_link(std::uint32_t rank) { return rank == results::SimulatedLink::kSwitch ? Cell("switch") : count(rank); }

Sheet links(const Simulation& simulation) {
  Sheet sheet{"links", {"dimension", "from", "to", "messages", "bytes", "busy_ns", "queued_ns", "busy_part"}, {}};
  for (const results::SimulatedLink& link : simulation.tables->links) {
    sheet.rows.push_back({count(link.dimension), end_of_link(link.from), end_of_link(link.to), count(link.messages),
                          count(link.bytes), nanoseconds(link.busy_ps), nanoseconds(link.queued_ps),
                          part(link.busy_ps, simulation)});
  }
  return sheet;
}

// A name that is a number becomes a number.
Cell group_of(const results::SimulatedCollective& row) {
  if (row.whole_machine) { return "all"; }
  std::uint64_t number = 0;
  const char* end = row.group.data() + row.group.size();
  const auto [stopped, error] = std::from_chars(row.group.data(), end, number);
  return error == std::errc() && stopped == end ? Cell(number) : Cell(row.group);
}

Sheet collectives(const SimulationTables& tables) {
  Sheet sheet{
      "collectives", {"group", "op", "algorithm", "bytes", "ranks", "first_start_ns", "last_start_ns", "end_ns"}, {}};
  for (const results::SimulatedCollective& row : tables.collectives) {
    sheet.rows.push_back({group_of(row), row.op, row.algorithm, count(row.bytes), count(row.ranks),
                          count(row.first_start_ns), count(row.last_start_ns), count(row.end_ns)});
  }
  return sheet;
}

Sheet operators(const SimulationTables& tables) {
  Sheet sheet{"operators", {"rank", "node", "name", "kind", "bytes", "start_ns", "end_ns"}, {}};
  for (const results::SimulatedOperator& row : tables.operators) {
    sheet.rows.push_back({count(row.rank), count(row.node), row.name, row.kind, count(row.bytes), count(row.start_ns),
                          count(row.end_ns)});
  }
  return sheet;
}

std::string field(const Cell& cell) {
  if (const auto* number = std::get_if<std::uint64_t>(&cell)) { return std::to_string(*number); }
  if (const auto* figure = std::get_if<double>(&cell)) { return fmt::format("{}", *figure); }
  if (const auto* text = std::get_if<std::string>(&cell)) { return csv_field(*text); }
  return {};
}

}  // namespace

Sheet sheet_of(const Simulation& simulation, std::string_view name) {
  ORRERY_ASSERT(simulation.tables.has_value());
  const SimulationTables& tables = *simulation.tables;
  if (name == "ranks") { return ranks(simulation); }
  if (name == "dimensions") { return dimensions(simulation); }
  if (name == "links") { return links(simulation); }
  if (name == "collectives") { return collectives(tables); }
  ORRERY_ASSERT(name == "operators");
  return operators(tables);
}

std::string csv(const Sheet& sheet) {
  std::string text;
  for (std::size_t i = 0; i < sheet.columns.size(); ++i) { text += (i > 0 ? "," : "") + sheet.columns[i]; }
  text += '\n';
  for (const auto& row : sheet.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) { text += (i > 0 ? "," : "") + field(row[i]); }
    text += '\n';
  }
  return text;
}

}  // namespace orrery::report
