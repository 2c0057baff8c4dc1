// What a campaign costs: money, energy, carbon, each with its basis.
//
// Money: rent of every device-hour, spare nodes included; or purchase, written off over the hours in use, with a share
// for network and storage, and the electricity. Energy: nameplate power of nodes or of accelerators, or measured power
// per accelerator, while the job computes; while it is down, accelerators idle and the rest of the node runs on. The
// PUE multiplies all of it. Carbon: energy times the grid's intensity where the job runs (location-based); embodied
// carbon apart, a device's share of its life. Left out: cooling below the PUE, staff, buildings, water.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/campaign/setting.hpp"
#include "orrery/core/units.hpp"
#include "orrery/results/campaign.hpp"

namespace orrery::campaign {

// Hours of the job's devices: those in which the job computes (pauses and lost work included) and the others; and of
// spare devices. `usd`: what rented hours cost where a stretch has its own price; empty: all at one price.
struct Hours {
  double busy = 0, down = 0, spare = 0;
  double at_stretch_prices_usd = 0, at_stretch_prices = 0;  // USD, device-hours

  [[nodiscard]] double job() const { return busy + down; }
};

// Idle power that is above the power of a busy accelerator, which limits it.
[[nodiscard]] std::vector<std::string> power_warnings(const Job& job, const Spec& spec);
[[nodiscard]] std::optional<results::CampaignEnergy> energy_of(const Job& job, const Spec& spec, const Hours& hours);
[[nodiscard]] std::optional<results::CampaignMoney> money_of(const Job& job, const Spec& spec, const Hours& hours,
                                                             const std::optional<results::CampaignEnergy>& energy);
[[nodiscard]] std::optional<results::CampaignCarbon> carbon_of(const Job& job, const Spec& spec, const Hours& hours,
                                                               const std::optional<results::CampaignEnergy>& energy);

// kg CO2e of `hours` of a device of which making emitted `kg`, over a life of `years` in use for `use` of the time.
[[nodiscard]] double embodied_kg(double kg, double hours, double years, double use);
// J of `hours` at `watts` on a site with this PUE.
[[nodiscard]] double site_energy_J(double hours, double watts, double pue);
// USD of a device-hour of purchased nodes, without electricity.
[[nodiscard]] double written_off_usd_per_hour(double node_usd, double devices, double overhead, double years,
                                              double use);

}  // namespace orrery::campaign
