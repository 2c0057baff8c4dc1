// Additional information of a listing.
#pragma once

#include <string>

namespace orrery::report {

// A figure of a catalogue entry whose source is not verified.
struct UnverifiedFigure {
  std::string entry;   // "h100-sxm"
  std::string figure;  // "memory_efficiency", "accelerator.memory_efficiency"
  std::string why;     // the reason that the catalogue gives instead of a source
};

}  // namespace orrery::report
