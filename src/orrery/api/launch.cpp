// The question of `--emit`: a plan as the configuration of a training program.
#include "orrery/launch/launch.hpp"

#include <utility>

#include "orrery/api/inputs.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::api {

namespace {

template <class E>
E named(const std::string& name) {
  const auto value = config::enum_value<E>(name);
  ORRERY_ASSERT(value.has_value());
  return *value;
}

}  // namespace

estimate::Request request_of(estimate::Request job, const results::PlanSummary& plan) {
  job.tp = plan.tp;
  job.cp = plan.cp;
  job.pp = plan.pp;
  job.ep = plan.ep;
  job.etp = plan.etp;
  job.dp = plan.dp;
  job.vpp = plan.vpp;
  job.micro_batch = plan.micro_batch;
  job.sequence_parallel = plan.sequence_parallel;
  job.zero = plan.zero;
  job.shard = plan.shard;
  job.recompute = named<parallel::Recompute>(plan.recompute);
  job.schedule = named<parallel::ScheduleKind>(plan.schedule);
  job.tp_overlap = named<parallel::TpOverlap>(plan.tp_overlap);
  if (plan.cp > 1) { job.cp_method = named<workload::ContextMethod>(plan.cp_method); }
  job.dp_overlap = plan.dp_overlap;
  job.offload = plan.offload;
  job.first_stage_layers = plan.first_stage_layers;
  job.last_stage_layers = plan.last_stage_layers;
  job.embedding_as_layer = plan.embedding_as_layer;
  job.head_as_layer = plan.head_as_layer;
  job.placement = plan.placement;
  if (!plan.table_sharding.empty()) {
    job.table_sharding = named<workload::TableSharding>(plan.table_sharding);
    const bool shared_out = *job.table_sharding != workload::TableSharding::replicated;
    job.table_ranks = shared_out ? plan.table_ranks : 0;
    job.replicate_tables_below = plan.replicate_tables_below;
  }
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
  ORRERY_TRY(inputs, read_inputs(data_directory_, catalogue_, request));
  ORRERY_TRY(settled, estimate::settle(request, inputs.model, inputs.cluster, inputs.stack));
  const parallel::Job job = estimate::job_of(request, inputs.model);
  const launch::TrainingRun run{inputs.model, job, settled.plan, inputs.stack,
                                launch::devices_per_node(inputs.cluster)};
  ORRERY_TRY(launched, launch::emit(tool, run));
  estimate::Estimator estimator(inputs.model, inputs.cluster, inputs.stack, job);
  return LaunchAnswer{std::move(launched),
                      {with_uncertainty(estimator.estimate(settled.plan), inputs, job), settled.chosen}};
}

}  // namespace orrery::api
