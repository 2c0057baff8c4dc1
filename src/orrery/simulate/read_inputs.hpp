// ASTRA-sim's configuration files to values. All errors of a file are reported together; ignored keys become warnings.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

using Warnings = std::vector<std::string>;

// What the command line adds to the system file.
struct SystemFlags {
  double injection_scale = 1;
  std::uint32_t queues_per_dimension = 1;
  bool rendezvous = false;
};

// `semantics` decides the unit of `bandwidth`: 2^30 or 10^9 bytes per second.
[[nodiscard]] Result<Network> read_network(const std::string& path, Semantics semantics, Warnings& warnings);
// Under physical semantics, settings of ASTRA-sim 1.0 have no effect.
[[nodiscard]] Result<System> read_system(const std::string& path, const SystemFlags& flags, Semantics semantics,
                                         Warnings& warnings);
[[nodiscard]] Result<memory::Expansion> read_memory(const std::string& path, Warnings& warnings);

// Ranks are below `ranks`, each once. A name is any text.
[[nodiscard]] Result<std::vector<Group>> read_groups(const std::string& path, std::uint32_t ranks);

}  // namespace orrery::simulate
