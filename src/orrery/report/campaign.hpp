// A campaign as text and JSON.
#pragma once

#include <string>

#include "orrery/report/text.hpp"
#include "orrery/results/campaign.hpp"

namespace orrery::report {

// `explain`: the formula of each part of the bar, with its numbers.
[[nodiscard]] std::string campaign_text(const results::Campaign& campaign, bool explain, TextStyle style = {});

// orrery.campaign/1. A figure without a price, power or start is null.
[[nodiscard]] std::string campaign_json(const results::Campaign& campaign);

}  // namespace orrery::report
