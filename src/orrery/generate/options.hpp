// What a generated graph contains.
#pragma once

#include <cstdint>

namespace orrery::generate {

// A COMP node is a kernel; all kernels of a block between two communications; all kernels of a segment between two
// communications. No kernel moves past a communication.
enum class Granularity : std::uint8_t { operators, block, segment };

struct Options {
  Granularity granularity = Granularity::operators;
  std::int64_t steps = 1;  // training steps, or batches of requests, one after the other
};

// Whose graph is written.
enum class Naming : std::uint8_t {
  ranks,    // one rank: process groups have the names of the groups file
  classes,  // a pipeline stage, as its first rank: process groups have the names of their kinds
};

}  // namespace orrery::generate
