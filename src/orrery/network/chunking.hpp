// The time of a schedule whose buffer is cut into chunks that follow each other, in closed form. (Not pipeline
// parallelism: stages here are steps of one collective.)
//
// The phases of a schedule are grouped into stages. A stage has one level, or one level per step if every step uses
// other links (trees, chains). Chunk c passes level l in round c + l, and a round ends when everything in it has ended:
// the software pipeline of a kernel with a loop over chunks. Stages that share a dimension share its ports, so a round
// takes as long as its busiest port:
//
//   T(C) = base + sum over rounds r of  max over ports q of  sum over stages s on q, active in r, of t_s,q(C)
//   t_s,q(C) = steps_s * (step latency + (bytes_s,q / C) / payload bandwidth + excess reduction)
//
// With one stage per dimension this is the textbook sum + (C - 1) * slowest. Active stages change at most twice per
// stage, so T costs O(stages^2) additions whatever C is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "orrery/core/units.hpp"
#include "orrery/network/fabric.hpp"

namespace orrery::network {

// Whether every step of a pattern uses other links than the previous step, so that the next chunk can follow one step
// behind.
[[nodiscard]] bool level_per_step(Pattern pattern);

// A stage of a schedule, before protocols: the steps and bytes of one level, for the whole buffer.
struct StageShape {
  StepKind kind = StepKind::ring;
  int dimension = 0;
  std::int64_t members = 0;      // along it
  std::size_t slot = 0;          // the dimension's index among those of the schedule
  std::int64_t first_level = 0;  // sum of the levels of all earlier stages
  std::int64_t levels = 1;
  double steps = 0.0;  // of one level
  Bytes sent, received;
  Bytes reduced, reducing;  // what members reduce, and what passes the port at the same time
  Bytes own;                // SchedulePhase::own
  double hops = 1.0;        // SchedulePhase::hops
  bool concurrent = false;  // not a stage of its own: concurrent steps of the previous stage on another dimension
};

struct ScheduleShape {
  InlineList<StageShape, kMaxPhases> stages;
  InlineList<std::size_t, kMaxPhases> stage_of_phase;  // of concurrent phases, the first one's
  std::size_t slots = 0;                               // dimensions
  int outermost = 0;                                   // the highest of them
};

// Consecutive phases on one dimension are one stage, unless their steps use different links (trees, chains) or
// different directions (switches). Phases of a flat ring are concurrent, one for every dimension: a step takes the mean
// latency of the ring's hops, and the bytes of the slowest port.
[[nodiscard]] ScheduleShape shape_of(const Schedule& schedule);

// A stage with one protocol: the times of one level for the whole buffer.
struct Stage {
  std::size_t slot = 0;
  std::int64_t levels = 1;
  Seconds latency;
  Seconds out, in;    // bytes through each direction of the port
  Seconds reduction;  // beyond the slower direction
  // Of a tier of switches: the inner dimensions whose ports its bytes pass, too (slots as bits), and these bytes.
  std::uint8_t through = 0;
  double passing_out = 0.0, passing_in = 0.0;

  [[nodiscard]] bool passes(std::size_t port) const { return (through >> port & 1U) != 0; }
};

struct ChunkedSchedule {
  Seconds base;
  InlineList<Stage, kMaxPhases> stages;
  std::size_t slots = 0;
  bool has_tiers = false;                       // whether the cluster has tiers of switches
  std::array<double, kMaxExtents> port_cost{};  // by slot: seconds per byte that passes; with tiers only
};

// The cost of a step of a stage with a protocol.
[[nodiscard]] StepCost stage_cost(const Fabric& fabric, const ScheduleShape& shape, const StageShape& stage,
                                  std::size_t protocol);

[[nodiscard]] ChunkedSchedule chunked_schedule(const Fabric& fabric, const ScheduleShape& shape, std::size_t protocol);

// Whether the library uses the protocol for steps of this size. It decides by the bytes per step on the outermost
// links.
[[nodiscard]] bool library_uses(const Fabric& fabric, const ScheduleShape& shape, std::size_t protocol);

struct ChunkedTime {
  Seconds latency, bandwidth, reduction;
  [[nodiscard]] Seconds total() const { return latency + bandwidth + reduction; }
};

// T(chunks) without the base, as its terms: those of the busiest port of every round.
[[nodiscard]] ChunkedTime chunked_time(const ChunkedSchedule& chunked, std::int64_t chunks);

// chunked_time(...).total(), faster: for the inner loop.
[[nodiscard]] Seconds chunked_total(const ChunkedSchedule& chunked, std::int64_t chunks);

// A lower bound of the time from one port: at least fixed + latency * C + rest / C with C chunks, in seconds.
struct PortBound {
  double fixed = 0.0, latency = 0.0, rest = 0.0;

  // Whether no chunk count from 1 on stays below `limit`. The minimum of latency * C + rest / C over C >= 1 is
  // latency + rest if rest <= latency, and 2 sqrt(latency * rest) otherwise.
  [[nodiscard]] bool excludes(double limit) const {
    const double left = limit - fixed;
    if (left <= 0.0) { return true; }
    if (rest <= latency) { return latency + rest >= left; }
    return 4.0 * latency * rest >= left * left;
  }
};
using PortBounds = InlineList<PortBound, kMaxExtents>;

[[nodiscard]] PortBounds port_bounds(const ChunkedSchedule& chunked);

// The power of two from 1 to kMaxChunks with the shortest time. Counts that the bound of a port excludes are skipped.
struct Chunking {
  std::int64_t chunks = 1;
  Seconds time;
};
[[nodiscard]] Chunking best_chunks(const ChunkedSchedule& chunked, const PortBounds& bounds);

}  // namespace orrery::network
