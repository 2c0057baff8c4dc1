// Profiles of PyTorch: statistics of Kineto files, links of host and device traces, and their import to Chakra graphs.
#pragma once

#include <string>
#include <vector>

#include "orrery/api/trace.hpp"
#include "orrery/core/error.hpp"
#include "orrery/report/profile.hpp"

namespace orrery::api {

// Whether each file is a Kineto profile. Fails if a file cannot be read.
[[nodiscard]] Result<std::vector<bool>> are_kineto(const std::vector<std::string>& files);

[[nodiscard]] Result<std::vector<report::ProfileFacts>> profile_stats(const std::vector<std::string>& files,
                                                                      const TraceOptions& options = {});

// Links a PyTorch execution trace with a Kineto profile; writes a Chakra graph if `out` is not empty.
[[nodiscard]] Result<report::ProfileLink> profile_link(const std::string& host, const std::string& device,
                                                       const std::string& out, const TraceOptions& options = {});

}  // namespace orrery::api
