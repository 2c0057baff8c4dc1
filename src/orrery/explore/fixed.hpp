// What a user says of a search beside the space: values that hold.
#pragma once

#include <cstdint>
#include <optional>

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
  std::optional<workload::TableSharding> table_sharding;
  // No axes: every plan of the space has these.
  parallel::TpOverlap tp_overlap = parallel::TpOverlap::none;
  std::int64_t shard = 0;
  parallel::Offload offload;
  parallel::Placement placement;
  std::int64_t table_ranks = 0, replicate_tables_below = 0;
  std::int64_t first_stage_layers = 0, last_stage_layers = 0;
  bool embedding_as_layer = false, head_as_layer = false;
};

}  // namespace orrery::explore
