#include "orrery/validate/possible.hpp"

#include <algorithm>

namespace orrery::validate {

namespace {

using estimate::Request;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr std::int64_t rounded_up(std::int64_t a, std::int64_t unit) { return ceil_div(a, unit) * unit; }

void share_out_experts(Request& request, const workload::Model& model, std::int64_t devices) {
  if (!model.has_experts()) {
    request.ep = 1;
    return;
  }
  const std::int64_t ranks = devices / request.pp;
  request.ep = std::min(request.ep, ranks);
  while (ranks % request.ep != 0 || model.experts.count % request.ep != 0) { --request.ep; }
  if (request.tp > 1) { request.sequence_parallel = true; }
}

void cut_sequence(Request& request, const workload::Model& model) {
  auto& tokens = request.task == parallel::Task::inference ? request.prompt : request.seq;
  if (!tokens) { return; }
  const std::int64_t parts = request.cp > 1 ? 2 * request.cp : 1;
  const bool padded = model.has_experts() && request.tp > 1;
  const std::int64_t unit = padded ? std::max(parts, request.cp * request.tp) : parts;
  *tokens = rounded_up(*tokens, unit % parts == 0 ? unit : unit * 2);
  const bool divides = *tokens / request.cp % request.tp == 0;
  if (request.sequence_parallel && *request.sequence_parallel && !divides) { request.sequence_parallel = false; }
}

// Sequences of the busiest replica.
std::int64_t even_out(Request& request, std::int64_t replicas) {
  auto& batch = request.task == parallel::Task::inference ? request.batch : request.global_batch;
  std::int64_t share = ceil_div(*batch, replicas);
  if (request.micro_batch) {
    const std::int64_t passes = ceil_div(share, *request.micro_batch);
    request.micro_batch = ceil_div(share, passes);
    share = passes * *request.micro_batch;
  }
  batch = share * replicas;
  return share;
}

void limit_chunks(Request& request, const workload::Model& model, std::int64_t share) {
  if (request.vpp == 1) { return; }
  request.vpp = std::clamp<std::int64_t>(model.depth() / request.pp, 1, request.vpp);
  if (share / request.micro_batch.value_or(1) % request.pp != 0) { request.vpp = 1; }
}

}  // namespace

void make_possible(Request& request, const workload::Model& model, std::int64_t devices) {
  if (model.is_recommender()) {
    request.seq.reset();
    request.cp = request.tp = request.pp = request.vpp = 1;
    request.sequence_parallel = false;
  }
  request.dp.reset();
  share_out_experts(request, model, devices);
  cut_sequence(request, model);
  const std::int64_t share = even_out(request, devices / (request.tp * request.cp * request.pp));
  limit_chunks(request, model, share);
}

std::int64_t open_tensor_parallelism(const workload::Model& model, std::int64_t devices, std::int64_t node,
                                     std::int64_t batch) {
  for (std::int64_t tp = 1; tp <= node; ++tp) {
    if (devices % tp == 0 && model.heads % tp == 0 && devices / tp <= batch) { return tp; }
  }
  return 1;
}

}  // namespace orrery::validate
