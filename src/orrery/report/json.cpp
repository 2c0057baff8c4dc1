#include "orrery/report/json.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <variant>

#include <nlohmann/json.hpp>

namespace orrery::report {

namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order of the contract

// Names may hold bytes of a user's path that are not UTF-8: they must not stop a report.
std::string document(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json breakdown_json(const results::Breakdown& breakdown) {
  return {{"compute", breakdown.compute.value()},
          {"recompute", breakdown.recompute.value()},
          {"exposed_comm", breakdown.exposed_comm.value()},
          {"bubble", breakdown.bubble.value()},
          {"optimizer", breakdown.optimizer.value()},
          {"offload", breakdown.offload.value()},
          {"host", breakdown.host.value()}};
}

Json group_json(const results::Estimate& estimate, std::string_view name) {
  const auto& groups = estimate.comm_by_group;
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.group == name; });
  const bool used = found != groups.end();
  return {{"total", used ? found->total.value() : 0.0}, {"exposed", used ? found->exposed.value() : 0.0}};
}

// Every group of the contract is there, at zero when the plan does not use it.
Json comm_json(const results::Estimate& estimate) {
  Json groups = Json::object();
  for (const char* name : {"tp", "pp", "dp", "ep", "cp"}) { groups[name] = group_json(estimate, name); }
  for (const auto& group : estimate.comm_by_group) {
    if (!groups.contains(group.group)) { groups[group.group] = group_json(estimate, group.group); }
  }
  return {{"total", estimate.comm_total.value()}, {"exposed", estimate.comm_exposed.value()}, {"by_group", groups}};
}

Json memory_json(const results::Memory& memory) {
  Json json = {{"weights", memory.weights.value()},
               {"gradients", memory.gradients.value()},
               {"optimizer", memory.optimizer.value()},
               {"activations", memory.activations.value()},
               {"buffers", memory.buffers.value()},
               {"kv_cache", memory.kv_cache.value()},
               {"total", memory.total().value()},
               {"capacity", memory.capacity.value()},
               {"stage", memory.stage},
               {"offloaded", memory.offloaded.value()},
               {"second_tier", memory.second_tier.value()}};
  if (memory.tables > Bytes(0)) { json["tables"] = memory.tables.value(); }
  return json;
}

Json plan_summary_json(const results::PlanSummary& plan) {
  Json json = Json::object();
  for (const auto& one : plan.values) {
    std::visit([&](const auto& value) { json[std::string(one.name)] = value; }, one.value);
  }
  return json;
}

Json inference_json(const results::Inference& inference) {
  return {{"prompt", inference.prompt},
          {"generate", inference.generate},
          {"ttft_s", inference.time_to_first_token.value()},
          {"tpot_s", inference.time_per_output_token.value()},
          {"last_token_s", inference.last_token.value()},
          {"output_tokens_per_s", inference.output_tokens_per_s},
          {"decode_tokens_per_s", inference.decode_tokens_per_s},
          {"kv_B_per_token", inference.kv_bytes_per_token.value()}};
}

Json terms_json(const std::vector<results::Term>& terms) {
  Json list = Json::array();
  for (const auto& term : terms) {
    list.push_back({{"name", term.name},
                    {"segment", term.segment},
                    {"count", term.count},
                    {"flops", term.flops.value()},
                    {"bytes", term.bytes.value()},
                    {"time_s", term.time.value()},
                    {"bound", term.bound}});
  }
  return list;
}

Json classes_json(const std::vector<results::RankClassTime>& classes) {
  Json list = Json::array();
  for (const auto& one : classes) {
    list.push_back({{"first_stage", one.first_stage},
                    {"stages", one.stages},
                    {"layers", one.layers},
                    {"busy_s", one.busy.value()},
                    {"memory_B", one.memory.value()}});
  }
  return list;
}

Json uncertainty_json(const std::optional<results::Uncertainty>& range) {
  if (!range) { return nullptr; }
  return {{"p10_s", range->p10.value()}, {"p90_s", range->p90.value()}, {"basis", range->basis}, {"kind", range->kind}};
}

Json amount_json(const std::optional<results::Expense>& expense) {
  return expense ? Json(expense->amount) : Json(nullptr);
}
Json basis_json(const std::optional<results::Expense>& expense) {
  return expense ? Json(expense->basis) : Json(nullptr);
}

// The fields that an estimate and one line of a search share, appended to `json`.
void add_estimate(Json& json, const results::Estimate& estimate) {
  json["semantics"] = "physical";
  json["feasible"] = estimate.feasible;
  json["infeasible_reason"] = estimate.feasible ? Json(nullptr) : text_or_null(estimate.infeasible_reason);
  json["devices"] = estimate.devices;
  json["step_time_s"] = estimate.step_time.value();
  json["uncertainty"] = uncertainty_json(estimate.uncertainty);
  json["samples_per_s"] = estimate.samples_per_s;
  json["tokens_per_s"] = estimate.tokens_per_s;
  json["model_flops_per_step"] = estimate.model_flops.value();
  json["mfu"] = estimate.mfu;
  json["hfu"] = estimate.hfu;
  json["breakdown_s"] = breakdown_json(estimate.breakdown);
  json["comm_s"] = comm_json(estimate);
  json["memory_B"] = memory_json(estimate.memory);
  json["plan"] = plan_summary_json(estimate.plan);
  json["model"] = estimate.model;
  json["cluster"] = estimate.cluster;
  json["stack"] = estimate.stack;
  json["precision"] = estimate.precision;
  json["global_batch"] = estimate.global_batch;
  json["seq"] = estimate.seq;
  json["task"] = estimate.task;
  json["lora"] = estimate.lora;
  json["validity"] = {{"basis", estimate.validity}, {"of", estimate.validity_note}};
  if (estimate.inference) { json["inference"] = inference_json(*estimate.inference); }
  json["hardware_flops_per_step"] = estimate.hardware_flops.value();
  json["peak_flops_per_s"] = estimate.peak.value();
  json["causal_half"] = estimate.causal_half;
  json["slowest_pace"] = estimate.slowest_pace;
  json["cost_usd_per_step"] = amount_json(estimate.cost);
  json["cost_basis"] = basis_json(estimate.cost);
  json["energy_J_per_step"] = amount_json(estimate.energy);
  json["energy_basis"] = basis_json(estimate.energy);
  json["not_modelled"] = estimate.not_modelled;
}

Json score_json(const results::FamilyScore& score) {
  const auto error = [&](double value) { return score.scored > 0 ? Json(value) : Json(nullptr); };
  return {{"rows", score.rows},
          {"predicted", score.predicted},
          {"skipped", score.skipped},
          {"mape", error(score.mape)},
          {"median_ape", error(score.median_ape)},
          {"p90_ape", error(score.p90_ape)},
          {"bias", error(score.bias)},
          {"coverage", score.ranged > 0 ? Json(static_cast<double>(score.covered) / static_cast<double>(score.ranged))
                                        : Json(nullptr)},
          {"max_ape", error(score.max_ape)},
          {"scored", score.scored},
          {"infeasible", score.infeasible}};
}

}  // namespace

std::string estimate_json(const results::Estimate& estimate, std::span<const std::string> chosen) {
  Json json = {{"schema", "orrery.estimate/1"}};
  add_estimate(json, estimate);
  json["chosen"] = std::vector<std::string>(chosen.begin(), chosen.end());
  if (!estimate.terms.empty()) { json["terms"] = terms_json(estimate.terms); }
  if (!estimate.classes.empty()) { json["classes"] = classes_json(estimate.classes); }
  return document(json);
}

namespace {

Json by_devices_json(const std::vector<results::DeviceRow>& rows) {
  Json list = Json::array();
  for (const auto& row : rows) {
    const auto known = [&](double value) { return row.feasible ? Json(value) : Json(nullptr); };
    list.push_back({{"devices", row.devices},
                    {"feasible", row.feasible},
                    {"within", row.feasible && row.within},
                    {"step_time_s", known(row.step_time.value())},
                    {"samples_per_s", known(row.samples_per_s)},
                    {"cost_usd_per_step", amount_json(row.cost)},
                    {"energy_J_per_step", amount_json(row.energy)}});
  }
  return list;
}

Json what_if_json(const std::vector<results::Flip>& flips) {
  Json list = Json::array();
  for (const auto& flip : flips) {
    Json one = {{"knob", flip.knob},
                {"direction", flip.up ? "up" : "down"},
                {"factor", flip.factor ? Json(*flip.factor) : Json(nullptr)},
                {"value", flip.factor ? Json(flip.value) : Json(nullptr)},
                {"same_until", flip.same_until},
                {"searches", flip.searches}};
    one["winner"] = flip.winner ? plan_summary_json(flip.winner->plan) : Json(nullptr);
    one["step_time_s"] = flip.winner ? Json(flip.winner->step_time.value()) : Json(nullptr);
    list.push_back(std::move(one));
  }
  return list;
}

Json ranked_json(const std::vector<results::Estimate>& estimates) {
  Json list = Json::array();
  for (const auto& estimate : estimates) {
    Json one = {{"rank", list.size() + 1}};
    add_estimate(one, estimate);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

std::string plan_json(const results::PlanSearch& search) {
  const auto& space = search.space;
  Json json = {{"schema", "orrery.plan/1"}};
  json["space"] = {
      {"points", space.points},
      {"evaluated", space.evaluated},
      {"pruned", space.pruned},
      {"feasible", space.feasible},
      {"rejected",
       {{"memory", space.rejected_memory}, {"network", space.rejected_network}, {"invalid", space.rejected_invalid}}},
      {"priced", space.priced},
      {"plans", space.plans}};
  if (!search.without_effect.empty()) { json["space"]["without_effect"] = search.without_effect; }
  json["wall_s"] = search.wall_s;
  json["points_per_s"] = search.wall_s > 0 ? Json(static_cast<double>(space.points) / search.wall_s) : Json(nullptr);
  json["best"] = ranked_json(search.best);
  if (!search.by_devices.empty()) { json["by_devices"] = by_devices_json(search.by_devices); }
  if (!search.front.empty()) { json["front"] = ranked_json(search.front); }
  json["held"] = search.held;
  json["objective"] = config::enum_name(search.objective);
  if (!search.what_if.empty()) { json["what_if"] = what_if_json(search.what_if); }
  if (!search.explanation.empty()) { json["explanation"] = search.explanation; }
  return document(json);
}

std::string sample_json(const results::Sample& sample) {
  Json json = {{"schema", "orrery.sample/1"}, {"points", sample.points}, {"seed", sample.seed}};
  json["sample"] = Json::array();
  for (const auto& point : sample.drawn) {
    Json one = {{"number", point.number}, {"verdict", point.verdict}};
    if (point.is_possible()) {
      one["step_time_s"] = point.step_time.value();
      one["memory_B"] = point.memory.value();
      one["global_batch"] = point.global_batch;
      one["plan"] = plan_summary_json(point.plan);
      one["flags"] = point.flags;
    }
    json["sample"].push_back(std::move(one));
  }
  return document(json);
}

namespace {

bool is_of(const results::Prediction& row, const results::FamilyScore& score) {
  return row.kind == score.kind && row.family == score.family;
}

// Why rows of a family have no prediction, and how many.
Json skipped_json(const results::Validation& validation, const results::FamilyScore& score) {
  Json reasons = Json::object();
  for (const auto& row : validation.predictions) {
    if (row.predicted_s || !is_of(row, score)) { continue; }
    reasons[row.skipped_reason] = reasons.value(row.skipped_reason, 0) + 1;
  }
  return reasons;
}

// What columns that do not go together were taken as, and in how many rows.
Json taken_json(const results::Validation& validation, const results::FamilyScore& score) {
  Json taken = Json::object();
  for (const auto& row : validation.predictions) {
    if (!row.predicted_s || row.taken_as.empty() || !is_of(row, score)) { continue; }
    taken[row.taken_as] = taken.value(row.taken_as, 0) + 1;
  }
  return taken;
}

Json worst_json(const results::Validation& validation, const results::FamilyScore& score) {
  Json list = Json::array();
  for (const auto& row : validation.predictions) {
    if (row.terms.empty() || !is_of(row, score)) { continue; }
    Json terms = Json::object();
    for (const auto& term : row.terms) { terms[term.name] = term.seconds; }
    list.push_back({{"id", row.id},
                    {"measured_s", *row.measured_s},
                    {"predicted_s", *row.predicted_s},
                    {"error", *row.signed_error()},
                    {"terms_s", std::move(terms)}});
  }
  return list;
}

}  // namespace

std::string validation_json(const results::Validation& validation) {
  Json json = {{"schema", "orrery.validate/1"}, {"families", Json::array()}};
  for (const auto& score : validation.families) {
    Json one = {{"kind", score.kind}, {"family", score.family}};
    one.update(score_json(score));
    one["skipped_reasons"] = skipped_json(validation, score);
    if (Json taken = taken_json(validation, score); !taken.empty()) { one["taken_as"] = std::move(taken); }
    if (Json worst = worst_json(validation, score); !worst.empty()) { one["worst"] = std::move(worst); }
    json["families"].push_back(std::move(one));
  }
  json["kinds"] = Json::object();
  for (const auto& score : validation.kinds) { json["kinds"][score.kind] = score_json(score); }
  json["overall"] = score_json(validation.overall);
  return document(json);
}

std::string listing_json(std::string_view kind, std::span<const hardware::EntrySummary> entries,
                         std::span<const UnverifiedFigure> figures) {
  Json json = {{"schema", "orrery.list/1"}, {"kind", kind}, {"entries", Json::array()}};
  for (const auto& entry : entries) {
    json["entries"].push_back({{"name", entry.name},
                               {"description", entry.description},
                               {"figures", entry.figures},
                               {"unverified", entry.unverified}});
  }
  for (const auto& figure : figures) {
    json["unverified_figures"].push_back({{"entry", figure.entry}, {"figure", figure.figure}, {"why", figure.why}});
  }
  return document(json);
}

}  // namespace orrery::report
