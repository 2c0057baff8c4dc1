// `orrery serve`: one deployment under a load, its operating curve, and the highest load within a service level.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/results/serving.hpp"
#include "orrery/serving/scenario.hpp"

namespace orrery::api {

struct ServeRequest {
  serving::Scenario scenario;
  bool names_engine = false;                     // the engine was given, not left to the default
  config::Node engine = config::mapping_node();  // settings of the engine that are given, over those of its profile
  bool each = false;                             // one entry for each request
  std::function<bool(std::int64_t done)> keep_going;
};

[[nodiscard]] Result<results::Serving> serve(const std::string& data_directory, const ServeRequest& request);

// The deployment at loads around the one of the request: rates, or numbers of clients, in steps of a factor of two.
[[nodiscard]] Result<results::ServingCurve> serve_sweep(const std::string& data_directory, const ServeRequest& request);

// The highest load that meets the scenario's service level, by bisection with the same requests at every rate. Fails
// with the nearest load where none meets it.
[[nodiscard]] Result<results::ServingCurve> serve_goodput(const std::string& data_directory,
                                                          const ServeRequest& request);

}  // namespace orrery::api
