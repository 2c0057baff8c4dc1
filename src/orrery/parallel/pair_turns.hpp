// The order in which a rank runs the two halves of a DualPipe pair: the forward of one chunk and the whole backward of
// the other. `estimate` prices this order, and `generate` writes it.
//
// The halves run in turn. A turn is a stretch of a half: its kernels up to its next collective, which ends the turn, or
// to its end. With n collectives a half has n + 1 stretches; the half that would have done the smaller part of its
// stretches is next, the forward if both would have done the same. So one half computes while the other communicates.
// Both use one compute stream, one host and one stream of collectives, each in the order of the turns: kernels wait for
// the kernel before, launches for the launch before, collectives (gathers, reductions and rings included) for the
// collective before. The order does not depend on durations, so that all ranks of a group have the same one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

// Collectives in the blocks of a segment, without its gathers and reductions.
[[nodiscard]] inline std::int64_t collectives_of(const Program& program, const Segment& segment) {
  std::int64_t count = 0;
  for (const BlockUse& use : segment) {
    const auto& items = program.block(use.work).items;
    count += use.repeat *
             std::count_if(items.begin(), items.end(), [](const Item& item) { return item.collective() != nullptr; });
  }
  return count;
}

class PairTurns {
 public:
  // Collectives of each half.
  PairTurns(std::int64_t forward, std::int64_t backward) : stretches_{forward + 1, backward + 1} {}

  [[nodiscard]] bool ended() const { return has_ended_[0] && has_ended_[1]; }

  // The half whose turn it is: 0 is the forward, 1 the backward.
  [[nodiscard]] std::size_t next() const {
    if (has_ended_[0] || has_ended_[1]) { return has_ended_[0] ? 1 : 0; }
    return (done_[0] + 1) * stretches_[1] <= (done_[1] + 1) * stretches_[0] ? 0 : 1;
  }

  // The half has run a stretch. `ended`: its last one.
  void take(std::size_t half, bool ended) {
    ++done_[half];
    has_ended_[half] = ended;
  }

 private:
  std::array<std::int64_t, 2> stretches_, done_{};
  std::array<bool, 2> has_ended_{};
};

}  // namespace orrery::parallel
