// `orrery campaign`: a job and plan, trained to the end on machines that fail.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "orrery/api/inputs.hpp"
#include "orrery/campaign/setting.hpp"
#include "orrery/campaign/spec.hpp"
#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/results/campaign.hpp"
#include "orrery/results/incidents.hpp"

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

// An estimate as a campaign's job.
[[nodiscard]] Result<campaign::Job> campaign_job(const std::string& data_directory, const Inputs& inputs,
                                                 hardware::Precision precision, results::Estimate estimate,
                                                 const campaign::Spec& spec);
// The estimate of the plan of a request as a campaign's job.
[[nodiscard]] Result<campaign::Job> campaign_job(const std::string& data_directory, const estimate::Request& request,
                                                 const campaign::Spec& spec);

// The rates of a list of incidents: a CSV with the column time_h (hours since the begin of the list), and, if known,
// cause and downtime_min. `days`: length of the list, 0: until its last incident.
[[nodiscard]] Result<results::IncidentFit> fit_incident_log(const std::string& file, double devices, double days);

[[nodiscard]] Result<results::Campaign> run_campaign(const std::string& data_directory, const CampaignRequest& request);

}  // namespace orrery::api
