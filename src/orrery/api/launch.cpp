// The question of `--emit`: a plan as the configuration of a training program.
#include "orrery/launch/launch.hpp"

#include <utility>
#include <variant>

#include "orrery/api/inputs.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/plan_record.hpp"

namespace orrery::api {

namespace {

config::Node node_of(const results::PlanValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.value)) { return config::integer_node(*number); }
  if (const auto* is_on = std::get_if<bool>(&value.value)) { return config::boolean_node(*is_on); }
  return config::text_node(std::get<std::string>(value.value));
}

}  // namespace

estimate::Request request_of(estimate::Request job, const results::PlanSummary& plan) {
  std::vector<Diagnostic> complaints;
  for (const auto& value : plan.values) {
    const auto* const choice = parallel::find_choice(value.name);
    if (choice == nullptr) { continue; }
    const config::Limits limits;
    parallel::read(*choice, node_of(value), job, {value.name, limits, false, complaints});
  }
  ORRERY_ASSERT(complaints.empty());
  // What a plan says of ranks that share nothing is one.
  if (job.tables && job.tables->sharding == workload::TableSharding::replicated) { job.tables->ranks = 0; }
  return job;
}

estimate::Request request_of(estimate::Request job, const results::Estimate& found) {
  job.devices = found.devices;
  if (job.task == parallel::Task::inference) {
    job.batch = found.global_batch;
  } else {
    job.global_batch = found.global_batch;
    job.seq = found.seq;
  }
  return request_of(std::move(job), found.plan);
}

Result<LaunchAnswer> Orrery::launch(const estimate::Request& request, launch::Tool tool) const {
  ORRERY_TRY(inputs, read_inputs(data_directory_, catalogue_, request, hardware::UnlikeNodes::modelled));
  ORRERY_TRY(resolved, estimate::resolve(request, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request, inputs.model, inputs.stack);
  const launch::TrainingRun run{inputs.model, job, resolved.plan, inputs.stack,
                                launch::devices_per_node(inputs.cluster)};
  ORRERY_TRY(launched, launch::emit(tool, run));
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  return LaunchAnswer{std::move(launched),
                      {with_uncertainty(estimator.estimate(resolved.plan), inputs, job), resolved.chosen}};
}

}  // namespace orrery::api
