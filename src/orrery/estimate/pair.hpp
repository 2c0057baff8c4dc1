// Time of a DualPipe pair, which its two halves share as parallel/pair_turns.hpp says. Gathers, reductions and waits
// are those of run_segment(); nothing slows kernels or collectives.
#pragma once

#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/price_cache.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

// Times of the items of blocks, each priced once.
class ItemTimes {
 public:
  ItemTimes(const parallel::Program& program, const network::Fabric& fabric, network::PriceCache& prices)
      : program_(program), fabric_(fabric), prices_(prices), times_(program.blocks.size()) {}

  // [item]; 0 for waits and for calls over groups of one member. Valid as long as this object.
  [[nodiscard]] const std::vector<Seconds>& of(parallel::BlockId id);

 private:
  const parallel::Program& program_;
  const network::Fabric& fabric_;
  network::PriceCache& prices_;
  std::vector<std::vector<Seconds>> times_;  // [block]
};

// From the start of the pair until both halves have ended. O(items of both).
[[nodiscard]] Seconds pair_time(const parallel::Program& program, ItemTimes& times,
                                const parallel::ChunkProgram& forward, const parallel::ChunkProgram& backward);

}  // namespace orrery::estimate
