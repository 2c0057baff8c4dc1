// Profiles of a job's ranks to Chakra graphs, and replays of these with changes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "orrery/api/trace.hpp"
#include "orrery/core/error.hpp"
#include "orrery/profile/job_plan.hpp"
#include "orrery/profile/replay_read.hpp"
#include "orrery/report/profile_replay.hpp"

namespace orrery::api {

// Files are Kineto profiles, PyTorch execution traces, or both.
//
// Profiles: writes PREFIX.<rank>.et for each, and replays them to compare with the record. Execution traces of the same
// processes add shapes, process groups, communication and waits.
// Execution traces alone: writes PREFIX.<rank>.et for each, graphs without times; the position of the file
// stands for the rank where the traces do not tell their ranks apart.
[[nodiscard]] Result<report::ProfileImport> profile_import(const std::vector<std::string>& files,
                                                           const std::string& prefix, const TraceOptions& options = {});

// The names of the files that profile_import writes for a number of ranks, while they are not complete.
[[nodiscard]] std::vector<std::string> partial_imports(const std::vector<std::string>& files,
                                                       const std::string& prefix);

// Whether a workload (PREFIX, folder or files) consists of graphs that were imported from profiles.
[[nodiscard]] bool is_imported_workload(const std::vector<std::string>& workload);

// Fails if the graphs of a workload are not there, or if one of them is not a Chakra trace.
[[nodiscard]] Result<void> check_workload(const std::vector<std::string>& workload);

// Adds a graph that was imported, from its file.
[[nodiscard]] Result<void> read_graph(const std::string& file, profile::ReplayJob::Reader& reader);

struct ReplayOptions {
  profile::ReplayChange change;
  std::string cluster;  // collectives take the time of this machine; empty: the recorded one
};

[[nodiscard]] Result<report::ProfileReplay> profile_replay(const std::string& data_directory,
                                                           const std::vector<std::string>& workload,
                                                           const ReplayOptions& options);

}  // namespace orrery::api
