// A cluster of the catalogue as the machine that physical semantics runs graphs on, and which graphs a workload is.
// How wirings become links, and the algorithms that go with them: docs/models/physical.md.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// The files of ranks 0, 1, … : of PREFIX those named PREFIX.<rank>.et; of a folder all <name>.<rank>.et in it, of one
// name; of several files those files, by the number in their names where each has one, else as they are given. They may
// be compressed, or lines of JSON.
[[nodiscard]] Result<std::vector<std::string>> graphs_of(const std::vector<std::string>& workload);

// Without graphs and groups.
[[nodiscard]] SimulationJob machine_on(const hardware::Cluster& cluster);

// One graph per device. Of `files`, the graphs, groups, spans, tables and threads are used.
[[nodiscard]] Result<SimulationJob> read_job_on(const hardware::Cluster& cluster, const SimulationFiles& files);

}  // namespace orrery::simulate
