// What a request names, read and checked: the first step of every question about a job.
#pragma once

#include <string>

#include "orrery/core/error.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::api {

struct Inputs {
  workload::Model model;
  hardware::Cluster cluster;
  hardware::Stack stack;
};

// Every mistake of the request, and of the files that it names, at once.
[[nodiscard]] Result<Inputs> read_inputs(const std::string& data_directory, const hardware::Catalogue& catalogue,
                                         const estimate::Request& request);

}  // namespace orrery::api
