// Results about profiles of PyTorch (Kineto) as text and as JSON documents.
#pragma once

#include <string>
#include <vector>

#include "orrery/profile/facts.hpp"
#include "orrery/report/text.hpp"

namespace orrery::report {

// A profile that was read: its facts, and what the reader repaired or skipped.
struct ProfileFacts {
  std::string file;
  profile::Facts facts;
  std::vector<std::string> notes;
};

[[nodiscard]] std::string profile_stats_text(const std::vector<ProfileFacts>& profiles, std::size_t most,
                                             TextStyle style = {});

// orrery.trace-stats/1: each file with its facts under "kineto".
[[nodiscard]] std::string profile_stats_json(const std::vector<ProfileFacts>& profiles, std::size_t most);

}  // namespace orrery::report
