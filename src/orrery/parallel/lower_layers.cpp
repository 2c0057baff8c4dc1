// Which layers go to which virtual stage. See program.hpp.
#include <algorithm>
#include <cstddef>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

std::int64_t chunks_of(const Plan& plan) { return plan.schedule == ScheduleKind::dualpipe ? 2 : plan.vpp; }

bool overlaps_dispatch(const workload::Model& model, const Plan& plan, const hardware::Stack& stack) {
  const bool has_order =
      plan.schedule == ScheduleKind::interleaved || (plan.schedule == ScheduleKind::one_f_one_b && plan.pp == 1);
  return stack.overlap.dispatch && model.has_experts() && plan.ep > 1 && has_order && (plan.pp == 1 || plan.vpp > 1) &&
         plan.recompute != Recompute::full;
}

std::int64_t virtual_stage(const Plan& plan, std::int64_t stage, std::int64_t chunk) {
  if (plan.schedule == ScheduleKind::dualpipe) { return chunk == 0 ? stage : plan.pp - 1 - stage; }
  return chunk * plan.pp + stage;
}

bool receives_activations(const Plan& plan, std::int64_t stage, std::int64_t chunk) {
  return virtual_stage(plan, stage, chunk) > 0;
}

bool receives_gradients(const Plan& plan, std::int64_t stage, std::int64_t chunk) {
  const std::int64_t chunks_of_model = plan.schedule == ScheduleKind::dualpipe ? 1 : plan.vpp;
  return virtual_stage(plan, stage, chunk) < plan.pp * chunks_of_model - 1;
}

std::vector<std::int64_t> layers_per_virtual_stage(const workload::Model& model, const Plan& plan) {
  const std::int64_t stages = plan.pp, count = stages * plan.vpp;
  const std::int64_t first = plan.first_stage_layers / plan.vpp, last = plan.last_stage_layers / plan.vpp;
  std::vector<std::int64_t> shares(static_cast<std::size_t>(count), 0);
  const auto is_open = [&](std::int64_t q) {
    const std::int64_t stage = q % stages;
    return !(first > 0 && stage == 0) && !(last > 0 && stage == stages - 1);
  };
  std::int64_t open = 0;
  for (std::int64_t q = 0; q < count; ++q) { open += is_open(q) ? 1 : 0; }
  const std::int64_t counted = (plan.embedding_as_layer ? 1 : 0) + (plan.head_as_layer ? 1 : 0);
  const std::int64_t rest = model.depth() + counted - plan.first_stage_layers - plan.last_stage_layers;
  std::int64_t left = open > 0 ? rest % open : 0;
  for (std::int64_t q = count; q-- > 0;) {
    std::int64_t& share = shares[static_cast<std::size_t>(q)];
    if (!is_open(q)) {
      share = q % stages == 0 ? first : last;
      continue;
    }
    share = rest / open;
    const bool comes_short =
        q == count - 1 && open > 1;  // the last virtual stage holds the head, so it has fewer layers
    if (left > 0 && !comes_short) { ++share, --left; }
  }
  if (plan.embedding_as_layer) { --shares.front(); }
  if (plan.head_as_layer) { --shares.back(); }
  return shares;
}

}  // namespace orrery::parallel
