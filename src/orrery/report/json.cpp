#include "orrery/report/json.hpp"

#include <algorithm>
#include <optional>
#include <variant>

#include "orrery/config/json.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/report/estimate_parts.hpp"
#include "orrery/report/json_fields.hpp"

namespace orrery::report {

namespace {

using config::add_fields;
using config::add_item;
using config::json_document;
using config::json_list;
using config::json_object;
using config::JsonValue;
using config::Node;
using config::null_node;
using config::sequence_node;

Node breakdown_json(const results::Breakdown& breakdown) {
  TreeSink sink;
  write_breakdown(sink, breakdown);
  return sink.take();
}

Node comm_json(const results::Estimate& estimate) {
  TreeSink sink;
  write_communication(sink, estimate);
  return sink.take();
}

Node passes_json(const results::Estimate& estimate) {
  TreeSink sink;
  write_passes(sink, estimate);
  return sink.take();
}

Node memory_json(const results::Memory& memory) {
  TreeSink sink;
  write_memory(sink, memory);
  return sink.take();
}

Node expansion_json(const results::Expansion& expansion) {
  Node bytes = json_object({});
  for (const auto& [tensors, name] : config::EnumNames<hardware::TensorClass>::value) {
    config::set_field(bytes, std::string(name), config::JsonValue(expansion.bytes[tensors].value()));
  }
  return json_object({{"rule", config::enum_name(expansion.rule)}, {"second_tier_B", bytes}});
}

Node plan_summary_json(const results::PlanSummary& plan) {
  TreeSink sink;
  write_plan(sink, plan);
  return sink.take();
}

Node inference_json(const results::Inference& inference) {
  return json_object({{"prompt", inference.prompt},
                      {"generate", inference.generate},
                      {"ttft_s", inference.time_to_first_token},
                      {"tpot_s", inference.time_per_output_token},
                      {"last_token_s", inference.last_token},
                      {"output_tokens_per_s", inference.output_tokens_per_s},
                      {"decode_tokens_per_s", inference.decode_tokens_per_s},
                      {"kv_B_per_token", inference.kv_bytes_per_token},
                      {"state_B_per_sequence", inference.state_bytes}});
}

Node groups_json(const std::vector<results::GroupShape>& groups) {
  Node list = sequence_node();
  for (const auto& group : groups) {
    Node extents = sequence_node();
    for (const auto& extent : group.extents) {
      add_item(extents, json_object({{"dimension", extent.dimension}, {"size", extent.members}}));
    }
    add_item(list, json_object({{"group", group.group},
                                {"size", group.size},
                                {"regular", group.regular},
                                {"extents", std::move(extents)}}));
  }
  return list;
}

Node terms_json(const std::vector<results::Term>& terms) {
  Node list = sequence_node();
  for (const auto& term : terms) {
    add_item(list, json_object({{"name", term.name},
                                {"segment", term.segment},
                                {"count", term.count},
                                {"flops", term.flops},
                                {"bytes", term.bytes},
                                {"time_s", term.time},
                                {"bound", term.bound}}));
  }
  return list;
}

Node classes_json(const std::vector<results::RankClassTime>& classes) {
  Node list = sequence_node();
  for (const auto& one : classes) {
    add_item(list, json_object({{"first_stage", one.first_stage},
                                {"stages", one.stages},
                                {"layers", one.layers},
                                {"busy_s", one.busy},
                                {"memory_B", one.memory}}));
  }
  return list;
}

Node nodes_json(const std::vector<results::StageNodes>& nodes) {
  Node list = sequence_node();
  for (const results::StageNodes& of : nodes) {
    add_item(list,
             json_object({{"first_stage", of.first_stage}, {"stages", of.stages}, {"accelerators", of.accelerators}}));
  }
  return list;
}

Node uncertainty_json(const std::optional<results::Uncertainty>& range) {
  if (!range) { return null_node(); }
  return json_object({{"p10_s", range->p10}, {"p90_s", range->p90}, {"basis", range->basis}, {"kind", range->kind}});
}

JsonValue amount_json(const std::optional<results::Expense>& expense) {
  return expense ? JsonValue(expense->amount) : JsonValue(nullptr);
}
JsonValue basis_json(const std::optional<results::Expense>& expense) {
  return expense ? JsonValue(expense->basis) : JsonValue(nullptr);
}

// Appends the fields that an estimate and one plan of a search have in common.
void add_estimate(Node& json, const results::Estimate& estimate) {
  add_fields(json, {{"semantics", "physical"}});
  add_feasibility(json, estimate);
  add_fields(json, {{"devices", estimate.devices},
                    {"step_time_s", estimate.step_time},
                    {"uncertainty", uncertainty_json(estimate.uncertainty)}});
  add_rates(json, estimate);
  add_fields(
      json,
      {{"hfu", estimate.hfu}, {"breakdown_s", breakdown_json(estimate.breakdown)}, {"comm_s", comm_json(estimate)}});
  if (!estimate.passes.empty()) { add_fields(json, {{"passes_s", passes_json(estimate)}}); }
  add_fields(json, {{"memory_B", memory_json(estimate.memory)},
                    {"plan", plan_summary_json(estimate.plan)},
                    {"groups", groups_json(estimate.groups)},
                    {"model", estimate.model},
                    {"cluster", estimate.cluster},
                    {"stack", estimate.stack},
                    {"precision", estimate.precision},
                    {"global_batch", estimate.global_batch},
                    {"seq", estimate.seq},
                    {"task", estimate.task},
                    {"lora", estimate.lora},
                    {"validity", json_object({{"basis", estimate.validity}, {"of", estimate.validity_note}})}});
  if (!estimate.nodes.empty()) { add_fields(json, {{"nodes", nodes_json(estimate.nodes)}}); }
  const auto add_given = [&](const char* key, const std::string& format) {
    if (!format.empty()) { add_fields(json, {{key, format}}); }
  };
  add_given("weight_format", estimate.weight_format);
  add_given("kv_format", estimate.kv_format);
  add_given("attention_precision", estimate.attention_precision);
  add_given("quantized", estimate.quantized);
  add_given("fp8_recipe", estimate.fp8_recipe);
  add_given("optimizer", estimate.optimizer);
  add_given("padding", estimate.padding);
  if (estimate.expansion) { add_fields(json, {{"expansion", expansion_json(*estimate.expansion)}}); }
  if (estimate.images > 0) { add_fields(json, {{"images", estimate.images}, {"image_size", estimate.image_size}}); }
  if (estimate.inference) { add_fields(json, {{"inference", inference_json(*estimate.inference)}}); }
  add_fields(json, {{"hardware_flops_per_step", estimate.hardware_flops},
                    {"peak_flops_per_s", estimate.peak},
                    {"causal_half", estimate.causal_half},
                    {"slowest_pace", estimate.straggler_slowdown},
                    {"cost_usd_per_step", amount_json(estimate.cost)},
                    {"cost_basis", basis_json(estimate.cost)},
                    {"energy_J_per_step", amount_json(estimate.energy)},
                    {"energy_basis", basis_json(estimate.energy)},
                    {"not_modelled", estimate.not_modelled},
                    {"warnings", estimate.warnings}});
}

}  // namespace

EstimateParts estimate_parts(const results::Estimate& estimate) {
  EstimateParts parts;
  LineSink plan, breakdown, comm, memory, passes;
  write_plan(plan, estimate.plan);
  write_breakdown(breakdown, estimate.breakdown);
  write_communication(comm, estimate);
  write_memory(memory, estimate.memory);
  parts.plan = plan.take();
  parts.breakdown = breakdown.take();
  parts.comm = comm.take();
  parts.memory = memory.take();
  if (estimate.passes.empty()) { return parts; }
  write_passes(passes, estimate);
  parts.passes = passes.take();
  return parts;
}

std::string estimate_json(const results::Estimate& estimate, std::span<const std::string> chosen,
                          const std::optional<results::Comparison>& against) {
  Node json = json_object({{"schema", "orrery.estimate/1"}});
  add_estimate(json, estimate);
  add_fields(json, {{"chosen", chosen}});
  if (!estimate.terms.empty()) { add_fields(json, {{"terms", terms_json(estimate.terms)}}); }
  if (!estimate.classes.empty()) { add_fields(json, {{"classes", classes_json(estimate.classes)}}); }
  if (against) {
    Node other = json_object({});
    add_estimate(other, against->other);
    add_fields(other, {{"chosen", against->chosen}, {"difference", against->difference}});
    add_fields(json, {{"against", std::move(other)}});
  }
  return json_document(json);
}

namespace {

Node by_devices_json(const std::vector<results::DeviceRow>& rows) {
  Node list = sequence_node();
  for (const auto& row : rows) {
    const auto known = [&](JsonValue value) { return row.feasible ? std::move(value) : JsonValue(nullptr); };
    add_item(list, json_object({{"devices", row.devices},
                                {"feasible", row.feasible},
                                {"impossible", row.impossible.empty() ? JsonValue(nullptr) : JsonValue(row.impossible)},
                                {"within", row.feasible && row.within},
                                {"step_time_s", known(row.step_time)},
                                {"samples_per_s", known(row.samples_per_s)},
                                {"cost_usd_per_step", amount_json(row.cost)},
                                {"energy_J_per_step", amount_json(row.energy)}}));
  }
  return list;
}

Node space_json(const results::PlanSearch& search) {
  const auto& space = search.space;
  Node json = json_object({{"points", space.points},
                           {"evaluated", space.evaluated},
                           {"pruned", space.pruned},
                           {"feasible", space.feasible},
                           {"rejected", json_object({{"memory", space.rejected_memory},
                                                     {"network", space.rejected_network},
                                                     {"invalid", space.rejected_invalid}})},
                           {"priced", space.priced},
                           {"plans", space.plans}});
  if (!search.without_effect.empty()) { add_fields(json, {{"without_effect", search.without_effect}}); }
  return json;
}

Node what_if_json(const std::vector<results::Flip>& flips) {
  Node list = sequence_node();
  for (const auto& flip : flips) {
    Node one = json_object({{"knob", flip.knob},
                            {"direction", flip.up ? "up" : "down"},
                            {"factor", flip.factor},
                            {"value", flip.factor ? JsonValue(flip.value) : JsonValue(nullptr)},
                            {"same_until", flip.same_until},
                            {"searches", flip.searches}});
    add_fields(one, {{"winner", flip.winner ? plan_summary_json(flip.winner->plan) : null_node()},
                     {"step_time_s", flip.winner ? JsonValue(flip.winner->step_time) : JsonValue(nullptr)}});
    add_item(list, std::move(one));
  }
  return list;
}

}  // namespace

namespace {

// The estimate of the plan that needs the least memory, what it lacks, and the changes after which a plan fits.
Node nearest_json(const results::NearestPlan& nearest) {
  Node json = json_object({{"lacks_B", nearest.need - nearest.capacity}});
  add_fields(json, {{"fits_with", json_list(nearest.changes, [](const results::FittingChange& change) {
                       return json_object({{"flags", change.flags}, {"memory_B", change.need}});
                     })}});
  add_estimate(json, nearest.estimate);
  return json;
}

}  // namespace

std::string plan_json(const results::PlanSearch& search) {
  const auto add_one = [](Node& one, const auto& estimate) { add_estimate(one, estimate); };
  Node json = json_object({{"schema", "orrery.plan/1"}});
  add_fields(json, {{"space", space_json(search)}});
  add_search_speed(json, search.space.points, search.wall_s);
  add_fields(json, {{"best", ranked_json(search.best, add_one)}});
  if (!search.by_devices.empty()) { add_fields(json, {{"by_devices", by_devices_json(search.by_devices)}}); }
  if (!search.front.empty()) { add_fields(json, {{"front", ranked_json(search.front, add_one)}}); }
  add_fields(json, {{"not_searched", search.not_searched}, {"objective", config::enum_name(search.objective)}});
  if (!search.campaigns.empty()) {
    add_fields(json, {{"campaigns", json_list(search.campaigns, [](const results::PlanCampaign& campaign) {
                         return json_object({{"days", campaign.days},
                                             {"ettr", campaign.ettr},
                                             {"usd", campaign.usd},
                                             {"kwh", campaign.kwh},
                                             {"co2_kg", campaign.co2_kg}});
                       })}});
  }
  if (search.nearest) { add_fields(json, {{"nearest", nearest_json(*search.nearest)}}); }
  if (!search.what_if.empty()) { add_fields(json, {{"what_if", what_if_json(search.what_if)}}); }
  if (!search.explanation.empty()) { add_fields(json, {{"explanation", search.explanation}}); }
  return json_document(json);
}

std::string sample_json(const results::Sample& sample) {
  Node json = json_object({{"schema", "orrery.sample/1"}, {"points", sample.points}, {"seed", sample.seed}});
  Node points = sequence_node();
  for (const auto& point : sample.sampled) {
    Node one = json_object({{"number", point.number}, {"verdict", point.verdict}});
    if (point.is_possible()) {
      add_fields(one, {{"step_time_s", point.step_time},
                       {"memory_B", point.memory},
                       {"global_batch", point.global_batch},
                       {"plan", plan_summary_json(point.plan)},
                       {"flags", point.flags}});
    }
    add_item(points, std::move(one));
  }
  add_fields(json, {{"sample", std::move(points)}});
  return json_document(json);
}

std::string listing_json(std::string_view kind, std::span<const hardware::EntrySummary> entries,
                         std::span<const UnverifiedFigure> figures) {
  Node json = json_object({{"schema", "orrery.list/1"}, {"kind", kind}});
  add_fields(json, {{"entries", json_list(entries, [](const hardware::EntrySummary& entry) {
                       return json_object({{"name", entry.name},
                                           {"description", entry.description},
                                           {"figures", entry.figures},
                                           {"unverified", entry.unverified}});
                     })}});
  if (figures.empty()) { return json_document(json); }
  add_fields(json, {{"unverified_figures", json_list(figures, [](const UnverifiedFigure& figure) {
                       return json_object({{"entry", figure.entry}, {"figure", figure.figure}, {"why", figure.why}});
                     })}});
  return json_document(json);
}

std::string errors_json(const Failure& failure) {
  Node list = sequence_node();
  for (const Diagnostic& one : failure.diagnostics) {
    const auto number = [](int value) { return value > 0 ? JsonValue(value) : JsonValue(nullptr); };
    add_item(list, json_object({{"file", config::text_or_null(one.place.file)},
                                {"line", number(one.place.line)},
                                {"column", number(one.place.column)},
                                {"path", config::text_or_null(one.place.path)},
                                {"message", one.message},
                                {"text", one.text()}}));
  }
  return json_document(json_object({{"schema", "orrery.errors/1"}, {"errors", std::move(list)}}));
}

}  // namespace orrery::report
