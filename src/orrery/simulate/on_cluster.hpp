// A cluster of the catalogue as a machine for physical semantics, and the graphs of a workload. The links of each
// wiring and its algorithms: docs/models/physical.md.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::simulate {

// The files of ranks 0, 1, … For PREFIX: PREFIX.<rank>.et. For a folder: all <name>.<rank>.et in it, which must have
// one name. For several files: these files, sorted by the number in their names if each has one. They may be
// compressed, or JSON lines. Fails if a rank below the last has no file, unless gaps are allowed.
enum class Gaps { refused, allowed };
[[nodiscard]] Result<std::vector<std::string>> graphs_of(const std::vector<std::string>& workload,
                                                         Gaps gaps = Gaps::refused);

// A job without graphs and groups.
[[nodiscard]] SimulationJob machine_on(const hardware::Cluster& cluster);

[[nodiscard]] KernelRates rates_of(const hardware::Accelerator& accelerator);
// Of the accelerator of every device; empty if all nodes are alike.
[[nodiscard]] std::vector<KernelRates> kernel_rates(const hardware::Cluster& cluster);

// One graph per device. Of `files`, the graphs, groups, spans, tables and threads are used. `rates`: of the accelerator
// of every rank; empty: of the cluster's.
[[nodiscard]] Result<SimulationJob> read_job_on(const hardware::Cluster& cluster, const SimulationFiles& files);
[[nodiscard]] Result<SimulationJob> read_job_on(const hardware::Cluster& cluster, const SimulationFiles& files,
                                                std::vector<KernelRates> rates);

}  // namespace orrery::simulate
