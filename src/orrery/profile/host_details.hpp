// What an execution trace knows about the operators of a profile of the same process, added to the profile: shapes,
// process groups, collectives, and what the host waits for.
#pragma once

#include <cstdint>

#include "orrery/profile/host_trace.hpp"
#include "orrery/profile/link.hpp"
#include "orrery/profile/profile.hpp"

namespace orrery::profile {

struct HostDetails {
  std::uint64_t shapes = 0;       // operators that had none
  std::uint64_t collectives = 0;  // kernels that had no metadata
  std::uint64_t waits = 0;        // entries that name the collective that is waited for
  std::uint64_t groups = 0;       // process groups with ranks that the profile did not list
};

// `link`: of `host` and `profile`. The host trace has to be read with HostTraceOptions::details.
[[nodiscard]] HostDetails add_host_details(Profile& profile, const HostTrace& host, const Link& link);

}  // namespace orrery::profile
