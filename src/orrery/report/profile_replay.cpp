#include "orrery/report/profile_replay.hpp"

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::json_list;
using config::json_object;
using config::Node;

std::string ns_text(std::int64_t nanoseconds) {
  if (nanoseconds == 0) { return "0"; }
  const std::string sign = nanoseconds < 0 ? "-" : "";
  return sign + config::format_seconds(Seconds(std::abs(static_cast<double>(nanoseconds)) * 1e-9));
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string error_text(std::int64_t predicted, std::int64_t recorded) {
  return recorded == 0 ? "-" : fmt::format("{:+.2f} %", 100 * ratio(predicted - recorded, recorded));
}

// ---- JSON ----

Node replay_rank_json(const profile::ReplayRank& rank) {
  return json_object({{"rank", rank.rank},
                      {"host_ns", rank.host_ns},
                      {"recorded_host_ns", rank.recorded_host_ns},
                      {"device_end_ns", rank.device_end_ns},
                      {"recorded_device_end_ns", rank.recorded_device_end_ns},
                      {"start_off_median_ns", rank.start_off_median_ns},
                      {"start_off_p95_ns", rank.start_off_p95_ns},
                      {"unexplained_idle_ns", rank.unexplained_ns}});
}

Node replay_step_json(const profile::ReplayStep& step) {
  return json_object(
      {{"rank", step.rank}, {"step", step.step}, {"duration_ns", step.duration_ns}, {"recorded_ns", step.recorded_ns}});
}

Node replay_collective_json(const profile::ReplayCollective& one) {
  Node members = config::sequence_node();
  for (const std::uint64_t member : one.members) { config::add_item(members, member); }
  return json_object({{"group", one.group},
                      {"members", members},
                      {"kind", one.kind},
                      {"number", one.number},
                      {"wire_ns", one.wire_ns},
                      {"waiting_ns", one.waiting_ns},
                      {"alone", one.alone}});
}

Node replay_path_json(const profile::ReplayPath& path) {
  return json_object({{"time_ns", path.time_ns()},
                      {"host_ns", path.host_ns},
                      {"compute_ns", path.compute_ns},
                      {"communication_ns", path.communication_ns},
                      {"latency_ns", path.latency_ns},
                      {"unexplained_idle_ns", path.unexplained_ns},
                      {"nodes", path.nodes},
                      {"changes_of_rank", path.changes_of_rank}});
}

Node host_json(const ImportedHost& host) {
  return json_object({{"from", host.from},
                      {"profile", host.profile},
                      {"operators", host.operators},
                      {"linked", host.linked},
                      {"shapes_added", host.added.shapes},
                      {"collectives_added", host.added.collectives},
                      {"waits_named", host.added.waits},
                      {"groups_added", host.added.groups}});
}

Node host_graph_json(const ImportedHostGraph& host) {
  const profile::HostGraphCounts& counts = host.counts;
  return json_object({{"from", host.from},
                      {"file", host.to},
                      {"nodes", counts.nodes},
                      {"collectives", counts.collectives},
                      {"messages", counts.messages},
                      {"waits", counts.waits},
                      {"waits_for_earlier_work", counts.unknown_waits},
                      {"without_group", counts.without_group},
                      {"dependencies_by_tensors", counts.tensor_deps}});
}

void add_replay(Node& json, const profile::Replay& replay) {
  config::add_fields(json, {{"makespan_ns", replay.makespan_ns},
                            {"nodes", replay.nodes},
                            {"critical_path", replay_path_json(replay.path)},
                            {"ranks", json_list(replay.ranks, replay_rank_json)},
                            {"steps", json_list(replay.steps, replay_step_json)},
                            {"collectives", json_list(replay.collectives, replay_collective_json)}});
}

Node imported_json(const ImportedRank& rank) {
  const profile::PlanCounts& counts = rank.counts;
  return json_object({{"rank", rank.rank},
                      {"from", rank.from},
                      {"file", rank.to},
                      {"nodes", rank.nodes},
                      {"resolution", rank.whole_microseconds ? "us" : "ns"},
                      {"clock_offset_ns", rank.clock_offset_ns},
                      {"device_ops", counts.device_operations},
                      {"device_ops_without_call", counts.without_call},
                      {"starts_before_call", counts.starts_before_call},
                      {"overlaps_inside_a_stream", counts.overlaps},
                      {"waits_named_by_the_trace", counts.named_waits},
                      {"waits_by_rule", counts.rule_waits},
                      {"waits_by_coincidence", counts.coincidences},
                      {"thread_wakes", counts.wakes},
                      {"waits_by_polling", counts.polls},
                      {"steps_guessed", rank.guessed_steps},
                      {"graph_ops", counts.graph_operations},
                      {"blocked_ns", counts.blocked_ns},
                      {"blocked_with_cause_ns", counts.blocked_with_cause_ns},
                      {"unexplained_idle_ns", counts.unexplained_idle_ns},
                      {"latency_ns", rank.latencies.launch},
                      {"gap_ns", rank.latencies.gap},
                      {"return_ns", rank.latencies.return_},
                      {"collectives", rank.collectives},
                      {"collectives_alone", rank.collectives_alone},
                      {"collectives_guessed", rank.collectives_guessed}});
}

// ---- text ----

std::string steps_text(const profile::Replay& replay) {
  if (replay.steps.empty()) {
    return "  no ProfilerStep and no repeated launches in the record: the whole span is replayed\n";
  }
  Table table;
  table.column("rank").column("step").column("predicted").column("recorded").column("difference");
  for (const profile::ReplayStep& step : replay.steps) {
    table.row({fmt::format("{}", step.rank), fmt::format("{}", step.step), ns_text(step.duration_ns),
               ns_text(step.recorded_ns), error_text(step.duration_ns, step.recorded_ns)});
  }
  return table.text(2);
}

std::string ranks_text(const profile::Replay& replay) {
  Table table;
  table.column("rank")
      .column("host")
      .column("recorded")
      .column("difference")
      .column("device end")
      .column("recorded")
      .column("difference")
      .column("starts off p95");
  for (const profile::ReplayRank& rank : replay.ranks) {
    table.row({fmt::format("{}", rank.rank), ns_text(rank.host_ns), ns_text(rank.recorded_host_ns),
               error_text(rank.host_ns, rank.recorded_host_ns), ns_text(rank.device_end_ns),
               ns_text(rank.recorded_device_end_ns), error_text(rank.device_end_ns, rank.recorded_device_end_ns),
               ns_text(rank.start_off_p95_ns)});
  }
  return table.text(2);
}

std::string communication_text(const profile::Replay& replay) {
  if (replay.collectives.empty()) { return {}; }
  std::int64_t wire = 0;
  std::int64_t waiting = 0;
  std::uint64_t alone = 0;
  for (const profile::ReplayCollective& one : replay.collectives) {
    wire += one.wire_ns * static_cast<std::int64_t>(one.members.size());
    waiting += one.waiting_ns;
    alone += one.alone ? 1 : 0;
  }
  std::string text = fmt::format("  {} collectives: {} waiting for other ranks, {} on the wire (sums over ranks)\n",
                                 replay.collectives.size(), ns_text(waiting), ns_text(wire));
  if (alone > 0) {
    text += fmt::format("  {} of them have no partner in the files: their time contains waiting\n", alone);
  }
  return text;
}

std::string replay_path_text(const profile::ReplayPath& path) {
  const auto part = [&](const char* name, std::int64_t time) {
    return time == 0 ? std::string()
                     : fmt::format(", {} {} ({})", name, ns_text(time), percent(ratio(time, path.time_ns())));
  };
  return fmt::format("  critical path {}{}{}{}{}{}\n", ns_text(path.time_ns()), part("host", path.host_ns),
                     part("compute", path.compute_ns), part("communication", path.communication_ns),
                     part("launches and gaps", path.latency_ns), part("unexplained idle", path.unexplained_ns));
}

std::string host_graphs_text(const ProfileImport& import, TextStyle style) {
  std::string text;
  for (const ImportedHostGraph& host : import.host_graphs) {
    const profile::HostGraphCounts& counts = host.counts;
    text += fmt::format("{}: {} nodes from {}\n", bold(printable(host.to), style), counts.nodes, printable(host.from));
    text += fmt::format(
        "  {} collectives, {} messages; {} waits for them, {} for earlier ones; {} dependencies by tensors\n",
        counts.collectives, counts.messages, counts.waits, counts.unknown_waits, counts.tensor_deps);
    if (counts.without_group > 0) {
      text += fmt::format("  the process group of {} is not known\n", counts.without_group);
    }
  }
  text +=
      "Execution traces have no times: these graphs cannot be replayed. Give the Kineto profiles of the same "
      "processes, too.\n";
  for (const std::string& note : import.notes) { text += dim("note: " + printable(note), style) + "\n"; }
  return text;
}

std::string host_text(const ImportedHost& host) {
  return fmt::format(
      "{}: {} of {} operators linked to {}; adds shapes of {} operators, metadata of {} collectives, {} "
      "named waits, {} process groups\n",
      printable(host.from), host.linked, host.operators, printable(host.profile), host.added.shapes,
      host.added.collectives, host.added.waits, host.added.groups);
}

}  // namespace

std::string profile_import_text(const ProfileImport& import, TextStyle style) {
  if (import.ranks.empty()) { return host_graphs_text(import, style); }
  std::string text;
  for (const ImportedHost& host : import.hosts) { text += host_text(host); }
  for (const ImportedRank& rank : import.ranks) {
    const profile::PlanCounts& counts = rank.counts;
    text += fmt::format("{}: {} nodes from {}\n", bold(printable(rank.to), style), rank.nodes, printable(rank.from));
    text += fmt::format(
        "  {} device ops, {} without their call; waits between streams: {} named by the trace, {} by "
        "PyTorch's rules, {} by coincidence\n",
        counts.device_operations, counts.without_call, counts.named_waits, counts.rule_waits, counts.coincidences);
    text += fmt::format("  blocked {}", ns_text(counts.blocked_ns));
    if (counts.blocked_ns > 0) {
      text +=
          fmt::format(", {} of it with a known cause", percent(ratio(counts.blocked_with_cause_ns, counts.blocked_ns)));
    }
    text += fmt::format("; unexplained idle {}{}\n", ns_text(counts.unexplained_idle_ns),
                        counts.unexplained_idle_ns > 0 ? " (kept as recorded)" : "");
  }
  text +=
      fmt::format("measurements for validate and calibrate (--rows): {} matrix products, {} collectives, {} steps\n",
                  import.rows.kernel_rows, import.rows.collective_rows, import.rows.steps);
  text += "replay of these graphs without changes\n" + ranks_text(import.replay) + steps_text(import.replay) +
          communication_text(import.replay);
  for (const std::string& note : import.notes) { text += dim("note: " + printable(note), style) + "\n"; }
  return text;
}

std::string profile_import_json(const ProfileImport& import) {
  Node json = json_object({{"schema", "orrery.trace-import/1"}});
  if (import.ranks.empty()) {
    config::add_fields(json,
                       {{"host_graphs", json_list(import.host_graphs, host_graph_json)}, {"notes", import.notes}});
    return config::json_document(json);
  }
  config::add_fields(json, {{"files", json_list(import.ranks, imported_json)},
                            {"hosts", json_list(import.hosts, host_json)},
                            {"notes", import.notes}});
  Node replay = json_object({});
  add_replay(replay, import.replay);
  config::add_fields(json, {{"replay", replay}});
  return config::json_document(json);
}

std::string profile_replay_text(const ProfileReplay& replay, TextStyle style) {
  std::string text =
      fmt::format("{} {}\n", bold("replay of an imported profile:", style), ns_text(replay.replay.makespan_ns));
  text += ranks_text(replay.replay) + steps_text(replay.replay) + communication_text(replay.replay) +
          replay_path_text(replay.replay.path);
  text += "kept as recorded\n";
  for (const std::string& kept : replay.kept) { text += wrapped("  ", printable(kept)); }
  for (const std::string& warning : replay.warnings) { text += "warning: " + printable(warning) + "\n"; }
  return text;
}

std::string profile_replay_json(const ProfileReplay& replay) {
  Node json = json_object({{"schema", "orrery.simulate/1"}, {"semantics", "replay"}, {"backend", "recorded"}});
  add_replay(json, replay.replay);
  config::add_fields(json, {{"kept_as_recorded", replay.kept}, {"warnings", replay.warnings}});
  return config::json_document(json);
}

}  // namespace orrery::report
