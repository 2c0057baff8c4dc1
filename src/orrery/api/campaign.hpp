// `orrery campaign`: a job and plan, trained to the end on machines that fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "orrery/campaign/setting.hpp"
#include "orrery/campaign/spec.hpp"
#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/results/campaign.hpp"

namespace orrery::api {

struct CampaignRequest {
  estimate::Request job;
  campaign::Spec spec;
  std::int64_t simulate = 0;  // campaigns by events; 0: none
  std::uint64_t seed = 0;
  int threads = 0;
  bool what_if = true;
  std::function<void(std::int64_t done)> progress;  // of the simulation
};

// The estimate of the plan as a campaign's job.
[[nodiscard]] Result<campaign::Job> campaign_job(const std::string& data_directory, const estimate::Request& request,
                                                 const campaign::Spec& spec);

[[nodiscard]] Result<results::Campaign> run_campaign(const std::string& data_directory, const CampaignRequest& request);

}  // namespace orrery::api
