// A plan: how a job is distributed over devices; and the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel {

enum class Recompute : std::uint8_t { none, selective, full };
enum class ScheduleKind : std::uint8_t {
  gpipe,
  one_f_one_b,
  interleaved,
  zero_bubble,  // ZB-H1 (arXiv:2401.10241): the weight gradient is a separate task that fills the bubble
  dualpipe,     // DualPipe (arXiv:2412.19437): micro-batches enter from both ends; every rank holds two chunks
};
enum class Task : std::uint8_t { pretrain, finetune, inference };
enum class TpOverlap : std::uint8_t {
  none,
  ring,  // GEMMs in tp chunks, which are sent around the ring of ranks, overlapped with the next chunk's GEMM
  pipe,  // GEMMs in kPipePieces chunks, the collective of one overlapped with the GEMM of the next
};
inline constexpr std::int64_t kPipePieces = 4;

// One step's work: a training step, or a batch of requests from prompt to last token.
struct Job {
  std::int64_t global_batch = 0;  // sequences per step
  std::int64_t seq = 0;           // tokens per sequence; inference: those that are read, prompt + generate - 1
  hardware::Precision precision = hardware::Precision::bf16;
  Task task = Task::pretrain;
  workload::Adapter adapter = {};
  std::int64_t prompt = 0;    // inference: tokens per sequence in the prompt
  std::int64_t generate = 0;  // inference: generated tokens per sequence; the prefill generates the first
  workload::Formats formats = {};
  bool pads_heads = false;         // by the software (Stack::pads_heads): tp need not divide the attention heads
  double expert_imbalance = 1.0;   // workload::Slice::expert_imbalance
  bool replicates_tokens = false;  // by the software (DispatchPolicy::replicated_tokens): experts under tp need no
                                   // sequence parallelism

  // Attention heads of the model that the ranks of a plan with this tp compute with, all together.
  [[nodiscard]] workload::Heads heads(const workload::Model& model, std::int64_t tp) const {
    return pads_heads ? workload::padded_heads(model, tp) : workload::Heads{model.heads, model.kv_heads};
  }
  [[nodiscard]] bool is_inference() const { return task == Task::inference; }
  friend bool operator==(const Job&, const Job&) = default;
};

// What is stored in the second memory tier and fetched when it is needed.
struct Offload {
  bool weights = false;
  bool activations = false;
  bool optimizer = false;
  bool tables = false;     // embedding tables of recommenders, with their optimizer state
  bool gradients = false;  // replicas reduce them in a pool, on the way to it, and load the sums

  [[nodiscard]] bool any() const { return weights || activations || optimizer || tables || gradients; }
  friend bool operator==(const Offload&, const Offload&) = default;
};

// Whose processors update weights whose optimizer state is offloaded.
enum class OptimizerDevice : std::uint8_t {
  device,  // the accelerator, which the state is streamed through
  host,    // the host: gradients go there, new weights come back
};

// Modules of a layer that selective recompute runs again.
struct RecomputeModules {
  bool core_attention = false;
  bool norms = false;              // of the residual stream
  bool mla_up_projection = false;  // of latent attention, with rotary positions
  bool activations = false;        // of dense MLPs, routed and shared experts
  bool expert_activations = false;
  bool mlp = false;      // dense MLPs
  bool experts = false;  // router, exchanges, routed and shared experts
  bool shared_experts = false;

  [[nodiscard]] bool any() const { return *this != RecomputeModules{}; }
  friend bool operator==(const RecomputeModules&, const RecomputeModules&) = default;
};

// Network dimensions that groups are pinned to, counted from the innermost; kByRank: placed in rank order. For a group
// of one, pinning has no effect.
struct Placement {
  static constexpr std::int8_t kByRank = -1;
  std::int8_t tp = kByRank, cp = kByRank, dp = kByRank, pp = kByRank;

  [[nodiscard]] bool any() const { return tp >= 0 || cp >= 0 || dp >= 0 || pp >= 0; }
  friend bool operator==(const Placement&, const Placement&) = default;
};

// The choices of a plan have two forms: a Plan has a value for each, a PartialPlan only for those that are given.
struct Whole {
  template <class T>
  using Of = T;
  template <class T>
  static constexpr T usual(T value) {
    return value;
  }
};
struct Partial {
  template <class T>
  using Of = std::optional<T>;
  template <class T>
  static constexpr std::nullopt_t usual(T) {
    return std::nullopt;
  }
};

// The product of degrees is the number of devices: devices = tp x cp x pp x dp. Ranks are placed with tp innermost,
// then cp, dp, pp. Experts are distributed over the ranks of a stage, etp innermost, then ep; ep x etp divides tp x cp
// x dp.
//
// Names, help, bounds, axes and other properties of a choice: plan_table.cpp.
template <class Form>
struct PlanChoices {
  template <class T>
  using Of = typename Form::template Of<T>;

  Of<std::int64_t> tp = Form::usual(1);           // tensor-parallel degree
  Of<std::int64_t> cp = Form::usual(1);           // context-parallel degree
  Of<std::int64_t> pp = Form::usual(1);           // pipeline stages
  Of<std::int64_t> dp = Form::usual(1);           // data-parallel replicas
  Of<std::int64_t> ep = Form::usual(1);           // expert-parallel degree
  Of<std::int64_t> etp = Form::usual(1);          // tensor-parallel degree of routed experts
  Of<std::int64_t> vpp = Form::usual(1);          // model chunks per stage (interleaving)
  Of<std::int64_t> micro_batch = Form::usual(1);  // sequences per micro-batch per replica
  Of<bool> sequence_parallel = Form::usual(false);
  Of<int> zero = Form::usual(0);  // 0 replicated, 1 optimizer, 2 + gradients, 3 + weights sharded over dp x cp
  Of<std::int64_t> shard =
      Form::usual(0);  // hybrid sharding (HSDP): ranks of dp x cp that share one sharded copy; 0: all
  Of<Recompute> recompute = Form::usual(Recompute::none);
  Of<RecomputeModules> recompute_modules = Form::usual(RecomputeModules{});  // of selective; none: core_attention
  Of<std::int64_t> recompute_layers = Form::usual(0);  // recompute applies to the first so many layers of each chunk,
                                                       // or to all of a chunk with fewer; 0: to all
  Of<ScheduleKind> schedule = Form::usual(ScheduleKind::one_f_one_b);
  Of<bool> dp_overlap = Form::usual(true);  // gradient reduction under the last backward, weight gather under the first
                                            // forward
  Of<bool> gather_overlap = Form::usual(true);  // false: sharded weights are gathered without overlap, whatever
                                                // dp_overlap is
  Of<TpOverlap> tp_overlap = Form::usual(TpOverlap::none);
  Of<workload::ContextMethod> cp_method = Form::usual(workload::ContextMethod::ring);
  Of<Offload> offload = Form::usual(Offload{});
  Of<OptimizerDevice> optimizer_device = Form::usual(OptimizerDevice::device);
  Of<Placement> placement = Form::usual(Placement{});
  Of<workload::TablePlan> tables = Form::usual(workload::TablePlan{});  // recommenders only
  Of<std::int64_t> first_stage_layers = Form::usual(0);                 // 0: as even as possible
  Of<std::int64_t> last_stage_layers = Form::usual(0);
  Of<bool> embedding_as_layer = Form::usual(false);  // counts as a layer in the distribution over stages
  Of<bool> head_as_layer = Form::usual(false);

  // Quantities of a whole plan.
  [[nodiscard]] std::int64_t devices() const { return tp * cp * pp * dp; }
  [[nodiscard]] std::int64_t stage_ranks() const { return tp * cp * dp; }  // ranks of one pipeline stage
  // Ranks that hold the same weights: dense ones, and those of routed experts.
  [[nodiscard]] std::int64_t replicas() const { return cp * dp; }
  [[nodiscard]] std::int64_t expert_replicas() const { return stage_ranks() / (ep * etp); }
  // Ranks over which one copy of the embedding tables is sharded.
  [[nodiscard]] std::int64_t table_ranks() const {
    using workload::TableSharding;
    if (tables.sharding == TableSharding::none || tables.sharding == TableSharding::replicated) { return 1; }
    return tables.ranks > 0 ? tables.ranks : stage_ranks();
  }
  // Ranks that share one sharded copy of dense weights, and the number of such copies.
  [[nodiscard]] std::int64_t shards() const { return shard > 0 ? shard : replicas(); }
  [[nodiscard]] std::int64_t sharded_copies() const { return replicas() / shards(); }
  // Weights that replicas shard are gathered while earlier layers compute.
  [[nodiscard]] bool overlaps_gathers() const { return dp_overlap && gather_overlap; }
  [[nodiscard]] bool updates_on_host() const { return offload.optimizer && optimizer_device == OptimizerDevice::host; }
  friend bool operator==(const PlanChoices&, const PlanChoices&) = default;
};

using Plan = PlanChoices<Whole>;
using PartialPlan = PlanChoices<Partial>;

// The choices as integers, one by one: rows of the table in plan_table.cpp and axes of searches, in axis order.
enum class PlanField : std::uint8_t {
  tp,
  cp,
  pp,
  dp,
  ep,
  etp,
  vpp,
  micro_batch,
  cp_method,
  sequence_parallel,
  recompute,
  recompute_core_attn,
  recompute_layernorm,
  recompute_mla_up_proj,
  recompute_act,
  recompute_moe_act,
  recompute_mlp,
  recompute_moe,
  recompute_shared_experts,
  recompute_layers,
  schedule,
  tp_overlap,
  first_stage_layers,
  last_stage_layers,
  embedding_as_layer,
  head_as_layer,
  zero,
  shard,
  dp_overlap,
  gather_overlap,
  offload_weights,
  offload_activations,
  offload_optimizer,
  offload_tables,
  offload_gradients,
  optimizer_device,
  tier_tp,
  tier_cp,
  tier_dp,
  tier_pp,
  table_sharding,
  table_ranks,
  replicate_tables_below,
  count
};
inline constexpr std::size_t kPlanFields = static_cast<std::size_t>(PlanField::count);

// The slice of the model that a rank of the plan works on, for one micro-batch of one pass.
[[nodiscard]] workload::Slice slice_of(const Job& job, const Plan& plan, workload::Pass pass = workload::Pass::train);

// "40 heads padded to 48 (+20 % of attention's work), 8 key-value heads replicated to 16": what tp ranks compute that
// is not of the model; empty if nothing is. Key-value heads are also replicated without padding, where they divide tp.
[[nodiscard]] std::string padding_text(const workload::Model& model, const Job& job, std::int64_t tp);

// Micro-batches per replica and step.
[[nodiscard]] inline std::int64_t micro_batches(const Job& job, const Plan& plan) {
  return job.global_batch / plan.dp / plan.micro_batch;
}

// Sequences of a replica that generate their next token in the same pass. Without pipeline stages these are all of
// them, whatever number of prompts is read at a time; with stages every micro-batch passes them in turn.
[[nodiscard]] inline std::int64_t sequences_decoded_together(const Job& job, const Plan& plan) {
  return plan.pp == 1 ? job.global_batch / plan.dp : plan.micro_batch;
}
// Passes in which a replica generates one token of every sequence.
[[nodiscard]] inline std::int64_t decode_passes(const Job& job, const Plan& plan) {
  return plan.pp == 1 ? 1 : micro_batches(job, plan);
}

// Errors of a job that do not depend on the plan.
[[nodiscard]] std::vector<Diagnostic> problems(const workload::Model& model, const Job& job);

// All errors of a plan for a job on this number of devices, each with the nearest valid value. Memory is not checked:
// see memory.hpp.
[[nodiscard]] std::vector<Diagnostic> problems(const workload::Model& model, const Job& job, const Plan& plan,
                                               std::int64_t devices);

// Fast form of problems(): true if there are none. Does not allocate.
[[nodiscard]] bool is_valid(const workload::Model& model, const Job& job, const Plan& plan, std::int64_t devices);

// The same for what a plan requires of a cluster besides devices: a second memory tier for offload, with the host's
// memory bandwidth for updates on the host; dimensions that fit the groups pinned to them.
[[nodiscard]] std::vector<Diagnostic> problems(const hardware::Cluster& cluster, const Plan& plan);
[[nodiscard]] bool is_valid(const hardware::Cluster& cluster, const Plan& plan);

}  // namespace orrery::parallel
