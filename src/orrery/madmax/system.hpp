// A machine in MAD-Max's equations (arXiv 2310.02784): identical devices in identical nodes, one peak and utilisation
// for each resource, two rates of communication. Not modelled: latency, switches, algorithms, group size and message
// size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/entry.hpp"

namespace orrery::madmax {

// Dense peak by the width of an operand: 8, 4, 2, 1 bytes.
struct Peaks {
  FlopsPerSecond fp64, fp32, fp16, int8;
  friend bool operator==(const Peaks&, const Peaks&) = default;
};

// Identical links of a device (scale-up) or of a node (scale-out).
struct Interconnect {
  std::int64_t links = 0;
  BytesPerSecond bandwidth;  // of one, both directions together
  double utilisation = 1.0;

  // The achieved rate of one direction, all links together.
  [[nodiscard]] BytesPerSecond rate() const { return static_cast<double>(links) * bandwidth / 2.0 * utilisation; }
  friend bool operator==(const Interconnect&, const Interconnect&) = default;
};

struct System {
  std::string name;
  std::string description;
  std::int64_t devices = 1;
  std::int64_t devices_per_node = 1;
  Peaks peak;
  double peak_utilisation = 1.0;
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  double memory_utilisation = 1.0;
  Interconnect scale_up, scale_out;
  double all_reduce_blend = 1.0;  // share of the scale-up rate in that of an all-reduce between nodes
  double usd_per_device_hour = 0.0;
  double watts_per_device = 0.0;
  hardware::Sources sources;

  [[nodiscard]] std::int64_t nodes() const { return devices / devices_per_node; }
  [[nodiscard]] FlopsPerSecond effective_peak(double element_bytes) const;  // of 8, 4, 2 or 1 bytes
  [[nodiscard]] BytesPerSecond effective_memory_bandwidth() const { return memory_bandwidth * memory_utilisation; }
  friend bool operator==(const System&, const System&) = default;
};

// The same machine with `devices`: whole nodes. Fails where a system of one node would become several: its
// file has no figures between nodes.
[[nodiscard]] Result<System> scaled(System system, std::int64_t devices);

// `name_or_path`: a name of the catalogue ("madmax/" and a configuration's), or a file. `devices` 0: the file's own.
[[nodiscard]] Result<System> load_system(const std::string& data_directory, const std::string& name_or_path,
                                         std::int64_t devices);
// Whether a name or a file is such a system and not an Orrery cluster.
[[nodiscard]] bool is_system(const std::string& data_directory, const std::string& name_or_path);
[[nodiscard]] Result<std::vector<hardware::EntrySummary>> list_systems(const std::string& data_directory);
[[nodiscard]] std::string describe(const System& system);  // YAML that reads back

}  // namespace orrery::madmax

namespace orrery::config {

template <>
struct Described<madmax::Peaks> {
  static const Record<madmax::Peaks>& record();
};
template <>
struct Described<madmax::Interconnect> {
  static const Record<madmax::Interconnect>& record();
};
template <>
struct Described<madmax::System> {
  static const Record<madmax::System>& record();
};

}  // namespace orrery::config
