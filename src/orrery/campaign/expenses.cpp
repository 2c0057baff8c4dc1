#include "orrery/campaign/expenses.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/hardware/expenses.hpp"

namespace orrery::campaign {

namespace {

constexpr double kHourSeconds = 3600.0, kYearHours = 365.0 * 24.0, kJoulesPerKWh = 3.6e6;
// An HGX H100 board of eight: 1,312 kg CO2e from cradle to gate (NVIDIA's product carbon footprint, read 2026-11); and
// 2,500 kg for a server of eight around it (arXiv:2211.02001, section 4.1).
constexpr double kBoardKg = 1312.0 / 8.0, kServerKg = 2500.0 / 8.0;

struct Watts {
  double busy = 0, idle = 0;
  std::string basis;
};

// Nameplate power per accelerator, W: the mean over nodes of several kinds; 0: of one kind it is not known. Written as
// differences from the first kind, so that equal kinds have its figure exactly.
double nameplate_watts(const hardware::Cluster& cluster) {
  const double first = cluster.accelerator.tdp_watts;
  double nodes = 0, beyond = 0;  // beyond: sum over nodes of what their accelerators need more than the first ones
  for (const hardware::Nodes& some : cluster.nodes) {
    if (!(some.accelerator.tdp_watts > 0.0)) { return 0.0; }
    nodes += static_cast<double>(some.count);
    beyond += static_cast<double>(some.count) * (some.accelerator.tdp_watts - first);
  }
  return nodes > 0.0 ? first + beyond / nodes : first;
}

std::optional<Watts> watts_of(const Job& job, const Spec& spec) {
  const hardware::Cluster& cluster = job.cluster;
  const double tdp = nameplate_watts(cluster);
  if (spec.device_watts) {
    return Watts{*spec.device_watts, std::min(spec.idle_watts, *spec.device_watts),
                 fmt::format("measured, {:g} W per accelerator; {:g} W while down", *spec.device_watts,
                             std::min(spec.idle_watts, *spec.device_watts))};
  }
  if (spec.power_basis == PowerBasis::node && cluster.node_power_watts > 0.0) {
    const double busy = cluster.node_power_watts / static_cast<double>(cluster.node_size());
    const double host = std::max(0.0, busy - tdp), idle = std::min(busy, host + spec.idle_watts);
    return Watts{busy, idle,
                 fmt::format("nameplate of the node, {:g} W per accelerator; {:g} W while down", busy, idle)};
  }
  if (tdp > 0.0) {
    const double idle = std::min(spec.idle_watts, tdp);
    return Watts{
        tdp, idle,
        fmt::format("{}, {:g} W, nothing else included; {:g} W while down",
                    cluster.nodes.empty() ? "nameplate of the accelerator" : "mean nameplate of the accelerators", tdp,
                    idle)};
  }
  return std::nullopt;
}

struct Price {
  double per_hour = 0;
  bool with_power = false;  // electricity comes on top
  std::string basis;
};

std::optional<Price> price_of(const Job& job, const Spec& spec) {
  const hardware::Cluster& cluster = job.cluster;
  if (spec.usd_per_device_hour) {
    return Price{
        *spec.usd_per_device_hour, false,
        fmt::format("rented at {:g} USD per device and hour ({})", *spec.usd_per_device_hour, spec.price_date)};
  }
  if (!spec.node_price_usd && cluster.usd_per_device_hour > 0.0) {
    const auto source = cluster.sources.find("usd_per_device_hour");
    return Price{cluster.usd_per_device_hour, false,
                 fmt::format("rented at {:g} USD per device and hour ({})", cluster.usd_per_device_hour,
                             source == cluster.sources.end() ? "no source" : source->second)};
  }
  const double node = spec.node_price_usd.value_or(cluster.node_price_usd);
  if (node > 0.0) {
    const double overhead = spec.network_share + spec.storage_share;
    const auto devices = static_cast<double>(cluster.node_size());
    return Price{
        written_off_usd_per_hour(node, devices, overhead, spec.write_off_years, spec.node_use), true,
        fmt::format("purchased: {:g} USD per node of {}, {:.0f} % more for network and storage, written off over {:g} "
                    "years at {:.0f} % use; electricity at {:g} USD/kWh",
                    node, cluster.node_size(), 100.0 * overhead, spec.write_off_years, 100.0 * spec.node_use,
                    spec.usd_per_kwh)};
  }
  return std::nullopt;
}

}  // namespace

double embodied_kg(double kg, double hours, double years, double use) {
  return kg * hours / (years * kYearHours * use);
}

double site_energy_J(double hours, double watts, double pue) { return hours * kHourSeconds * watts * pue; }

double written_off_usd_per_hour(double node_usd, double devices, double overhead, double years, double use) {
  return node_usd * (1.0 + overhead) / devices / (years * kYearHours * use);
}

std::vector<std::string> power_warnings(const Job& job, const Spec& spec) {
  const double most = spec.device_watts.value_or(nameplate_watts(job.cluster));
  if (!(most > 0.0) || spec.idle_watts <= most) { return {}; }
  return {fmt::format("--idle-watts {:g}: above the {} of {:g} W per accelerator, which is used instead",
                      spec.idle_watts, spec.device_watts ? "measured power" : "nameplate", most)};
}

std::optional<results::CampaignEnergy> energy_of(const Job& job, const Spec& spec, const Hours& hours) {
  const auto watts = watts_of(job, spec);
  if (!watts) { return std::nullopt; }
  results::CampaignEnergy energy;
  energy.busy_J = hours.busy * kHourSeconds * watts->busy;
  energy.idle_J = (hours.down + hours.spare) * kHourSeconds * watts->idle;
  energy.network_J = (hours.job() + hours.spare) * kHourSeconds * spec.network_watts_per_device;
  energy.site_J = (energy.busy_J + energy.idle_J + energy.network_J) * spec.pue;
  energy.basis = fmt::format("{}; PUE {:g}", watts->basis, spec.pue);
  return energy;
}

std::optional<results::CampaignMoney> money_of(const Job& job, const Spec& spec, const Hours& hours,
                                               const std::optional<results::CampaignEnergy>& energy) {
  const auto price = price_of(job, spec);
  const double all = hours.job() + hours.spare;
  if (!price && !(hours.at_stretch_prices >= all)) { return std::nullopt; }
  const double per_hour = price ? price->per_hour : 0.0;
  const double power = price && price->with_power && energy ? energy->site_J / kJoulesPerKWh * spec.usd_per_kwh : 0.0;
  results::CampaignMoney money;
  money.usd = hours.at_stretch_prices_usd + (all - hours.at_stretch_prices) * per_hour + power;
  money.per_hour = all > 0.0 ? money.usd / all : 0.0;
  money.spares_usd = hours.spare * money.per_hour;
  const std::string dated = fmt::format(" ({})", spec.price_date);
  money.basis = price ? price->basis : "prices of the capacity entries" + dated;
  if (price && hours.at_stretch_prices > 0.0) { money.basis += "; capacity entries at their own prices" + dated; }
  return money;
}

std::optional<results::CampaignCarbon> carbon_of(const Job& job, const Spec& spec, const Hours& hours,
                                                 const std::optional<results::CampaignEnergy>& energy) {
  if (!energy) { return std::nullopt; }
  results::CampaignCarbon carbon;
  carbon.location_kg = energy->site_J / kJoulesPerKWh * job.grid_g_per_kwh / 1000.0;
  carbon.basis = fmt::format("location-based, {}", job.grid);
  const double kg = spec.embodied_kg_per_device.value_or(kBoardKg + kServerKg);
  carbon.embodied_kg = embodied_kg(kg, hours.job() + hours.spare, spec.embodied_years, spec.embodied_use);
  carbon.embodied_basis = fmt::format("{:g} kg per accelerator with its share of the node, {:g} years at {:.0f} % use",
                                      kg, spec.embodied_years, 100.0 * spec.embodied_use);
  return carbon;
}

}  // namespace orrery::campaign
