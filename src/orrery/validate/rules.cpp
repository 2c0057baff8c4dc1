#include "orrery/validate/rules.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/validate/facts.hpp"

namespace orrery::validate {

namespace {

using hardware::Precision;
using parallel::Recompute;

tl::unexpected<std::string> skip(std::string reason) { return tl::make_unexpected(std::move(reason)); }

std::string name_of_diagnostic(const Diagnostic& diagnostic) {
  std::string_view flag = diagnostic.place.path;
  while (flag.starts_with('-')) { flag.remove_prefix(1); }
  return flag.empty() ? diagnostic.message : fmt::format("{}: {}", flag, diagnostic.message);
}

// Features that rows ask for and that are not built.
std::optional<std::string> not_built(const TrainingRow& row) {
  if (!row.lora.empty() && row.lora != "no" && row.lora != "0") { return "adapters (LoRA) are not built yet"; }
  if (row.ep.value_or(1) > 1) { return fmt::format("expert parallelism (ep {}) is not built yet", *row.ep); }
  if (row.cp.value_or(1) > 1) { return fmt::format("context parallelism (cp {}) is not built yet", *row.cp); }
  return std::nullopt;
}

std::optional<std::string> not_stated(const TrainingRow& row) {
  const std::pair<bool, std::string_view> needs[] = {
      {row.layers.has_value(), "layers"}, {row.hidden.has_value(), "hidden"},
      {row.heads.has_value(), "heads"},   {row.seq.has_value(), "seq"},
      {row.gpus.has_value(), "gpus"},     {row.global_batch.has_value(), "global_batch"},
  };
  std::vector<std::string> missing;
  for (const auto& [stated, column] : needs) {
    if (!stated) { missing.emplace_back(column); }
  }
  if (missing.empty()) { return std::nullopt; }
  return fmt::format("not stated: {}", join(missing, ", "));
}

// ffn_per_hidden x hidden, rounded up.
std::int64_t default_ffn(const ModelFacts& facts, std::int64_t hidden) {
  const auto units =
      std::ceil(facts.ffn_per_hidden * static_cast<double>(hidden) / static_cast<double>(facts.ffn_multiple));
  return static_cast<std::int64_t>(units) * facts.ffn_multiple;
}

workload::Model network_of(const ModelFacts& facts) {
  workload::Model model;
  model.gated_mlp = facts.gated_mlp;
  model.tied_embeddings = facts.tied_embeddings;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = facts.biases;
  model.parallel_residual = facts.parallel_residual;
  model.embedding_norm = facts.embedding_norm;
  model.dropout = facts.dropout;
  model.norm = facts.norm;
  model.activation = facts.activation;
  model.position = facts.position;
  return model;
}

OrSkip<std::optional<Recompute>> recompute_of(const TrainingRow& row) {
  if (row.recompute.empty()) { return std::nullopt; }
  if (row.recompute == "none") { return Recompute::none; }
  if (row.recompute == "selective") { return Recompute::selective; }
  if (row.recompute == "full") { return Recompute::full; }
  return skip(fmt::format("recompute: {} is not none, selective or full", quoted(row.recompute)));
}

OrSkip<bool> sequence_parallel_of(const TrainingRow& row, const StackFacts& habits) {
  const bool several = row.tp.value_or(1) > 1;
  if (row.sp.empty()) { return several && habits.sequence_parallel; }
  if (row.sp == "yes") { return several; }
  if (row.sp == "no") { return false; }
  return skip(fmt::format("sp: {} is not yes or no", quoted(row.sp)));
}

// Degrees as stated, blank ones 1. Products stay small: tp x pp never exceeds the devices.
std::optional<std::string> degrees_do_not_divide(const TrainingRow& row) {
  const std::int64_t tp = row.tp.value_or(1), pp = row.pp.value_or(1), gpus = *row.gpus;
  if (tp <= gpus && pp <= gpus && tp * pp <= gpus && gpus % (tp * pp) == 0) { return std::nullopt; }
  return fmt::format("tp {} x pp {} does not divide {} gpus", tp, pp, gpus);
}

OrSkip<estimate::Request> request_of(const TrainingRow& row, const StackFacts& habits, Precision precision) {
  const auto recompute = recompute_of(row);
  if (!recompute) { return skip(recompute.error()); }
  const auto sequence_parallel = sequence_parallel_of(row, habits);
  if (!sequence_parallel) { return skip(sequence_parallel.error()); }
  estimate::Request request;
  request.global_batch = *row.global_batch;
  request.seq = *row.seq;
  request.precision = precision;
  request.tp = row.tp.value_or(1);
  request.pp = row.pp.value_or(1);
  request.dp = row.dp;
  request.vpp = request.pp > 1 ? row.vpp.value_or(1) : 1;
  request.micro_batch = row.micro_batch;
  request.sequence_parallel = *sequence_parallel;
  request.zero = static_cast<int>(row.zero.value_or(habits.zero));
  request.recompute = *recompute;
  return request;
}

}  // namespace

Result<Parts> parts_for(const hardware::Catalogue& catalogue, const std::vector<TrainingRow>& rows) {
  Parts parts;
  for (const auto& row : rows) {
    const std::string cluster(cluster_name(row.gpu_type)), stack(stack_of(row.family).stack);
    if (!cluster.empty() && !parts.clusters.contains(cluster)) {
      ORRERY_TRY(entry, catalogue.cluster(cluster, 0));
      parts.clusters.emplace(cluster, std::move(entry));
    }
    if (!parts.stacks.contains(stack)) {
      ORRERY_TRY(entry, catalogue.stack(stack));
      parts.stacks.emplace(stack, std::move(entry));
    }
  }
  return parts;
}

OrSkip<workload::Model> model_of(const TrainingRow& row) {
  const ModelFacts* facts = model_facts(row.model);
  if (facts == nullptr) {
    return skip(fmt::format("nothing is known of model {}; names that start with {} are known", quoted(row.model),
                            known_model_prefixes()));
  }
  workload::Model model = network_of(*facts);
  model.name = row.model;
  model.layers = *row.layers;
  model.hidden = *row.hidden;
  model.heads = *row.heads;
  model.kv_heads = row.kv_heads.value_or(model.heads);
  model.ffn = row.ffn ? *row.ffn : default_ffn(*facts, model.hidden);
  model.vocab = row.vocab.value_or(facts->vocab);
  model.max_seq = *row.seq;
  if (const auto wrong = workload::inconsistency(model)) { return skip(wrong->message); }
  return workload::completed(std::move(model));
}

OrSkip<Precision> precision_of(const TrainingRow& row) {
  if (row.precision.empty()) { return Precision::bf16; }
  if (row.precision == "mxfp8") { return Precision::fp8; }
  if (row.precision == "nvfp4" || row.precision == "mxfp4") { return Precision::fp4; }
  for (const auto precision : hardware::kAllPrecisions) {
    if (row.precision == hardware::name_of(precision)) { return precision; }
  }
  return skip(fmt::format("precision: {} is not known", quoted(row.precision)));
}

OrSkip<hardware::Cluster> cluster_of(const TrainingRow& row, const Parts& parts) {
  const auto entry = parts.clusters.find(cluster_name(row.gpu_type));
  if (entry == parts.clusters.end()) {
    return skip(fmt::format("no accelerator {} in the catalogue", quoted(row.gpu_type)));
  }
  constexpr double kGiga = 1e9;
  hardware::Cluster cluster = entry->second;
  auto& dimensions = cluster.dimensions;
  if (row.gpus_per_node) { dimensions.front().size = *row.gpus_per_node; }
  if (row.intra_bw_GBps) { dimensions.front().bandwidth = BytesPerSecond(*row.intra_bw_GBps * kGiga); }
  for (std::size_t i = 1; i < dimensions.size() && row.nic_bw_GBps_per_gpu; ++i) {
    dimensions[i].bandwidth = BytesPerSecond(*row.nic_bw_GBps_per_gpu * kGiga);
  }
  auto scaled = hardware::scaled(std::move(cluster), *row.gpus);
  if (!scaled) { return skip(scaled.error().diagnostics.front().message); }
  return std::move(*scaled);
}

OrSkip<Scenario> scenario_of(const TrainingRow& row, const Parts& parts) {
  if (!row.unreadable.empty()) { return skip(row.unreadable); }
  if (auto feature = not_built(row)) { return skip(std::move(*feature)); }
  if (cluster_name(row.gpu_type).empty()) {
    return skip(fmt::format("no accelerator {} in the catalogue", quoted(row.gpu_type)));
  }
  if (auto missing = not_stated(row)) { return skip(std::move(*missing)); }
  if (auto odd = degrees_do_not_divide(row)) { return skip(std::move(*odd)); }
  auto model = model_of(row);
  if (!model) { return skip(model.error()); }
  auto cluster = cluster_of(row, parts);
  if (!cluster) { return skip(cluster.error()); }
  const auto precision = precision_of(row);
  if (!precision) { return skip(precision.error()); }
  if (cluster->accelerator.peak(*precision) <= FlopsPerSecond(0)) {
    return skip(fmt::format("{} has no {} matrix products", cluster->accelerator.name, hardware::name_of(*precision)));
  }
  const StackFacts& habits = stack_of(row.family);
  const auto request = request_of(row, habits, *precision);
  if (!request) { return skip(request.error()); }
  const hardware::Stack& stack = parts.stacks.find(habits.stack)->second;
  const auto settled = estimate::settle(*request, *model, *cluster, stack);
  if (!settled) { return skip(name_of_diagnostic(settled.error().diagnostics.front())); }
  const parallel::Job job = estimate::job_of(*request, *model);
  return Scenario{std::move(*model), std::move(*cluster), &stack, job, settled->plan};
}

}  // namespace orrery::validate
