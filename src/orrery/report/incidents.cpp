#include <cmath>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/campaign.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace of_incidents {
namespace {

using config::json_list;
using config::json_object;

config::Node rate_json(const results::FittedRate& rate) {
  return json_object({{"cause", rate.cause},
                      {"count", rate.count},
                      {"per_1000_node_days", rate.rate},
                      {"p10", rate.low80},
                      {"p90", rate.high80},
                      {"low95", rate.low95},
                      {"high95", rate.high95}});
}

void add_rate(Table& table, const results::FittedRate& rate) {
  table.row({rate.cause, grouped(rate.count), fmt::format("{:.3g}", rate.rate),
             fmt::format("{:.3g} to {:.3g}", rate.low80, rate.high80),
             fmt::format("{:.3g} to {:.3g}", rate.low95, rate.high95)});
}

}  // namespace
}  // namespace of_incidents

std::string incidents_text(const results::IncidentFit& fit, TextStyle style) {
  using namespace of_incidents;
  std::string text = bold(fmt::format("{} in {:.4g} days of {} devices", counted(fit.all.count, "incident"), fit.days,
                                      grouped(std::llround(fit.devices))),
                          style) +
                     "\n\n";
  Table table;
  table.column("cause", Table::Align::left)
      .column("incidents")
      .column("per 1,000 node-days")
      .column("80 %")
      .column("95 %");
  add_rate(table, fit.all);
  for (const auto& cause : fit.causes) { add_rate(table, cause); }
  text += table.text() + "\n";
  if (fit.all.count > 0) { text += fmt::format("one every {:.3g} h\n", fit.mean_hours_between); }
  if (fit.variation) {
    text += wrapped("", fmt::format("times between incidents vary by {:.2f} times their mean (1: independent; more: "
                                    "incidents come in bursts; less: regularly)",
                                    *fit.variation));
  }
  text += fmt::format("first half {:.3g}, second half {:.3g} per 1,000 node-days; by chance with probability {:.3g}\n",
                      fit.first_half_rate, fit.second_half_rate, fit.halves_p);
  if (fit.mean_downtime_s) {
    text += fmt::format("mean downtime {}\n", config::format_seconds(Seconds(*fit.mean_downtime_s)));
  }
  if (!fit.to_tell.empty()) { text += "\n"; }
  for (const auto& one : fit.to_tell) {
    text += wrapped(
        "", fmt::format("to tell {:.3g} from {:.3g} by two lists of equal length: about {} at the lower rate "
                        "(significance 5 %, power 80 %); the 95 % interval of this list alone {}",
                        fit.all.rate, one.other_rate, counted(std::llround(std::ceil(one.incidents)), "incident"),
                        one.told ? "excludes it" : "does not exclude it"));
  }
  return text;
}

std::string incidents_json(const results::IncidentFit& fit) {
  using namespace of_incidents;
  return config::json_document(json_object(
      {{"schema", "orrery.incidents/1"},
       {"devices", fit.devices},
       {"days", fit.days},
       {"node_days", fit.node_days},
       {"all", rate_json(fit.all)},
       {"causes", json_list(fit.causes, rate_json)},
       {"mean_hours_between", fit.mean_hours_between},
       {"variation", fit.variation},
       {"first_half_per_1000_node_days", fit.first_half_rate},
       {"second_half_per_1000_node_days", fit.second_half_rate},
       {"halves_p", fit.halves_p},
       {"mean_downtime_s", fit.mean_downtime_s},
       {"to_tell", json_list(fit.to_tell, [](const results::ToTell& one) {
          return json_object({{"other_rate", one.other_rate}, {"incidents", one.incidents}, {"told", one.told}});
        })}}));
}

}  // namespace orrery::report
