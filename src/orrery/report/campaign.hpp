// A campaign as text and JSON.
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/campaign.hpp"
#include "orrery/results/incidents.hpp"

namespace orrery::report {

// `explain`: the formula of each part of the bar, with its numbers.
[[nodiscard]] std::string campaign_text(const results::Campaign& campaign, bool explain, TextStyle style = {});

// orrery.campaign/1. A figure without a price, power or start is null.
[[nodiscard]] std::string campaign_json(const results::Campaign& campaign);

// SVG: the bar of the elapsed time, and the share of useful time against the number of devices.
[[nodiscard]] std::string campaign_svg(const results::Campaign& campaign);

// Fitted rates, and how many incidents tell two rates apart.
[[nodiscard]] std::string incidents_text(const results::IncidentFit& fit, TextStyle style = {});
// orrery.incidents/1.
[[nodiscard]] std::string incidents_json(const results::IncidentFit& fit);

}  // namespace orrery::report
