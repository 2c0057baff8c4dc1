// Normalised spelling: "H100 SXM" and "h100_sxm", "All-Reduce" and "allreduce", "Yes" and "true".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orrery/parallel/plan.hpp"

namespace orrery::validate {

// Lower case; blanks, underscores and hyphens become one hyphen.
[[nodiscard]] std::string dashed(std::string_view text);

// Letters and digits only, lower case.
[[nodiscard]] std::string letters_and_digits(std::string_view text);

// Blank, or a word for it: "-", "?", "n/a", "nan", "null", "unknown", "not stated".
[[nodiscard]] bool is_not_stated(std::string_view text);

// nullopt: neither.
[[nodiscard]] std::optional<bool> yes_or_no(std::string_view text);

// The choice that a table means. nullopt: none that estimate has, or none stated.
[[nodiscard]] std::optional<parallel::Recompute> recompute_spelled(std::string_view text);

}  // namespace orrery::validate
