// Fields of a serving simulation in JSON. Private to the room.
#pragma once

#include "orrery/config/node.hpp"
#include "orrery/results/serving.hpp"

namespace orrery::report {

void add_serving(config::Node& json, const results::Serving& serving);

}  // namespace orrery::report
