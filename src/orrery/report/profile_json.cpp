#include "orrery/config/json.hpp"
#include "orrery/report/profile.hpp"

namespace orrery::report {

namespace {

using config::add_fields;
using config::json_document;
using config::json_list;
using config::json_object;
using config::Node;
using profile::BusyFacts;
using profile::Facts;

void add_busy(Node& json, const BusyFacts& busy) {
  add_fields(json, {{"busy_ns", busy.busy_ns},
                    {"kernel_not_comm_ns", busy.kernel_not_comm_ns},
                    {"comm_ns", busy.comm_ns},
                    {"exposed_comm_ns", busy.exposed_comm_ns},
                    {"span_ns", busy.span_ns}});
}

Node profile_counts_json(const std::map<std::string, std::uint64_t>& counts) {
  Node json = json_object({});
  for (const auto& [name, count] : counts) { config::set_field(json, name, count); }
  return json;
}

Node kineto_streams_json(const Facts& facts) {
  Node json = json_object({});
  for (const auto& [name, stream] : facts.streams) {
    config::set_field(
        json, name, json_object({{"ops", stream.operations}, {"sum_ns", stream.sum_ns}, {"busy_ns", stream.busy_ns}}));
  }
  return json;
}

Node kineto_collectives_json(const Facts& facts) {
  Node json = json_object({});
  for (const auto& [kind, collective] : facts.collectives) {
    config::set_field(json, kind,
                      json_object({{"kernels", collective.kernels},
                                   {"sum_ns", collective.sum_ns},
                                   {"with_metadata", collective.with_metadata},
                                   {"in_bytes", collective.in_bytes},
                                   {"out_bytes", collective.out_bytes},
                                   {"groups", profile_counts_json(collective.groups)}}));
  }
  return json;
}

Node step_facts_json(const profile::StepFacts& step) {
  Node json = json_object({{"number", step.number}, {"duration_ns", step.duration_ns}, {"gpu_ops", step.operations}});
  add_busy(json, step.busy);
  return json;
}

Node kernels_json(const std::vector<profile::KernelFacts>& kernels, std::size_t most) {
  Node list = config::sequence_node();
  for (std::size_t i = 0; i < kernels.size() && i < most; ++i) {
    config::add_item(
        list, json_object({{"name", kernels[i].name}, {"count", kernels[i].count}, {"sum_ns", kernels[i].sum_ns}}));
  }
  return list;
}

Node idle_json(const profile::IdleFacts& idle) {
  return json_object({{"all_ns", idle.all_ns()},
                      {"host_ns", idle.host_ns},
                      {"host_blocked_ns", idle.blocked_ns},
                      {"profiler_ns", idle.profiler_ns},
                      {"launch_ns", idle.launch_ns},
                      {"gap_ns", idle.gap_ns},
                      {"graph_ns", idle.graph_ns},
                      {"without_call_ns", idle.without_call_ns},
                      {"unexplained_ns", idle.unexplained_ns}});
}

Node facts_json(const Facts& facts, std::size_t most) {
  Node json = json_object({{"events", facts.events},
                           {"categories", profile_counts_json(facts.categories)},
                           {"rank", facts.rank},
                           {"world_size", facts.world_size},
                           {"groups_listed", facts.groups_listed},
                           {"resolution", facts.whole_microseconds ? "us" : "ns"},
                           {"kernels", facts.kernels},
                           {"memcpy", facts.memcpy},
                           {"memset", facts.memset},
                           {"gpu_ops_linked_to_a_call", facts.linked},
                           {"gpu_ops_not_linked", facts.not_linked},
                           {"calls_that_launch_several", facts.calls_that_launch_several},
                           {"gpu_starts_before_its_call", facts.starts_before_its_call},
                           {"overlaps_inside_a_stream", facts.overlaps_inside_a_stream},
                           {"streams", kineto_streams_json(facts)},
                           {"collectives", kineto_collectives_json(facts)}});
  Node whole = json_object({});
  add_busy(whole, facts.whole);
  add_fields(json, {{"whole", whole},
                    {"steps", json_list(facts.steps, step_facts_json)},
                    {"blocking_calls", json_object({{"count", facts.blocking_calls}, {"sum_ns", facts.blocking_ns}})},
                    {"host_threads", facts.host_threads},
                    {"kernel_names", facts.kernel_names},
                    {"top_kernels", kernels_json(facts.top_kernels, most)},
                    {"top_operators", kernels_json(facts.top_operators, most)}});
  return json;
}

}  // namespace

std::string profile_stats_json(const std::vector<ProfileFacts>& profiles, std::size_t most) {
  Node by_file = json_object({});
  Node files = config::sequence_node();
  for (const ProfileFacts& one : profiles) {
    Node facts = facts_json(one.facts, most);
    config::set_field(facts, "idle", idle_json(one.idle));
    config::add_item(files,
                     json_object({{"file", one.file}, {"format", "kineto"}, {"kineto", facts}, {"notes", one.notes}}));
    config::set_field(by_file, one.file, facts);
  }
  return json_document(json_object({{"schema", "orrery.trace-stats/1"}, {"files", files}, {"kineto", by_file}}));
}

std::string profile_link_json(const ProfileLink& link) {
  Node unlinked = config::sequence_node();
  for (const std::uint64_t id : link.unlinked) { config::add_item(unlinked, id); }
  return json_document(json_object({{"schema", "orrery.trace-link/1"},
                                    {"host", link.host},
                                    {"device", link.device},
                                    {"host_schema", link.schema},
                                    {"linked_by", link.by_id ? "record function id" : "structure"},
                                    {"operators", link.operators},
                                    {"linked", link.linked},
                                    {"device_ops", link.device_operations},
                                    {"device_ops_linked", link.linked_device_operations},
                                    {"first_unlinked_ids", unlinked},
                                    {"notes", link.notes}}));
}

}  // namespace orrery::report
