#include "orrery/api/jobs.hpp"

#include <utility>

#include <fmt/format.h>

#include "orrery/api/orrery.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/jobs/simulate.hpp"
#include "orrery/validate/commands.hpp"

namespace orrery::api {

namespace {

Result<jobs::Kind> with_plan(const std::string& data_directory, jobs::Kind kind) {
  validate::CommandRow row;
  row.args = "estimate " + kind.plan;
  auto job = validate::request_of(row);
  const auto fail_here = [&](const std::string& message) {
    return fail(Place{{}, 0, 0, "/kinds"}, fmt::format("plan of {}: {}", quote(kind.name), message));
  };
  if (!job) { return fail_here(job.error().text()); }
  // A job takes any free nodes, while a plan is priced on the first ones.
  if (const auto cluster = hardware::Catalogue(data_directory).cluster(job->cluster, 0, hardware::UnlikeNodes{"jobs"});
      !cluster) {
    return fail_here(cluster.error().text());
  }
  PlanRequest request;
  request.job = std::move(*job);
  request.device_counts = kind.widths;
  request.top = 1;
  const auto search = Orrery(data_directory).plan(request);
  if (!search) { return fail_here(search.error().text()); }
  std::vector<std::int64_t> widths;
  for (const auto& row_of : search->by_devices) {
    if (!row_of.feasible) { continue; }
    widths.push_back(row_of.devices);
    kind.times.push_back(row_of.step_time * static_cast<double>(kind.steps));
  }
  if (widths.empty()) { return fail_here("no plan fits in memory with any of its widths"); }
  kind.widths = std::move(widths);
  kind.sequential = kind.times.front() * static_cast<double>(kind.widths.front());
  return kind;
}

}  // namespace

Result<jobs::File> with_plans(const std::string& data_directory, jobs::File file) {
  for (auto& kind : file.kinds) {
    if (kind.plan.empty()) { continue; }
    ORRERY_TRY(planned, with_plan(data_directory, std::move(kind)));
    kind = std::move(planned);
  }
  return file;
}

Result<results::JobsResult> run_jobs(const std::string& data_directory, const jobs::File& file,
                                     const std::function<void(std::int64_t)>& progress) {
  ORRERY_TRY(planned, with_plans(data_directory, file));
  return jobs::simulate_jobs(planned, progress);
}

}  // namespace orrery::api
