// Rules for rows that measure a part of an MoE step alone: a pass over the expert half of one layer, or dispatch or
// combine.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/validate/expert_all_to_all.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/skip.hpp"

namespace orrery::validate {

namespace {

std::optional<std::string> missing_or_invalid(const ExpertRow& row) {
  if (!row.unreadable.empty()) { return row.unreadable; }
  if (machine_of(row.gpu_type) == nullptr) { return unknown_accelerator(row.gpu_type); }
  return std::nullopt;
}

// The model of the layer, reduced to that layer.
Skippable<workload::Model> one_layer(const ExpertRow& row, const Parts& parts) {
  const ModelFacts* facts = model_facts(row.model);
  if (facts == nullptr || facts->catalogue.empty()) {
    return skip(fmt::format("model: unknown model {}, so the shape of its layer is unknown", quote(row.model)));
  }
  NetworkColumns network = static_cast<const NetworkColumns&>(row);
  network.layers = std::nullopt;
  auto model = model_of(network, *row.seq, parts);
  if (!model) { return model; }
  model->layers = 1;
  model->mtp_layers = 0;
  model->experts.first_dense = 0;
  return workload::completed(std::move(*model));
}

estimate::Request request_of(const ExpertRow& row, const StackFacts& defaults) {
  estimate::Request request;
  request.global_batch = row.global_batch;
  request.seq = row.seq;
  request.tp = row.tp.value_or(1);
  request.ep = row.ep.value_or(1);
  request.micro_batch = row.micro_batch;
  request.sequence_parallel = defaults.sequence_parallel && request.tp > 1;
  request.zero = defaults.zero;
  request.recompute = parallel::Recompute::none;
  return request;
}

// Expert parallelism over all devices.
parallel::Plan expert_parallel_plan(std::int64_t devices) {
  parallel::Plan plan;
  plan.dp = plan.ep = devices;
  return plan;
}

}  // namespace

Skippable<PassScenario> pass_of(const ExpertRow& row, const Parts& parts) {
  if (auto reason = missing_or_invalid(row)) { return skip(std::move(*reason)); }
  if (auto reason = not_stated({{row.seq.has_value(), "seq"},
                                {row.gpus.has_value(), "gpus"},
                                {row.global_batch.has_value(), "global_batch"}})) {
    return skip(std::move(*reason));
  }
  auto model = one_layer(row, parts);
  if (!model) { return skip(model.error()); }
  auto cluster = cluster_of(row, parts);
  if (!cluster) { return skip(cluster.error()); }
  const StackFacts& defaults = defaults_of(row);
  const auto precision = precision_of(row.precision, defaults, cluster->accelerator);
  if (!precision) { return skip(precision.error()); }
  estimate::Request request = request_of(row, defaults);
  request.precision = *precision;
  auto job = resolved(request, std::move(*model), std::move(*cluster), defaults, parts);
  if (!job) { return skip(job.error()); }
  return PassScenario{std::move(*job), row.metric == "backward_time"};
}

Skippable<AllToAllScenario> all_to_all_of(const ExpertRow& row, const Parts& parts) {
  if (auto reason = missing_or_invalid(row)) { return skip(std::move(*reason)); }
  if (auto reason = not_stated({{row.seq.has_value(), "seq"},
                                {row.hidden.has_value(), "hidden"},
                                {row.topk.has_value(), "topk"},
                                {row.gpus.has_value(), "gpus"}})) {
    return skip(std::move(*reason));
  }
  const auto exchange = all_to_all_named(row.metric);
  ORRERY_ASSERT(exchange);
  if (auto reason = too_few_devices(*row.gpus)) { return skip(std::move(*reason)); }
  auto cluster = cluster_of(row, parts);
  if (!cluster) { return skip(cluster.error()); }
  parallel::CollectiveCall call{Collective::all_to_all, parallel::GroupKind::ep, {}, {}};
  const auto copies = static_cast<double>(*row.topk);
  call.bytes = Bytes(static_cast<double>(*row.seq) * copies * static_cast<double>(*row.hidden) * exchange->element);
  call.node_dispatch = exchange->once_per_node ? node_dispatch(copies, *row.gpus, row.gpus_per_node.value_or(*row.gpus))
                                               : workload::NodeDispatch{copies, 1.0, 1.0, true};
  return AllToAllScenario{std::move(*cluster), expert_parallel_plan(*row.gpus), call};
}

}  // namespace orrery::validate
