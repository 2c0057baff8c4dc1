// What a listing says beyond its entries.
#pragma once

#include <string>

namespace orrery::report {

// A figure of a catalogue entry whose source nobody has seen.
struct UnverifiedFigure {
  std::string entry;   // "h100-sxm"
  std::string figure;  // "memory_efficiency", "accelerator.memory_efficiency"
  std::string why;     // what the catalogue says instead of a source
};

}  // namespace orrery::report
