// Blocks whose collectives share ports with concurrent gathers and reductions.
//
// The simulator shares a port between calls moment by moment (docs/models/flow.md). Here a block's calls are spread
// evenly over it: while gathers and reductions run concurrently with the block, each of its calls meets them for the
// same part of its time, and both have the speeds of that rule. docs/models/estimate.md#shared-ports.
#pragma once

#include <array>

#include "orrery/core/units.hpp"
#include "orrery/hardware/cluster.hpp"

namespace orrery::estimate {

// What the collectives of a block need of the ports of a device along one network dimension. The share of a call is its
// load over its time. Calls with more than half of a port are slowed down by others like them. Calls with less are not,
// but take that share from the others.
struct PortUse {
  Seconds time, load;              // sums over the calls with more than half of the port; load: its time at full rate
  Seconds small_time, small_load;  // ... with less
  Seconds contended;               // time of the whole block if the calls have half of the port; see contended_on
};

struct PortUses {
  std::array<PortUse, hardware::kMaxDimensions> dimensions;
  unsigned used = 0;          // bit d: the block uses dimension d
  unsigned contended_on = 0;  // bit d: `contended` is known
  Seconds time;               // of the block

  PortUses& operator+=(const PortUses& other);  // one block of collectives, then the other; leaves out `contended`
};

// Adds `repeat` executions of a block, `contended` included, on these dimensions (bits).
void add_executions(PortUses& sum, double repeat, const PortUses& block, unsigned dimensions);

// Adds time without collectives.
void add_pause(PortUses& sum, Seconds time, unsigned dimensions);

// A block and concurrent calls, for as long as both run. Both per second of the block alone.
struct Sharing {
  double longer = 0.0;    // seconds by which it takes longer
  double progress = 1.0;  // seconds of the others' time alone that pass

  [[nodiscard]] bool any() const { return longer > 0.0 || progress != 1.0; }
};
[[nodiscard]] Sharing sharing(const PortUses& work, const PortUses& concurrent);

}  // namespace orrery::estimate
