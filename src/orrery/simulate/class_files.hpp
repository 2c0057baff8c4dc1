// The files of `orrery generate --classes`: PREFIX.classes.json and the graphs that it names. Format:
// docs/guide/generate.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/simulate/class_job.hpp"

namespace orrery::simulate {

// The classes file of a workload that is one prefix with PREFIX.classes.json, or such a file itself; none if the
// workload is something else.
[[nodiscard]] std::optional<std::string> classes_file_of(const std::vector<std::string>& workload);

struct ClassFiles {
  std::string file;
  std::uint32_t class_ranks = 0;
  network::NodeEgress egress = network::NodeEgress::all_ports;
  parallel::Layout layout;  // of pinned placements; otherwise empty
  std::vector<GroupFamily> families;
  std::vector<std::string> graphs;  // of each class

  [[nodiscard]] std::uint32_t ranks() const { return class_ranks * static_cast<std::uint32_t>(graphs.size()); }
};

// All errors of the classes file; the graphs are not read.
[[nodiscard]] Result<ClassFiles> read_class_files(const std::string& file);

// The graphs on a cluster with as many devices as there are ranks. Of `files`, spans, tables and threads are used.
[[nodiscard]] Result<ClassJob> read_class_job(const hardware::Cluster& cluster, const ClassFiles& classes,
                                              const SimulationFiles& files);

}  // namespace orrery::simulate
