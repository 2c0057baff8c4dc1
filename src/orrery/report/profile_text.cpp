#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/config/units_text.hpp"
#include "orrery/report/profile.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using profile::BusyFacts;
using profile::Facts;

constexpr std::size_t kKernelColumn = 60;

std::string duration_text(std::int64_t nanoseconds) {
  return nanoseconds == 0 ? "-" : config::format_seconds(Seconds(static_cast<double>(nanoseconds) * 1e-9));
}

std::string number_text(std::uint64_t number) { return grouped(static_cast<long long>(number)); }

std::string kineto_heading(const Facts& facts) {
  std::string text = facts.rank ? fmt::format("rank {}", *facts.rank) : std::string();
  if (facts.world_size) { text += fmt::format("{}of {}", text.empty() ? "" : " ", *facts.world_size); }
  return fmt::format("{}{}{} events, {} kernels, {} copies, {} memsets, times in {}", text, text.empty() ? "" : ": ",
                     number_text(facts.events), number_text(facts.kernels), number_text(facts.memcpy), facts.memset,
                     facts.whole_microseconds ? "us" : "ns");
}

void busy_row(Table& table, const std::string& name, std::uint64_t operations, const BusyFacts& busy,
              std::int64_t host) {
  table.row({name, number_text(operations), duration_text(host), duration_text(busy.span_ns),
             duration_text(busy.busy_ns), duration_text(busy.kernel_not_comm_ns), duration_text(busy.comm_ns),
             duration_text(busy.exposed_comm_ns)});
}

std::string busy_text(const Facts& facts) {
  Table table;
  table.column("", Table::Align::left)
      .column("device ops")
      .column("host step")
      .column("span")
      .column("busy")
      .column("compute")
      .column("communication")
      .column("exposed");
  busy_row(table, "all", facts.linked + facts.not_linked, facts.whole, 0);
  for (const profile::StepFacts& step : facts.steps) {
    busy_row(table, fmt::format("step {}", step.number), step.operations, step.busy, step.duration_ns);
  }
  return table.text(2);
}

std::string kineto_streams_text(const Facts& facts) {
  Table table;
  table.column("stream", Table::Align::left).column("ops").column("busy").column("share of span");
  for (const auto& [name, stream] : facts.streams) {
    table.row({name, number_text(stream.operations), duration_text(stream.busy_ns),
               percent(static_cast<double>(stream.busy_ns) / static_cast<double>(facts.whole.span_ns))});
  }
  return table.text(2);
}

std::string collectives_text(const Facts& facts) {
  if (facts.collectives.empty()) { return {}; }
  Table table;
  table.column("collective", Table::Align::left)
      .column("kernels")
      .column("time")
      .column("with metadata")
      .column("in")
      .column("out");
  for (const auto& [kind, collective] : facts.collectives) {
    table.row({kind, number_text(collective.kernels), duration_text(collective.sum_ns),
               number_text(collective.with_metadata),
               config::format_bytes(Bytes(static_cast<double>(collective.in_bytes))),
               config::format_bytes(Bytes(static_cast<double>(collective.out_bytes)))});
  }
  return table.text(2);
}

std::string top_text(const std::string& header, const std::vector<profile::KernelFacts>& top, std::int64_t busy,
                     std::size_t most) {
  if (top.empty() || most == 0) { return {}; }
  Table table;
  table.column(header, Table::Align::left).column("count").column("time").column("share of busy");
  for (std::size_t i = 0; i < top.size() && i < most; ++i) {
    table.row({cut_to(printable(top[i].name), kKernelColumn), number_text(top[i].count), duration_text(top[i].sum_ns),
               percent(static_cast<double>(top[i].sum_ns) / static_cast<double>(busy))});
  }
  return table.text(2);
}

std::string idle_text(const profile::IdleFacts& idle, std::int64_t span) {
  if (idle.all_ns() <= 0) { return {}; }
  Table table;
  table.column("device idle", Table::Align::left).column("time").column("share of span");
  const auto row = [&](const char* name, std::int64_t time) {
    if (time == 0) { return; }
    table.row({name, duration_text(time), percent(static_cast<double>(time) / static_cast<double>(span))});
  };
  row("all", idle.all_ns());
  row("the host works and launches late", idle.host_ns);
  row("the host waits for the device", idle.blocked_ns);
  row("the profiler stops the host", idle.profiler_ns);
  row("launch latency", idle.launch_ns);
  row("gaps between operations", idle.gap_ns);
  row("gaps inside graph launches", idle.graph_ns);
  row("before operations without a call", idle.without_call_ns);
  row("no known cause", idle.unexplained_ns);
  return table.text(2);
}

std::string links_text(const Facts& facts) {
  std::string text = fmt::format("  {} device ops have a launching call, {} have none\n", number_text(facts.linked),
                                 number_text(facts.not_linked));
  if (facts.blocking_calls > 0) {
    text += fmt::format("  {} synchronizing calls block the host for {}\n", number_text(facts.blocking_calls),
                        duration_text(facts.blocking_ns));
  }
  if (facts.starts_before_its_call > 0) {
    text += fmt::format("  {} device ops start before their call: clocks of host and device differ\n",
                        number_text(facts.starts_before_its_call));
  }
  if (facts.overlaps_inside_a_stream > 0) {
    text += fmt::format("  {} device ops start before their predecessor on the stream ends\n",
                        number_text(facts.overlaps_inside_a_stream));
  }
  return text;
}

}  // namespace

std::string profile_stats_text(const std::vector<ProfileFacts>& profiles, std::size_t most, TextStyle style) {
  std::string text;
  for (const ProfileFacts& one : profiles) {
    const Facts& facts = one.facts;
    text += text.empty() ? "" : "\n";
    text += fmt::format("{}: {}\n", bold(printable(one.file), style), kineto_heading(facts));
    if (facts.linked + facts.not_linked == 0) {
      text += "  no device operations\n";
    } else {
      text += links_text(facts) + busy_text(facts) + kineto_streams_text(facts) + collectives_text(facts);
      text += idle_text(one.idle, facts.whole.span_ns);
      text += top_text("kernel", facts.top_kernels, facts.whole.busy_ns, most);
      text += top_text("operator", facts.top_operators, facts.whole.busy_ns, most);
    }
    for (const std::string& note : one.notes) { text += dim("  note: " + printable(note), style) + "\n"; }
  }
  return text;
}

std::string profile_link_text(const ProfileLink& link, TextStyle style) {
  std::string text = fmt::format(
      "{} (schema {}): {} of {} operators linked ({}), by {}\n", bold(printable(link.host), style),
      printable(link.schema), number_text(link.linked), number_text(link.operators),
      percent(link.operators == 0 ? 0 : static_cast<double>(link.linked) / static_cast<double>(link.operators)),
      link.by_id ? "the ids of their record functions" : "order and names on each thread");
  text += fmt::format("{}: {} of {} device operations belong to a linked operator\n", printable(link.device),
                      number_text(link.linked_device_operations), number_text(link.device_operations));
  if (!link.unlinked.empty()) { text += fmt::format("not linked, first ids: {}\n", fmt::join(link.unlinked, ", ")); }
  for (const std::string& note : link.notes) { text += dim("note: " + printable(note), style) + "\n"; }
  return text;
}

}  // namespace orrery::report
