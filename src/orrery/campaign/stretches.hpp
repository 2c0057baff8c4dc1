// The course of a campaign over stretches of constant size and failure rate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/campaign/dates.hpp"
#include "orrery/campaign/expenses.hpp"
#include "orrery/campaign/setting.hpp"
#include "orrery/campaign/spec.hpp"

namespace orrery::campaign {

struct Stretch {
  Seconds begin;  // after the first step
  Size size;
  std::optional<double> usd_per_device_hour;
};

// At least one; the first begins at 0. Requires spec without problems.
[[nodiscard]] std::vector<Stretch> stretches_of(const Job& job, const Spec& spec);
// The first day of the campaign, if it is known.
[[nodiscard]] std::optional<Date> first_day(const Spec& spec);

// Nodes of which each has a micro-batch in a step: the global batch / (micro-batch x dp) is at least 1.
[[nodiscard]] std::int64_t busy_nodes(const Job& job);
// Capacity with more nodes than these.
[[nodiscard]] std::vector<std::string> capacity_warnings(const Job& job, const Spec& spec);

// Sums over a campaign, and its time.
struct Course {
  Seconds elapsed;
  Bar seconds;                                // of each part, in seconds instead of shares
  double interruptions = 0, corruptions = 0;  // at all sites; interruptions: of every cause
  double nodes = 0, job = 0, reclaims = 0;    // of them
  std::vector<double> domains;                // in the order of the spec
  double variance = 0;                        // over luck, s^2
  Hours hours;
  Setting first;  // of the first stretch
};

// The course of `work` seconds of full-speed steps (of the job's own size) at this failure rate.
[[nodiscard]] Course course_of(const Job& job, const Spec& spec, const std::vector<Stretch>& stretches, Seconds work,
                               double rate);

}  // namespace orrery::campaign
