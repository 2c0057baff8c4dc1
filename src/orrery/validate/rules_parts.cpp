// Rules for the parts of a scenario: model, cluster, number format.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/validate/formats.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/skip.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::validate {

namespace {

using hardware::Precision;
using Count = std::optional<std::int64_t>;

// ffn_per_hidden x hidden, rounded up.
std::int64_t default_ffn(const ModelFacts& facts, std::int64_t hidden) {
  const auto units =
      std::ceil(facts.ffn_per_hidden * static_cast<double>(hidden) / static_cast<double>(facts.ffn_multiple));
  return static_cast<std::int64_t>(units) * facts.ffn_multiple;
}

// A model of a kind, with the row's sizes.
workload::Model sized(const ModelFacts& facts, const NetworkColumns& row, std::int64_t longest) {
  workload::Model model = facts.network;
  model.layers = row.layers.value_or(model.layers);
  model.hidden = row.hidden.value_or(model.hidden);
  model.heads = row.heads.value_or(model.heads);
  model.kv_heads = row.kv_heads.value_or(model.heads);
  model.ffn = row.ffn ? *row.ffn : default_ffn(facts, model.hidden);
  model.vocab = row.vocab.value_or(model.vocab);
  model.max_seq = longest;
  if (row.experts.value_or(0) > 0) {
    model.experts.count = *row.experts;
    model.experts.active = row.topk.value_or(1);
    model.experts.ffn = row.moe_ffn.value_or(model.ffn);
  }
  return model;
}

// Sizes of the row override the entry's (fewer layers, another tokenizer, fewer experts).
workload::Model from_catalogue(const NetworkColumns& row, const workload::Model& entry, std::int64_t longest) {
  workload::Model model = entry;
  model.layers = row.layers.value_or(entry.layers);
  model.hidden = row.hidden.value_or(entry.hidden);
  model.heads = row.heads.value_or(entry.heads);
  model.kv_heads = model.is_latent() ? model.heads : row.kv_heads.value_or(entry.kv_heads);
  model.vocab = row.vocab.value_or(entry.vocab);
  model.max_seq = std::max(entry.max_seq, longest);
  if (!model.has_experts()) {
    model.ffn = row.ffn.value_or(entry.ffn);
    return model;
  }
  // Some tables have the width of an expert in the column of the MLP's.
  model.experts.ffn = row.moe_ffn.value_or(row.ffn && *row.ffn != entry.ffn ? *row.ffn : entry.experts.ffn);
  model.experts.count = row.experts.value_or(entry.experts.count);
  model.experts.active = row.topk.value_or(entry.experts.active);
  return model;
}

const ModelFacts& facts_of(const NetworkColumns& row) {
  if (const ModelFacts* facts = model_facts(row.model)) { return *facts; }
  const bool grouped = row.kv_heads && row.kv_heads != row.heads;
  const bool odd_width = row.ffn && row.hidden && *row.ffn != 4 * *row.hidden;
  return facts_of_shape(grouped || odd_width);
}

// The innermost dimension is a domain of several hosts. Each domain is used as far as equal parts make up the job: 256
// accelerators in racks of 72 are 4 x 64.
void fill_domains(hardware::NetworkDimension& domain, std::int64_t gpus) {
  const bool is_switch_of_hosts = hardware::has_switch(domain.wiring) && !hardware::joins_nodes(domain.wiring);
  if (!is_switch_of_hosts || gpus <= domain.size) { return; }
  while (gpus % domain.size != 0) { --domain.size; }
}

void change_memory(hardware::Accelerator& accelerator, const MachineFacts& machine) {
  if (machine.memory_GiB) { accelerator.memory = Bytes(std::ldexp(*machine.memory_GiB, 30)); }
  if (machine.memory_bandwidth_TBps) {
    accelerator.memory_bandwidth = BytesPerSecond(*machine.memory_bandwidth_TBps * 1e12);
  }
}

Result<std::monostate> add_parts(Parts& parts, const hardware::Catalogue& catalogue, const std::string& data_directory,
                                 const AnyRow& any) {
  if (const auto* call = std::get_if<CollectiveRow>(&any)) { return add_parts(parts, catalogue, *call); }
  const bool reads_its_own = std::holds_alternative<CommandRow>(any) || std::holds_alternative<FigureRow>(any);
  if (reads_its_own) { return std::monostate{}; }
  const auto [gpu_type, stack, name] = std::visit(
      [](const auto& row) {
        std::string_view profile, model;
        if constexpr (requires { defaults_of(row); }) {
          profile = defaults_of(row).stack;
          model = row.model;
        }
        std::string_view gpu;
        if constexpr (requires { row.gpu_type; }) { gpu = row.gpu_type; }
        return std::tuple(gpu, profile, model);
      },
      any);
  if (const auto* machine = machine_of(gpu_type); machine != nullptr && !parts.clusters.contains(machine->cluster)) {
    ORRERY_TRY(entry, catalogue.cluster(std::string(machine->cluster), 0));
    parts.clusters.emplace(machine->cluster, std::move(entry));
  }
  if (!stack.empty() && !parts.stacks.contains(stack)) {
    ORRERY_TRY(entry, catalogue.stack(std::string(stack)));
    for (const auto& [maker, other] : entry.instead_on) {
      ORRERY_TRY(variant, catalogue.stack(other));
      parts.stacks.emplace(other, std::move(variant));
    }
    parts.stacks.emplace(stack, std::move(entry));
  }
  const ModelFacts* facts = model_facts(name);
  if (facts != nullptr && !facts->catalogue.empty() && !parts.models.contains(facts->catalogue)) {
    ORRERY_TRY(entry, workload::load_model(data_directory, std::string(facts->catalogue)));
    parts.models.emplace(facts->catalogue, std::move(entry));
  }
  return std::monostate{};
}

}  // namespace

Result<Parts> parts_for(const std::string& data_directory, const std::vector<AnyRow>& rows) {
  const hardware::Catalogue catalogue(data_directory);
  Parts parts;
  parts.data_directory = data_directory;
  for (const auto& row : rows) {
    ORRERY_TRY(added, add_parts(parts, catalogue, data_directory, row));
    (void)added;
  }
  return parts;
}

void fill_nodes(std::vector<hardware::NetworkDimension>& dimensions, std::int64_t gpus) {
  if (dimensions.size() == 1) { dimensions.front().size = gpus; }
  std::int64_t rest = gpus;
  for (std::size_t i = 0; i + 1 < dimensions.size() && rest > dimensions[i].size; ++i) {
    std::int64_t size = dimensions[i].size;
    while (rest % size != 0) { --size; }
    dimensions[i].bandwidth = dimensions[i].bandwidth_among(size);
    dimensions[i].size = size;
    rest /= size;
  }
}

Skippable<workload::Model> model_of(const NetworkColumns& row, std::int64_t longest, const Parts& parts) {
  const ModelFacts& facts = facts_of(row);
  workload::Model model = facts.catalogue.empty()
                              ? sized(facts, row, longest)
                              : from_catalogue(row, parts.models.find(facts.catalogue)->second, longest);
  model.name = row.model;
  if (const auto wrong = workload::inconsistency(model)) { return skip(wrong->message); }
  return workload::completed(std::move(model));
}

std::string taken_as(std::string_view text, Precision precision) {
  const auto named = formats_named(text);
  if (named.empty() || std::find(named.begin(), named.end(), precision) != named.end()) { return {}; }
  return fmt::format("{} -> {}", text, hardware::name_of(precision));
}

Skippable<Precision> precision_of(std::string_view text, const StackFacts& defaults,
                                  const hardware::Accelerator& accelerator) {
  if (text.empty()) {
    const bool usual = accelerator.peak(defaults.precision) > FlopsPerSecond(0);
    return gemm_format({usual ? defaults.precision : Precision::bf16}, accelerator);
  }
  const auto named = formats_named(text);
  if (named.empty()) { return skip(fmt::format("precision: unknown number format {}", quote(text))); }
  return gemm_format(named, accelerator);
}

hardware::Accelerator accelerator_of(const MachineFacts& machine, const Parts& parts) {
  hardware::Accelerator accelerator = parts.clusters.find(machine.cluster)->second.accelerator;
  change_memory(accelerator, machine);
  return accelerator;
}

Skippable<hardware::Cluster> cluster_of(const MachineColumns& row, const Parts& parts) {
  const MachineFacts* machine = machine_of(row.gpu_type);
  ORRERY_ASSERT(machine != nullptr && row.gpus);
  constexpr double kGiga = 1e9;
  hardware::Cluster cluster = parts.clusters.find(machine->cluster)->second;
  cluster.accelerator = accelerator_of(*machine, parts);
  auto& dimensions = cluster.dimensions;
  const bool has_domain = dimensions.size() > 1;  // else every device is its own node
  if (machine->hosts_share_domain) {
    fill_domains(dimensions.front(), *row.gpus);
  } else if (row.gpus_per_node && has_domain) {
    dimensions.front().size = *row.gpus_per_node;
  }
  if (row.intra_bw_GBps && has_domain) { dimensions.front().bandwidth = BytesPerSecond(*row.intra_bw_GBps * kGiga); }
  for (std::size_t i = has_domain ? 1 : 0; i < dimensions.size() && row.nic_bw_GBps_per_gpu; ++i) {
    dimensions[i].bandwidth = BytesPerSecond(*row.nic_bw_GBps_per_gpu * kGiga);
  }
  fill_nodes(dimensions, *row.gpus);
  auto scaled = hardware::scaled(std::move(cluster), *row.gpus);
  if (!scaled) { return skip(scaled.error().diagnostics.front().message); }
  return std::move(*scaled);
}

}  // namespace orrery::validate
