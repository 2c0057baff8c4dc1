#include "orrery/report/collective.hpp"

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::json_object;
using config::Node;
using results::CollectiveRow;
using results::CollectiveTable;

constexpr double kMicro = 1e6;
constexpr double kGiga = 1e-9;

std::string microseconds(Seconds time) { return fmt::format("{:.2f}", time.value() * kMicro); }

std::string heading(const CollectiveTable& table, bool terms) {
  const bool priced = table.method == "closed-form";
  std::string text = fmt::format("# {} among {} {} of {} ({}); {}, {} semantics\n#\n", table.op, table.ranks,
                                 priced ? "devices" : "ranks", printable(table.where), printable(table.network),
                                 priced ? "closed form" : "simulated", table.semantics);
  std::string names = fmt::format("# {:>12} {:>14} {:>7} {:>6} {:>5} {:>12} {:>8} {:>8}  {}", "size", "count", "type",
                                  "redop", "root", "time", "algbw", "busbw", "algorithm");
  std::string units = fmt::format("# {:>12} {:>14} {:>7} {:>6} {:>5} {:>12} {:>8} {:>8}", "(B)", "(elements)", "", "",
                                  "", "(us)", "(GB/s)", "(GB/s)");
  if (!table.rows.empty() && table.rows.front().messages) {
    names += fmt::format("  {:>16}  busiest link", "messages");
  }
  if (!table.rows.empty() && table.rows.front().chunks) {
    names += fmt::format(" {:>7} {:>8}  by dimension", "chunks", "use");
    units += fmt::format("  {:>9} {:>7} {:>8}  (% of the time)", "", "", "(%)");
  }
  if (terms) {
    names += fmt::format("  {:>10} {:>12} {:>12} {:>12} {:>6}  {}", "base", "latency", "bandwidth", "reduction",
                         "chunks", "protocol");
    units += fmt::format("  {:>9}  {:>10} {:>12} {:>12} {:>12}", "", "(us)", "(us)", "(us)", "(us)");
  }
  return text + names + "\n" + units + "\n";
}

std::string line(const CollectiveTable& table, const CollectiveRow& row, bool terms) {
  std::string text = fmt::format("  {:>12} {:>14} {:>7} {:>6} {:>5} {:>12} {:>8.2f} {:>8.2f}  ", row.size_B, row.count,
                                 "float", table.reduction, table.root, microseconds(row.time),
                                 row.algbw.value() * kGiga, row.busbw.value() * kGiga);
  if (row.messages) {
    return text + fmt::format("{:<16} {:>10}  {} ({:.0f} %)\n", printable(row.algorithm), row.messages->messages,
                              printable(row.messages->busiest_link), 100 * row.messages->busiest_use);
  }
  if (row.chunks) {
    text += fmt::format("{:<9} {:>7} {:>8.1f}  ", row.algorithm, row.chunks->chunks, 100 * row.chunks->bandwidth_use);
    for (std::size_t i = 0; i < row.chunks->dimension_use.size(); ++i) {
      const auto& [name, use] = row.chunks->dimension_use[i];
      text += fmt::format("{}{} {:.1f}", i == 0 ? "" : ", ", printable(name), 100 * use);
    }
    return text + "\n";
  }
  if (!terms || !row.terms) { return text + printable(row.algorithm) + "\n"; }
  return text + fmt::format("{:<9}  {:>10} {:>12} {:>12} {:>12} {:>6}  {}\n", row.algorithm,
                            microseconds(row.terms->base), microseconds(row.terms->latency),
                            microseconds(row.terms->bandwidth), microseconds(row.terms->reduction), row.terms->chunks,
                            printable(row.terms->protocol));
}

Node json_of(const CollectiveRow& row, const std::optional<results::CollectiveRange>& range) {
  Node json = json_object({{"size_B", row.size_B},
                           {"time_s", row.time},
                           {"algbw_Bps", row.algbw},
                           {"busbw_Bps", row.busbw},
                           {"algorithm", row.algorithm},
                           {"count", row.count}});
  if (range) { config::add_fields(json, {{"p10_s", range->p10 * row.time}, {"p90_s", range->p90 * row.time}}); }
  if (row.messages) {
    config::add_fields(json, {{"messages", row.messages->messages},
                              {"updates", row.messages->updates},
                              {"busiest_link", row.messages->busiest_link},
                              {"busiest_use", row.messages->busiest_use}});
  }
  if (row.chunks) {
    config::add_fields(json, {{"chunks", row.chunks->chunks},
                              {"bandwidth_use", row.chunks->bandwidth_use},
                              {"dimension_use", config::json_list(row.chunks->dimension_use, [](const auto& one) {
                                 return json_object({{"name", one.first}, {"use", one.second}});
                               })}});
  }
  if (!row.terms) { return json; }
  config::add_fields(json, {{"protocol", row.terms->protocol},
                            {"chunks", row.terms->chunks},
                            {"terms_s", json_object({{"base", row.terms->base},
                                                     {"latency", row.terms->latency},
                                                     {"bandwidth", row.terms->bandwidth},
                                                     {"reduction", row.terms->reduction}})}});
  return json;
}

}  // namespace

std::string collective_text(const CollectiveTable& table, bool terms) {
  std::string text = heading(table, terms);
  for (const CollectiveRow& row : table.rows) { text += line(table, row, terms); }
  if (table.range) {
    text += fmt::format("# 80 % interval: {:.2f} to {:.2f} times these; {}\n", table.range->p10, table.range->p90,
                        table.range->basis);
  }
  for (const std::string& warning : table.warnings) { text += fmt::format("# warning: {}\n", printable(warning)); }
  return text;
}

std::string collective_json(const CollectiveTable& table) {
  const auto row_json = [&](const CollectiveRow& row) { return json_of(row, table.range); };
  return config::json_document(json_object({{"schema", "orrery.collective/1"},
                                            {"semantics", table.semantics},
                                            {"method", table.method},
                                            {"op", table.op},
                                            {"where", table.where},
                                            {"network", table.network},
                                            {"ranks", table.ranks},
                                            {"rows", config::json_list(table.rows, row_json)},
                                            {"warnings", table.warnings}}));
}

}  // namespace orrery::report
