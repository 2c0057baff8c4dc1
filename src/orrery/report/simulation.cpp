#include "orrery/report/simulation.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <variant>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/report/simulation_json.hpp"
#include "orrery/report/simulation_tables.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::json_object;
using config::JsonWriter;
using config::Node;

auto key_of(const results::SimulatedRank& rank) {
  return std::tuple(rank.finish_ns, rank.exposed_comm_ns, rank.compute_ns, rank.memory_ns, rank.idle_ns);
}

std::string ranges_text(const RankClass& ranks) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t i = 0; i < ranks.ranks.size(); ++i) {
    if (i == kMost) { return text + fmt::format(", … ({} more)", ranks.ranks.size() - kMost); }
    const auto& [first, last] = ranks.ranks[i];
    text += (i > 0 ? ", " : "") + (first == last ? std::to_string(first) : fmt::format("{}-{}", first, last));
  }
  return text;
}

constexpr std::array kTimes = {&results::SimulatedRank::finish_ns, &results::SimulatedRank::exposed_comm_ns,
                               &results::SimulatedRank::compute_ns, &results::SimulatedRank::memory_ns,
                               &results::SimulatedRank::idle_ns};

Table table_of_times(const char* first) {
  Table table;
  table.column(first, Table::Align::left);
  for (const char* header : {"finish ns", "exposed ns", "compute ns", "memory ns", "idle ns"}) { table.column(header); }
  return table;
}

std::vector<std::string> cells_of(std::string first, const results::SimulatedRank& result) {
  std::vector<std::string> cells = {std::move(first)};
  for (const auto time : kTimes) { cells.push_back(std::to_string(result.*time)); }
  return cells;
}

std::string classes_text(const std::vector<RankClass>& classes) {
  Table table = table_of_times("ranks");
  for (const RankClass& ranks : classes) { table.row(cells_of(ranges_text(ranks), ranks.result)); }
  return table.text();
}

// More classes of ranks are summarised: quantiles of every column, and the ranks that finish last.
constexpr std::size_t kMostClasses = 64;

std::string summary_text(const results::RankRuns<results::SimulatedRank>& ranks, std::vector<RankClass> classes) {
  Table table = table_of_times("of all ranks");
  std::array<std::vector<std::pair<std::uint64_t, std::uint64_t>>, kTimes.size()> sorted;  // time, ranks
  for (const auto& run : ranks.runs()) {
    for (std::size_t i = 0; i < kTimes.size(); ++i) {
      sorted[i].emplace_back(run.value.*kTimes[i], run.end - run.first);
    }
  }
  for (auto& column : sorted) { std::sort(column.begin(), column.end()); }
  const auto quantile = [&](std::size_t column, std::uint64_t percent) {
    const std::uint64_t place = (ranks.size() - 1) * percent / 100;
    std::uint64_t before = 0;
    for (const auto& [time, count] : sorted[column]) {
      if ((before += count) > place) { return time; }
    }
    return std::uint64_t{0};
  };
  for (const auto& [name, percent] :
       {std::pair{"least", 0}, {"10 %", 10}, {"median", 50}, {"90 %", 90}, {"most", 100}}) {
    std::vector<std::string> cells = {name};
    for (std::size_t i = 0; i < kTimes.size(); ++i) {
      cells.push_back(std::to_string(quantile(i, static_cast<std::uint64_t>(percent))));
    }
    table.row(std::move(cells));
  }
  constexpr std::size_t kLast = 4;
  std::stable_sort(classes.begin(), classes.end(),
                   [](const RankClass& a, const RankClass& b) { return a.result.finish_ns > b.result.finish_ns; });
  table.title("last to finish");
  for (std::size_t i = 0; i < kLast; ++i) { table.row(cells_of(ranges_text(classes[i]), classes[i].result)); }
  return table.text() +
         fmt::format("{} classes of ranks with equal times; each rank: --table ranks, --json\n", classes.size());
}

Node range_json(const std::pair<std::uint64_t, std::uint64_t>& range) {
  return config::sequence_node({config::json_count(range.first), config::json_count(range.second)});
}

Node rank_class_json(const RankClass& ranks) {
  return json_object({{"ranks", config::json_list(ranks.ranks, range_json)},
                      {"finish_ns", ranks.result.finish_ns},
                      {"exposed_comm_ns", ranks.result.exposed_comm_ns},
                      {"compute_ns", ranks.result.compute_ns},
                      {"memory_ns", ranks.result.memory_ns},
                      {"idle_ns", ranks.result.idle_ns}});
}

void write(const Cell& cell, JsonWriter& writer) {
  if (const auto* count = std::get_if<std::uint64_t>(&cell)) { return writer.value(*count); }
  if (const auto* figure = std::get_if<double>(&cell)) { return writer.value(*figure); }
  if (const auto* text = std::get_if<std::string>(&cell)) { return writer.value(std::string_view(*text)); }
  writer.null();
}

// Row by row: a table of operators has millions of cells.
void write(const Sheet& sheet, JsonWriter& writer) {
  writer.open_list();
  for (const auto& row : sheet.rows) {
    writer.open_object();
    for (std::size_t i = 0; i < row.size(); ++i) {
      writer.key(sheet.columns[i]);
      write(row[i], writer);
    }
    writer.close();
  }
  writer.close();
}

}  // namespace

std::vector<RankClass> rank_classes(const results::RankRuns<results::SimulatedRank>& ranks) {
  std::vector<RankClass> classes;
  std::map<decltype(key_of(ranks.front())), std::size_t> known;
  for (const auto& run : ranks.runs()) {
    const auto [found, is_new] = known.try_emplace(key_of(run.value), classes.size());
    if (is_new) { classes.push_back({{}, run.value}); }
    classes[found->second].ranks.emplace_back(run.first, run.end - 1);
  }
  return classes;
}

std::string simulation_text(const results::Simulation& simulation, TextStyle style) {
  const std::string makespan = fmt::format("{} ns", simulation.makespan_ns());
  std::string text = fmt::format("{}: {} ranks, {} semantics, {}\n\n", bold(makespan, style), simulation.ranks.size(),
                                 simulation.semantics, simulation.backend);
  const std::vector<RankClass> classes = rank_classes(simulation.ranks);
  text += classes.size() > kMostClasses ? summary_text(simulation.ranks, classes) : classes_text(classes);
  text += fmt::format("\n{} nodes, {} messages, {} events", simulation.nodes, simulation.messages, simulation.events);
  if (simulation.in_switch_calls) { text += fmt::format("; {} collectives in switches", *simulation.in_switch_calls); }
  if (simulation.simulated_ranks < simulation.ranks.size()) {
    text += fmt::format("; {} of {} ranks simulated, the others are identical to these", simulation.simulated_ranks,
                        simulation.ranks.size());
  }
  if (simulation.comparison_wall_s) {
    text += fmt::format("; graphs compared in {:.3g} s", *simulation.comparison_wall_s);
  }
  text += '\n';
  text += roofline_text(simulation);
  text += energy_text(simulation);
  text += memory_text(simulation);
  text += path_text(simulation);
  for (const std::string& warning : simulation.warnings) { text += fmt::format("warning: {}\n", printable(warning)); }
  return text;
}

Node contention_json(const std::vector<results::SimulatedContention>& rows) {
  constexpr double kSecond = 1e-12;  // a picosecond
  return config::json_list(rows, [](const results::SimulatedContention& row) {
    return json_object({{"kind", row.kind},
                        {"other", row.other},
                        {"dimension", row.dimension},
                        {"together_s", static_cast<double>(row.together_ps) * kSecond},
                        {"lost_s", static_cast<double>(row.lost_ps) * kSecond}});
  });
}

Node simulation_head(const results::Simulation& simulation) {
  Node stats = json_object({{"nodes", simulation.nodes},
                            {"events", simulation.events},
                            {"messages", simulation.messages},
                            {"simulated_ranks", simulation.simulated_ranks},
                            {"wall_s", simulation.wall_s},
                            {"peak_rss_B", simulation.peak_rss_B}});
  if (simulation.in_switch_calls) { config::add_fields(stats, {{"in_switch_calls", *simulation.in_switch_calls}}); }
  if (simulation.comparison_wall_s) {
    config::add_fields(stats, {{"comparison_wall_s", *simulation.comparison_wall_s}});
  }
  Node head = json_object({{"schema", "orrery.simulate/1"},
                           {"semantics", simulation.semantics},
                           {"backend", simulation.backend},
                           {"ranks", simulation.ranks.size()},
                           {"makespan_ns", simulation.makespan_ns()},
                           {"classes", config::json_list(rank_classes(simulation.ranks), rank_class_json)},
                           {"stats", stats},
                           {"warnings", simulation.warnings}});
  if (simulation.roofline) { config::add_fields(head, {{"roofline", roofline_json(*simulation.roofline)}}); }
  if (simulation.energy) { config::add_fields(head, {{"energy", energy_json(*simulation.energy)}}); }
  if (simulation.memory) { config::add_fields(head, {{"memory", memory_json(*simulation.memory)}}); }
  if (simulation.path) { config::add_fields(head, {{"critical_path", path_json(simulation)}}); }
  if (simulation.backend == "flow") {
    config::add_fields(head, {{"contention", contention_json(simulation.contention)}});
  }
  return head;
}

std::string with_tables(const Node& head, const results::Simulation& simulation,
                        const std::vector<std::string>& tables) {
  if (tables.empty()) { return config::json_document(head); }
  std::string text;
  JsonWriter writer(text);
  writer.open_object();
  for (const config::Member& member : head.members) {
    writer.key(member.key);
    writer.value(member.value);
  }
  writer.key("tables");
  writer.open_object();
  for (const std::string& name : tables) {
    writer.key(name);
    write(sheet_of(simulation, name), writer);
  }
  writer.close();
  writer.close();
  return text + "\n";
}

std::string simulation_json(const results::Simulation& simulation, const std::vector<std::string>& tables) {
  return with_tables(simulation_head(simulation), simulation, tables);
}

}  // namespace orrery::report
