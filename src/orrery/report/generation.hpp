// What `generate` has written, as text and as a JSON document (orrery.generate/1).
#pragma once

#include <string>

#include "orrery/results/generation.hpp"

namespace orrery::report {

[[nodiscard]] std::string generation_text(const results::Generation& generation);
[[nodiscard]] std::string generation_json(const results::Generation& generation);

}  // namespace orrery::report
