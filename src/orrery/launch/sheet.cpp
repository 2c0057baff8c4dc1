#include "orrery/launch/sheet.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/parallel/memory.hpp"
#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::launch {

namespace {

constexpr std::size_t kWidth = 100;

// With more accelerators than this, the innermost dimension is a rack of several hosts.
constexpr std::int64_t kMostPerHost = 16;

const char* on_off(bool on) { return on ? "on" : "off"; }

std::string offload_text(const parallel::Offload& offload) {
  std::string text;
  const auto add = [&](bool on, const char* name) {
    if (on) { text += (text.empty() ? "" : ",") + std::string(name); }
  };
  add(offload.weights, "weights");
  add(offload.activations, "activations");
  add(offload.optimizer, "optimizer");
  add(offload.tables, "tables");
  add(offload.gradients, "gradients");
  return text;
}

std::string placement_text(const parallel::Placement& placement) {
  std::string text;
  const auto add = [&](std::int8_t dimension, const char* group) {
    if (dimension >= 0) { text += fmt::format("{}{}={}", text.empty() ? "" : " ", group, dimension); }
  };
  add(placement.tp, "tp");
  add(placement.cp, "cp");
  add(placement.dp, "dp");
  add(placement.pp, "pp");
  return text;
}

}  // namespace

void Sheet::note(std::string_view flag, std::string_view text) { notes_.push_back(fmt::format("{}: {}", flag, text)); }

std::string plan_line(const parallel::Plan& plan) {
  std::string line = fmt::format("tp {}, cp {}, pp {}, dp {}, ep {}, etp {}, vpp {}, micro-batch {}, ", plan.tp,
                                 plan.cp, plan.pp, plan.dp, plan.ep, plan.etp, plan.vpp, plan.micro_batch);
  line += fmt::format("sequence-parallel {}, zero {}, ", on_off(plan.sequence_parallel), plan.zero);
  if (plan.shard > 0) { line += fmt::format("shard {}, ", plan.shard); }
  line += fmt::format("recompute {}, ", config::enum_name(plan.recompute));
  const std::string modules = parallel::text_of(*parallel::find_choice("recompute_modules"), plan);
  if (!modules.empty()) { line += fmt::format("recompute-modules {}, ", modules); }
  if (plan.recompute_layers > 0) { line += fmt::format("recompute-layers {}, ", plan.recompute_layers); }
  line += fmt::format("schedule {}, dp-overlap {}, tp-overlap {}", config::enum_name(plan.schedule),
                      on_off(plan.dp_overlap), config::enum_name(plan.tp_overlap));
  if (plan.cp > 1) { line += fmt::format(", cp-method {}", config::enum_name(plan.cp_method)); }
  if (plan.offload.any()) { line += ", offload " + offload_text(plan.offload); }
  if (plan.updates_on_host()) { line += ", optimizer-device host"; }
  if (plan.first_stage_layers > 0) { line += fmt::format(", first-stage-layers {}", plan.first_stage_layers); }
  if (plan.last_stage_layers > 0) { line += fmt::format(", last-stage-layers {}", plan.last_stage_layers); }
  if (plan.embedding_as_layer) { line += ", embedding-as-layer"; }
  if (plan.head_as_layer) { line += ", head-as-layer"; }
  return line;
}

std::int64_t processes_per_node(const TrainingRun& run) { return std::min(run.devices_per_node, run.plan.devices()); }

std::int64_t nodes_of(const TrainingRun& run) {
  const std::int64_t per_node = processes_per_node(run);
  return (run.plan.devices() + per_node - 1) / per_node;
}

std::string run_line(const TrainingRun& run) {
  const std::int64_t nodes = nodes_of(run);
  const std::string model = run.model.name.empty() ? "a model" : run.model.name;
  return nodes == 1 ? fmt::format("{} on {} devices of one node", model, run.plan.devices())
                    : fmt::format("{} on {} devices ({} nodes of {})", model, run.plan.devices(), nodes,
                                  processes_per_node(run));
}

std::string comment(std::string_view text, int indent) {
  const std::string later = "#" + std::string(static_cast<std::size_t>(indent) + 1, ' ');
  std::string result, line = "#";
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.size() + 1 + word.size() > kWidth && line.size() > later.size()) {
      result += line + "\n";
      line = later.substr(0, later.size() - 1);
    }
    line += " ";
    line += word;
  }
  return result + line + "\n";
}

namespace {

// As comment(), but lines are broken after commas only.
std::string comment_items(std::string text) {
  constexpr char kGlue = '\x1f';
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ' && (i == 0 || text[i - 1] != ',')) { text[i] = kGlue; }
  }
  std::string lines = comment(text, 2);
  std::replace(lines.begin(), lines.end(), kGlue, ' ');
  return lines;
}

}  // namespace

void note_reductions(const TrainingRun& run, std::string_view tool, bool every_micro_batch, Sheet& sheet) {
  const parallel::Plan& plan = run.plan;
  if (plan.zero < 2 || plan.replicas() == 1 || parallel::micro_batches(run.job, plan) == 1) { return; }
  if (parallel::reduces_every_micro_batch(plan, run.stack) == every_micro_batch) { return; }
  if (every_micro_batch) {
    sheet.note("--reduce-every step",
               fmt::format("{} reduces sharded gradients in every micro-batch: less memory and more communication than "
                           "in the estimate",
                           tool));
  } else {
    sheet.note("--reduce-every micro-batch",
               fmt::format("{} reduces gradients once a step with pipeline stages: more memory and less communication "
                           "than in the estimate",
                           tool));
  }
}

// Before Blackwell, kernels run in the host's order only with one connection; Megatron-Core checks it, and its FSDP
// requires more than one.
std::string max_connections_line(const parallel::Plan& plan) {
  if (plan.zero >= 2) { return "unset CUDA_DEVICE_MAX_CONNECTIONS\n\n"; }
  const bool needed = plan.tp > 1 || plan.cp > 1;
  return needed ? "export CUDA_DEVICE_MAX_CONNECTIONS=1\n\n" : "";
}

std::string heading(const TrainingRun& run, std::string_view what, std::string_view source,
                    const std::vector<std::string>& notes) {
  std::string text = comment(fmt::format("{}: {}.", run_line(run), what));
  text += comment_items("plan: " + plan_line(run.plan));
  text += comment(fmt::format("options as of {}", source));
  if (notes.empty()) { return text + comment("Every setting of the plan is expressed below."); }
  text += "#\n" + comment("NOT EXPRESSED HERE, or expressed differently:");
  for (const auto& note : notes) { text += comment("- " + note, 2); }
  return text;
}

std::string bash_word(const std::string& word) {
  const bool plain = word.find_first_of(" \t\n\"'$`\\|&;<>()[]{}*?!~#") == std::string::npos;
  if (plain) { return word; }
  // The shell expands words with a variable.
  return word.find('$') == std::string::npos ? "'" + word + "'" : "\"" + word + "\"";
}

std::string bash_array(std::string_view name, const std::vector<std::string>& lines) {
  std::string text = fmt::format("{}=(\n", name);
  for (const auto& line : lines) { text += "  " + line + "\n"; }
  return text + ")\n";
}

std::vector<std::string> torchrun_arguments(const TrainingRun& run) {
  std::vector<std::string> lines{fmt::format("--nproc-per-node {}", processes_per_node(run))};
  const std::int64_t nodes = nodes_of(run);
  if (nodes == 1) { return {"--standalone", lines.front()}; }
  lines.push_back(fmt::format("--nnodes {}", nodes));
  lines.emplace_back("--node-rank \"${NODE_RANK:?}\"");
  lines.emplace_back("--master-addr \"${MASTER_ADDR:?}\"");
  lines.emplace_back("--master-port \"${MASTER_PORT:-29500}\"");
  return lines;
}

void note_placement(const TrainingRun& run, Sheet& sheet) {
  if (run.plan.placement.any()) {
    sheet.note(fmt::format("--placement \"{}\"", placement_text(run.plan.placement)),
               "ranks are numbered group by group (tp, cp, dp, pp from the innermost unless set otherwise); the order "
               "of the hosts decides which network dimension a group crosses");
  }
  if (processes_per_node(run) > kMostPerHost) {
    sheet.note("--cluster", fmt::format("a node is the innermost network dimension here, {} devices; on smaller hosts, "
                                        "start one process per device of the host and use more hosts",
                                        processes_per_node(run)));
  }
}

}  // namespace orrery::launch
