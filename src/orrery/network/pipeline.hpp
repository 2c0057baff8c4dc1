// The time of a schedule whose chunks follow each other, in closed form.
//
// The phases of a schedule are grouped into stages; a stage has one level, or, where every step uses other links
// (trees, chains), one level per step. Chunk c passes level l in round c + l, and a round ends when everything in it
// has ended: the software pipeline that a kernel with a loop over chunks runs. Stages that share a dimension share its
// ports, so a round lasts as long as its busiest port:
//
//   T(C) = base + sum over rounds r of  max over ports q of  sum over stages s on q, active in r, of t_s,q(C)
//   t_s,q(C) = steps_s * (step latency + (bytes_s,q / C) / payload bandwidth + excess reduction)
//
// With one stage per dimension this is the textbook sum + (C - 1) * slowest. Active stages change at most twice per
// stage, so T costs O(stages^2) additions whatever C is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "orrery/core/units.hpp"
#include "orrery/network/collective.hpp"

namespace orrery::network {

// What one level of a stage takes for the whole buffer (C = 1).
struct Stage {
  int dimension = 0;
  std::size_t slot = 0;  // the dimension's index among those of the pipeline
  std::int64_t levels = 1;
  Seconds latency;
  Seconds out, in;    // bytes through each direction of the port
  Seconds reduction;  // beyond the slower direction
};

struct Pipeline {
  Seconds base;
  InlineList<Stage, kMaxPhases> stages;
};

// The stages a schedule has under a protocol: consecutive phases on one dimension are one stage, unless their steps
// use different links (trees, chains) or different directions (switches).
[[nodiscard]] Pipeline make_pipeline(const Fabric& fabric, const Schedule& schedule, std::size_t protocol);

// Which stage and which of its levels each phase's step belongs to: phases of one stage share `first_level`.
struct PhaseLevels {
  std::int64_t first_level = 0;
  bool level_per_step = false;
};
[[nodiscard]] InlineList<PhaseLevels, kMaxPhases> levels_of(const Schedule& schedule);

struct PipelineTime {
  Seconds latency, bandwidth, reduction;
  [[nodiscard]] Seconds total() const { return latency + bandwidth + reduction; }
};

// T(chunks) without the base, and what it is made of: the terms of the busiest port of every round.
[[nodiscard]] PipelineTime pipeline_time(const Pipeline& pipeline, std::int64_t chunks);

// No chunk count makes the pipeline faster than this.
[[nodiscard]] Seconds pipeline_bound(const Pipeline& pipeline);

// The chunk count: it doubles, from 1 to kMaxChunks, for as long as that saves time.
[[nodiscard]] std::int64_t best_chunks(const Pipeline& pipeline);

}  // namespace orrery::network
