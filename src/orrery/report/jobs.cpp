#include "orrery/report/jobs.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/svg.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace of_jobs {
namespace {

using config::format_seconds;
using config::json_list;
using config::json_object;
using results::JobsResult;

std::string kinds_table(const JobsResult& jobs) {
  Table table;
  table.column("kind", Table::Align::left);
  for (const char* header : {"arrived", "blocked", "rate", "mean wait", "mean time", "servers", "in system"}) {
    table.column(header);
  }
  for (const auto& kind : jobs.kinds) {
    table.row({kind.kind, grouped(kind.arrived), grouped(kind.blocked), percent(kind.blocking_rate),
               format_seconds(Seconds(kind.mean_wait_s)), format_seconds(Seconds(kind.mean_time_s)),
               fmt::format("{:.1f}", kind.mean_width), fmt::format("{:.2f}", kind.mean_in_system)});
  }
  return table.text();
}

// Servers of each job: those of lowest number that are free at its start.
struct Bar {
  const results::JobRecord* job;
  std::vector<std::size_t> lanes;
};

std::vector<Bar> bars_of(const JobsResult& jobs, std::size_t most) {
  std::vector<const results::JobRecord*> started;
  for (const auto& job : jobs.jobs) {
    if (!job.blocked) { started.push_back(&job); }
  }
  std::stable_sort(started.begin(), started.end(),
                   [](const auto* a, const auto* b) { return a->start_s < b->start_s; });
  started.resize(std::min(started.size(), most));
  std::vector<double> free_at(static_cast<std::size_t>(jobs.servers), 0.0);
  std::vector<Bar> bars;
  for (const auto* job : started) {
    Bar bar{job, {}};
    for (std::size_t lane = 0; lane < free_at.size() && bar.lanes.size() < static_cast<std::size_t>(job->width);
         ++lane) {
      if (free_at[lane] > job->start_s) { continue; }
      free_at[lane] = job->end_s;
      bar.lanes.push_back(lane);
    }
    bars.push_back(std::move(bar));
  }
  return bars;
}

std::size_t kind_index(const JobsResult& jobs, const std::string& name) {
  const auto found = std::find_if(jobs.kinds.begin(), jobs.kinds.end(), [&](const auto& k) { return k.kind == name; });
  return static_cast<std::size_t>(found - jobs.kinds.begin());
}

}  // namespace
}  // namespace of_jobs

std::string jobs_text(const results::JobsResult& jobs, TextStyle style) {
  using namespace of_jobs;
  std::string text = bold(fmt::format("{} jobs on {} servers ({}), policy {}", grouped(jobs.arrived),
                                      grouped(jobs.servers), jobs.fabric, jobs.policy),
                          style) +
                     "\n\n";
  text += fmt::format("blocking     {:.4f} +- {:.4f}: {} refused, {} beyond their limit, {} without a place{}\n",
                      jobs.blocking_rate, jobs.blocking_standard_error, grouped(jobs.refused), grouped(jobs.over_limit),
                      grouped(jobs.no_place),
                      jobs.unfinished > 0 ? fmt::format(", {} unfinished", grouped(jobs.unfinished)) : std::string());
  text += fmt::format("utilisation  {}\n", percent(jobs.utilisation));
  text += fmt::format(
      "waiting      mean {} +- {}, p50 {}, p99 {}; {} of jobs wait\n", format_seconds(Seconds(jobs.mean_wait_s)),
      format_seconds(Seconds(jobs.mean_wait_standard_error_s)), format_seconds(Seconds(jobs.p50_wait_s)),
      format_seconds(Seconds(jobs.p99_wait_s)), percent(jobs.waited_share));
  text += fmt::format("fairness     {:.3f} (Jain's index of 1 / slowdown), mean slowdown {:.3f}\n\n", jobs.fairness,
                      jobs.mean_slowdown);
  return text + kinds_table(jobs);
}

std::string jobs_json(const results::JobsResult& jobs) {
  using namespace of_jobs;
  const auto json = json_object({{"schema", "orrery.jobs/1"},
                                 {"policy", jobs.policy},
                                 {"fabric", jobs.fabric},
                                 {"servers", jobs.servers},
                                 {"arrived", jobs.arrived},
                                 {"blocked", jobs.blocked},
                                 {"blocking_rate", jobs.blocking_rate},
                                 {"blocking_standard_error", jobs.blocking_standard_error},
                                 {"refused", jobs.refused},
                                 {"over_limit", jobs.over_limit},
                                 {"no_place", jobs.no_place},
                                 {"unfinished", jobs.unfinished},
                                 {"utilisation", jobs.utilisation},
                                 {"waited_share", jobs.waited_share},
                                 {"wait_s", json_object({{"mean", jobs.mean_wait_s},
                                                         {"mean_standard_error", jobs.mean_wait_standard_error_s},
                                                         {"p50", jobs.p50_wait_s},
                                                         {"p99", jobs.p99_wait_s}})},
                                 {"mean_slowdown", jobs.mean_slowdown},
                                 {"fairness", jobs.fairness},
                                 {"horizon_s", jobs.horizon_s},
                                 {"kinds", json_list(jobs.kinds,
                                                     [](const results::JobKindResult& kind) {
                                                       return json_object({{"kind", kind.kind},
                                                                           {"arrived", kind.arrived},
                                                                           {"blocked", kind.blocked},
                                                                           {"blocking_rate", kind.blocking_rate},
                                                                           {"mean_wait_s", kind.mean_wait_s},
                                                                           {"mean_time_s", kind.mean_time_s},
                                                                           {"mean_width", kind.mean_width},
                                                                           {"mean_in_system", kind.mean_in_system}});
                                                     })},
                                 {"jobs", json_list(jobs.jobs, [](const results::JobRecord& job) {
                                    return json_object({{"number", job.number},
                                                        {"kind", job.kind},
                                                        {"width", job.width},
                                                        {"arrival_s", job.arrival_s},
                                                        {"start_s", job.start_s},
                                                        {"end_s", job.end_s},
                                                        {"blocked", job.blocked},
                                                        {"reason", config::text_or_null(job.reason)}});
                                  })}});
  return config::json_document(json);
}

std::string gantt_svg(const results::JobsResult& jobs, std::size_t most) {
  using namespace of_jobs;
  const auto bars = bars_of(jobs, most);
  constexpr double kWidth = 960.0, kHeight = 320.0, kLeft = 60.0, kTop = 40.0;
  double end = 1.0;
  for (const auto& bar : bars) { end = std::max(end, bar.job->end_s); }
  const double lane = kHeight / static_cast<double>(std::max<std::int64_t>(1, jobs.servers));
  Svg svg(kWidth + kLeft + 20.0, kHeight + kTop + 60.0);
  svg.text(kLeft, 20.0, fmt::format("{} servers, policy {}, first {} jobs", jobs.servers, jobs.policy, bars.size()));
  for (const auto& bar : bars) {
    const double x = kLeft + bar.job->start_s / end * kWidth,
                 width = (bar.job->end_s - bar.job->start_s) / end * kWidth;
    for (std::size_t i = 0; i < bar.lanes.size();) {  // neighbouring servers are one rectangle
      std::size_t j = i + 1;
      while (j < bar.lanes.size() && bar.lanes[j] == bar.lanes[j - 1] + 1) { ++j; }
      svg.rectangle(x, kTop + static_cast<double>(bar.lanes[i]) * lane, width, static_cast<double>(j - i) * lane,
                    kind_index(jobs, bar.job->kind));
      i = j;
    }
  }
  for (const auto& job : jobs.jobs) {
    if (!job.blocked || job.arrival_s > end) { continue; }
    svg.line(kLeft + job.arrival_s / end * kWidth, kTop + kHeight, kLeft + job.arrival_s / end * kWidth,
             kTop + kHeight + 8.0);
  }
  for (std::size_t i = 0; i < jobs.kinds.size(); ++i) {
    svg.legend(kLeft + 150.0 * static_cast<double>(i), kTop + kHeight + 40.0, i, jobs.kinds[i].kind);
  }
  svg.text(kLeft + kWidth - 120.0, kTop + kHeight + 22.0, config::format_seconds(Seconds(end)));
  return svg.document();
}

}  // namespace orrery::report
