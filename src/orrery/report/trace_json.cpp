#include "orrery/config/json.hpp"
#include "orrery/report/trace.hpp"

namespace orrery::report {

namespace {

using config::add_fields;
using config::json_document;
using config::json_list;
using config::json_object;
using config::JsonValue;
using config::Node;
using config::text_or_null;

constexpr double kNanoseconds = 1e9;  // of a second; dividing keeps 150 us at 0.00015

Node counts_json(const results::Counts& counts) {
  Node json = json_object({});
  for (const auto& [name, count] : counts) { set_field(json, name, count); }
  return json;
}

Node file_json(const results::TraceFile& file) {
  return json_object(
      {{"file", file.file}, {"format", file.format}, {"schema", text_or_null(file.schema)}, {"nodes", file.nodes}});
}

void add_rest(Node& json, const results::TraceFile& file) {
  add_fields(json, {{"size_B", file.size_B},
                    {"compression", file.compression},
                    {"claimed_version", text_or_null(file.claimed_version)},
                    {"complete", file.complete},
                    {"notes", file.notes}});
}

std::string key_of(graph::Problem problem) {
  std::string key(name_of(problem));
  for (char& c : key) { c = c == ' ' || c == '-' ? '_' : c; }
  return key;
}

Node example_json(const graph::Example& example) {
  return json_object(
      {{"rank", example.rank}, {"node", example.node}, {"offset_B", example.offset}, {"message", example.message}});
}

Node finding_json(const graph::Finding& finding) {
  return json_object({{"problem", key_of(finding.problem)},
                      {"unsound", finding.unsound},
                      {"count", finding.count},
                      {"examples", json_list(finding.examples, example_json)}});
}

double seconds(std::uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / kNanoseconds; }

void add_amount(Node& json, const graph::Amount& amount) {
  add_fields(json, {{"count", amount.count}, {"bytes_B", amount.bytes}, {"time_s", seconds(amount.time_ns)}});
}

Node amount_json(const graph::Amount& amount) {
  Node json = json_object({});
  add_amount(json, amount);
  return json;
}

Node amounts_json(const std::vector<graph::NamedAmount>& amounts) {
  Node json = json_object({});
  for (const auto& [name, amount] : amounts) { set_field(json, name, amount_json(amount)); }
  return json;
}

Node group_traffic_json(const graph::GroupAmount& group) {
  Node json = json_object({{"group", group.name}, {"ranks", group.ranks}});
  add_amount(json, group.amount);
  return json;
}

Node path_node_json(const graph::PathNode& node) {
  return json_object({{"node", node.id},
                      {"name", node.name},
                      {"type", graph::type_text(node.type)},
                      {"time_s", seconds(node.time_ns)}});
}

Node path_json(const graph::CriticalPath& path) {
  return json_object({{"time_s", seconds(path.time_ns)},
                      {"nodes", path.nodes},
                      {"by_type", amounts_json(path.by_type)},
                      {"longest", json_list(path.longest, path_node_json)}});
}

Node degrees_json(const graph::Degrees& degrees) {
  return json_object(
      {{"roots", degrees.roots},
       {"leaves", degrees.leaves},
       {"most_parents", json_object({{"node", degrees.most_parents_id}, {"count", degrees.most_parents}})},
       {"most_children", json_object({{"node", degrees.most_children_id}, {"count", degrees.most_children}})},
       {"levels", degrees.levels}});
}

Node info_json(const results::TraceInfo::File& file) {
  Node json = file_json(file.file);
  add_fields(json, {{"by_type", counts_json(file.by_type)},
                    {"data_deps", file.data_deps},
                    {"ctrl_deps", file.ctrl_deps},
                    {"collectives", counts_json(file.collectives)}});
  add_rest(json, file.file);
  add_fields(json, {{"groups", file.groups}});
  return json;
}

Node check_json(const results::TraceCheck::File& file) {
  Node json = file_json(file.file);
  add_fields(json, {{"rank", file.rank}, {"sound", file.sound()}});
  add_rest(json, file.file);
  add_fields(json, {{"findings", json_list(file.findings, finding_json)}});
  return json;
}

Node job_json(const results::TraceCheck::Job& job) {
  return json_object({{"job", job.name},
                      {"ranks", job.ranks},
                      {"sound", job.sound()},
                      {"findings", json_list(job.findings, finding_json)}});
}

Node statistics_json(const results::TraceStats::File& one) {
  const graph::Statistics& statistics = one.statistics;
  Node json = file_json(one.file);
  add_fields(
      json, {{"data_deps", statistics.data_deps},
             {"ctrl_deps", statistics.ctrl_deps},
             {"with_duration", statistics.timed},
             {"with_start", statistics.started},
             {"span_s", statistics.span_ns ? JsonValue(seconds(*statistics.span_ns)) : JsonValue(nullptr)},
             {"all", amount_json(statistics.all)},
             {"by_type", amounts_json(statistics.by_type)},
             {"by_collective", amounts_json(statistics.by_collective)},
             {"by_group", json_list(statistics.by_group, group_traffic_json)},
             {"by_name", amounts_json(statistics.by_name)},
             {"degrees", degrees_json(statistics.degrees)},
             {"critical_path", statistics.critical_path ? path_json(*statistics.critical_path) : config::null_node()}});
  add_rest(json, one.file);
  return json;
}

Node differing_json(const graph::DifferingNode& node) {
  return json_object(
      {{"kind", name_of(node.kind)}, {"node_a", node.a}, {"node_b", node.b}, {"name", node.name}, {"what", node.what}});
}

}  // namespace

std::string trace_info_json(const results::TraceInfo& info) {
  return json_document(json_object({{"schema", "orrery.trace-info/1"}, {"files", json_list(info.files, info_json)}}));
}

std::string trace_check_json(const results::TraceCheck& check) {
  return json_document(json_object({{"schema", "orrery.trace-check/1"},
                                    {"sound", check.sound()},
                                    {"files", json_list(check.files, check_json)},
                                    {"jobs", json_list(check.jobs, job_json)}}));
}

std::string trace_stats_json(const results::TraceStats& stats) {
  return json_document(
      json_object({{"schema", "orrery.trace-stats/1"}, {"files", json_list(stats.files, statistics_json)}}));
}

std::string trace_diff_json(const results::TraceDiff& diff) {
  const graph::Difference& found = diff.difference;
  Node json = json_object({{"schema", "orrery.trace-diff/1"}, {"same", found.none()}});
  for (const auto& [key, file] : {std::pair("a", &diff.a), {"b", &diff.b}}) {
    Node one = file_json(*file);
    add_rest(one, *file);
    add_fields(json, {{key, std::move(one)}});
  }
  add_fields(json, {{"matched", found.matched},
                    {"metadata", found.metadata},
                    {"changed", found.changed},
                    {"only_in_a", found.only_in_a},
                    {"only_in_b", found.only_in_b},
                    {"first", json_list(found.first, differing_json)}});
  return json_document(json);
}

}  // namespace orrery::report
