// The plans worth a look for a job: all combinations of the axes below that are valid.
//
//   tp           divisors of heads and devices, up to two nodes
//   pp           divisors of devices / tp, up to the number of layers
//   vpp          1 .. 8 chunks of at least one layer, when pp > 1 and micro-batches group by pp
//   micro_batch  divisors of a replica's batch, up to 16
//   sequence_parallel  off, on (tp > 1)
//   recompute    none, selective, full
//   zero         0 .. 3 (dp > 1)
//
// Left out: gpipe, which holds the activations of every micro-batch; where they fit, its step is as long as 1f1b's
// less what transfers cost 1f1b (1-2 % when a transfer takes 1 % of a stage, docs/models/pipeline.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::explore {

// Values that a user fixed; the axis then has this one value.
struct Fixed {
  std::optional<std::int64_t> tp, pp, dp, vpp, micro_batch;
  std::optional<bool> sequence_parallel, dp_overlap;
  std::optional<int> zero;
  std::optional<parallel::Recompute> recompute;
};

// In axis order: tp slowest, then pp, vpp, micro_batch, sequence_parallel, recompute, zero.
[[nodiscard]] std::vector<parallel::Plan> enumerate(const workload::Model& model, const parallel::Job& job,
                                                    const hardware::Cluster& cluster, const Fixed& fixed,
                                                    bool dp_overlap);

}  // namespace orrery::explore
