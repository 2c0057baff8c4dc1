#include "orrery/report/flow_times.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

constexpr std::size_t kShown = 10;

double utilisation(const results::LinkLoad& link, double makespan) {
  return makespan > 0 ? link.carried_B / (link.bandwidth_Bps * makespan) : 0;
}

// The first `kShown` of `items` by `before`, equal ones in the order of the file.
template <class Item, class Before>
std::vector<Item> first_of(std::vector<Item> items, Before&& before) {
  const auto shown = static_cast<std::ptrdiff_t>(std::min(items.size(), kShown));
  std::stable_sort(items.begin(), items.end(), before);
  items.erase(items.begin() + shown, items.end());
  return items;
}

}  // namespace

std::string flow_times_text(const results::FlowTimes& times, TextStyle style) {
  const double makespan = times.makespan_s();
  std::string text =
      fmt::format("{}: {} flows on {} links{}\n\n", bold(fmt::format("{:.9g} s", makespan), style), times.flows.size(),
                  times.links.size(), times.name.empty() ? "" : " (" + printable(times.name) + ")");
  Table flows;
  for (const char* header : {"last flows", "start s", "bytes", "finish s"}) { flows.column(header); }
  for (const auto& flow : first_of(times.flows, [](const auto& a, const auto& b) { return a.finish_s > b.finish_s; })) {
    flows.row({std::to_string(flow.id), fmt::format("{:.9g}", flow.start_s), fmt::format("{:.9g}", flow.bytes),
               fmt::format("{:.9g}", flow.finish_s)});
  }
  Table links;
  links.column("busiest links", Table::Align::left);
  for (const char* header : {"bytes", "utilisation"}) { links.column(header); }
  for (const auto& link : first_of(times.links, [&](const auto& a, const auto& b) {
         return a.carried_B * b.bandwidth_Bps > b.carried_B * a.bandwidth_Bps;
       })) {
    links.row({printable(link.name), fmt::format("{:.9g}", link.carried_B),
               fmt::format("{:.1f} %", 100 * utilisation(link, makespan))});
  }
  return text + flows.text() + "\n" + links.text() +
         fmt::format("\n{} updates of the rates, {} of them local\n", times.updates, times.repairs);
}

std::string flow_times_json(const results::FlowTimes& times) {
  const double makespan = times.makespan_s();
  constexpr double kNanosecond = 1e9;
  std::string out;
  config::JsonWriter writer(out);
  writer.open_object();
  const auto field = [&](std::string_view key, const config::Node& value) {
    writer.key(key);
    writer.value(value);
  };
  field("schema", config::text_node("orrery.simulate/1"));
  field("semantics", config::text_node("physical"));
  field("backend", config::text_node("flow"));
  field("case", config::text_node(times.name));
  field("makespan_s", config::json_number(makespan));
  field("makespan_ns", config::json_count(static_cast<std::uint64_t>(std::llround(makespan * kNanosecond))));
  writer.key("flows");
  writer.open_list();
  for (const auto& flow : times.flows) {
    writer.open_object();
    writer.key("id");
    writer.value(flow.id);
    writer.key("finish_s");
    writer.value(flow.finish_s);
    writer.close();
  }
  writer.close();
  writer.key("links");
  writer.open_list();
  for (const auto& link : times.links) {
    writer.value(config::json_object({{"id", link.id},
                                      {"name", link.name},
                                      {"bandwidth_Bps", link.bandwidth_Bps},
                                      {"carried_B", link.carried_B},
                                      {"utilisation", utilisation(link, makespan)}}));
  }
  writer.close();
  field("stats", config::json_object({{"flows", times.flows.size()},
                                      {"links", times.links.size()},
                                      {"updates", times.updates},
                                      {"full_updates", times.full},
                                      {"local_updates", times.repairs},
                                      {"wall_s", times.wall_s},
                                      {"peak_rss_B", times.peak_rss_B}}));
  field("warnings", config::sequence_node());
  writer.close();
  return out + "\n";
}

}  // namespace orrery::report
