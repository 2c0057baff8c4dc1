// Options of `orrery plan` besides the job: the method of the search, and the contents of its answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/record_flags.hpp"
#include "orrery/config/record.hpp"
#include "orrery/core/units.hpp"
#include "orrery/results/objective.hpp"

namespace orrery::cli {

// Spaces that ship; anything else is a file.
inline constexpr const char* kDefaultSpace = "default";
inline constexpr const char* kWideSpace = "wide";

struct SearchChoices {
  std::int64_t top = 5;
  results::Objective objective = results::Objective::step_time;
  std::string tokens;  // of a campaign
  std::string device_counts;
  std::optional<Seconds> within;
  std::string space = kDefaultSpace;
  std::string headroom;
  std::int32_t threads = 0;
  bool variants = false;
  bool exhaustive = false;
  bool pareto = false;
  bool explain = false;
  bool what_if = false;
  std::optional<std::int64_t> sample, seed;
};

// Errors of options that contradict each other.
[[nodiscard]] std::vector<Diagnostic> problems(const SearchChoices& choices);

[[nodiscard]] const config::Record<SearchChoices>& search_record();
[[nodiscard]] Result<SearchChoices> search_choices(const RecordFlags& flags);

// The part of a device's memory that plans leave free: "5%" or "0.05"; 0 for an empty text.
[[nodiscard]] Result<double> headroom_of(const std::string& text);

}  // namespace orrery::cli
