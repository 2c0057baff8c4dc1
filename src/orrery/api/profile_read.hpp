// Reads Kineto profiles for the calls of profile.hpp and profile_import.hpp. Private to the room.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "orrery/api/trace.hpp"
#include "orrery/core/error.hpp"
#include "orrery/profile/kineto_read.hpp"

namespace orrery::api {

// Calls take(profile) for each file in order. Fails with the errors of all files that cannot be read.
[[nodiscard]] Result<void> read_profiles(const std::vector<std::string>& files, const TraceOptions& options,
                                         profile::KinetoOptions reading,
                                         const std::function<void(profile::Profile)>& take);

// What the reader repaired or dropped, for the user.
[[nodiscard]] std::vector<std::string> read_notes(const profile::Profile& profile);

}  // namespace orrery::api
