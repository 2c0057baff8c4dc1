// The table of a plan's choices: one row each. What a choice means is in plan.hpp and in what lowers and prices plans,
// which values are valid in plan_model.cpp and its neighbours.
#include <numeric>
#include <type_traits>
#include <utility>

#include "orrery/parallel/names.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::parallel {

namespace {

constexpr std::int64_t kMostDevices = 100'000'000;
constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostRows = 1'000'000'000'000;

// ---- values as numbers ----------------------------------------------------------------------------------------------

template <class T>
std::int64_t number_of(T value) {
  if constexpr (std::is_enum_v<T>) {
    std::int64_t at = 0;
    for (const auto& [other, name] : config::EnumNames<T>::value) {
      if (other == value) { return at; }
      ++at;
    }
    return -1;
  } else {
    return static_cast<std::int64_t>(value);
  }
}

template <class T>
T value_from(std::int64_t number) {
  if constexpr (std::is_enum_v<T>) {
    return number < 0 ? T{} : config::EnumNames<T>::value[static_cast<std::size_t>(number)].first;
  } else {
    return static_cast<T>(number);
  }
}

// Access to the member that `At` (a generic lambda without state) picks, in both forms of a plan.
template <class At>
PlanPart part(PlanField field, std::string_view axis, At) {
  using T = std::remove_cvref_t<decltype(At{}(std::declval<const Plan&>()))>;
  PlanPart made;
  made.field = field;
  made.axis = axis;
  made.get = [](const Plan& plan) { return number_of(At{}(plan)); };
  made.set = [](Plan& plan, std::int64_t value) { At{}(plan) = value_from<T>(value); };
  made.given = [](const PartialPlan& partial) {
    const auto& value = At{}(partial);
    return value ? std::optional(number_of(*value)) : std::nullopt;
  };
  made.give = [](PartialPlan& partial, std::int64_t value) { At{}(partial) = value_from<T>(value); };
  return made;
}

// The same of a member of a group of choices. It is given when `is_given` says so of the group and its number.
template <auto Member, auto IsGiven, class At>
PlanPart member(PlanField field, std::string_view axis, std::string_view word, At) {
  using Group = std::remove_cvref_t<decltype(At{}(std::declval<const Plan&>()))>;
  using T = std::remove_cvref_t<decltype(std::declval<Group>().*Member)>;
  PlanPart made;
  made.field = field;
  made.axis = axis;
  made.word = word;
  made.get = [](const Plan& plan) { return number_of(At{}(plan).*Member); };
  made.set = [](Plan& plan, std::int64_t value) { At{}(plan).*Member = value_from<T>(value); };
  made.given = [](const PartialPlan& partial) -> std::optional<std::int64_t> {
    const auto& group = At{}(partial);
    if (!group) { return std::nullopt; }
    const std::int64_t value = number_of((*group).*Member);
    return IsGiven(*group, value) ? std::optional(value) : std::nullopt;
  };
  made.give = [](PartialPlan& partial, std::int64_t value) {
    auto& group = At{}(partial);
    if (!group) { group.emplace(); }
    (*group).*Member = value_from<T>(value);
  };
  return made;
}

// ---- when a choice has no effect ------------------------------------------------------------------------------------

bool one_slice(const PlanSetting& at) { return at.plan.tp == 1; }
bool one_part(const PlanSetting& at) { return at.plan.cp == 1; }
bool one_stage(const PlanSetting& at) { return at.plan.pp == 1; }
bool one_replica(const PlanSetting& at) { return at.plan.dp == 1; }
bool no_experts(const PlanSetting& at) { return !at.model.has_experts(); }
bool no_tables(const PlanSetting& at) { return !at.model.is_recommender(); }
bool no_sharded_tables(const PlanSetting& at) {
  return no_tables(at) || at.plan.tables.sharding == workload::TableSharding::replicated;
}
bool no_second_tier(const PlanSetting& at) { return !at.has_second_tier; }
bool no_tables_to_offload(const PlanSetting& at) { return no_tables(at) || no_second_tier(at); }
bool no_state_offloaded(const PlanSetting& at) { return no_second_tier(at) || !at.plan.offload.optimizer; }
bool nothing_sharded(const PlanSetting& at) { return at.plan.zero == 0; }
bool nothing_recomputed(const PlanSetting& at) { return at.plan.recompute == Recompute::none; }
bool not_selective(const PlanSetting& at) { return at.plan.recompute != Recompute::selective; }
bool no_latent_core(const PlanSetting& at) { return not_selective(at) || !at.model.is_latent(); }
bool no_experts_recomputed(const PlanSetting& at) { return not_selective(at) || no_experts(at); }
bool no_activations_kept(const PlanSetting& at) {
  return !at.has_second_tier || (at.plan.recompute == Recompute::full && at.plan.recompute_layers == 0);
}
// Nobody else has the same weights.
bool one_copy(const PlanSetting& at) {
  return at.plan.replicas() == 1 && (!at.model.has_experts() || at.plan.expert_replicas() == 1);
}
bool nothing_to_reduce_in_a_pool(const PlanSetting& at) { return !at.pool_combines || one_copy(at); }
bool nothing_gathered(const PlanSetting& at) { return one_copy(at) || nothing_sharded(at) || !at.plan.dp_overlap; }

// A group of one is mapped to no dimension.
template <auto Degree>
std::int64_t pin_of_group(const Plan& plan, std::int64_t value) {
  return plan.*Degree > 1 ? value : Placement::kByRank;
}

// ---- values that plans of a search could have instead ---------------------------------------------------------------

void recompute_some_layers(Plan& plan) { plan.recompute_layers = plan.recompute == Recompute::none ? 0 : 1; }
void recompute_norms(Plan& plan) { plan.recompute_modules.norms = plan.recompute == Recompute::selective; }
void overlap_tensor_parallel(Plan& plan) { plan.tp_overlap = TpOverlap::ring; }
void overlap_data_parallel_otherwise(Plan& plan) { plan.dp_overlap = plan.dp_overlap != (plan.replicas() > 1); }

// The least number above 1 that divides the replicas and is less.
void shard_over_some(Plan& plan) {
  plan.shard = 0;
  const std::int64_t replicas = plan.replicas();
  for (std::int64_t d = 2; d * d <= replicas && plan.shard == 0; ++d) {
    if (replicas % d == 0) { plan.shard = d; }
  }
}

// ---- rows -----------------------------------------------------------------------------------------------------------

constexpr FieldMask kTp = field_mask({PlanField::tp}), kCp = field_mask({PlanField::cp}),
                    kPp = field_mask({PlanField::pp});
constexpr FieldMask kDegrees = kTp | kCp | kPp;
constexpr FieldMask kCopies = kDegrees | field_mask({PlanField::ep, PlanField::etp});

constexpr std::string_view kDegreesOfMadMax = "has --strategy, and degrees follow from the system";
constexpr std::string_view kFsdpOfMadMax = "has fsdp in --strategy";
constexpr std::string_view kTablesOfMadMax = "has emb in --strategy";

constexpr auto kOffload = [](auto& plan) -> auto& { return plan.offload; };
constexpr auto kPlacement = [](auto& plan) -> auto& { return plan.placement; };
constexpr auto kTables = [](auto& plan) -> auto& { return plan.tables; };
constexpr auto kModules = [](auto& plan) -> auto& { return plan.recompute_modules; };
constexpr auto kAny = [](const auto& group, std::int64_t) { return group.any(); };
constexpr auto kNotNegative = [](const auto&, std::int64_t value) { return value >= 0; };
constexpr auto kPositive = [](const auto&, std::int64_t value) { return value > 0; };

template <class At>
PlanChoice simple(std::string_view name, std::string_view help, ChoiceKind kind, PlanField field, At at) {
  PlanChoice row;
  row.name = name;
  row.help = help;
  row.kind = kind;
  row.parts.push_back(part(field, name, at));
  row.take_back = [](PartialPlan& partial) { At{}(partial).reset(); };
  return row;
}

template <class At>
PlanChoice number(std::string_view name, std::string_view help, std::int64_t min, std::int64_t max, PlanField field,
                  At at) {
  PlanChoice row = simple(name, help, ChoiceKind::number, field, at);
  row.min = min;
  row.max = max;
  return row;
}

template <class At>
PlanChoice boolean(std::string_view name, std::string_view help, PlanField field, At at) {
  return simple(name, help, ChoiceKind::boolean, field, at);
}

template <class At>
PlanChoice named(std::string_view name, std::string_view help, PlanField field, At at) {
  using T = std::remove_cvref_t<decltype(at(std::declval<const Plan&>()))>;
  PlanChoice row = simple(name, help, ChoiceKind::name, field, at);
  row.names = config::kEnumTexts<T>;
  return row;
}

template <class At>
PlanChoice degree(std::string_view name, std::string_view help, PlanField field, At at) {
  PlanChoice row = number(name, help, 1, kMostDevices, field, at);
  row.in_mad_max = kDegreesOfMadMax;
  row.parts[0].idle = 1;
  return row;
}

using Rows = std::vector<PlanChoice>;

void add_degrees(Rows& rows) {
  using F = PlanField;
  const auto add = [&](PlanChoice row) -> PlanPart& {
    rows.push_back(std::move(row));
    return rows.back().parts[0];
  };
  const auto cuts = [&](std::optional<std::int64_t> usual) {
    rows.back().usual = usual;
    rows.back().is_degree = true;
  };
  add(degree("tp", "tensor-parallel degree", F::tp, [](auto& plan) -> auto& { return plan.tp; }));
  cuts(1);
  add(degree("cp", "context-parallel degree", F::cp, [](auto& plan) -> auto& { return plan.cp; })).training_only = true;
  cuts(1);
  add(degree("pp", "pipeline stages", F::pp, [](auto& plan) -> auto& { return plan.pp; }));
  cuts(1);
  {
    PlanPart& ep = add(degree("ep", "expert-parallel degree", F::ep, [](auto& plan) -> auto& { return plan.ep; }));
    ep.after = kDegrees;
    ep.is_idle = no_experts;
    cuts(1);
  }
  {
    PlanPart& etp = add(degree("etp", "tensor-parallel degree of routed experts; default: tp, or 1 if ep > 1", F::etp,
                               [](auto& plan) -> auto& { return plan.etp; }));
    etp.after = kDegrees;
    etp.is_idle = no_experts;
    cuts({});
  }
  add(degree("dp", "data-parallel replicas; default: devices / (tp x cp x pp)", F::dp, [](auto& plan) -> auto& {
    return plan.dp;
  })).after = kDegrees;
  rows.back().is_explained = false;  // it follows from the others
  {
    PlanPart& vpp = add(degree("vpp", "model chunks per pipeline stage (interleaving); default: the fastest", F::vpp,
                               [](auto& plan) -> auto& { return plan.vpp; }));
    vpp.after = kPp;
    vpp.is_idle = one_stage;
    vpp.training_only = true;
    rows.back().refused_in_inference = true;
  }
  add(degree("micro_batch", "sequences per micro-batch and replica; default: the fastest that fits in memory",
             F::micro_batch, [](auto& plan) -> auto& { return plan.micro_batch; }))
      .after = kDegrees;
  rows.back().in_mad_max = "has --local-batch";
}

// Choices of how replicas shard and synchronise their state: training only, and no bound on the step time depends on
// them.
void set_of_replicas(PlanPart& axis, FieldMask after, bool (*is_idle)(const PlanSetting&)) {
  axis.after = after;
  axis.inner = axis.training_only = true;
  axis.is_idle = is_idle;
}

PlanChoice sequence_parallel() {
  PlanChoice row =
      boolean("sequence_parallel",
              "split norms, dropouts and residuals along the sequence over tp; default: the faster that fits in memory",
              PlanField::sequence_parallel, [](auto& plan) -> auto& { return plan.sequence_parallel; });
  row.parts[0].after = kTp;
  row.parts[0].is_idle = one_slice;
  return row;
}

PlanChoice zero() {
  PlanChoice row = number("zero",
                          "sharded over dp x cp: 0 nothing, 1 optimizer state, 2 also gradients, 3 also weights "
                          "(FSDP); default: 1, 0 in inference",
                          0, 3, PlanField::zero, [](auto& plan) -> auto& { return plan.zero; });
  row.in_mad_max = kFsdpOfMadMax;
  set_of_replicas(row.parts[0], kCopies, one_copy);
  return row;
}

PlanChoice shard() {
  PlanChoice row =
      number("shard", "hybrid sharding (HSDP): ranks of dp x cp that hold one sharded copy; 0: all of them", 0,
             kMostDevices, PlanField::shard, [](auto& plan) -> auto& { return plan.shard; });
  row.usual = 0;
  row.usual_is_open = true;
  row.in_mad_max = kFsdpOfMadMax;
  row.otherwise = shard_over_some;
  row.title = "hybrid sharding";
  set_of_replicas(row.parts[0], kDegrees | field_mask({PlanField::zero}), nothing_sharded);
  return row;
}

PlanChoice recompute() {
  PlanChoice row =
      named("recompute",
            "activation checkpointing: what the backward pass computes again; default: the fastest that fits in memory",
            PlanField::recompute, [](auto& plan) -> auto& { return plan.recompute; });
  row.refused_in_inference = true;
  row.parts[0].training_only = true;
  return row;
}

PlanChoice recompute_modules() {
  using F = PlanField;
  using M = RecomputeModules;
  PlanChoice row;
  row.name = "recompute_modules";
  row.help =
      "modules that --recompute selective computes again: core_attn, layernorm, mla_up_proj, act, moe_act, mlp, moe, "
      "shared_experts, as in layernorm,mla_up_proj; default: core_attn";
  row.kind = ChoiceKind::words;
  row.refused_in_inference = true;
  row.otherwise = recompute_norms;
  row.title = "recompute of other modules";
  row.not_a_word = "is not a module";
  row.is_met = [](const Plan& plan) { return !plan.recompute_modules.any() || plan.recompute == Recompute::selective; };
  row.needs = "needs --recompute selective; full recomputes all modules";
  row.take_back = [](PartialPlan& partial) { partial.recompute_modules.reset(); };
  row.parts = {
      member<&M::core_attention, kAny>(F::recompute_core_attn, "recompute_core_attn", "core_attn", kModules),
      member<&M::norms, kAny>(F::recompute_layernorm, "recompute_layernorm", "layernorm", kModules),
      member<&M::mla_up_projection, kAny>(F::recompute_mla_up_proj, "recompute_mla_up_proj", "mla_up_proj", kModules),
      member<&M::activations, kAny>(F::recompute_act, "recompute_act", "act", kModules),
      member<&M::expert_activations, kAny>(F::recompute_moe_act, "recompute_moe_act", "moe_act", kModules),
      member<&M::mlp, kAny>(F::recompute_mlp, "recompute_mlp", "mlp", kModules),
      member<&M::experts, kAny>(F::recompute_moe, "recompute_moe", "moe", kModules),
      member<&M::shared_experts, kAny>(F::recompute_shared_experts, "recompute_shared_experts", "shared_experts",
                                       kModules)};
  for (PlanPart& axis : row.parts) {
    axis.after = field_mask({F::recompute});
    axis.training_only = true;
    axis.is_idle = not_selective;
  }
  row.parts[2].is_idle = no_latent_core;
  for (const std::size_t of_experts : {4U, 6U, 7U}) { row.parts[of_experts].is_idle = no_experts_recomputed; }
  return row;
}

PlanChoice recompute_layers() {
  PlanChoice row =
      number("recompute_layers", "recompute applies to the first so many layers of each pipeline chunk; 0: to all", 0,
             kMostLayers, PlanField::recompute_layers, [](auto& plan) -> auto& { return plan.recompute_layers; });
  row.usual = 0;
  row.usual_is_open = true;
  row.refused_in_inference = true;
  row.otherwise = recompute_some_layers;
  row.title = "recompute of some layers";
  row.is_met = [](const Plan& plan) { return plan.recompute_layers == 0 || plan.recompute != Recompute::none; };
  row.needs = "needs --recompute selective or full; without recompute, 0";
  PlanPart& axis = row.parts[0];
  axis.after = field_mask({PlanField::recompute});
  axis.training_only = true;
  axis.is_idle = nothing_recomputed;
  return row;
}

PlanChoice schedule() {
  PlanChoice row = named("schedule", "pipeline schedule; default: 1f1b, or interleaved if vpp > 1", PlanField::schedule,
                         [](auto& plan) -> auto& { return plan.schedule; });
  row.refused_in_inference = true;
  row.is_explained = false;  // api/planning.cpp has its own alternatives, as the micro-batch follows
  PlanPart& axis = row.parts[0];
  axis.after = kPp | field_mask({PlanField::vpp});
  axis.training_only = true;
  axis.idle = number_of(ScheduleKind::one_f_one_b);
  axis.is_idle = one_stage;
  return row;
}

PlanChoice tp_overlap() {
  PlanChoice row = named("tp_overlap", "overlap of tensor-parallel communication with the GEMMs before or after it",
                         PlanField::tp_overlap, [](auto& plan) -> auto& { return plan.tp_overlap; });
  row.usual = number_of(TpOverlap::none);
  row.usual_is_open = true;
  row.refused_in_inference = true;
  row.otherwise = overlap_tensor_parallel;
  row.is_met = [](const Plan& plan) { return plan.tp_overlap == TpOverlap::none || plan.sequence_parallel; };
  row.needs = "needs --sequence-parallel: all-reduces are not split into chunks; valid without it: none";
  PlanPart& axis = row.parts[0];
  axis.after = kTp | field_mask({PlanField::sequence_parallel});
  axis.training_only = true;
  axis.is_idle = one_slice;
  // Without sequence parallelism there are all-reduces, which are not split into chunks.
  axis.effect = [](const Plan& plan, std::int64_t value) {
    return plan.sequence_parallel ? value : number_of(TpOverlap::none);
  };
  axis.merges = true;
  return row;
}

PlanChoice cp_method() {
  PlanChoice row =
      named("cp_method", "context parallelism: ring sends keys and values, ulysses exchanges heads by all-to-all",
            PlanField::cp_method, [](auto& plan) -> auto& { return plan.cp_method; });
  row.usual = number_of(workload::ContextMethod::ring);
  PlanPart& axis = row.parts[0];
  axis.after = kCp;
  axis.training_only = true;
  axis.is_idle = one_part;
  return row;
}

PlanChoice dp_overlap() {
  PlanChoice row =
      boolean("dp_overlap", "overlap of data-parallel communication with forward and backward; default: the stack's",
              PlanField::dp_overlap, [](auto& plan) -> auto& { return plan.dp_overlap; });
  row.refused_in_inference = true;
  row.otherwise = overlap_data_parallel_otherwise;
  set_of_replicas(row.parts[0], kCopies, one_copy);
  return row;
}

// A part of dp_overlap, which searches name among what they do not vary.
PlanChoice gather_overlap() {
  PlanChoice row =
      boolean("gather_overlap",
              "with --dp-overlap: overlap of weight gathering (ZeRO) with compute, as far as the stack has "
              "it; default: on",
              PlanField::gather_overlap, [](auto& plan) -> auto& { return plan.gather_overlap; });
  row.usual = 1;
  row.usual_is_open = true;
  row.refused_in_inference = true;
  row.is_met = [](const Plan& plan) { return plan.gather_overlap || plan.zero > 0; };
  row.needs = "off needs --zero of at least 1; with --zero 0, no weights are gathered";
  set_of_replicas(row.parts[0], kCopies | field_mask({PlanField::zero, PlanField::dp_overlap}), nothing_gathered);
  row.parts[0].idle = 1;
  return row;
}

// How layers are shared out over stages.
void add_ends(Rows& rows) {
  const auto add = [&](PlanChoice row) {
    row.usual = 0;
    row.usual_is_open = true;
    row.is_explained = false;
    row.parts[0].after = kPp;
    row.parts[0].is_idle = one_stage;
    rows.push_back(std::move(row));
  };
  add(number("first_stage_layers", "layers of the first pipeline stage; 0: an even share", 0, kMostLayers,
             PlanField::first_stage_layers, [](auto& plan) -> auto& { return plan.first_stage_layers; }));
  add(number("last_stage_layers", "layers of the last pipeline stage; 0: an even share", 0, kMostLayers,
             PlanField::last_stage_layers, [](auto& plan) -> auto& { return plan.last_stage_layers; }));
  add(boolean("embedding_as_layer", "the embedding counts as one layer when layers are distributed over stages",
              PlanField::embedding_as_layer, [](auto& plan) -> auto& { return plan.embedding_as_layer; }));
  add(boolean("head_as_layer", "the head counts as one layer when layers are distributed over stages",
              PlanField::head_as_layer, [](auto& plan) -> auto& { return plan.head_as_layer; }));
}

void add_tables(Rows& rows) {
  using F = PlanField;
  using workload::TablePlan;
  const auto add = [&](PlanChoice row, PlanPart axis, void (*take_back)(PartialPlan&)) {
    row.in_mad_max = kTablesOfMadMax;
    row.of_recommenders = true;
    row.take_back = take_back;
    row.parts = {std::move(axis)};
    rows.push_back(std::move(row));
  };
  PlanChoice sharding;
  sharding.name = "table_sharding";
  sharding.help =
      "how embedding tables are distributed over ranks; default: table, or row if there are fewer tables than ranks";
  sharding.kind = ChoiceKind::name;
  sharding.names = config::kEnumTexts<workload::TableSharding>;
  auto axis = member<&TablePlan::sharding, kNotNegative>(F::table_sharding, "table_sharding", "", kTables);
  axis.is_idle = no_tables;
  // A plan without tables stays one.
  axis.effect = [](const Plan& plan, std::int64_t value) {
    return plan.tables.sharding == workload::TableSharding::none ? std::int64_t{-1} : value;
  };
  add(std::move(sharding), axis, [](PartialPlan& partial) {
    if (partial.tables) { partial.tables->sharding = workload::TableSharding::none; }
  });

  const auto count = [](std::string_view name, std::string_view help, std::int64_t max) {
    PlanChoice row;
    row.name = name;
    row.help = help;
    row.min = 0;
    row.max = max;
    row.usual = 0;
    row.usual_is_open = true;
    return row;
  };
  PlanChoice ranks =
      count("table_ranks", "ranks that hold one copy of the embedding tables; 0: all of them", kMostDevices);
  ranks.reported = [](const Plan& plan) { return plan.table_ranks(); };
  axis = member<&TablePlan::ranks, kPositive>(F::table_ranks, "table_ranks", "", kTables);
  axis.after = kDegrees | field_mask({F::table_sharding});
  axis.is_idle = no_sharded_tables;
  add(std::move(ranks), axis, [](PartialPlan& partial) {
    if (partial.tables) { partial.tables->ranks = 0; }
  });

  axis =
      member<&TablePlan::replicated_below, kPositive>(F::replicate_tables_below, "replicate_tables_below", "", kTables);
  axis.after = field_mask({F::table_sharding});
  axis.is_idle = no_sharded_tables;
  add(count("replicate_tables_below", "embedding tables with fewer rows are replicated; 0: none", kMostRows), axis,
      [](PartialPlan& partial) {
        if (partial.tables) { partial.tables->replicated_below = 0; }
      });
}

PlanChoice offload() {
  using F = PlanField;
  PlanChoice row;
  row.name = "offload";
  row.help =
      "kept in the second memory tier: weights, activations and optimizer state, as in weights,optimizer; tables: "
      "embedding tables of a recommender with their state; gradients: replicas reduce them on the way to a pool";
  row.kind = ChoiceKind::words;
  row.title = "offload of";
  row.not_a_word = "cannot be offloaded";
  row.take_back = [](PartialPlan& partial) { partial.offload.reset(); };
  row.parts = {
      member<&Offload::weights, kAny>(F::offload_weights, "offload_weights", "weights", kOffload),
      member<&Offload::activations, kAny>(F::offload_activations, "offload_activations", "activations", kOffload),
      member<&Offload::optimizer, kAny>(F::offload_optimizer, "offload_optimizer", "optimizer", kOffload),
      member<&Offload::tables, kAny>(F::offload_tables, "offload_tables", "tables", kOffload),
      member<&Offload::gradients, kAny>(F::offload_gradients, "offload_gradients", "gradients", kOffload)};
  for (PlanPart& axis : row.parts) {
    const bool of_tables = axis.field == F::offload_tables;  // lookups wait for them
    axis.inner = !of_tables;
    axis.is_idle = of_tables ? no_tables_to_offload : no_second_tier;
    axis.training_only = !of_tables && axis.field != F::offload_weights;
  }
  row.parts[1].after = field_mask({F::recompute, F::recompute_layers});
  row.parts[1].is_idle = no_activations_kept;
  row.parts[4].after = kCopies;
  row.parts[4].is_idle = nothing_to_reduce_in_a_pool;
  return row;
}

PlanChoice optimizer_device() {
  PlanChoice row = named("optimizer_device",
                         "with --offload optimizer: whose processors update the weights; host: gradients go to the "
                         "host's memory, new weights come back (CPU Adam)",
                         PlanField::optimizer_device, [](auto& plan) -> auto& { return plan.optimizer_device; });
  row.usual = number_of(OptimizerDevice::device);
  row.usual_is_open = true;
  row.refused_in_inference = true;
  row.is_met = [](const Plan& plan) {
    return plan.optimizer_device == OptimizerDevice::device || (plan.offload.optimizer && !plan.offload.gradients);
  };
  row.needs = "host needs --offload optimizer, and not gradients: the host updates what it stores, and reduces nothing";
  set_of_replicas(row.parts[0], field_mask({PlanField::offload_optimizer}), no_state_offloaded);
  return row;
}

PlanChoice placement() {
  using F = PlanField;
  PlanChoice row;
  row.name = "placement";
  row.help = "groups mapped to network dimensions, as in \"tp=0 pp=1 dp=1\"; default: by rank order";
  row.kind = ChoiceKind::pins;
  row.take_back = [](PartialPlan& partial) { partial.placement.reset(); };
  const auto add = [&](PlanPart axis, FieldMask after, bool (*is_idle)(const PlanSetting&),
                       std::int64_t (*effect)(const Plan&, std::int64_t)) {
    axis.after = after;
    axis.is_idle = is_idle;
    axis.effect = effect;
    axis.inner = axis.field != F::tier_tp;
    row.parts.push_back(std::move(axis));
  };
  add(member<&Placement::tp, kNotNegative>(F::tier_tp, "tier.tp", "tp", kPlacement), kTp, one_slice,
      pin_of_group<&Plan::tp>);
  add(member<&Placement::cp, kNotNegative>(F::tier_cp, "tier.cp", "cp", kPlacement), kCp, one_part,
      pin_of_group<&Plan::cp>);
  add(member<&Placement::dp, kNotNegative>(F::tier_dp, "tier.dp", "dp", kPlacement), kDegrees, one_replica,
      pin_of_group<&Plan::dp>);
  add(member<&Placement::pp, kNotNegative>(F::tier_pp, "tier.pp", "pp", kPlacement), kPp, one_stage,
      pin_of_group<&Plan::pp>);
  return row;
}

}  // namespace

const std::vector<PlanChoice>& plan_choices() {
  static const Rows table = [] {
    Rows rows;
    add_degrees(rows);
    for (PlanChoice (*row)() : {sequence_parallel, zero, shard, recompute, recompute_modules, recompute_layers,
                                schedule, tp_overlap, cp_method, dp_overlap, gather_overlap}) {
      rows.push_back(row());
    }
    add_ends(rows);
    add_tables(rows);
    rows.push_back(offload());
    rows.push_back(optimizer_device());
    rows.push_back(placement());
    return rows;
  }();
  return table;
}

}  // namespace orrery::parallel
