#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/report/mad_max.hpp"

namespace orrery::report {

namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Json breakdown_json(const results::MadMaxBreakdown& parts) {
  return {{"gemm", number(parts.gemm.value())},
          {"embedding", number(parts.embedding.value())},
          {"all_to_all", number(parts.all_to_all.value())},
          {"all_reduce", number(parts.all_reduce.value())},
          {"all_gather", number(parts.all_gather.value())},
          {"reduce_scatter", number(parts.reduce_scatter.value())},
          {"exposed_comm", number(parts.exposed.value())}};
}

Json classes_json(const results::MadMaxEstimate& estimate) {
  Json classes = Json::array();
  for (const auto& one : estimate.classes) {
    classes.push_back({{"class", one.name},
                       {"strategy", one.strategy},
                       {"copies", one.copies},
                       {"shards", one.shards},
                       {"local_batch", one.local_batch}});
  }
  return classes;
}

// What rent and power come to, where the system's description knows them.
void add_expenses(Json& json, const results::MadMaxEstimate& estimate) {
  const double device_seconds = static_cast<double>(estimate.devices) * estimate.step_time.value();
  if (estimate.usd_per_device_hour > 0) {
    json["cost_usd_per_step"] = number(device_seconds / 3600.0 * estimate.usd_per_device_hour);
  }
  if (estimate.watts_per_device > 0) { json["energy_J_per_step"] = number(device_seconds * estimate.watts_per_device); }
}

Json estimate_fields(const results::MadMaxEstimate& estimate) {
  Json json;
  json["semantics"] = "mad-max";
  json["model"] = estimate.model;
  json["cluster"] = estimate.cluster;
  json["task"] = estimate.task;
  json["frozen"] = estimate.frozen;
  json["feasible"] = estimate.feasible;
  json["infeasible_reason"] = estimate.feasible ? Json(nullptr) : Json(estimate.infeasible_reason);
  json["memory_rule"] = estimate.memory_rule;
  json["devices"] = estimate.devices;
  json["global_batch"] = estimate.global_batch;
  json["seq"] = estimate.seq > 0 ? Json(estimate.seq) : Json(nullptr);
  json["strategy"] = estimate.strategy;
  json["classes"] = classes_json(estimate);
  json["step_time_s"] = number(estimate.step_time.value());
  json["samples_per_s"] = number(estimate.samples_per_s);
  json["tokens_per_s"] = number(estimate.tokens_per_s);
  json["model_flops_per_step"] = number(estimate.model_flops.value());
  json["mfu"] = number(estimate.mfu);
  json["hfu"] = number(estimate.mfu);
  json["breakdown_s"] = breakdown_json(estimate.breakdown);
  json["comm_s"] = {{"total", number(estimate.breakdown.communication().value())},
                    {"exposed", number(estimate.breakdown.exposed.value())}};
  json["memory_B"] = {{"weights", number(estimate.weights.value())},
                      {"total", number(estimate.needed.value())},
                      {"capacity", number(estimate.capacity.value())}};
  add_expenses(json, estimate);
  if (estimate.gain > 0) { json["gain"] = number(estimate.gain); }
  json["not_modelled"] = estimate.not_modelled;
  return json;
}

}  // namespace

std::string mad_max_json(const results::MadMaxEstimate& estimate) {
  Json json = {{"schema", "orrery.estimate/1"}};
  json.update(estimate_fields(estimate));
  return text_of(json);
}

std::string mad_max_plan_json(const results::MadMaxSearch& search) {
  Json json = {{"schema", "orrery.plan/1"}, {"semantics", "mad-max"}};
  json["space"] = {{"points", search.points},
                   {"evaluated", search.points},
                   {"priced", search.evaluated},
                   {"pruned", 0},
                   {"feasible", search.feasible},
                   {"rejected", {{"memory", search.over_memory}, {"network", 0}, {"batch", search.uneven_batch}}}};
  json["wall_s"] = search.wall_s;
  json["points_per_s"] = search.wall_s > 0 ? Json(static_cast<double>(search.points) / search.wall_s) : Json(nullptr);
  json["baseline"] = search.has_baseline ? estimate_fields(search.baseline) : Json(nullptr);
  json["best"] = Json::array();
  for (std::size_t i = 0; i < search.best.size(); ++i) {
    Json one = {{"rank", i + 1}};
    one.update(estimate_fields(search.best[i]));
    json["best"].push_back(std::move(one));
  }
  return text_of(json);
}

std::string mad_max_timeline(const results::MadMaxEstimate& estimate) {
  constexpr double kMicroseconds = 1e6;
  const auto text = [](const std::string& value) {
    return Json(value).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  std::string events = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  events += fmt::format(R"({{"ph":"M","name":"process_name","pid":0,"args":{{"name":{}}}}},)",
                        text(estimate.model + " on " + estimate.cluster + ", every device")) +
            "\n";
  events += R"({"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"compute"}},)"
            "\n";
  events += R"({"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"communication"}})";
  for (const auto& event : estimate.events) {
    events += fmt::format(
        ",\n"
        R"({{"ph":"X","name":{},"cat":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"start_s":{},"duration_s":{}}}}})",
        text(event.name), event.operation, event.computes ? 0 : 1, event.start.value() * kMicroseconds,
        event.duration.value() * kMicroseconds, event.start.value(), event.duration.value());
  }
  return events + "\n]}\n";
}

}  // namespace orrery::report
