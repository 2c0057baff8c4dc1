#include "orrery/api/fixed_problems.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <utility>

namespace orrery::api {

using explore::Fixed;
using parallel::Plan;
using parallel::ScheduleKind;

namespace {

// Stages that what is fixed asks for at least.
std::int64_t wanted_stages(const Fixed& fixed) {
  const auto schedule = fixed.schedule.value_or(ScheduleKind::one_f_one_b);
  const bool several = fixed.vpp.value_or(1) > 1 || fixed.first_stage_layers > 0 || fixed.last_stage_layers > 0 ||
                       (schedule != ScheduleKind::one_f_one_b && schedule != ScheduleKind::gpipe);
  return several ? 2 : 1;
}

// Devices over degrees that may be whatever a user typed: rounded down, at least 1.
std::int64_t devices_over(std::int64_t devices, std::initializer_list<std::int64_t> degrees) {
  for (const std::int64_t degree : degrees) { devices = degree >= 1 && degree <= devices ? devices / degree : 1; }
  return devices;
}

// Degrees of the plan that stands for a space without points.
void share_devices(Plan& plan, const Fixed& fixed, std::int64_t devices) {
  const bool split = fixed.sequence_parallel.value_or(false) || fixed.tp_overlap != parallel::TpOverlap::none;
  plan.tp = fixed.tp.value_or(split && devices % 2 == 0 ? 2 : 1);
  plan.cp = fixed.cp.value_or(1);
  const std::int64_t dp = fixed.dp.value_or(1), stages = devices_over(devices, {plan.tp, plan.cp, dp});
  const bool divides = devices_over(devices, {stages, plan.tp, plan.cp}) == dp && devices % stages == 0;
  const std::int64_t wanted = std::min(wanted_stages(fixed), stages);
  plan.pp = fixed.pp.value_or(!fixed.dp ? wanted : divides ? stages : 1);
  plan.dp = fixed.dp.value_or(devices_over(devices, {plan.tp, plan.cp, plan.pp}));
}

// The plan that stands for a space without points: what is fixed, and beside it the least that it asks of the others.
Plan plan_around(const Fixed& fixed, const Inputs& inputs, bool serves) {
  Plan plan;
  share_devices(plan, fixed, inputs.cluster.devices);
  plan.ep = fixed.ep.value_or(1);
  plan.etp = fixed.etp.value_or(1);
  const bool interleaved = fixed.schedule == ScheduleKind::interleaved;
  plan.vpp = fixed.vpp.value_or(interleaved ? 2 : 1);
  plan.schedule = fixed.schedule.value_or(plan.vpp > 1 ? ScheduleKind::interleaved : ScheduleKind::one_f_one_b);
  plan.micro_batch = fixed.micro_batch.value_or(1);
  plan.cp_method = fixed.cp_method.value_or(workload::ContextMethod::ring);
  plan.tp_overlap = fixed.tp_overlap;
  const bool needs_split = inputs.model.has_experts() || plan.tp_overlap != parallel::TpOverlap::none;
  plan.sequence_parallel = fixed.sequence_parallel.value_or(plan.tp > 1 && needs_split);
  plan.shard = fixed.shard;
  plan.zero = fixed.zero.value_or(plan.shard > 0 && !serves ? 1 : 0);
  plan.recompute = fixed.recompute.value_or(parallel::Recompute::none);
  plan.offload = fixed.offload;
  plan.placement = fixed.placement;
  if (inputs.model.is_recommender() || fixed.table_sharding) {
    plan.tables.sharding = fixed.table_sharding.value_or(workload::TableSharding::row);
  }
  plan.tables.ranks = fixed.table_ranks;
  plan.tables.replicated_below = fixed.replicate_tables_below;
  plan.first_stage_layers = fixed.first_stage_layers;
  plan.last_stage_layers = fixed.last_stage_layers;
  plan.embedding_as_layer = fixed.embedding_as_layer;
  plan.head_as_layer = fixed.head_as_layer;
  return plan;
}

// Flags of what is fixed.
std::set<std::string> flags_of(const Fixed& fixed) {
  std::set<std::string> flags;
  const auto add = [&](bool is_fixed, const char* flag) {
    if (is_fixed) { flags.insert(flag); }
  };
  add(fixed.tp.has_value(), "--tp");
  add(fixed.cp.has_value(), "--cp");
  add(fixed.pp.has_value(), "--pp");
  add(fixed.ep.has_value(), "--ep");
  add(fixed.etp.has_value(), "--etp");
  add(fixed.dp.has_value(), "--dp");
  add(fixed.vpp.has_value(), "--vpp");
  add(fixed.micro_batch.has_value(), "--micro-batch");
  add(fixed.sequence_parallel.has_value(), "--sequence-parallel");
  add(fixed.zero.has_value(), "--zero");
  add(fixed.recompute.has_value(), "--recompute");
  add(fixed.schedule.has_value(), "--schedule");
  add(fixed.cp_method.has_value(), "--cp-method");
  add(fixed.tp_overlap != parallel::TpOverlap::none, "--tp-overlap");
  add(fixed.shard > 0, "--shard");
  add(fixed.offload.any(), "--offload");
  add(fixed.placement.any(), "--placement");
  add(fixed.table_sharding.has_value(), "--table-sharding");
  add(fixed.table_ranks > 0, "--table-ranks");
  add(fixed.replicate_tables_below > 0, "--replicate-tables-below");
  add(fixed.first_stage_layers > 0, "--first-stage-layers");
  add(fixed.last_stage_layers > 0, "--last-stage-layers");
  add(fixed.embedding_as_layer, "--embedding-as-layer");
  add(fixed.head_as_layer, "--head-as-layer");
  return flags;
}

// The flag to blame for what is wrong with `flag`: itself where it is fixed, else one that it follows from.
std::string blamed(const std::string& flag, const std::set<std::string>& fixed) {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> follows = {
      {"--dp", {"--pp", "--cp", "--tp"}},
      {"--schedule", {"--vpp"}},
      {"--vpp", {"--schedule", "--pp"}},
      {"--cp", {"--cp-method"}},
      {"--pp", {"--schedule", "--dp", "--embedding-as-layer", "--head-as-layer"}},
      {"--sequence-parallel", {"--tp-overlap", "--tp"}},
      {"--tp", {"--sequence-parallel", "--tp-overlap"}},
  };
  if (fixed.contains(flag)) { return flag; }
  for (const auto& [open, sources] : follows) {
    if (open != flag) { continue; }
    const auto source = std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return fixed.contains(s); });
    if (source != sources.end()) { return *source; }
  }
  return "";
}

}  // namespace

std::vector<Diagnostic> problems_of(const Fixed& fixed, const Inputs& inputs, const parallel::Job& job) {
  const auto flags = flags_of(fixed);
  if (flags.empty()) { return {}; }
  const Plan plan = plan_around(fixed, inputs, job.is_inference());
  auto found = parallel::problems(inputs.model, job, plan, inputs.cluster.devices);
  for (auto& problem : parallel::problems(inputs.cluster, plan)) { found.push_back(std::move(problem)); }
  const bool dp_is_fixed = fixed.dp || (fixed.tp && fixed.pp);
  std::vector<Diagnostic> blame;
  for (auto& diagnostic : found) {
    auto& flag = diagnostic.place.path;
    const bool of_batch = flag == "--global-batch" || flag == "--batch";
    if (!of_batch) { flag = blamed(flag, flags); }
    if (of_batch ? !dp_is_fixed : flag.empty()) { continue; }
    blame.push_back(std::move(diagnostic));
  }
  return blame;
}

}  // namespace orrery::api
