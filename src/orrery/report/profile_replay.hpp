// Imports and replays of profiles as text and JSON (orrery.trace-import/1, orrery.simulate/1).
#pragma once

#include <string>
#include <vector>

#include "orrery/profile/host_details.hpp"
#include "orrery/profile/host_graph.hpp"
#include "orrery/profile/rank_plan.hpp"
#include "orrery/profile/replay.hpp"
#include "orrery/profile/rows.hpp"
#include "orrery/report/text.hpp"

namespace orrery::report {

struct ImportedRank {
  std::string from, to;
  std::uint64_t rank = 0;
  std::uint64_t nodes = 0;
  profile::PlanCounts counts;
  profile::Latencies latencies;
  bool whole_microseconds = false;
  bool guessed_steps = false;
  std::int64_t clock_offset_ns = 0;
  std::uint64_t collectives = 0, collectives_alone = 0, collectives_guessed = 0;
};

// An execution trace that was given with the profile of its process.
struct ImportedHost {
  std::string from, profile;
  std::uint64_t operators = 0, linked = 0;
  profile::HostDetails added;
};

// An execution trace without a profile.
struct ImportedHostGraph {
  std::string from, to;
  profile::HostGraphCounts counts;
};

struct ProfileImport {
  std::vector<ImportedRank> ranks;
  std::vector<ImportedHost> hosts;
  std::vector<ImportedHostGraph> host_graphs;  // only without profiles
  profile::Replay replay;                      // of the written graphs, without changes
  profile::ProfileRows rows;                   // measurements
  std::vector<std::string> notes;
};

[[nodiscard]] std::string profile_import_text(const ProfileImport& import, TextStyle style = {});
[[nodiscard]] std::string profile_import_json(const ProfileImport& import);

struct ProfileReplay {
  profile::Replay replay;
  std::vector<std::string> kept;  // what is kept as recorded
  std::vector<std::string> warnings;
};

[[nodiscard]] std::string profile_replay_text(const ProfileReplay& replay, TextStyle style = {});
[[nodiscard]] std::string profile_replay_json(const ProfileReplay& replay);

}  // namespace orrery::report
