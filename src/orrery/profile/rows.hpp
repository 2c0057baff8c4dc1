// Measurements in a profile as rows that `orrery validate --data` and `orrery calibrate` read: matrix products with
// their shapes, and collectives with their size and their time on the wire.
//
// Left out: products without recorded shapes (record_shapes), collectives whose size is not known, and those whose time
// contains waiting for ranks without a file.
#pragma once

#include <string>
#include <string_view>

#include "orrery/profile/job_plan.hpp"

namespace orrery::profile {

struct ProfileRows {
  std::string kernels, collectives;  // CSV with header
  std::uint64_t kernel_rows = 0, collective_rows = 0;
  std::uint64_t steps = 0;
  std::int64_t step_ns = 0;  // median over steps of the slowest rank's, where there are any
};

// The step as a row whose prediction is a command of orrery: columns id, args, measured_s, source.
[[nodiscard]] std::string step_rows(const ProfileRows& rows, std::string_view command);

[[nodiscard]] ProfileRows rows_of(const JobPlan& job);

}  // namespace orrery::profile
