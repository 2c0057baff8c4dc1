#include <algorithm>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"
#include "orrery/report/trace.hpp"

namespace orrery::report {

namespace {

constexpr std::size_t kNameColumn = 44;

std::string count_of(std::uint64_t count, const char* one) { return counted(static_cast<long long>(count), one); }

std::string bytes_text(std::uint64_t bytes) {
  return bytes == 0 ? "-" : config::format_bytes(Bytes(static_cast<double>(bytes)));
}

std::string time_text(std::uint64_t nanoseconds) {
  return nanoseconds == 0 ? "-" : config::format_seconds(Seconds(static_cast<double>(nanoseconds) * 1e-9));
}

// "Chakra 0.0.4, gzip, 1.2 MiB".
std::string form_of(const results::TraceFile& file) {
  std::string text = file.schema.empty() ? "JSON lines" : "Chakra " + file.schema;
  if (!file.claimed_version.empty() && !file.schema.empty() && file.claimed_version != file.schema) {
    text += fmt::format(" (claims {})", printable(file.claimed_version));
  }
  if (file.compression != "none") { text += ", " + file.compression; }
  return fmt::format("{}, {}", text, config::format_bytes(Bytes(static_cast<double>(file.size_B))));
}

std::string counts_text(const results::Counts& counts) {
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(static_cast<long long>(count)), name);
  }
  return text;
}

std::string notes_text(const results::TraceFile& file, TextStyle style) {
  std::string text;
  for (const std::string& note : file.notes) { text += dim("  note: " + printable(note), style) + "\n"; }
  return text;
}

// "byte 12, node 7: ".
std::string place_of(const graph::Example& example) {
  std::string text;
  const auto add = [&](const char* what, const std::optional<std::uint64_t>& number) {
    if (number) { text += fmt::format("{}{} {}", text.empty() ? "" : ", ", what, *number); }
  };
  add("rank", example.rank);
  add("byte", example.offset);
  add("node", example.node);
  return text.empty() ? "" : text + ": ";
}

std::string findings_text(const std::vector<graph::Finding>& findings, TextStyle style) {
  std::string text;
  for (const graph::Finding& finding : findings) {
    const std::string head = fmt::format("{}{}", name_of(finding.problem), finding.unsound ? "" : " (warning)");
    text += fmt::format("  {}: {}\n", finding.unsound ? bold(head, style) : head,
                        grouped(static_cast<long long>(finding.count)));
    for (const graph::Example& example : finding.examples) {
      text += fmt::format("    {}{}\n", place_of(example), printable(example.message));
    }
    if (const std::uint64_t more = finding.count - finding.examples.size(); more > 0 && !finding.examples.empty()) {
      text += fmt::format("    and {} more\n", grouped(static_cast<long long>(more)));
    }
  }
  return text;
}

std::string verdict(bool sound, TextStyle style) { return sound ? "sound" : red("unsound", style); }

}  // namespace

std::string trace_info_text(const results::TraceInfo& info, TextStyle style) {
  std::string text;
  for (const auto& file : info.files) {
    text += fmt::format("{}: {}\n", bold(printable(file.file.file), style), form_of(file.file));
    text += wrapped("  nodes        ", fmt::format("{}{}{}", grouped(static_cast<long long>(file.file.nodes)),
                                                   file.by_type.empty() ? "" : ": ", counts_text(file.by_type)));
    text += fmt::format("  dependencies {} data, {} control\n", grouped(static_cast<long long>(file.data_deps)),
                        grouped(static_cast<long long>(file.ctrl_deps)));
    if (!file.collectives.empty()) { text += wrapped("  collectives  ", counts_text(file.collectives)); }
    for (const std::string& group : file.groups) { text += wrapped("  group        ", group); }
    text += notes_text(file.file, style);
  }
  return text;
}

std::string trace_check_text(const results::TraceCheck& check, TextStyle style) {
  std::string text;
  std::uint64_t quiet = 0;
  std::uint64_t nodes = 0;
  for (const auto& file : check.files) {
    if (file.sound() && file.findings.empty() && file.file.notes.empty() && check.files.size() > 1) {
      ++quiet;
      nodes += file.file.nodes;
      continue;
    }
    text += fmt::format("{}: {}, {}\n", bold(printable(file.file.file), style), verdict(file.sound(), style),
                        count_of(file.file.nodes, "node"));
    text += findings_text(file.findings, style) + notes_text(file.file, style);
  }
  if (quiet > 0) {
    const char* const kind = quiet == check.files.size() ? "file" : "more file";
    text += fmt::format("{} sound, {}\n", count_of(quiet, kind), count_of(nodes, "node"));
  }
  for (const auto& job : check.jobs) {
    text += fmt::format("job {}: {}, {}\n", bold(printable(job.name), style), verdict(job.sound(), style),
                        count_of(job.ranks, "rank"));
    text += findings_text(job.findings, style);
  }
  return text;
}

namespace {

void add_amount(Table& table, const std::string& name, const graph::Amount& amount, std::uint64_t all_ns) {
  const double share = all_ns == 0 ? 0.0 : static_cast<double>(amount.time_ns) / static_cast<double>(all_ns);
  table.row({"  " + cut_to(printable(name), kNameColumn), grouped(static_cast<long long>(amount.count)),
             bytes_text(amount.bytes), time_text(amount.time_ns), amount.time_ns == 0 ? "-" : percent(share)});
}

void add_amounts(Table& table, const std::string& title, const std::vector<graph::NamedAmount>& amounts,
                 std::uint64_t all_ns) {
  if (amounts.empty()) { return; }
  table.title(title);
  for (const auto& [name, amount] : amounts) { add_amount(table, name, amount, all_ns); }
}

std::string path_text(const graph::Statistics& statistics) {
  if (!statistics.critical_path) { return "critical path: none, because the graph has a cycle\n"; }
  const graph::CriticalPath& path = *statistics.critical_path;
  std::string text = fmt::format("critical path: {} over {}", path.time_ns == 0 ? "0 s" : time_text(path.time_ns),
                                 count_of(path.nodes, "node"));
  std::string parts;
  for (const auto& [name, amount] : path.by_type) {
    parts += fmt::format("{}{} {} ({})", parts.empty() ? "" : ", ", grouped(static_cast<long long>(amount.count)), name,
                         time_text(amount.time_ns));
  }
  text = wrapped(text + ": ", parts);
  for (const graph::PathNode& node : path.longest) {
    if (node.time_ns == 0) { break; }
    text += fmt::format("  {:>9}  node {} {} {}\n", time_text(node.time_ns), node.id, graph::type_text(node.type),
                        cut_to(printable(node.name), kNameColumn));
  }
  return text;
}

std::string degrees_text(const graph::Degrees& degrees) {
  return fmt::format(
      "structure: {}, {}, longest chain {}; most parents {} (node {}), most children {} (node {})\n",
      count_of(degrees.roots, "root"),
      degrees.leaves == 1 ? "1 leaf" : fmt::format("{} leaves", grouped(static_cast<long long>(degrees.leaves))),
      count_of(degrees.levels, "node"), grouped(static_cast<long long>(degrees.most_parents)), degrees.most_parents_id,
      grouped(static_cast<long long>(degrees.most_children)), degrees.most_children_id);
}

std::string statistics_text(const graph::Statistics& statistics) {
  Table table;
  table.column("", Table::Align::left).column("count").column("bytes").column("time").column("share");
  const std::uint64_t all_ns = statistics.all.time_ns;
  add_amounts(table, "by type", statistics.by_type, all_ns);
  add_amounts(table, "by collective", statistics.by_collective, all_ns);
  if (!statistics.by_group.empty()) { table.title("by group"); }
  for (const graph::GroupAmount& group : statistics.by_group) {
    const std::string ranks = group.ranks ? fmt::format(" ({})", count_of(*group.ranks, "rank")) : "";
    add_amount(table, group.name.value_or("all ranks") + ranks, group.amount, all_ns);
  }
  if (all_ns > 0) { add_amounts(table, "by name (numbers replaced by #)", statistics.by_name, all_ns); }
  return table.text();
}

}  // namespace

std::string trace_stats_text(const results::TraceStats& stats, TextStyle style) {
  std::string text;
  for (const auto& [file, statistics] : stats.files) {
    text += text.empty() ? "" : "\n";
    text += fmt::format("{}: {}, dependencies {} data, {} control\n", bold(printable(file.file), style),
                        count_of(file.nodes, "node"), grouped(static_cast<long long>(statistics.data_deps)),
                        grouped(static_cast<long long>(statistics.ctrl_deps)));
    text += fmt::format(
        "recorded: {} nodes have a duration, {} a start time{}\n", grouped(static_cast<long long>(statistics.timed)),
        grouped(static_cast<long long>(statistics.started)),
        statistics.span_ns ? fmt::format("; first start to last end {}", time_text(*statistics.span_ns)) : "");
    text += statistics_text(statistics) + path_text(statistics) + degrees_text(statistics.degrees);
    text += notes_text(file, style);
  }
  return text;
}

std::string trace_diff_text(const results::TraceDiff& diff, TextStyle style) {
  const graph::Difference& found = diff.difference;
  if (found.none()) { return fmt::format("identical: {} match (ids may differ)\n", count_of(found.matched, "node")); }
  std::string text = fmt::format("A {}: {}\nB {}: {}\n", printable(diff.a.file), count_of(diff.a.nodes, "node"),
                                 printable(diff.b.file), count_of(diff.b.nodes, "node"));
  text += fmt::format("{} matched, {} of them changed; {} only in A, {} only in B; {} in the metadata of the files\n",
                      grouped(static_cast<long long>(found.matched)), grouped(static_cast<long long>(found.changed)),
                      grouped(static_cast<long long>(found.only_in_a)),
                      grouped(static_cast<long long>(found.only_in_b)), count_of(found.metadata, "difference"));
  for (const graph::DifferingNode& node : found.first) {
    std::string who;
    if (node.a) { who += fmt::format(" {}", *node.a); }
    if (node.b && node.a != node.b) { who += fmt::format("{} {}", node.a ? " /" : "", *node.b); }
    text += fmt::format("  {}{}{}\n", bold(name_of(node.kind), style), who,
                        node.name.empty() ? "" : " " + cut_to(printable(node.name), 2 * kNameColumn));
    for (const std::string& what : node.what) { text += wrapped("    ", printable(what)); }
  }
  const std::uint64_t all = found.metadata + found.changed + found.only_in_a + found.only_in_b;
  const auto told = static_cast<std::uint64_t>(found.first.size());
  if (all > told) { text += fmt::format("  and {} more\n", grouped(static_cast<long long>(all - told))); }
  return text;
}

}  // namespace orrery::report
