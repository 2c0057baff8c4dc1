#include "orrery/madmax/system.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/hardware/reference.hpp"

namespace orrery::config {

using madmax::Interconnect;
using madmax::Peaks;
using madmax::System;

namespace {

constexpr double kLeastFraction = 1e-6;
constexpr Bounds<double> kFraction{.min = kLeastFraction, .max = 1.0};
constexpr Bounds<FlopsPerSecond> kPeak{.min = FlopsPerSecond(1.0), .max = FlopsPerSecond(1e21), .unit = "TFLOP/s"};
constexpr Bounds<BytesPerSecond> kRate{.min = BytesPerSecond(1.0), .max = BytesPerSecond(1e18), .unit = "GB/s"};
constexpr std::int64_t kMostDevices = 100'000'000;

Objection nodes_are_whole(const System& system) {
  if (system.devices % system.devices_per_node == 0) { return {}; }
  return {"/devices", fmt::format("{} devices do not fill whole nodes of {}", system.devices, system.devices_per_node)};
}

}  // namespace

const Record<Peaks>& Described<Peaks>::record() {
  static const auto record = Record<Peaks>("peaks", "Dense peak by the width of an operand.")
                                 .required("fp64", &Peaks::fp64, "8 bytes", kPeak)
                                 .required("fp32", &Peaks::fp32, "4 bytes", kPeak)
                                 .required("fp16", &Peaks::fp16, "2 bytes", kPeak)
                                 .required("int8", &Peaks::int8, "1 byte", kPeak);
  return record;
}

const Record<Interconnect>& Described<Interconnect>::record() {
  static const auto record =
      Record<Interconnect>("links", "Interconnect of a device, or of a node.")
          .required("links", &Interconnect::links, "how many", {.min = 1, .max = 1'000'000})
          .required("bandwidth", &Interconnect::bandwidth, "of one link, both directions together", kRate)
          .required("utilisation", &Interconnect::utilisation, "achieved fraction of it", kFraction);
  return record;
}

const Record<System>& Described<System>::record() {
  static const auto record =
      Record<System>("system", "A machine in MAD-Max's equations.")
          .optional("name", &System::name, "name; default: the file's name")
          .optional("description", &System::description, "what it is")
          .required("devices", &System::devices, "all of them", {.min = 1, .max = kMostDevices})
          .required("devices_per_node", &System::devices_per_node, "devices that scale-up links join",
                    {.min = 1, .max = kMostDevices})
          .required("peak", &System::peak, "of one device")
          .required("peak_utilisation", &System::peak_utilisation, "achieved fraction in GEMMs", kFraction)
          .required("memory", &System::memory, "of one device", {.positive = true, .unit = "GB"})
          .required("memory_bandwidth", &System::memory_bandwidth, "of one device", kRate)
          .required("memory_utilisation", &System::memory_utilisation, "achieved fraction in embedding lookups",
                    kFraction)
          .required("scale_up", &System::scale_up, "links of one device inside its node")
          .required("scale_out", &System::scale_out, "links of one node, shared by its devices")
          .required("all_reduce_blend", &System::all_reduce_blend,
                    "an all-reduce between nodes runs at this fraction of the scale-up rate plus one minus it of the "
                    "scale-out rate",
                    {.min = 0.0, .max = 1.0})
          .optional("usd_per_device_hour", &System::usd_per_device_hour, "rent of one device; 0: not known",
                    {.min = 0.0, .max = 1e6})
          .optional("watts_per_device", &System::watts_per_device,
                    "of one device and its share of the node; 0: not known", {.min = 0.0, .max = 1e6})
          .optional("sources", &System::sources, "figure -> where it was read")
          .check(nodes_are_whole);
  return record;
}

}  // namespace orrery::config

namespace orrery::madmax {

FlopsPerSecond System::effective_peak(double element_bytes) const {
  const FlopsPerSecond most = element_bytes >= 8.0   ? peak.fp64
                              : element_bytes >= 4.0 ? peak.fp32
                              : element_bytes >= 2.0 ? peak.fp16
                                                     : peak.int8;
  return most * peak_utilisation;
}

Result<System> scaled(System system, std::int64_t devices) {
  const Place place{"", 0, 0, "--devices"};
  if (devices % system.devices_per_node != 0) {
    return fail(place, fmt::format("{} devices do not fill whole nodes: {} has {} devices per node", devices,
                                   system.name, system.devices_per_node));
  }
  const bool was_one = system.nodes() == 1;
  system.devices = devices;
  if (was_one && system.nodes() > 1) {
    return fail(place,
                fmt::format("{} has one node and no figures for links between nodes; use a system with several nodes",
                            system.name));
  }
  return system;
}

Result<System> load_system(const std::string& data_directory, const std::string& name_or_path, std::int64_t devices) {
  ORRERY_TRY(node, hardware::entry_node(data_directory, hardware::kMadMaxSystems, name_or_path));
  hardware::name_node(node, hardware::file_stem(name_or_path));
  ORRERY_TRY(system, config::Described<System>::record().read(node));
  if (devices == 0) { return system; }
  return scaled(std::move(system), devices);
}

bool is_system(const std::string& data_directory, const std::string& name_or_path) {
  const auto names = hardware::entry_names(data_directory, hardware::kMadMaxSystems);
  if (std::binary_search(names.begin(), names.end(), name_or_path)) { return true; }
  const auto file = hardware::entry_file(data_directory, hardware::kMadMaxSystems, name_or_path);
  if (!file) { return false; }
  const auto node = config::read_file(*file);
  return node && node->find("all_reduce_blend") != nullptr;
}

Result<std::vector<hardware::EntrySummary>> list_systems(const std::string& data_directory) {
  std::vector<hardware::EntrySummary> summaries;
  for (const auto& name : hardware::entry_names(data_directory, hardware::kMadMaxSystems)) {
    ORRERY_TRY(system, load_system(data_directory, name, 0));
    summaries.push_back({system.name, system.description, 0, 0});
    hardware::count_sources(system.sources, summaries.back());
  }
  return summaries;
}

std::string describe(const System& system) { return config::Described<System>::record().print_yaml(system); }

}  // namespace orrery::madmax
