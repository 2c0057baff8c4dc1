// Carbon intensity of electricity by country: data/grids.yaml.
#pragma once

#include <string>

#include "orrery/core/error.hpp"

namespace orrery::campaign {

struct Grid {
  double g_per_kwh = 0;
  std::string text;  // "FR, 56 g CO2e/kWh (2023)"
};

// A country of the table, "world", or a number of g CO2e/kWh. Errors name --grid.
[[nodiscard]] Result<Grid> grid_of(const std::string& data_directory, const std::string& name);

}  // namespace orrery::campaign
