// The plans worth a look for a job: all combinations of the axes below that are valid.
//
//   tp           divisors of heads and devices, up to two nodes
//   cp           1; powers of two that leave every rank at least 4,096 tokens of a sequence
//   pp           divisors of devices / (tp cp), up to the number of layers
//   ep           with experts: divisors of the number of experts and of tp cp dp; else 1
//   etp          with experts: 1, tp; else 1
//   vpp          1 .. 8 chunks of at least one layer, when pp > 1 and micro-batches group by pp
//   micro_batch  divisors of a replica's batch, up to 16; of inference, those that make up to 16 or 2 pp micro-batches
//   cp_method    ring, ulysses (cp > 1; ulysses where the heads divide)
//   sequence_parallel  off, on (tp > 1); with experts on wherever tp > 1
//   recompute    none, selective, full
//   zero         0 .. 3 (where weights have more than one replica)
//
// dp takes what is left of the devices. The schedule is 1f1b where vpp is 1 and interleaved above; a schedule that is
// fixed has the vpp that go with it. Inference has a forward pass only: cp, vpp, recompute and zero are no axes of it.
//
// No axes, but passed through: overlap of tensor-parallel communication, hybrid sharding, offload, the end stages'
// layers. Left out unless asked for: gpipe, which holds the activations of every micro-batch; where they fit, its step
// is as long as 1f1b's less what transfers cost 1f1b (1-2 % when a transfer takes 1 % of a stage,
// docs/models/pipeline.md). zero_bubble and dualpipe, which the software stacks of most clusters do not have.
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
  std::optional<std::int64_t> tp, cp, pp, ep, etp, dp, vpp, micro_batch;
  std::optional<bool> sequence_parallel, dp_overlap;
  std::optional<int> zero;
  std::optional<parallel::Recompute> recompute;
  std::optional<parallel::ScheduleKind> schedule;
  std::optional<workload::ContextMethod> cp_method;
  // No axes: every plan of the space has these.
  parallel::TpOverlap tp_overlap = parallel::TpOverlap::none;
  std::int64_t shard = 0;
  parallel::Offload offload;
  std::int64_t first_stage_layers = 0, last_stage_layers = 0;
  bool embedding_as_layer = false, head_as_layer = false;
};

// In axis order: tp slowest, then cp, pp, ep, etp, vpp, micro_batch, cp_method, sequence_parallel, recompute, zero.
[[nodiscard]] std::vector<parallel::Plan> enumerate(const workload::Model& model, const parallel::Job& job,
                                                    const hardware::Cluster& cluster, const Fixed& fixed,
                                                    bool dp_overlap);

}  // namespace orrery::explore
