#include "orrery/validate/consistent.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "orrery/core/integers.hpp"

namespace orrery::validate {

namespace {

using estimate::Request;

constexpr std::int64_t rounded_up(std::int64_t a, std::int64_t unit) { return ceil_div(a, unit) * unit; }

void distribute_experts(Request& request, const workload::Model& model, std::int64_t devices) {
  if (!model.has_experts()) {
    request.ep = 1;
    return;
  }
  const std::int64_t ranks = devices / request.pp.value_or(1);
  std::int64_t ep = std::min(request.ep.value_or(1), ranks);
  while (ranks % ep != 0 || model.experts.count % ep != 0) { --ep; }
  request.ep = ep;
  if (request.tp > 1) { request.sequence_parallel = true; }
}

void pad_sequence(Request& request, const workload::Model& model) {
  auto& tokens = request.task == parallel::Task::inference ? request.prompt : request.seq;
  if (!tokens) { return; }
  const std::int64_t cp = request.cp.value_or(1), tp = request.tp.value_or(1);
  const std::int64_t parts = cp > 1 ? 2 * cp : 1;
  const bool padded = model.has_experts() && tp > 1;
  const std::int64_t unit = padded ? std::max(parts, cp * tp) : parts;
  *tokens = rounded_up(*tokens, unit % parts == 0 ? unit : unit * 2);
  const bool divides = *tokens / cp % tp == 0;
  if (request.sequence_parallel && *request.sequence_parallel && !divides) { request.sequence_parallel = false; }
}

// Sequences of the fullest replica.
std::int64_t even_batch(Request& request, std::int64_t replicas) {
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
  const std::int64_t vpp = request.vpp.value_or(1), pp = request.pp.value_or(1);
  if (vpp == 1) { return; }
  const std::int64_t ends =
      (request.embedding_as_layer.value_or(false) ? 1 : 0) + (request.head_as_layer.value_or(false) ? 1 : 0);
  request.vpp = std::clamp<std::int64_t>((model.depth() + ends) / pp, 1, vpp);
  if (share / request.micro_batch.value_or(1) % pp != 0) { request.vpp = 1; }
}

using Count = std::optional<std::int64_t>;

std::vector<std::string> differences(const Request& before, const Request& after) {
  std::vector<std::string> found;
  const auto compare = [&](std::string_view column, Count from, Count to) {
    if (!from || from == to) { return; }
    found.push_back(fmt::format("{} {} -> {}", column, *from, to ? fmt::to_string(*to) : "none"));
  };
  compare("tp", before.tp, after.tp);
  compare("cp", before.cp, after.cp);
  compare("pp", before.pp, after.pp);
  compare("dp", before.dp, after.dp);
  compare("ep", before.ep, after.ep);
  compare("vpp", before.vpp, after.vpp);
  compare("seq", before.seq, after.seq);
  compare("isl", before.prompt, after.prompt);
  compare("global_batch", before.global_batch, after.global_batch);
  compare("batch", before.batch, after.batch);
  compare("micro_batch", before.micro_batch, after.micro_batch);
  if (before.sequence_parallel && before.sequence_parallel != after.sequence_parallel) {
    found.emplace_back(*before.sequence_parallel ? "sp yes -> no" : "sp no -> yes");
  }
  return found;
}

}  // namespace

std::vector<std::string> make_consistent(Request& request, const workload::Model& model, std::int64_t devices) {
  const Request before = request;
  if (model.is_recommender()) {
    request.seq.reset();
    request.cp = request.tp = request.pp = request.vpp = 1;
    request.sequence_parallel = false;
  }
  const std::int64_t replicas = devices / (request.tp.value_or(1) * request.cp.value_or(1) * request.pp.value_or(1));
  request.dp = replicas;
  distribute_experts(request, model, devices);
  pad_sequence(request, model);
  limit_chunks(request, model, even_batch(request, replicas));
  return differences(before, request);
}

std::int64_t default_tensor_parallelism(const workload::Model& model, std::int64_t devices, std::int64_t node,
                                        std::int64_t batch) {
  for (std::int64_t tp = 1; tp <= node; ++tp) {
    if (devices % tp == 0 && model.heads % tp == 0 && devices / tp <= batch) { return tp; }
  }
  return 1;
}

}  // namespace orrery::validate
