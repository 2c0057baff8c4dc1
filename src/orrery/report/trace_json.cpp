#include <nlohmann/json.hpp>

#include "orrery/report/trace.hpp"

namespace orrery::report {

namespace {

using Json = nlohmann::ordered_json;  // keys stay in the order of the contract

constexpr double kNanoseconds = 1e9;  // of a second; dividing keeps 150 us at 0.00015

// Names come from files and may be no UTF-8: they must not stop a report.
std::string document(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json counts_json(const results::Counts& counts) {
  Json json = Json::object();
  for (const auto& [name, count] : counts) { json[name] = count; }
  return json;
}

Json file_json(const results::TraceFile& file) {
  return {{"file", file.file},
          {"format", file.format},
          {"schema", file.schema.empty() ? Json(nullptr) : Json(file.schema)},
          {"nodes", file.nodes}};
}

void add_rest(Json& json, const results::TraceFile& file) {
  json["size_B"] = file.size_B;
  json["compression"] = file.compression;
  json["claimed_version"] = file.claimed_version.empty() ? Json(nullptr) : Json(file.claimed_version);
  json["complete"] = file.complete;
  json["notes"] = file.notes;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::string key_of(graph::Problem problem) {
  std::string key(name_of(problem));
  for (char& c : key) { c = c == ' ' || c == '-' ? '_' : c; }
  return key;
}

Json findings_json(const std::vector<graph::Finding>& findings) {
  Json json = Json::array();
  for (const graph::Finding& finding : findings) {
    Json examples = Json::array();
    for (const graph::Example& example : finding.examples) {
      examples.push_back({{"rank", or_null(example.rank)},
                          {"node", or_null(example.node)},
                          {"offset_B", or_null(example.offset)},
                          {"message", example.message}});
    }
    json.push_back({{"problem", key_of(finding.problem)},
                    {"unsound", finding.unsound},
                    {"count", finding.count},
                    {"examples", std::move(examples)}});
  }
  return json;
}

Json amount_json(const graph::Amount& amount) {
  return {{"count", amount.count},
          {"bytes_B", amount.bytes},
          {"time_s", static_cast<double>(amount.time_ns) / kNanoseconds}};
}

Json amounts_json(const std::vector<graph::NamedAmount>& amounts) {
  Json json = Json::object();
  for (const auto& [name, amount] : amounts) { json[name] = amount_json(amount); }
  return json;
}

Json groups_json(const std::vector<graph::GroupAmount>& groups) {
  Json json = Json::array();
  for (const graph::GroupAmount& group : groups) {
    Json one = {{"group", or_null(group.name)}, {"ranks", or_null(group.ranks)}};
    one.update(amount_json(group.amount));
    json.push_back(std::move(one));
  }
  return json;
}

Json path_json(const std::optional<graph::CriticalPath>& path) {
  if (!path) { return nullptr; }
  Json longest = Json::array();
  for (const graph::PathNode& node : path->longest) {
    longest.push_back({{"node", node.id},
                       {"name", node.name},
                       {"type", graph::type_text(node.type)},
                       {"time_s", static_cast<double>(node.time_ns) / kNanoseconds}});
  }
  return {{"time_s", static_cast<double>(path->time_ns) / kNanoseconds},
          {"nodes", path->nodes},
          {"by_type", amounts_json(path->by_type)},
          {"longest", std::move(longest)}};
}

Json degrees_json(const graph::Degrees& degrees) {
  return {{"roots", degrees.roots},
          {"leaves", degrees.leaves},
          {"most_parents", {{"node", degrees.most_parents_id}, {"count", degrees.most_parents}}},
          {"most_children", {{"node", degrees.most_children_id}, {"count", degrees.most_children}}},
          {"levels", degrees.levels}};
}

}  // namespace

std::string trace_info_json(const results::TraceInfo& info) {
  Json json = {{"schema", "orrery.trace-info/1"}, {"files", Json::array()}};
  for (const auto& file : info.files) {
    Json one = file_json(file.file);
    one["by_type"] = counts_json(file.by_type);
    one["data_deps"] = file.data_deps;
    one["ctrl_deps"] = file.ctrl_deps;
    one["collectives"] = counts_json(file.collectives);
    add_rest(one, file.file);
    one["groups"] = file.groups;
    json["files"].push_back(std::move(one));
  }
  return document(json);
}

std::string trace_check_json(const results::TraceCheck& check) {
  Json json = {{"schema", "orrery.trace-check/1"}, {"sound", check.sound()}, {"files", Json::array()}};
  for (const auto& file : check.files) {
    Json one = file_json(file.file);
    one["rank"] = or_null(file.rank);
    one["sound"] = file.sound();
    add_rest(one, file.file);
    one["findings"] = findings_json(file.findings);
    json["files"].push_back(std::move(one));
  }
  json["jobs"] = Json::array();
  for (const auto& job : check.jobs) {
    json["jobs"].push_back(
        {{"job", job.name}, {"ranks", job.ranks}, {"sound", job.sound()}, {"findings", findings_json(job.findings)}});
  }
  return document(json);
}

std::string trace_stats_json(const results::TraceStats& stats) {
  Json json = {{"schema", "orrery.trace-stats/1"}, {"files", Json::array()}};
  for (const auto& [file, statistics] : stats.files) {
    Json one = file_json(file);
    one["data_deps"] = statistics.data_deps;
    one["ctrl_deps"] = statistics.ctrl_deps;
    one["with_duration"] = statistics.timed;
    one["with_start"] = statistics.started;
    one["span_s"] = statistics.span_ns ? Json(static_cast<double>(*statistics.span_ns) / kNanoseconds) : Json(nullptr);
    one["all"] = amount_json(statistics.all);
    one["by_type"] = amounts_json(statistics.by_type);
    one["by_collective"] = amounts_json(statistics.by_collective);
    one["by_group"] = groups_json(statistics.by_group);
    one["by_name"] = amounts_json(statistics.by_name);
    one["degrees"] = degrees_json(statistics.degrees);
    one["critical_path"] = path_json(statistics.critical_path);
    add_rest(one, file);
    json["files"].push_back(std::move(one));
  }
  return document(json);
}

std::string trace_diff_json(const results::TraceDiff& diff) {
  const graph::Difference& found = diff.difference;
  Json json = {{"schema", "orrery.trace-diff/1"}, {"same", found.none()}};
  for (const auto& [key, file] : {std::pair("a", &diff.a), {"b", &diff.b}}) {
    json[key] = file_json(*file);
    add_rest(json[key], *file);
  }
  json["matched"] = found.matched;
  json["metadata"] = found.metadata;
  json["changed"] = found.changed;
  json["only_in_a"] = found.only_in_a;
  json["only_in_b"] = found.only_in_b;
  json["first"] = Json::array();
  for (const graph::DifferingNode& node : found.first) {
    json["first"].push_back({{"kind", name_of(node.kind)},
                             {"node_a", or_null(node.a)},
                             {"node_b", or_null(node.b)},
                             {"name", node.name},
                             {"what", node.what}});
  }
  return document(json);
}

}  // namespace orrery::report
