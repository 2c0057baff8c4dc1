// The estimate of one plan. Plain values; times are per training step unless the name says otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orrery/core/units.hpp"
#include "orrery/hardware/tier_use.hpp"

namespace orrery::results {

// The step time of the critical rank, by cause. The parts sum to the step time.
struct Breakdown {
  Seconds compute;       // forward and backward kernels
  Seconds recompute;     // forward kernels run again, their collectives included
  Seconds exposed_comm;  // collectives and transfers not overlapped with compute
  Seconds bubble;        // waiting for other pipeline stages
  Seconds optimizer;
  Seconds offload;
  Seconds host;

  [[nodiscard]] Seconds total() const {
    return compute + recompute + exposed_comm + bubble + optimizer + offload + host;
  }
};

// Communication of the critical rank, by parallel group.
struct GroupTime {
  std::string group;  // "tp", "cp", "ep", "dp", "pp"; "emb" of a recommender
  Seconds total;      // links busy
  Seconds exposed;    // the part not overlapped with compute
};

// A pass of the critical rank's training step. Over all passes, `compute` sums to Breakdown::compute plus
// Breakdown::optimizer, and the exposed time of a group to GroupTime::exposed. Recomputation belongs to no pass.
struct PassTime {
  std::string_view name;  // "forward", "input_gradient", "weight_gradient", "optimizer": a literal
  Seconds compute;
  std::vector<Seconds> exposed;  // [Estimate::comm_by_group]

  [[nodiscard]] Seconds exposed_comm() const {
    Seconds sum;
    for (const Seconds time : exposed) { sum += time; }
    return sum;
  }
};

// A process group on the cluster: its members along each network dimension, innermost first.
struct GroupShape {
  struct Extent {
    std::string dimension;
    std::int64_t members = 1;
  };
  std::string group;  // "tp", "cp", "ep", "etp", "dp", "expert_dp", "tables", "pp"
  std::int64_t size = 1;
  bool regular = true;  // false: it fills its nodes unevenly
  std::vector<Extent> extents;
};

// Memory of the rank that needs most.
struct Memory {
  Bytes weights, gradients, optimizer, activations, buffers;
  Bytes table_weights, table_state;  // of tables; the rest are gradients
  Bytes tables;            // recommenders: embedding tables, already counted in weights, gradients and optimizer
  Bytes kv_cache;          // inference: keys and values of the longest sequences
  Bytes capacity;          // device memory less the stack's reserve
  std::int64_t stage = 0;  // pipeline stage of that rank
  Bytes offloaded;         // in the second memory tier, of the rank that has most in it
  hardware::ByClass<Bytes> offloaded_by = {};  // the same by class, of plans with --offload
  Bytes second_tier;                           // capacity of the second tier for one rank

  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + buffers + kv_cache; }
  [[nodiscard]] bool fits() const { return total() <= capacity && offloaded <= second_tier; }
};

// Memory expansion: what is in the second tier, where kernels use it in place.
struct Expansion {
  hardware::ExpansionRule rule = hardware::ExpansionRule::serial;
  hardware::ByClass<Bytes> bytes;  // by class; they sum to Memory::offloaded
};

// A batch of requests: one prefill of all prompts, then one token per sequence and step.
struct Inference {
  std::int64_t prompt = 0, generate = 0;  // tokens of each sequence
  Seconds time_to_first_token;            // = the prefill of the whole batch
  Seconds time_per_output_token;          // mean over the tokens after the first; 0 if there is only one
  Seconds last_token;                     // time of the last token, when the cache is longest
  double output_tokens_per_s = 0;         // generated tokens of the whole job / time of the batch
  double decode_tokens_per_s = 0;         // without the prefill
  Bytes kv_bytes_per_token;               // of one sequence, over all layers
  Bytes state_bytes;                      // of one sequence, layers without attention: constant
};

// An operator or a collective of one segment of the critical rank.
struct Term {
  std::string name;     // "attention.qkv"
  std::string segment;  // "forward", "backward", "recompute", "finish"
  double count = 0;     // executions per step
  Flops flops;          // per execution
  Bytes bytes;          // memory traffic, or the collective's buffer, per execution
  Seconds time;         // per execution
  std::string bound;    // "compute", "memory", "latency"; for collectives "<algorithm>/<protocol>"
};

// Ranks with identical work: pipeline stages with the same layers.
struct RankClassTime {
  std::int64_t first_stage = 0;
  std::int64_t stages = 0;  // number of stages with these layers
  std::string layers;       // layers per chunk, "8" or "4+4"
  Seconds busy;             // compute, recompute and exposed communication of the step
  Bytes memory;
};

// Cost or energy of a step, and how it is computed.
struct Expense {
  double amount = 0;  // USD or J
  std::string basis;
};

// The 80 % interval of the step time: of jobs like this one, 80 % of the measured times lie in it.
struct Uncertainty {
  Seconds p10, p90;
  std::string kind;   // "dense measured"
  std::string basis;  // the measurements behind the interval
};

// Choices that summaries of a plan name explicitly, in the order of documents; other choices follow them.
inline constexpr std::array<std::string_view, 18> kMainChoices{
    "tp",         "cp",          "pp",         "ep",        "etp",      "dp",
    "vpp",        "micro_batch", "zero",       "recompute", "schedule", "sequence_parallel",
    "tp_overlap", "cp_method",   "dp_overlap", "shard",     "offload",  "placement"};

// A choice of a plan, or a value derived from the choices.
struct PlanValue {
  std::string_view name;  // "micro_batch", as in scenario files and documents: a literal
  std::variant<std::int64_t, bool, std::string> value;
  bool departs = false;     // differs from the default
  bool is_derived = false;  // not a choice
};

// The choices of a plan in the order of documents, without those that do not apply to the model.
struct PlanSummary {
  std::vector<PlanValue> values;

  void set(std::string_view name, std::variant<std::int64_t, bool, std::string> value);  // appended if it is new
  [[nodiscard]] const PlanValue* find(std::string_view name) const;
  // 0, false or "" if the plan has no such value.
  [[nodiscard]] std::int64_t number(std::string_view name) const;
  [[nodiscard]] bool is_on(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const;  // of any value: "8", "on", "ring"
};

[[nodiscard]] std::string text_of(const PlanValue& value);

// Accelerators of consecutive pipeline stages, on a cluster with several kinds of nodes.
struct StageNodes {
  std::int64_t first_stage = 0, stages = 1;
  std::vector<std::string> accelerators;  // names, in the order of devices
};

struct Estimate {
  std::string model, cluster, stack, precision;
  std::string weight_format, kv_format, attention_precision, quantized;  // empty: not given
  std::string fp8_recipe;                                                // of jobs in fp8
  std::string optimizer;                                                 // empty: adam
  std::string padding;        // "40 heads padded to 48 (+20 % of attention's work)"; empty: nothing is padded
  bool samples_only = false;  // recommenders: a sample is not a sequence of tokens
  std::string task;           // "pretrain", "finetune", "inference"
  std::int64_t images = 0, image_size = 0;  // in each sequence, and their side in pixels
  std::int64_t lora = 0;                    // rank of the adapters; 0: every weight is trained
  std::string validity;       // the basis of the hardware's efficiencies: "measured", "generation", "prior"
  std::string validity_note;  // the component with the weakest basis
  std::int64_t global_batch = 0, seq = 0;
  bool feasible = true;
  std::string infeasible_reason;
  std::int64_t devices = 0;
  Seconds step_time;
  std::optional<Uncertainty> uncertainty;  // absent if there are no measurements of such jobs
  double samples_per_s = 0, tokens_per_s = 0;
  Flops model_flops, hardware_flops;
  FlopsPerSecond peak;  // dense, one device, at the GEMM precision
  double mfu = 0, hfu = 0;
  double straggler_slowdown =
      1.0;                   // stragglers: kernel time on the slowest node / on the median one; all kernels take it
  bool causal_half = false;  // attention FLOPs counted for the unmasked half only
  Breakdown breakdown;
  Seconds comm_total, comm_exposed;
  std::vector<GroupTime> comm_by_group;
  std::vector<PassTime> passes;    // of training
  std::vector<GroupShape> groups;  // of more than one rank
  std::vector<StageNodes> nodes;   // empty: all nodes are alike
  Memory memory;
  std::optional<Expansion> expansion;   // if the second tier is used in place: memory is that of the first tier
  std::optional<Expense> cost, energy;  // absent if the cluster has no price or power
  PlanSummary plan;
  std::optional<Inference> inference;
  std::vector<Term> terms;             // if requested
  std::vector<RankClassTime> classes;  // if requested
  std::vector<std::string> not_modelled;
  std::vector<std::string> warnings;  // "sequences of 262,144 tokens are longer than ..."
};

// Why an infeasible plan cannot run, with its memory: "memory: stage 1 needs 81.7 GiB, a device has 75.2 GiB".
[[nodiscard]] std::string why_infeasible(const Estimate& estimate);

}  // namespace orrery::results
