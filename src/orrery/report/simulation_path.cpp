// The critical path of a simulation: `orrery simulate --explain`.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/simulation_json.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::json_object;
using results::CriticalPath;

Seconds seconds_of(std::uint64_t picoseconds) { return Seconds(static_cast<double>(picoseconds) * 1e-12); }

std::string time_text(std::uint64_t picoseconds) {
  return picoseconds == 0 ? "0" : config::format_seconds(seconds_of(picoseconds), 4);
}

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string activities_text(const CriticalPath& path) {
  Table table;
  table.column("on the critical path", Table::Align::left);
  for (const char* header : {"time", "share", "steps", "mean of ranks", "least slack", "median slack"}) {
    table.column(header);
  }
  for (const results::PathActivity& row : path.activities) {
    const bool has_slack = row.off_path > 0;
    table.row({printable(row.name), time_text(row.on_path_ps), percent(share_of(row.on_path_ps, path.end_ps())),
               std::to_string(row.steps), time_text(row.per_rank_ps), has_slack ? time_text(row.least_slack_ps) : "-",
               has_slack ? time_text(row.median_slack_ps) : "-"});
  }
  return table.text();
}

std::string parts_text(const CriticalPath& path) {
  Table table;
  table.column("the path consists of", Table::Align::left).column("time").column("share");
  for (const results::PathPart& part : path.parts) {
    table.row({printable(part.name), time_text(part.time_ps), percent(share_of(part.time_ps, path.end_ps()))});
  }
  return table.text();
}

std::string links_text(const CriticalPath& path) {
  constexpr std::size_t kMost = 6;
  Table table;
  table.column(path.crosses_links ? "link on the path" : "busiest link of calls on the path", Table::Align::left);
  table.column(path.crosses_links ? "steps" : "calls").column("time").column("share");
  for (std::size_t i = 0; i < std::min(kMost, path.links.size()); ++i) {
    const results::PathLink& link = path.links[i];
    table.row({fmt::format("{} to {}", printable(link.from), printable(link.to)), std::to_string(link.steps),
               time_text(link.time_ps), percent(share_of(link.time_ps, path.end_ps()))});
  }
  const std::string more =
      path.links.size() > kMost ? fmt::format("{} more: --json\n", path.links.size() - kMost) : std::string();
  return "\n" + table.text() + more;
}

// Steps that follow each other on one rank.
struct Stretch {
  std::size_t first = 0, end = 0;  // steps
};

std::vector<Stretch> stretches_of(const CriticalPath& path) {
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i < path.steps.size(); ++i) {
    if (i == 0 || path.steps[i].rank != path.steps[i - 1].rank) { stretches.push_back({i, i}); }
    stretches.back().end = i + 1;
  }
  return stretches;
}

// The two activities with the most time: "compute 81 %, all_reduce of tp 12 %".
std::string mostly(const CriticalPath& path, const Stretch& stretch) {
  std::map<std::uint32_t, std::uint64_t> times;
  for (std::size_t i = stretch.first; i < stretch.end; ++i) {
    times[path.steps[i].activity] += path.steps[i].end_ps - path.steps[i].start_ps;
  }
  std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
  for (const auto& [activity, time] : times) { order.emplace_back(time, activity); }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const std::uint64_t whole = path.steps[stretch.end - 1].end_ps - path.steps[stretch.first].start_ps;
  std::string text;
  constexpr std::size_t kMost = 2;
  for (std::size_t i = 0; i < std::min(kMost, order.size()); ++i) {
    text += fmt::format("{}{} {:.0f} %", i > 0 ? ", " : "", printable(path.activities[order[i].second].name),
                        100.0 * share_of(order[i].first, whole));
  }
  return text;
}

std::string ranks_text(const CriticalPath& path) {
  constexpr std::size_t kMost = 12;
  std::vector<Stretch> stretches = stretches_of(path);
  const std::size_t all = stretches.size();
  const auto length = [&](const Stretch& one) {
    return path.steps[one.end - 1].end_ps - path.steps[one.first].start_ps;
  };
  if (all > kMost) {
    std::stable_sort(stretches.begin(), stretches.end(),
                     [&](const Stretch& a, const Stretch& b) { return length(a) > length(b); });
    stretches.resize(kMost);
    std::sort(stretches.begin(), stretches.end(), [](const Stretch& a, const Stretch& b) { return a.first < b.first; });
  }
  Table table;
  table.column("path by rank", Table::Align::left);
  for (const char* header : {"from", "to", "steps"}) { table.column(header); }
  table.column("mostly", Table::Align::left);
  for (const Stretch& stretch : stretches) {
    table.row({fmt::format("rank {}", path.steps[stretch.first].rank), time_text(path.steps[stretch.first].start_ps),
               time_text(path.steps[stretch.end - 1].end_ps), std::to_string(stretch.end - stretch.first),
               mostly(path, stretch)});
  }
  return "\n" + table.text() +
         (all > kMost ? fmt::format("the {} longest of {} stretches; every step: --json\n", kMost, all) : "");
}

std::string savings_text(const results::Simulation& simulation) {
  Table table;
  table.column("simulated again with", Table::Align::left)
      .column("time")
      .column("saved")
      .column("", Table::Align::left);
  const auto before = static_cast<double>(simulation.makespan_ns());
  for (const results::Saving& saving : simulation.path->savings) {
    const double saved = before - static_cast<double>(saving.makespan_ns);
    table.row({fmt::format("{} {:+.0f} %", printable(saving.resource), 100.0 * (saving.factor - 1.0)),
               config::format_seconds(Seconds(static_cast<double>(saving.makespan_ns) * 1e-9), 6),
               saved == 0 ? "0" : config::format_seconds(Seconds(saved * 1e-9), 3), percent(saved / before)});
  }
  return "\n" + table.text();
}

}  // namespace

std::string path_text(const results::Simulation& simulation) {
  if (!simulation.path) { return ""; }
  const CriticalPath& path = *simulation.path;
  std::set<std::uint32_t> ranks;
  for (const results::PathStep& step : path.steps) { ranks.insert(step.rank); }
  std::string text = fmt::format("\ncritical path: {}, {} steps on {} ranks\n\n",
                                 config::format_seconds(seconds_of(path.end_ps()), 6), path.steps.size(), ranks.size());
  text += activities_text(path);
  text += "slack: how much longer a node that is not on the path can take\n\n" + parts_text(path);
  if (!path.links.empty()) { text += links_text(path); }
  text += ranks_text(path);
  return path.savings.empty() ? text : text + savings_text(simulation);
}

config::Node path_json(const results::Simulation& simulation) {
  const CriticalPath& path = *simulation.path;
  const auto makespan = static_cast<double>(simulation.makespan_ns());
  const auto activity = [&](const results::PathActivity& row) {
    return json_object({{"name", row.name},
                        {"time_s", seconds_of(row.on_path_ps)},
                        {"share", share_of(row.on_path_ps, path.end_ps())},
                        {"steps", row.steps},
                        {"mean_of_ranks_s", seconds_of(row.per_rank_ps)},
                        {"nodes_off_path", row.off_path},
                        {"least_slack_s", seconds_of(row.least_slack_ps)},
                        {"median_slack_s", seconds_of(row.median_slack_ps)}});
  };
  const auto part = [&](const results::PathPart& row) {
    return json_object(
        {{"name", row.name}, {"time_s", seconds_of(row.time_ps)}, {"share", share_of(row.time_ps, path.end_ps())}});
  };
  const auto link = [&](const results::PathLink& row) {
    return json_object({{"from", row.from},
                        {"to", row.to},
                        {path.crosses_links ? "steps" : "calls", row.steps},
                        {"time_s", seconds_of(row.time_ps)}});
  };
  const auto step = [&](const results::PathStep& row) {
    return json_object({{"rank", std::uint64_t{row.rank}},
                        {"node", row.node},
                        {"name", row.name},
                        {"activity", path.activities[row.activity].name},
                        {"start_s", seconds_of(row.start_ps)},
                        {"end_s", seconds_of(row.end_ps)}});
  };
  const auto saving = [&](const results::Saving& row) {
    const auto time = static_cast<double>(row.makespan_ns);
    return json_object({{"resource", row.resource},
                        {"factor", row.factor},
                        {"makespan_ns", row.makespan_ns},
                        {"saved", makespan == 0 ? 0.0 : 1.0 - time / makespan}});
  };
  return json_object({{"end_s", seconds_of(path.end_ps())},
                      {"activities", config::json_list(path.activities, activity)},
                      {"parts", config::json_list(path.parts, part)},
                      {"links", config::json_list(path.links, link)},
                      {"steps", config::json_list(path.steps, step)},
                      {"faster", config::json_list(path.savings, saving)}});
}

}  // namespace orrery::report
