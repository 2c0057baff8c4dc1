// Normalised spelling: "H100 SXM" and "h100_sxm", "All-Reduce" and "allreduce", "Yes" and "true".
#pragma once

#include <initializer_list>
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

// Compares the numbers of versions: "0.5.10" is newer than "0.5.6", "0.5" older. A text that does not begin with a
// number, such as "nightly", is not older.
[[nodiscard]] bool is_older(std::string_view version, std::initializer_list<int> than);

// The choice that a table means. nullopt: none that estimate has, or none stated.
[[nodiscard]] std::optional<parallel::Recompute> recompute_spelled(std::string_view text);

}  // namespace orrery::validate
