// `estimate` and `plan` under MAD-Max's semantics.
#pragma once

#include <string>

#include "apps/cli/plan_choices.hpp"
#include "apps/cli/request_flags.hpp"

namespace orrery::cli {

[[nodiscard]] bool is_mad_max(const TypedRequest& typed);

// `timeline`: a file for both streams as a Chrome trace; empty: none.
[[nodiscard]] Result<int> print_mad_max_estimate(const TypedRequest& typed, bool json, const std::string& timeline);

[[nodiscard]] Result<int> print_mad_max_plan(const TypedRequest& typed, const SearchChoices& choices, bool json);

}  // namespace orrery::cli
