#include "orrery/api/campaign.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/api/inputs.hpp"
#include "orrery/api/plan_speed.hpp"
#include "orrery/campaign/grids.hpp"
#include "orrery/campaign/incidents.hpp"
#include "orrery/campaign/solve.hpp"
#include "orrery/core/text.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/validate/columns.hpp"
#include "orrery/validate/csv.hpp"

namespace orrery::api {

namespace {

// Bytes of a checkpoint per parameter: the weights that are computed with, their master copy, the optimizer's state.
double checkpoint_bytes(const hardware::Stack& stack, hardware::Precision precision) {
  const double weight = precision == hardware::Precision::fp32 ? 4.0 : 2.0;
  const double master = weight < 4.0 ? stack.optimizer.master_element.value() : 0.0;
  return weight + master + stack.optimizer.state().value();
}

}  // namespace

Result<campaign::Job> campaign_job(const std::string& data_directory, const estimate::Request& request,
                                   const campaign::Spec& spec) {
  if (request.task == parallel::Task::inference) {
    return fail({"", 0, 0, "--task"}, "inference: a campaign is a training run; valid: pretrain, finetune");
  }
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, request, hardware::UnlikeNodes::modelled));
  ORRERY_TRY(resolved, estimate::resolve(request, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  ORRERY_TRY(out, campaign_job(data_directory, inputs, request.precision,
                               with_uncertainty(estimator.estimate(resolved.plan), inputs, job), spec));
  out.chosen = resolved.chosen;
  if (inputs.cluster.nodes.empty()) { out.speed = plan_speed(data_directory, request, inputs, resolved.plan); }
  return out;
}

Result<campaign::Job> campaign_job(const std::string& data_directory, const Inputs& inputs,
                                   hardware::Precision precision, results::Estimate estimate,
                                   const campaign::Spec& spec) {
  ORRERY_TRY(grid, campaign::grid_of(data_directory, spec.grid));
  campaign::Job out;
  out.estimate = std::move(estimate);
  out.cluster = inputs.cluster;
  out.parameters = static_cast<double>(workload::parameter_count(inputs.model).total);
  out.bytes_per_parameter = checkpoint_bytes(inputs.stack, precision);
  out.grid_g_per_kwh = grid.g_per_kwh;
  out.grid = grid.text;
  return out;
}

Result<results::IncidentFit> fit_incident_log(const std::string& file, double devices, double days) {
  ORRERY_TRY(csv, validate::read_csv(file));
  if (!csv.column("time_h")) {
    const auto near = nearest("time_h", csv.header);
    return fail({file, 1, 0, {}}, fmt::format("not a list of incidents: missing column time_h{}",
                                              near ? fmt::format("; nearest: {}", quote(*near)) : std::string()));
  }
  std::vector<campaign::Incident> incidents;
  Failure failure;
  for (const auto& line : csv.rows) {
    const auto cell = [&](std::string_view column) { return validate::cell_text(csv, line, column); };
    const auto hours = validate::number(cell("time_h"));
    if (!hours || *hours < 0.0) {
      failure.diagnostics.push_back(
          {{file, line.line, 0, "time_h"},
           fmt::format("{} is not a number of hours since the begin", quote(cell("time_h")))});
      continue;
    }
    const auto minutes = validate::number(cell("downtime_min"));
    if (minutes.value_or(0.0) < 0.0) {
      failure.diagnostics.push_back({{file, line.line, 0, "downtime_min"}, "must not be negative"});
      continue;
    }
    incidents.push_back({Seconds(*hours * 3600.0), std::string(cell("cause")),
                         minutes ? std::optional(Seconds(*minutes * 60.0)) : std::nullopt});
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  if (incidents.empty() && days <= 0.0) { return fail({"", 0, 0, "--log-days"}, "is needed: the list is empty"); }
  std::stable_sort(incidents.begin(), incidents.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  const Seconds last = incidents.empty() ? Seconds(0) : incidents.back().at;
  const Seconds window = days > 0.0 ? Seconds(days * 86'400.0) : last;
  if (window < last) {
    return fail({"", 0, 0, "--log-days"}, fmt::format("{:g} days end before the last incident, after {:.4g} days", days,
                                                      last.value() / 86'400.0));
  }
  if (!(window > Seconds(0))) { return fail({"", 0, 0, "--log-days"}, "is needed: all incidents are at 0 h"); }
  return campaign::fit_incidents(incidents, devices, window);
}

Result<results::Campaign> run_campaign(const std::string& data_directory, const CampaignRequest& request) {
  ORRERY_TRY(job, campaign_job(data_directory, request.job, request.spec));
  ORRERY_TRY(answer, campaign::solve(job, request.spec));
  if (!answer.estimate.feasible) {
    answer.warnings.insert(answer.warnings.begin(),
                           "the plan does not fit: " + results::why_infeasible(answer.estimate));
  }
  if (request.what_if) { answer.what_ifs = campaign::what_ifs(job, request.spec, answer); }
  if (request.simulate > 0) {
    ORRERY_TRY(runs, campaign::simulated(job, request.spec, answer, request.simulate, request.seed, request.threads,
                                         request.progress));
    answer.simulation = runs;
  }
  return answer;
}

}  // namespace orrery::api
