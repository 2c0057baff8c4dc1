// Results about profiles of PyTorch (Kineto) as text and as JSON documents.
#pragma once

#include <string>
#include <vector>

#include "orrery/profile/facts.hpp"
#include "orrery/profile/idle.hpp"
#include "orrery/report/text.hpp"

namespace orrery::report {

// A profile that was read: its facts, and what the reader repaired or skipped.
struct ProfileFacts {
  std::string file;
  profile::Facts facts;
  profile::IdleFacts idle;
  std::vector<std::string> notes;
};

[[nodiscard]] std::string profile_stats_text(const std::vector<ProfileFacts>& profiles, std::size_t most,
                                             TextStyle style = {});

// orrery.trace-stats/1: each file with its facts under "kineto".
[[nodiscard]] std::string profile_stats_json(const std::vector<ProfileFacts>& profiles, std::size_t most);

// Device time by kernel and by operator of two profiles.
[[nodiscard]] std::string profile_diff_text(const ProfileFacts& a, const ProfileFacts& b, std::size_t most,
                                            TextStyle style = {});
[[nodiscard]] std::string profile_diff_json(const ProfileFacts& a, const ProfileFacts& b, std::size_t most);

// Whether two profiles have the same kernels and operators with the same counts and times.
[[nodiscard]] bool same_work(const ProfileFacts& a, const ProfileFacts& b);

// How a host trace was linked to a profile.
struct ProfileLink {
  std::string host, device, out;
  std::string schema;  // of the host trace
  bool by_id = false;  // else by structure
  std::uint64_t operators = 0, linked = 0;
  std::uint64_t device_operations = 0, linked_device_operations = 0;
  std::vector<std::uint64_t> unlinked;  // ids of the first operators that were not linked
  std::vector<std::string> notes;
};

[[nodiscard]] std::string profile_link_text(const ProfileLink& link, TextStyle style = {});
[[nodiscard]] std::string profile_link_json(const ProfileLink& link);  // orrery.trace-link/1

}  // namespace orrery::report
