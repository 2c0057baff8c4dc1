// Times of the kernels and calls of a program, each alone on its device and links.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/price_cache.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

// `cache` belongs to `fabric`.
[[nodiscard]] Seconds price_call(const CollectiveCall& call, const network::Fabric& fabric, const Mesh& mesh);
[[nodiscard]] Seconds price_call(const CollectiveCall& call, const network::Fabric& fabric, const Mesh& mesh,
                                 network::PriceCache* cache);

// `grown`: number of tokens by which the KV cache has grown since the kernel was lowered.
[[nodiscard]] Seconds price_kernel(const KernelLaunch& launch, const network::Fabric& fabric, std::int64_t grown = 0);

// Times of the items of blocks, each priced once.
class ItemTimes {
 public:
  // `prices` belongs to `fabric`.
  ItemTimes(const Program& program, const network::Fabric& fabric, network::PriceCache& prices)
      : program_(program), fabric_(fabric), prices_(prices), times_(program.blocks.size()) {}

  // [item]; 0 for waits and for calls over groups of one member. Valid as long as this object.
  [[nodiscard]] const std::vector<Seconds>& of(BlockId id);

 private:
  const Program& program_;
  const network::Fabric& fabric_;
  network::PriceCache& prices_;
  std::vector<std::vector<Seconds>> times_;  // [block]
};

}  // namespace orrery::parallel
