// The figures of a cluster and of a software stack that a calibration fits: those with a meaning of their own, which
// measurements of one machine can determine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/calibrate/least_squares.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"

namespace orrery::calibrate {

// What is fitted. The cluster is as its file describes it, for any number of devices.
struct Target {
  hardware::Cluster cluster;
  hardware::Stack stack;  // without a name: none, because no run is measured
};

enum class Owner : std::uint8_t { accelerator, link, stack };

struct Figure {
  Owner owner = Owner::accelerator;
  std::string of;                            // name of the accelerator, link class or stack
  std::string name;                          // as in its file: "memory_efficiency", "protocols.*.ring_step"
  std::string meaning;                       // in a few words
  bool is_time = false;                      // in seconds
  bool is_factor = false;                    // of several figures; starts at 1
  Unknown unknown;                           // its value in the target, bounds, and prior
  std::function<void(Target&, double)> set;  // of a target that has not been changed
};

// Marks the figure in the sources of its entry; citations that covered it no longer do.
void cite(Target& target, const Figure& figure, std::string_view citation);

// "accelerator", "link", "stack".
[[nodiscard]] std::string_view name_of(Owner owner);

// Figures of `target` that exist, in the order: accelerator, links from the innermost, stack. `formats`: number formats
// of GEMMs in the rows.
[[nodiscard]] std::vector<Figure> figures_of(const Target& target, const std::vector<hardware::Precision>& formats);

}  // namespace orrery::calibrate
