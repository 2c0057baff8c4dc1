#include "orrery/estimate/port_sharing.hpp"

#include <algorithm>
#include <cstddef>

namespace orrery::estimate {

PortUses& PortUses::operator+=(const PortUses& other) {
  for (std::size_t d = 0; d < dimensions.size(); ++d) {
    PortUse& use = dimensions[d];
    const PortUse& more = other.dimensions[d];
    use.time += more.time;
    use.load += more.load;
    use.small_time += more.small_time;
    use.small_load += more.small_load;
  }
  used |= other.used;
  time += other.time;
  return *this;
}

void add_executions(PortUses& sum, double repeat, const PortUses& block, unsigned dimensions) {
  for (std::size_t d = 0; dimensions >> d != 0; ++d) {
    if ((dimensions >> d & 1U) == 0) { continue; }
    PortUse& use = sum.dimensions[d];
    const PortUse& more = block.dimensions[d];
    if ((block.used >> d & 1U) == 0) {
      use.contended += repeat * block.time;
      continue;
    }
    use.time += repeat * more.time;
    use.load += repeat * more.load;
    use.small_time += repeat * more.small_time;
    use.small_load += repeat * more.small_load;
    use.contended += repeat * ((block.contended_on >> d & 1U) != 0 ? more.contended : block.time);
  }
  sum.used |= block.used & dimensions;
  sum.contended_on |= dimensions;
  sum.time += repeat * block.time;
}

void add_pause(PortUses& sum, Seconds time, unsigned dimensions) {
  for (std::size_t d = 0; dimensions >> d != 0; ++d) {
    if ((dimensions >> d & 1U) != 0) { sum.dimensions[d].contended += time; }
  }
  sum.contended_on |= dimensions;
  sum.time += time;
}

namespace {

// Mean speed of calls with the shares of `use`, which take `time` in all, while another call takes `share` of the port,
// at most half of it. The small ones keep their speed.
double contended_speed(const PortUse& use, Seconds time, double share) {
  const Seconds lost = max(Seconds(0), (1.0 / (1.0 - share)) * use.load - use.time);
  return time / (time + lost);
}

Sharing sharing_on(const PortUse& work, Seconds work_time, const PortUse& concurrent, Seconds concurrent_time) {
  // Mean share of the port that the others keep from the block's calls; they cannot keep more than half.
  const double kept = std::min(0.5, (0.5 * concurrent.time + concurrent.small_load) / concurrent_time);
  const double contended = kept / (1.0 - kept);  // 1: the block's calls have half of the port
  const double longer = contended * ((work.contended - work_time) / work_time);
  const Seconds calls = work.time + contended * max(Seconds(0), 2.0 * work.load - work.time);
  Seconds lost = (1.0 - contended_speed(concurrent, concurrent_time, 0.5)) * calls;
  if (work.small_time > Seconds(0)) {
    const double small = work.small_load / work.small_time;
    lost += (1.0 - contended_speed(concurrent, concurrent_time, std::min(0.5, small))) * work.small_time;
  }
  return {longer, std::max(0.0, 1.0 + longer - lost / work_time)};
}

}  // namespace

Sharing sharing(const PortUses& work, const PortUses& concurrent) {
  Sharing most;
  double slowest = 0.0;  // seconds that the others lose
  const unsigned common = work.used & concurrent.used;
  if (common == 0 || !(work.time > Seconds(0)) || !(concurrent.time > Seconds(0))) { return most; }
  for (std::size_t d = 0; common >> d != 0; ++d) {
    if ((common >> d & 1U) == 0) { continue; }
    const Sharing here = sharing_on(work.dimensions[d], work.time, concurrent.dimensions[d], concurrent.time);
    most.longer = std::max(most.longer, here.longer);
    slowest = std::max(slowest, 1.0 + here.longer - here.progress);
  }
  most.progress = std::max(0.0, 1.0 + most.longer - slowest);
  return most;
}

}  // namespace orrery::estimate
