#include "orrery/api/campaign.hpp"

#include <utility>

#include "orrery/api/inputs.hpp"
#include "orrery/campaign/grids.hpp"
#include "orrery/campaign/solve.hpp"
#include "orrery/estimate/estimator.hpp"

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
  ORRERY_TRY(inputs, read_inputs(data_directory, catalogue, request));
  ORRERY_TRY(grid, campaign::grid_of(data_directory, spec.grid));
  ORRERY_TRY(resolved, estimate::resolve(request, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  campaign::Job out;
  out.estimate = with_uncertainty(estimator.estimate(resolved.plan), inputs, job);
  out.chosen = resolved.chosen;
  out.cluster = inputs.cluster;
  out.parameters = static_cast<double>(workload::parameter_count(inputs.model).total);
  out.bytes_per_parameter = checkpoint_bytes(inputs.stack, request.precision);
  out.grid_g_per_kwh = grid.g_per_kwh;
  out.grid = grid.text;
  return out;
}

Result<results::Campaign> run_campaign(const std::string& data_directory, const CampaignRequest& request) {
  ORRERY_TRY(job, campaign_job(data_directory, request.job, request.spec));
  ORRERY_TRY(answer, campaign::solve(job, request.spec));
  if (!answer.estimate.feasible) {
    answer.warnings.insert(answer.warnings.begin(),
                           "the plan does not fit in memory: " + answer.estimate.infeasible_reason);
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
