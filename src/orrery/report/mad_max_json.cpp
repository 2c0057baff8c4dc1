#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/report/json_fields.hpp"
#include "orrery/report/mad_max.hpp"

namespace orrery::report {

namespace {

using config::add_fields;
using config::json_object;
using config::json_text;
using config::JsonValue;
using config::Node;

constexpr int kIndent = 1;

Node breakdown_json(const results::MadMaxBreakdown& parts) {
  return json_object({{"gemm", parts.gemm},
                      {"embedding", parts.embedding},
                      {"all_to_all", parts.all_to_all},
                      {"all_reduce", parts.all_reduce},
                      {"all_gather", parts.all_gather},
                      {"reduce_scatter", parts.reduce_scatter},
                      {"exposed_comm", parts.exposed}});
}

Node class_json(const results::MadMaxClass& one) {
  return json_object({{"class", one.name},
                      {"strategy", one.strategy},
                      {"copies", one.copies},
                      {"shards", one.shards},
                      {"local_batch", one.local_batch}});
}

// Cost and energy, if the system has a price and a power.
void add_expenses(Node& json, const results::MadMaxEstimate& estimate) {
  const double device_seconds = static_cast<double>(estimate.devices) * estimate.step_time.value();
  if (estimate.usd_per_device_hour > 0) {
    add_fields(json, {{"cost_usd_per_step", device_seconds / 3600.0 * estimate.usd_per_device_hour}});
  }
  if (estimate.watts_per_device > 0) {
    add_fields(json, {{"energy_J_per_step", device_seconds * estimate.watts_per_device}});
  }
}

void add_estimate(Node& json, const results::MadMaxEstimate& estimate) {
  add_fields(json, {{"semantics", "mad-max"},
                    {"model", estimate.model},
                    {"cluster", estimate.cluster},
                    {"task", estimate.task},
                    {"frozen", estimate.frozen}});
  add_feasibility(json, estimate);
  add_fields(json, {{"memory_rule", estimate.memory_rule},
                    {"devices", estimate.devices},
                    {"global_batch", estimate.global_batch},
                    {"seq", estimate.seq > 0 ? JsonValue(estimate.seq) : JsonValue(nullptr)},
                    {"strategy", estimate.strategy},
                    {"classes", config::json_list(estimate.classes, class_json)},
                    {"step_time_s", estimate.step_time}});
  add_rates(json, estimate);
  add_fields(
      json,
      {{"hfu", estimate.mfu},
       {"breakdown_s", breakdown_json(estimate.breakdown)},
       {"comm_s",
        json_object({{"total", estimate.breakdown.communication()}, {"exposed", estimate.breakdown.exposed}})},
       {"memory_B",
        json_object({{"weights", estimate.weights}, {"total", estimate.needed}, {"capacity", estimate.capacity}})}});
  add_expenses(json, estimate);
  if (estimate.gain > 0) { add_fields(json, {{"gain", estimate.gain}}); }
  add_fields(json, {{"not_modelled", estimate.not_modelled}});
}

std::string on_one_line(const Node& node) {
  std::string text = config::json_document(node, 0);
  std::erase(text, '\n');
  return text;
}

Node estimate_json(const results::MadMaxEstimate& estimate) {
  Node json = json_object({});
  add_estimate(json, estimate);
  return json;
}

}  // namespace

MadMaxParts mad_max_parts(const results::MadMaxEstimate& estimate) {
  return {on_one_line(json_object({{"strategy", estimate.strategy}})), on_one_line(breakdown_json(estimate.breakdown))};
}

std::string mad_max_json(const results::MadMaxEstimate& estimate) {
  Node json = json_object({{"schema", "orrery.estimate/1"}});
  add_estimate(json, estimate);
  return config::json_document(json, kIndent);
}

std::string mad_max_plan_json(const results::MadMaxSearch& search) {
  const auto add_one = [](Node& one, const auto& estimate) { add_estimate(one, estimate); };
  Node json = json_object({{"schema", "orrery.plan/1"}, {"semantics", "mad-max"}});
  const Node rejected = json_object({{"memory", search.over_memory}, {"network", 0}, {"batch", search.uneven_batch}});
  add_fields(json, {{"space", json_object({{"points", search.points},
                                           {"evaluated", search.points},
                                           {"priced", search.evaluated},
                                           {"pruned", 0},
                                           {"feasible", search.feasible},
                                           {"rejected", rejected}})}});
  add_search_speed(json, search.points, search.wall_s);
  add_fields(json, {{"baseline", search.has_baseline ? estimate_json(search.baseline) : config::null_node()},
                    {"best", ranked_json(search.best, add_one)}});
  return config::json_document(json, kIndent);
}

std::string mad_max_timeline(const results::MadMaxEstimate& estimate) {
  constexpr double kMicroseconds = 1e6;
  std::string events = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  events += fmt::format(R"({{"ph":"M","name":"process_name","pid":0,"args":{{"name":{}}}}},)",
                        json_text(estimate.model + " on " + estimate.cluster + ", every device")) +
            "\n";
  events += R"({"ph":"M","name":"thread_name","pid":0,"tid":0,"args":{"name":"compute"}},)"
            "\n";
  events += R"({"ph":"M","name":"thread_name","pid":0,"tid":1,"args":{"name":"communication"}})";
  for (const auto& event : estimate.events) {
    events += fmt::format(
        ",\n"
        R"({{"ph":"X","name":{},"cat":"{}","pid":0,"tid":{},"ts":{},"dur":{},"args":{{"start_s":{},"duration_s":{}}}}})",
        json_text(event.name), event.operation, event.computes ? 0 : 1, event.start.value() * kMicroseconds,
        event.duration.value() * kMicroseconds, event.start.value(), event.duration.value());
  }
  return events + "\n]}\n";
}

}  // namespace orrery::report
