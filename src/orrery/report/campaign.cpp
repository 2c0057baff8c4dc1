#include "orrery/report/campaign.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace of_campaign_text {
namespace {

using config::format_bytes;
using config::format_count;
using config::format_rate;
using config::format_seconds;
using results::Campaign;

std::string label(std::string_view name) { return fmt::format("{:<12}", name); }

std::string line(std::string_view name, const std::string& text) { return wrapped(label(name), text); }

std::string days(double count) { return fmt::format("{:.{}f}", count, count < 10.0 ? 2 : 1); }

std::string plan_of(const Campaign& campaign) {
  const auto& plan = campaign.estimate.plan;
  std::string text;
  for (const char* name : {"tp", "cp", "ep", "pp", "dp", "vpp", "micro_batch", "zero"}) {
    const auto value = plan.number(name);
    const bool always =
        std::string_view(name) == "tp" || std::string_view(name) == "pp" || std::string_view(name) == "dp";
    if (value > 1 || always) { text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value); }
  }
  return fmt::format("{}; step {} ({} MFU)", text, format_seconds(campaign.estimate.step_time, 4),
                     percent(campaign.estimate.mfu));
}

std::string range_lines(const Campaign& campaign, TextStyle style) {
  std::string text = label("days") + bold(fmt::format("{}", days(campaign.days.p50)), style) +
                     fmt::format(" (80 % interval {} to {}): {} of steps at full speed", days(campaign.days.p10),
                                 days(campaign.days.p90), days(campaign.useful_days));
  text += fmt::format("; luck alone +-{:.2g} days\n", campaign.luck_days);
  if (!campaign.end.empty()) {
    text += fmt::format("{}{} to {} (80 % interval {} to {})\n", label("calendar"), campaign.start, campaign.end,
                        campaign.end_p10, campaign.end_p90);
  }
  text +=
      line("ETTR", fmt::format("{} of the time is useful{}", percent(campaign.ettr),
                               campaign.formula == "meta" ? ", by Meta's first-order formula; days are exact" : ""));
  return text;
}

std::string bar_lines(const Campaign& campaign, bool explain) {
  std::string text;
  for (const auto& part : campaign.bar) {
    constexpr double kLongest = 40.0;
    std::string name = part.name;
    std::replace(name.begin(), name.end(), '_', ' ');
    const auto length = static_cast<std::size_t>(std::max(0.0, std::round(part.share * kLongest)));
    text += fmt::format("  {:<16}{:>8}  {:>7} d  {}\n", name, percent(part.share), days(part.share * campaign.days.p50),
                        std::string(length, '#'));
    if (explain && !part.formula.empty()) { text += wrapped("      ", part.formula); }
  }
  return text;
}

std::string failure_lines(const Campaign& campaign) {
  std::string text;
  text += line("failures",
               fmt::format("{:g} per 1,000 node-days (80 % interval {:g} to {:g}), counting {}",
                           campaign.failures_per_1000_node_days, campaign.failures_low, campaign.failures_high,
                           campaign.failure_counts == "any" ? "anything that ends the job" : campaign.failure_counts));
  const double mean = campaign.mean_time_between_interruptions_s;
  text += line("", fmt::format("{:.0f} interruption{} (80 % interval {:.0f} to {:.0f}), one every {}",
                               campaign.interruptions.p50, std::round(campaign.interruptions.p50) == 1.0 ? "" : "s",
                               campaign.interruptions.p10, campaign.interruptions.p90,
                               mean > 0.0 ? format_seconds(Seconds(mean)) : std::string("-")));
  std::vector<std::string> causes;
  for (const auto& cause : campaign.causes) {
    causes.push_back(fmt::format("{} {:.3g}", cause.name, cause.interruptions));
  }
  text += line("", "by cause, those of nodes in Llama 3's proportions:");
  text += wrapped_list(label("") + "  ", causes);
  if (campaign.largest_devices > 0) {
    text += line(
        "", fmt::format("up to {} devices, at least half of the time is useful", grouped(campaign.largest_devices)));
  }
  return text;
}

// "+0.33 days"; a change too small to show has no sign.
std::string more_days(double days) {
  constexpr double kShown = 0.005;
  return std::abs(days) < kShown ? std::string("0.00 days") : fmt::format("{:+.2f} days", days);
}

std::string checkpoint_lines(const Campaign& campaign) {
  const auto& facts = campaign.checkpoint;
  const bool is_taken = is_finite(facts.interval) && facts.interval > Seconds(0);
  std::string text = line(
      "checkpoints", fmt::format("{}: {} ({} per device), pause {}, flush {}, load {}",
                                 is_taken                    ? "every " + format_seconds(facts.interval)
                                 : is_finite(facts.interval) ? "free, at any time"
                                                             : "none: nothing fails",
                                 format_bytes(facts.total), format_bytes(facts.per_device), format_seconds(facts.pause),
                                 format_seconds(facts.flush), format_seconds(facts.load)));
  if (!is_taken) { return text; }
  const std::string other =
      facts.halved ? fmt::format("half the interval {}, twice {}; ", more_days(*facts.halved - campaign.days.p50),
                                 more_days(*facts.doubled - campaign.days.p50))
                   : std::string();
  text += line("", fmt::format("{}storage {} (needed {}); keep {}", other, format_rate(facts.storage),
                               format_rate(facts.needed), facts.kept));
  if (facts.memory_interval) {
    text += line("", fmt::format("copies in memory every {}; {} of failures leave one",
                                 format_seconds(*facts.memory_interval), percent(facts.recoverable)));
  }
  return text;
}

std::string spares_table(const Campaign& campaign) {
  Table table;
  table.column("spare nodes").column("a node is there").column("wait").column("drop replicas").column("regroup");
  for (const auto& row : campaign.spares) {
    table.row({fmt::format("{}{}", row.chosen ? "* " : "", row.spares), percent(row.probability), percent(row.waiting),
               percent(row.fixed), percent(row.regrouped)});
  }
  return table.text(2);
}

std::string expense_lines(const Campaign& campaign) {
  std::string text =
      line("hours", fmt::format("{} device-hours, and {} of spare devices", format_count(campaign.device_hours, 4),
                                format_count(campaign.spare_device_hours)));
  if (const auto& money = campaign.money) {
    text += line("money", fmt::format("{} ({} of it for spares): {}", dollars(money->usd), dollars(money->spares_usd),
                                      money->basis));
  } else {
    text += line("money", "no price: --usd-per-device-hour with --price-date, or --node-price-usd");
  }
  constexpr double kJoulesPerMWh = 3.6e9;
  if (const auto& energy = campaign.energy) {
    text += line("energy", fmt::format("{:.4g} MWh: {}", energy->site_J / kJoulesPerMWh, energy->basis));
  }
  if (const auto& carbon = campaign.carbon) {
    text += line("carbon", fmt::format("{:.4g} t CO2e: {}", carbon->location_kg / 1000.0, carbon->basis));
    text += line(
        "", fmt::format("embodied apart: {:.4g} t CO2e ({})", carbon->embodied_kg / 1000.0, carbon->embodied_basis));
  }
  return text;
}

std::string changes_table(const Campaign& campaign) {
  if (campaign.what_ifs.empty()) { return {}; }
  Table table;
  table.column("what if", Table::Align::left).column("days saved").column("USD");
  table.column("flags", Table::Align::left);
  for (const auto& change : campaign.what_ifs) {
    const bool has_usd = change.usd_change.has_value();
    table.row({"  " + change.change, fmt::format("{:+.2f}", change.days_saved),
               has_usd ? fmt::format("{}{}", *change.usd_change < 0 ? "-" : "+", dollars(std::abs(*change.usd_change)))
                       : std::string("-"),
               change.flags});
  }
  return "\n" + table.text() +
         "  (sorted by days saved per dollar of the campaign; what a change itself costs is not known here)\n";
}

std::string simulation_lines(const Campaign& campaign) {
  if (!campaign.simulation) { return {}; }
  const auto& runs = *campaign.simulation;
  constexpr double kRounding = 1e-9;  // without chance the two differ by rounding
  const double errors = runs.standard_error_days > kRounding * runs.mean_days
                            ? (runs.mean_days - runs.closed_form_days) / runs.standard_error_days
                            : 0.0;
  const std::string agreement = runs.note.empty() ? fmt::format(": {:+.1f} standard errors", errors) : std::string();
  return line("simulated",
              fmt::format("{} by events: mean {:.4g} days +- {:.2g} (closed form {:.4g}{}), p10 {:.4g}, p50 "
                          "{:.4g}, p90 {:.4g}, {:.0f} interruptions",
                          counted(runs.campaigns, "campaign"), runs.mean_days, runs.standard_error_days,
                          runs.closed_form_days, agreement, runs.days.p10, runs.days.p50, runs.days.p90,
                          runs.interruptions)) +
         (runs.note.empty() ? std::string() : line("", runs.note));
}

std::string wide_area_lines(const Campaign& campaign) {
  if (!campaign.wide_area) { return {}; }
  const auto& area = *campaign.wide_area;
  std::string text =
      line("sites", fmt::format("{}, {}, {}: round {}, exchange {} ({} exposed); compute utilization {}",
                                counted(area.sites, "site"), counted(area.local_steps, "local step"), area.aggregate,
                                format_seconds(area.round), format_seconds(area.exchange), format_seconds(area.exposed),
                                percent(area.compute_utilization)));
  text += line("", fmt::format("{} sent per site and round, {:.4g} times less than gradients in bf16 at every step; "
                               "synchronous training over the same links, 2/3 of each step hides its exchange: "
                               "utilization {}, {:.3g} times the time to the "
                               "same loss (assumed: {:g} times the tokens with local steps)",
                               format_bytes(area.sent_per_round), area.reduction, percent(area.synchronous_utilization),
                               area.faster_than_synchronous, area.loss_factor));
  return text;
}

std::string header(const Campaign& campaign, TextStyle style) {
  const auto& estimate = campaign.estimate;
  const std::string sites =
      campaign.wide_area ? fmt::format("each of {} with ", counted(campaign.wide_area->sites, "site")) : std::string();
  std::string text = bold(fmt::format("{} tokens of {} on {}{} of {}", format_count(campaign.tokens, 4), estimate.model,
                                      sites, counted(estimate.devices, "device"), estimate.cluster),
                          style) +
                     "\n";
  text += line("plan", plan_of(campaign));
  if (!campaign.chosen.empty()) { text += wrapped_list(label("chosen"), campaign.chosen); }
  text += line("work", fmt::format("{} steps; {} of {}, replicas of {}", format_count(campaign.steps, 4),
                                   counted(campaign.nodes, "node"), campaign.node_devices,
                                   counted(campaign.replica_nodes, "node")));
  return text;
}

}  // namespace
}  // namespace of_campaign_text

std::string campaign_text(const results::Campaign& campaign, bool explain, TextStyle style) {
  using namespace of_campaign_text;
  std::string text =
      header(campaign, style) + "\n" + range_lines(campaign, style) + bar_lines(campaign, explain) + "\n";
  text += failure_lines(campaign) + checkpoint_lines(campaign) + wide_area_lines(campaign) + simulation_lines(campaign);
  text += expense_lines(campaign) + "\n" + spares_table(campaign) + changes_table(campaign);
  for (const auto& warning : campaign.warnings) { text += wrapped("warning: ", warning); }
  text += "\n";
  for (const auto& effect : campaign.not_modelled) { text += wrapped("not modelled: ", effect); }
  return text;
}

}  // namespace orrery::report
