// The kernel that each accelerator runs, and when it ends: kernels lose a part of their rate while collectives that use
// the same cores run beside them (keys::slows_kernels). Private to the room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/simulate/flows.hpp"

namespace orrery::simulate {

class KernelClock {
 public:
  explicit KernelClock(std::size_t ranks) : cores_(ranks) {}

  struct End {
    std::uint64_t time = 0;
    std::uint32_t version = 0;  // earlier ends of the rank are void
  };

  // The rank starts a kernel of so many picoseconds; it runs no other. Returns its end, if nothing changes.
  [[nodiscard]] End start(std::uint64_t now, std::uint32_t rank, std::uint32_t node, std::uint64_t alone) {
    Core& core = cores_[rank];
    core.node = node;
    core.left = Wide{alone} << kShareBits;
    core.since = now;
    return end(now, core);
  }

  // A collective that takes `share` of the rate of kernels starts or ends on the rank. Returns true if it changes the
  // end of a kernel, which is then in `changed`. Several collectives take the largest share of them.
  [[nodiscard]] bool change(std::uint64_t now, std::uint32_t rank, FlowShare share, bool starts, End& changed) {
    Core& core = cores_[rank];
    const FlowShare before = core.slowdown();
    if (starts) {
      core.shares.push_back(share);
    } else {
      *std::find(core.shares.begin(), core.shares.end(), share) = core.shares.back();
      core.shares.pop_back();
    }
    if (core.node == kNone || core.slowdown() == before) { return false; }
    const Wide done = Wide{now - core.since} * (kWholeShare - before);
    core.left -= std::min(core.left, done);
    core.since = now;
    changed = end(now, core);
    return true;
  }

  // The kernel that ends, if this end is not void; kNone otherwise.
  [[nodiscard]] std::uint32_t finish(std::uint32_t rank, std::uint32_t version) {
    Core& core = cores_[rank];
    return core.version == version ? std::exchange(core.node, kNone) : kNone;
  }

 private:
  __extension__ using Wide = unsigned __int128;

  struct Core {
    std::uint32_t node = kNone;
    std::uint32_t version = 0;
    Wide left = 0;  // picoseconds at full rate x 2^32, at `since`
    std::uint64_t since = 0;
    std::vector<FlowShare> shares;  // of the collectives that run

    [[nodiscard]] FlowShare slowdown() const {
      return shares.empty() ? 0 : *std::max_element(shares.begin(), shares.end());
    }
  };

  static End end(std::uint64_t now, Core& core) {
    const FlowShare rate = kWholeShare - core.slowdown();
    return {now + static_cast<std::uint64_t>((core.left + rate - 1) / rate), ++core.version};
  }

  std::vector<Core> cores_;
};

}  // namespace orrery::simulate
