#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"
#include "orrery/report/text.hpp"

namespace orrery::report {

namespace {

using config::format_bytes;
using config::format_count;
using config::format_flops;
using config::format_rate;
using config::format_seconds;

constexpr std::string_view kLabel = "{:<12}";  // the first column

std::string label(std::string_view name) { return fmt::format(fmt::runtime(kLabel), name); }

// Rounding errors of large sums are not shown.
bool is_negligible(Seconds part, Seconds step) { return std::abs(part.value()) <= 1e-9 * step.value(); }

double share(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

std::string bar(double fraction) {
  constexpr double kLongest = 40.0;
  const double length = std::isfinite(fraction) ? std::clamp(std::round(fraction * kLongest), 0.0, kLongest) : 0.0;
  return std::string(static_cast<std::size_t>(length), '#');
}

// "first-stage-layers 4", "head-as-layer".
std::string spelled(const results::PlanValue& value) {
  std::string name(value.name);
  std::replace(name.begin(), name.end(), '_', '-');
  const bool* const is_on = std::get_if<bool>(&value.value);
  return is_on != nullptr && *is_on ? name : fmt::format("{} {}", name, results::text_of(value));
}

// Of recommenders.
std::vector<std::string> table_degrees(const results::PlanSummary& plan) {
  std::vector<std::string> parts = {fmt::format("dp {}", plan.number("dp"))};
  if (plan.number("ep") > 1) { parts.push_back(fmt::format("ep {}", plan.number("ep"))); }
  const std::string sharding = plan.text("table_sharding");
  parts.push_back(sharding == "replicated" ? std::string("tables replicated")
                                           : fmt::format("tables sharded by {} over {} ranks", sharding,
                                                         grouped(plan.number("table_ranks"))));
  if (const std::int64_t rows = plan.number("replicate_tables_below"); rows > 0) {
    parts.push_back(fmt::format("tables below {} rows replicated", grouped(rows)));
  }
  return parts;
}

bool has_tables(const results::PlanSummary& plan) { return plan.find("table_sharding") != nullptr; }

// Degrees. Rarely used ones are shown only if they differ from 1.
std::vector<std::string> degrees(const results::PlanSummary& plan) {
  if (has_tables(plan)) { return table_degrees(plan); }
  std::vector<std::string> parts = {fmt::format("tp {}", plan.number("tp"))};
  if (plan.number("cp") > 1) { parts.push_back(fmt::format("cp {} ({})", plan.number("cp"), plan.text("cp_method"))); }
  for (const char* name : {"ep", "etp"}) {
    if (plan.number(name) != 1) { parts.push_back(fmt::format("{} {}", name, plan.number(name))); }
  }
  parts.insert(parts.end(), {fmt::format("pp {}", plan.number("pp")), fmt::format("dp {}", plan.number("dp"))});
  return parts;
}

// Choices of recommenders and derived values that the line of a plan places itself, like results::kMainChoices.
constexpr std::array<std::string_view, 4> kOtherPlaced = {"table_sharding", "table_ranks", "micro_batches",
                                                          "replicate_tables_below"};

bool is_placed(std::string_view name) {
  const auto has = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return has(results::kMainChoices) || has(kOtherPlaced);
}

void add_others(const results::PlanSummary& plan, std::vector<std::string>& parts) {
  for (const auto& value : plan.values) {
    if (value.departs && !is_placed(value.name)) { parts.push_back(spelled(value)); }
  }
}

std::string plan_lines(const results::Estimate& estimate, std::span<const std::string> chosen) {
  const auto& plan = estimate.plan;
  std::vector<std::string> parts = degrees(plan);
  const auto add = [&](std::string part) { parts.push_back(std::move(part)); };
  add_others(plan, parts);
  if (!estimate.inference) { add(fmt::format("vpp {}", plan.number("vpp"))); }
  add(fmt::format("micro-batch {} ({} per replica{})", plan.number("micro_batch"),
                  grouped(plan.number("micro_batches")), estimate.inference ? "" : " and step"));
  if (!estimate.inference) {
    const std::int64_t zero = plan.number("zero"), shard = plan.number("shard");
    add(shard > 0 ? fmt::format("zero {} in groups of {} ranks", zero, shard) : fmt::format("zero {}", zero));
    add(fmt::format("recompute {}", plan.text("recompute")));
    add(fmt::format("schedule {}", plan.text("schedule")));
  }
  if (!has_tables(plan)) { add(fmt::format("sequence-parallel {}", plan.text("sequence_parallel"))); }
  if (!estimate.inference) {
    if (!has_tables(plan)) { add(fmt::format("tp-overlap {}", plan.text("tp_overlap"))); }
    add(fmt::format("dp-overlap {}", plan.text("dp_overlap")));
  }
  for (const char* name : {"offload", "placement"}) {
    if (!plan.text(name).empty()) { add(fmt::format("{} {}", name, plan.text(name))); }
  }
  std::string text = wrapped_list(label("plan"), parts);
  if (!chosen.empty()) { text += wrapped_list(label("chosen"), chosen); }
  return text;
}

// On a cluster with several kinds of nodes.
std::string nodes_line(const results::Estimate& estimate) {
  if (estimate.nodes.empty()) { return ""; }
  std::vector<std::string> parts;
  for (const results::StageNodes& of : estimate.nodes) {
    const std::string stages = of.stages == 1
                                   ? fmt::format("stage {}", of.first_stage)
                                   : fmt::format("stages {} to {}", of.first_stage, of.first_stage + of.stages - 1);
    parts.push_back(fmt::format("{} on {}", stages, join(of.accelerators, " and ")));
  }
  return wrapped_list(label("nodes"), parts);
}

std::string single_pass_lines(const results::Estimate& estimate, TextStyle style) {
  std::string text = label("batch") + bold(format_seconds(estimate.step_time, 4), style) + ": one forward pass\n";
  text += fmt::format("{}{} samples/s\n", label("throughput"), format_count(estimate.samples_per_s));
  text += fmt::format("{}{} of {} per device\n", label("MFU"), percent(estimate.mfu), format_rate(estimate.peak));
  return text;
}

std::string serving_lines(const results::Estimate& estimate, TextStyle style) {
  if (estimate.samples_only) { return single_pass_lines(estimate, style); }
  const auto& served = *estimate.inference;
  std::string text = label("TTFT") + bold(format_seconds(served.time_to_first_token, 4), style) +
                     ": time to first token, prefill of the whole batch\n";
  if (served.generate > 1) {
    text += label("TPOT") + bold(format_seconds(served.time_per_output_token, 4), style) +
            fmt::format(": time per output token, mean; {} for the last token\n", format_seconds(served.last_token));
  }
  text += fmt::format("{}{}: prefill and decode of all sequences\n", label("batch time"),
                      format_seconds(estimate.step_time, 4));
  text += fmt::format("{}{} output tokens/s ({} during decode), {} sequences/s\n", label("throughput"),
                      format_count(served.output_tokens_per_s), format_count(served.decode_tokens_per_s),
                      format_count(estimate.samples_per_s));
  text += fmt::format("{}{} per token of a sequence, over all layers\n", label("KV cache"),
                      format_bytes(served.kv_bytes_per_token));
  if (served.state_bytes > Bytes(0)) {
    text += fmt::format("{}{} per sequence, over all layers without attention; constant\n", label("state"),
                        format_bytes(served.state_bytes));
  }
  text += fmt::format("{}{} of {} per device\n", label("MFU"), percent(estimate.mfu), format_rate(estimate.peak));
  return text;
}

std::string stragglers_line(const results::Estimate& estimate) {
  if (estimate.straggler_slowdown <= 1.0) { return ""; }
  return wrapped(label("stragglers"), fmt::format("slowest node {} slower than the median; kernel times include it",
                                                  percent(estimate.straggler_slowdown - 1.0)));
}

std::string validity_line(const results::Estimate& estimate) {
  if (estimate.validity.empty()) { return ""; }
  if (estimate.validity == "measured") {
    return wrapped(label("validity"),
                   "measured: the efficiencies of devices and links are from measurements of these products");
  }
  const std::string_view basis = estimate.validity == "generation"
                                     ? "is from measurements of other products of its generation"
                                     : "is a prior: no measurements were available";
  return wrapped(label("validity"), fmt::format("the efficiency of {} {}", estimate.validity_note, basis));
}

// Cost and energy of a step or of a batch of requests, where known.
std::string expense_lines(const results::Estimate& estimate) {
  const std::string_view unit = estimate.inference ? "per batch" : "per step";
  std::string text;
  if (estimate.cost) {
    text +=
        wrapped(label("cost"), fmt::format("{} {}, {}", dollars(estimate.cost->amount), unit, estimate.cost->basis));
  }
  if (estimate.energy) {
    text += wrapped(label("energy"),
                    fmt::format("{} {}, {}", joules(estimate.energy->amount), unit, estimate.energy->basis));
  }
  return text;
}

std::string interval_text(const results::Estimate& estimate) {
  if (!estimate.uncertainty) { return ""; }
  return fmt::format(" (80 % interval {} to {})", format_seconds(estimate.uncertainty->p10),
                     format_seconds(estimate.uncertainty->p90));
}

std::string rate_lines(const results::Estimate& estimate, TextStyle style) {
  const double devices = static_cast<double>(std::max<std::int64_t>(1, estimate.devices));
  const double seconds = estimate.step_time.value();
  const FlopsPerSecond reached(share(estimate.model_flops.value(), devices * seconds));
  std::string text =
      label("step time") + bold(format_seconds(estimate.step_time, 4), style) + interval_text(estimate) + "\n";
  text += label("throughput");
  text += estimate.samples_only ? fmt::format("{} samples/s\n", format_count(estimate.samples_per_s))
                                : fmt::format("{} tokens/s, {} sequences/s\n", format_count(estimate.tokens_per_s),
                                              format_count(estimate.samples_per_s));
  const std::string_view counted = estimate.samples_only  ? "GEMMs of the dense parts only"
                                   : estimate.causal_half ? "causal half of attention"
                                                          : "full attention";
  text += wrapped(label("MFU"), fmt::format("{}: {} of {} per device; model FLOPs {} per step ({})",
                                            percent(estimate.mfu), format_rate(reached), format_rate(estimate.peak),
                                            format_flops(estimate.model_flops), counted));
  text += fmt::format("{}{}: with recomputed FLOPs\n", label("HFU"), percent(estimate.hfu));
  return text;
}

std::string breakdown_table(const results::Estimate& estimate) {
  const auto& parts = estimate.breakdown;
  const std::vector<std::pair<const char*, Seconds>> rows = {
      {"compute", parts.compute}, {"recompute", parts.recompute}, {"exposed comm", parts.exposed_comm},
      {"bubble", parts.bubble},   {"optimizer", parts.optimizer}, {"offload", parts.offload},
      {"host", parts.host}};
  Table table;
  table.column(estimate.inference ? "batch time" : "step time", Table::Align::left)
      .column("time")
      .column("share")
      .column("", Table::Align::left);
  for (const auto& [name, time] : rows) {
    if (is_negligible(time, estimate.step_time)) { continue; }
    const double fraction = share(time.value(), estimate.step_time.value());
    table.row({fmt::format("  {}", name), format_seconds(time), percent(fraction), bar(fraction)});
  }
  return table.text();
}

std::string memory_table(const results::Memory& memory) {
  const std::vector<std::pair<const char*, Bytes>> rows = {
      {"weights", memory.weights},     {"gradients", memory.gradients},
      {"optimizer", memory.optimizer}, {"activations", memory.activations},
      {"buffers", memory.buffers},     {"KV cache", memory.kv_cache},
      {"total", memory.total()}};
  Table table;
  table.column(fmt::format("memory, stage {}", memory.stage), Table::Align::left).column("size").column("share");
  table.column("", Table::Align::left);
  for (const auto& [name, size] : rows) {
    if (size == Bytes(0)) { continue; }
    const double fraction = share(size.value(), memory.capacity.value());
    table.row({fmt::format("  {}", name), format_bytes(size), percent(fraction), bar(fraction)});
  }
  table.row({"  capacity", format_bytes(memory.capacity)});
  if (memory.tables > Bytes(0)) {
    const double fraction = share(memory.tables.value(), memory.capacity.value());
    table.row({"  tables (in total)", format_bytes(memory.tables), percent(fraction), bar(fraction)});
  }
  if (memory.offloaded > Bytes(0) && memory.second_tier > Bytes(0)) {
    const double fraction = share(memory.offloaded.value(), memory.second_tier.value());
    table.row({"  second tier", format_bytes(memory.offloaded), percent(fraction), bar(fraction)});
    for (const auto& [tensors, name] : config::EnumNames<hardware::TensorClass>::value) {
      const Bytes bytes = memory.offloaded_by[tensors];
      if (bytes == Bytes(0) || bytes == memory.offloaded) { continue; }
      table.row({fmt::format("    {}", name), format_bytes(bytes), percent(bytes / memory.second_tier), ""});
    }
  }
  return table.text();
}

std::string comm_table(const results::Estimate& estimate) {
  Table table;
  table.column("communication", Table::Align::left).column("total").column("exposed").column("of step");
  const auto add = [&](const std::string& name, Seconds total, Seconds exposed) {
    table.row({"  " + name, format_seconds(total), format_seconds(exposed),
               percent(share(exposed.value(), estimate.step_time.value()))});
  };
  for (const auto& group : estimate.comm_by_group) {
    if (group.total != Seconds(0) || group.exposed != Seconds(0)) { add(group.group, group.total, group.exposed); }
  }
  add("total", estimate.comm_total, estimate.comm_exposed);
  return table.text();
}

// Kernels and exposed communication of each pass, by group.
std::string passes_table(const results::Estimate& estimate) {
  std::vector<std::size_t> groups;  // those with exposed time
  Table table;
  table.column("pass", Table::Align::left).column("compute");
  for (std::size_t i = 0; i < estimate.comm_by_group.size(); ++i) {
    if (is_negligible(estimate.comm_by_group[i].exposed, estimate.step_time)) { continue; }
    groups.push_back(i);
    table.column("exposed " + estimate.comm_by_group[i].group);
  }
  for (const auto& pass : estimate.passes) {
    std::string name(pass.name);
    std::replace(name.begin(), name.end(), '_', ' ');
    std::vector<std::string> cells{"  " + name, format_seconds(pass.compute)};
    for (const std::size_t i : groups) { cells.push_back(format_seconds(pass.exposed[i])); }
    table.row(std::move(cells));
  }
  return table.text();
}

std::string classes_table(const std::vector<results::RankClassTime>& classes) {
  Table table;
  table.column("stages", Table::Align::left).column("layers per chunk", Table::Align::left);
  table.column("busy").column("memory");
  for (const auto& one : classes) {
    const std::string stages = one.stages == 1 ? fmt::format("{}", one.first_stage)
                                               : fmt::format("{} (and {} identical)", one.first_stage, one.stages - 1);
    table.row({stages, cut_to(one.layers, 48), format_seconds(one.busy), format_bytes(one.memory)});
  }
  return table.text(2);
}

// Segments in order; the terms of each by total time.
std::string terms_table(const std::vector<results::Term>& terms, TextStyle style) {
  std::vector<std::string> segments;
  for (const auto& term : terms) {
    if (std::find(segments.begin(), segments.end(), term.segment) == segments.end()) {
      segments.push_back(term.segment);
    }
  }
  Table table;
  table.column("operator", Table::Align::left).column("count").column("FLOPs").column("bytes");
  table.column("each").column("total").column("bound by", Table::Align::left);
  for (const auto& segment : segments) {
    std::vector<results::Term> rows;
    std::copy_if(terms.begin(), terms.end(), std::back_inserter(rows),
                 [&](const auto& t) { return t.segment == segment; });
    const auto total = [](const results::Term& term) { return term.count * term.time; };
    std::stable_sort(rows.begin(), rows.end(), [&](const auto& a, const auto& b) { return total(b) < total(a); });
    Seconds sum;
    for (const auto& row : rows) { sum += total(row); }
    table.title(bold(fmt::format("{}: {}", segment, format_seconds(sum)), style));
    for (const auto& row : rows) {
      table.row({"  " + cut_to(row.name, 26), grouped(std::llround(row.count)),
                 row.flops == Flops(0) ? "-" : format_flops(row.flops), format_bytes(row.bytes),
                 format_seconds(row.time), format_seconds(total(row)), cut_to(row.bound, 28)});
    }
  }
  return table.text(2);
}

}  // namespace

std::string expansion_text(const results::Estimate& estimate) {
  const results::Expansion& expansion = *estimate.expansion;
  std::vector<std::string> parts;
  for (const auto& [tensors, name] : config::EnumNames<hardware::TensorClass>::value) {
    if (const Bytes bytes = expansion.bytes[tensors]; bytes > Bytes(0)) {
      parts.push_back(fmt::format("{} of {}", format_bytes(bytes), name));
    }
  }
  return fmt::format("expansion {}: {} in the second tier ({})", config::enum_name(expansion.rule),
                     format_bytes(estimate.memory.offloaded), join(parts, ", "));
}

std::string estimate_text(const results::Estimate& estimate, std::span<const std::string> chosen, TextStyle style) {
  std::string text = job_header(estimate, style);
  if (!estimate.feasible) {
    text += red("DOES NOT FIT", style) + ": " + printable(results::why_infeasible(estimate)) + "\n";
  }
  for (const std::string& warning : estimate.warnings) { text += wrapped("warning: ", printable(warning)); }
  text += "\n" + plan_lines(estimate, chosen) + nodes_line(estimate);
  text += "\n" + (estimate.inference ? serving_lines(estimate, style) : rate_lines(estimate, style));
  text += expense_lines(estimate);
  text += stragglers_line(estimate);
  text += validity_line(estimate);
  text += "\n" + breakdown_table(estimate);
  text += "\n" + comm_table(estimate);
  if (!estimate.passes.empty() && !estimate.terms.empty()) { text += "\n" + passes_table(estimate); }
  text += "\n" + memory_table(estimate.memory);
  if (estimate.expansion) { text += "  " + expansion_text(estimate) + "\n"; }
  if (!estimate.classes.empty()) {
    text += "\npipeline stages with identical work\n" + classes_table(estimate.classes);
  }
  if (!estimate.terms.empty()) {
    text += "\noperators of the critical rank per step\n" + terms_table(estimate.terms, style);
  }
  if (!estimate.not_modelled.empty()) {
    text += "\n" + dim(wrapped("not modelled: ", join(estimate.not_modelled, "; ")), style);
  }
  return text;
}

std::string comparison_text(const results::Comparison& comparison) {
  std::string text = "\nthe other plan, against this one\n";
  for (const auto& sentence : comparison.difference) { text += wrapped("- ", printable(sentence)); }
  if (!comparison.chosen.empty()) { text += wrapped("  chosen for it: ", join(comparison.chosen, "; ")); }
  return text;
}

}  // namespace orrery::report
