// Rules for rows that measure a part of a mixture's step by itself: a pass over the expert half of one layer, or the
// way of tokens to their experts and back.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/validate/exchange.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/skip.hpp"

namespace orrery::validate {

namespace {

std::optional<std::string> unfit(const ExpertRow& row) {
  if (!row.unreadable.empty()) { return row.unreadable; }
  if (machine_of(row.gpu_type) == nullptr) { return unknown_accelerator(row.gpu_type); }
  return std::nullopt;
}

// The network of which the layer is one, cut down to it.
OrSkip<workload::Model> one_layer(const ExpertRow& row, const Parts& parts) {
  const ModelFacts* facts = model_facts(row.model);
  if (facts == nullptr || facts->catalogue.empty()) {
    return skip(fmt::format("model: whose layer {} is, is not known", quoted(row.model)));
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

estimate::Request request_of(const ExpertRow& row, const StackFacts& habits) {
  estimate::Request request;
  request.global_batch = row.global_batch;
  request.seq = row.seq;
  request.tp = row.tp.value_or(1);
  request.ep = row.ep.value_or(1);
  request.micro_batch = row.micro_batch;
  request.sequence_parallel = habits.sequence_parallel && request.tp > 1;
  request.zero = habits.zero;
  request.recompute = parallel::Recompute::none;
  return request;
}

// A rank for every device, all of them sharing out the experts.
parallel::Plan exchanging(std::int64_t devices) {
  parallel::Plan plan;
  plan.dp = plan.ep = devices;
  return plan;
}

}  // namespace

OrSkip<PassScenario> pass_of(const ExpertRow& row, const Parts& parts) {
  if (auto reason = unfit(row)) { return skip(std::move(*reason)); }
  if (auto reason = not_stated({{row.seq.has_value(), "seq"},
                                {row.gpus.has_value(), "gpus"},
                                {row.global_batch.has_value(), "global_batch"}})) {
    return skip(std::move(*reason));
  }
  auto model = one_layer(row, parts);
  if (!model) { return skip(model.error()); }
  auto cluster = cluster_of(row, parts);
  if (!cluster) { return skip(cluster.error()); }
  const StackFacts& habits = habits_of(row);
  const auto precision = precision_of(row.precision, habits, cluster->accelerator);
  if (!precision) { return skip(precision.error()); }
  estimate::Request request = request_of(row, habits);
  request.precision = *precision;
  auto job = settled(request, std::move(*model), std::move(*cluster), habits, parts);
  if (!job) { return skip(job.error()); }
  return PassScenario{std::move(*job), row.metric == "backward_time"};
}

OrSkip<ExchangeScenario> exchange_of(const ExpertRow& row, const Parts& parts) {
  if (auto reason = unfit(row)) { return skip(std::move(*reason)); }
  if (auto reason = not_stated({{row.seq.has_value(), "seq"},
                                {row.hidden.has_value(), "hidden"},
                                {row.topk.has_value(), "topk"},
                                {row.gpus.has_value(), "gpus"}})) {
    return skip(std::move(*reason));
  }
  const auto exchange = exchange_named(row.metric);
  ORRERY_ASSERT(exchange);
  if (auto reason = nobody_to_talk_to(*row.gpus)) { return skip(std::move(*reason)); }
  auto cluster = cluster_of(row, parts);
  if (!cluster) { return skip(cluster.error()); }
  parallel::CollectiveCall call{Collective::all_to_all, parallel::GroupKind::ep, {}, {}};
  const auto copies = static_cast<double>(*row.topk);
  call.bytes = Bytes(static_cast<double>(*row.seq) * copies * static_cast<double>(*row.hidden) * exchange->element);
  if (exchange->once) { call.spread = once_per_node(copies, *row.gpus, row.gpus_per_node.value_or(*row.gpus)); }
  return ExchangeScenario{std::move(*cluster), exchanging(*row.gpus), call};
}

}  // namespace orrery::validate
