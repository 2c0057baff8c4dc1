// Figures of a description that its `sources` cover, and those that they do not.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/node.hpp"

namespace orrery::hardware {

// The figures that one key of Sources names: "layers, hidden" -> {"layers", "hidden"}.
[[nodiscard]] std::vector<std::string> cited_figures(std::string_view key);

// A citation that starts with "unverified".
[[nodiscard]] bool is_unverified(std::string_view citation);

// Figures of a description that no citation covers, as dotted paths ("protocols.LL.ring_base"). Names, descriptions,
// the basis and references to other entries are not figures.
[[nodiscard]] std::vector<std::string> uncited_figures(const config::Node& description);

// Figures in `sources` that the description does not have.
[[nodiscard]] std::vector<std::string> citations_of_nothing(const config::Node& description);

}  // namespace orrery::hardware
