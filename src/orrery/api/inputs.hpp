// What a request names, read and checked: the first step of every question about a job.
#pragma once

#include <cstdint>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/estimate/spread.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::api {

struct Inputs {
  workload::Model model;
  hardware::Cluster cluster;
  hardware::Stack stack;
  estimate::Spreads spreads;
};

// With the range that the errors of such predictions give.
[[nodiscard]] results::Estimate with_uncertainty(results::Estimate estimate, const Inputs& inputs,
                                                 const parallel::Job& job);

// Where tokens per sequence come from when a training request does not say: nowhere, or the model's longest.
enum class Length : std::uint8_t { typed, longest };

// Every mistake of the request, and of the files that it names, at once.
[[nodiscard]] Result<Inputs> read_inputs(const std::string& data_directory, const hardware::Catalogue& catalogue,
                                         const estimate::Request& request, Length length = Length::typed);

}  // namespace orrery::api
