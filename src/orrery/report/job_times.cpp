#include "orrery/report/job_times.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/simulation_json.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

// "0-7, 16-23"
std::string ranges_of(const std::vector<std::uint32_t>& devices) {
  std::string text;
  for (std::size_t i = 0; i < devices.size();) {
    std::size_t end = i + 1;
    while (end < devices.size() && devices[end] == devices[end - 1] + 1) { ++end; }
    text += text.empty() ? "" : ", ";
    text += end - i == 1 ? std::to_string(devices[i]) : fmt::format("{}-{}", devices[i], devices[end - 1]);
    i = end;
  }
  return text;
}

std::string links_text(const std::vector<results::JobLink>& links) {
  Table table;
  table.column("links that slow jobs down", Table::Align::left);
  table.column("job", Table::Align::left);
  for (const char* header : {"rate", "used", "lost s", "of job"}) { table.column(header); }
  std::size_t slow = 0;
  for (const results::JobLink& link : links) { slow += link.lost_s > 0 ? 1 : 0; }
  constexpr std::size_t kMostRows = 10;
  for (std::size_t i = 0; i < std::min(slow, kMostRows); ++i) {
    const results::JobLink& link = links[i];
    table.row({fmt::format("{} to {}", printable(link.from), printable(link.to)), printable(link.job),
               config::format_rate(BytesPerSecond(link.bandwidth_Bps)), fmt::format("{:.1f} %", 100 * link.used),
               fmt::format("{:.4g}", link.lost_s), fmt::format("{:.1f} %", 100 * link.share)});
  }
  if (slow == 0) { return ""; }
  std::string text = "\n" + table.text();
  if (slow > kMostRows) { text += fmt::format("{} more: --json\n", slow - kMostRows); }
  return text;
}

}  // namespace

std::string job_times_text(const results::JobTimes& times, TextStyle style) {
  std::string text =
      fmt::format("{}: {} on {} of {}, placement {}\n\n", bold(fmt::format("{:.6g} s", times.makespan_s()), style),
                  counted(static_cast<long long>(times.jobs.size()), "job"), counted(times.devices, "device"),
                  printable(times.cluster), times.placement);
  Table table;
  table.column("job", Table::Align::left);
  for (const char* header : {"ranks", "start s", "finish s", "alone s", "slowdown"}) { table.column(header); }
  table.column("devices", Table::Align::left);
  for (const results::JobTime& job : times.jobs) {
    constexpr std::size_t kMostText = 40;
    std::string devices = ranges_of(job.devices);
    if (devices.size() > kMostText) { devices = devices.substr(0, devices.rfind(',', kMostText)) + ", ..."; }
    table.row({printable(job.name), std::to_string(job.ranks), fmt::format("{:.6g}", job.start_s),
               fmt::format("{:.6g}", job.finish_s), fmt::format("{:.6g}", job.alone_s),
               fmt::format("{:.3f}", job.slowdown()), devices});
  }
  text += table.text() + links_text(times.links);
  for (const std::string& warning : times.warnings) { text += fmt::format("warning: {}\n", printable(warning)); }
  return text;
}

std::string job_times_json(const results::JobTimes& times) {
  using config::json_object;
  constexpr double kNanosecond = 1e9;
  return config::json_document(json_object(
      {{"schema", "orrery.simulate/1"},
       {"semantics", "physical"},
       {"backend", "flow"},
       {"cluster", times.cluster},
       {"placement", times.placement},
       {"makespan_s", times.makespan_s()},
       {"makespan_ns", static_cast<std::uint64_t>(std::llround(times.makespan_s() * kNanosecond))},
       {"jobs", config::json_list(times.jobs,
                                  [](const results::JobTime& job) {
                                    return json_object(
                                        {{"name", job.name},
                                         {"ranks", job.ranks},
                                         {"start_s", job.start_s},
                                         {"finish_s", job.finish_s},
                                         {"alone_s", job.alone_s},
                                         {"slowdown", job.slowdown()},
                                         {"devices", config::json_list(job.devices, [](std::uint32_t device) {
                                            return config::json_count(device);
                                          })}});
                                  })},
       {"links", config::json_list(times.links,
                                   [](const results::JobLink& link) {
                                     return json_object({{"job", link.job},
                                                         {"from", link.from},
                                                         {"to", link.to},
                                                         {"bandwidth_Bps", link.bandwidth_Bps},
                                                         {"busy_s", link.busy_s},
                                                         {"lost_s", link.lost_s},
                                                         {"share", link.share},
                                                         {"used", link.used}});
                                   })},
       {"contention", contention_json(times.contention)},
       {"stats", json_object({{"messages", times.messages},
                              {"events", times.events},
                              {"wall_s", times.wall_s},
                              {"peak_rss_B", times.peak_rss_B}})},
       {"warnings", times.warnings}}));
}

}  // namespace orrery::report
