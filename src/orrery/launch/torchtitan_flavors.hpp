// Models that torchtitan has by name, as the descriptions of what it builds.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orrery/launch/launch.hpp"
#include "orrery/launch/sheet.hpp"

namespace orrery::launch {

struct Flavor {
  std::string_view name, flavor;
  workload::Model model;
};

// The flavor with the sizes of this run's model, whatever its name.
[[nodiscard]] std::optional<Flavor> flavor_of(const TrainingRun& run);

// States the fields in which model and flavor agree, and adds one note with the others.
void compare_with_flavor(const TrainingRun& run, const Flavor& flavor, Sheet& sheet);

}  // namespace orrery::launch
