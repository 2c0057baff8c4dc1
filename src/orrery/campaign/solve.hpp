// A campaign from its first to its last step, in closed form.
//
// The campaign is cut into stretches of constant size and rate (entries of `capacity`, the early failures of a new
// cluster); in each, work advances by the share of useful time. Days: p50 at the given rate and step time; p10 and p90
// add three independent ranges in quadrature of logarithms: step time (the estimate's 80 % interval), failure rate, and
// luck. Left out: correlation between them.
#pragma once

#include <cstdint>
#include <functional>

#include "orrery/campaign/expenses.hpp"
#include "orrery/campaign/setting.hpp"
#include "orrery/campaign/spec.hpp"
#include "orrery/core/error.hpp"
#include "orrery/results/campaign.hpp"

namespace orrery::campaign {

// Errors name flags. The simulation and what-ifs are not part of it.
[[nodiscard]] Result<results::Campaign> solve(const Job& job, const Spec& spec);

// Changes of the campaign, the most days saved per dollar first: changes that cost nothing or save money lead, by days.
[[nodiscard]] std::vector<results::CampaignChange> what_ifs(const Job& job, const Spec& spec,
                                                            const results::Campaign& now);

// Campaigns by events. Of a campaign of one stretch; others fail with the flag.
[[nodiscard]] Result<results::CampaignSimulation> simulated(const Job& job, const Spec& spec,
                                                            const results::Campaign& campaign, std::int64_t count,
                                                            std::uint64_t seed, int threads,
                                                            const std::function<void(std::int64_t)>& progress = {});

}  // namespace orrery::campaign
