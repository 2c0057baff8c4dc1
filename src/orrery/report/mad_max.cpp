#include "orrery/report/mad_max.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::format_count;
using config::format_seconds;

std::string padded_label(std::string_view name) { return fmt::format("{:<14}", name); }

std::string job_text(const results::MadMaxEstimate& estimate) {
  std::string text = fmt::format("{} on {} of {}, {}, batch {}", estimate.model, counted(estimate.devices, "device"),
                                 estimate.cluster, estimate.task, grouped(estimate.global_batch));
  if (estimate.seq > 0) { text += fmt::format(", sequence {}", grouped(estimate.seq)); }
  if (!estimate.frozen.empty()) { text += ", frozen " + estimate.frozen; }
  return text;
}

std::string gigabytes(Bytes bytes) { return fmt::format("{:.2f} GB", bytes.value() / 1e9); }

std::string memory_text(const results::MadMaxEstimate& estimate) {
  const std::string weights =
      fmt::format("{} of weights per device; the memory rule requires {}, capacity {}", gigabytes(estimate.weights),
                  gigabytes(estimate.needed), gigabytes(estimate.capacity));
  const bool fits = estimate.needed <= estimate.capacity;
  return weights + (fits ? ": fits" : estimate.memory_rule ? ": does not fit" : ": does not fit (memory rule off)");
}

std::string classes_text(const results::MadMaxEstimate& estimate) {
  Table table;
  table.column("class", Table::Align::left).column("strategy", Table::Align::left);
  table.column("copies").column("shards").column("local batch");
  for (const auto& one : estimate.classes) {
    table.row({one.name, one.strategy, grouped(one.copies), grouped(one.shards), grouped(one.local_batch)});
  }
  return table.text(2);
}

std::string streams_text(const results::MadMaxEstimate& estimate) {
  const auto& parts = estimate.breakdown;
  const std::vector<std::pair<const char*, Seconds>> lines = {{"gemm", parts.gemm},
                                                              {"embedding", parts.embedding},
                                                              {"all-to-all", parts.all_to_all},
                                                              {"all-reduce", parts.all_reduce},
                                                              {"all-gather", parts.all_gather},
                                                              {"reduce-scatter", parts.reduce_scatter}};
  Table table;
  table.column("busy", Table::Align::left).column("time").column("of iteration");
  for (const auto& [name, time] : lines) {
    if (time > Seconds()) { table.row({name, format_seconds(time, 4), percent(time / estimate.step_time)}); }
  }
  const Seconds communication = parts.communication();
  const std::string share = communication > Seconds() ? percent(parts.exposed / communication) : std::string("-");
  return table.text(2) + fmt::format("  exposed communication {} ({} of {} of communication)\n",
                                     format_seconds(parts.exposed, 4), share, format_seconds(communication, 4));
}

std::string rate_text(double samples_per_s) { return format_count(samples_per_s, 4) + " samples/s"; }

}  // namespace

std::string mad_max_text(const results::MadMaxEstimate& estimate, TextStyle style) {
  std::string text = wrapped("", job_text(estimate));
  text += wrapped(padded_label("strategy"), estimate.strategy);
  text += padded_label("iteration") + bold(format_seconds(estimate.step_time, 4), style);
  text += ": " + rate_text(estimate.samples_per_s);
  if (estimate.seq > 0) { text += ", " + format_count(estimate.tokens_per_s, 4) + " tokens/s"; }
  text += fmt::format(", MFU {}\n", percent(estimate.mfu));
  text += wrapped(padded_label("memory"), memory_text(estimate));
  text += "\n" + classes_text(estimate) + "\n" + streams_text(estimate) + "\n";
  return text + wrapped_list(padded_label("not modelled"), estimate.not_modelled);
}

std::string mad_max_plan_text(const results::MadMaxSearch& search, TextStyle style) {
  if (search.best.empty()) { return ""; }
  const auto& first = search.best.front();
  std::string text = wrapped("", job_text(first)) + "\n";
  Table table;
  table.column("rank").column("strategy", Table::Align::left).column("iteration").column("samples/s").column("gain");
  table.column("exposed").column("memory");
  std::size_t rank = 0;
  const auto add = [&](const std::string& place, const results::MadMaxEstimate& one, double gain) {
    table.row({place, one.strategy, format_seconds(one.step_time, 4), format_count(one.samples_per_s, 4),
               gain > 0 ? fmt::format("{:.3f}", gain) : "-", percent(one.breakdown.exposed / one.step_time),
               gigabytes(one.needed)});
  };
  for (const auto& one : search.best) { add(std::to_string(++rank), one, one.gain); }
  if (search.has_baseline) { add("base", search.baseline, 1.0); }
  text += table.text() + "\n";
  text += wrapped("", fmt::format("{} combinations of strategies: {} priced, {} exceed {} of memory ({} x weights), "
                                  "{} have a fractional local batch",
                                  grouped(search.points), grouped(search.evaluated), grouped(search.over_memory),
                                  gigabytes(first.capacity), std::round(first.needed / first.weights),
                                  grouped(search.uneven_batch)));
  const std::string rule = first.memory_rule ? "on" : "off (--no-memory-rule)";
  return text +
         wrapped("", fmt::format("memory rule {}; gain is relative to the baseline (base), which may exceed memory; {}",
                                 rule, bold("semantics mad-max", style)));
}

}  // namespace orrery::report
