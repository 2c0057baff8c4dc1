// What an estimate says about one plan. Plain values; every time is of one training step unless its name says
// otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orrery/core/units.hpp"

namespace orrery::results {

// Where the critical rank's step goes. Sums to the step time.
struct Breakdown {
  Seconds compute;       // forward and backward kernels
  Seconds recompute;     // forward kernels run again, their collectives included
  Seconds exposed_comm;  // collectives and transfers that nothing hides
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
  Seconds exposed;    // of it, not hidden by compute
};

// Memory of the fullest rank.
struct Memory {
  Bytes weights, gradients, optimizer, activations, buffers;
  Bytes tables;            // of weights, gradients and optimizer: embedding tables, of a recommender
  Bytes kv_cache;          // inference: keys and values at their longest
  Bytes capacity;          // device memory less the stack's reserve
  std::int64_t stage = 0;  // pipeline stage of that rank
  Bytes offloaded;         // in the second memory tier, of the rank that has most there
  Bytes second_tier;       // what there is for one rank

  [[nodiscard]] Bytes total() const { return weights + gradients + optimizer + activations + buffers + kv_cache; }
  [[nodiscard]] bool fits() const { return total() <= capacity && offloaded <= second_tier; }
};

// A batch of requests: the prompts together, then a token of each at a time.
struct Inference {
  std::int64_t prompt = 0, generate = 0;  // tokens of each sequence
  Seconds time_to_first_token;            // = the prefill of the whole batch
  Seconds time_per_output_token;          // mean over the tokens behind the first; 0 when there is only one
  Seconds last_token;                     // time of the last one, when the cache is longest
  double output_tokens_per_s = 0;         // generated tokens of the whole job over the whole time
  double decode_tokens_per_s = 0;         // without the prefill
  Bytes kv_bytes_per_token;               // that a sequence leaves in the whole model
};

// One line of the explanation: an operator or a collective of one segment of the critical rank.
struct Term {
  std::string name;     // "attention.qkv"
  std::string segment;  // "forward", "backward", "recompute", "finish"
  double count = 0;     // executions per step
  Flops flops;          // per execution
  Bytes bytes;          // memory traffic, or the collective's buffer, per execution
  Seconds time;         // per execution
  std::string bound;    // "compute", "memory", "latency"; for collectives "<algorithm>/<protocol>"
};

// Ranks that do the same thing: a pipeline stage's shape.
struct RankClassTime {
  std::int64_t first_stage = 0;
  std::int64_t stages = 0;  // how many stages are of this shape
  std::string layers;       // layers per chunk, "8" or "4+4"
  Seconds busy;             // compute, recompute and exposed communication of the step
  Bytes memory;
};

// Money or energy of a step, and what the figure rests on.
struct Expense {
  double amount = 0;  // USD or J
  std::string basis;
};

// Between these lie four of five measured times of jobs that are predicted to take what this one takes.
struct Uncertainty {
  Seconds p10, p90;
  std::string kind;   // "dense-one-domain"
  std::string basis;  // what the range rests on
};

// A choice of a plan, or what follows from the choices.
struct PlanValue {
  std::string_view name;  // "micro_batch", as scenario files and documents have it: a constant of the program
  std::variant<std::int64_t, bool, std::string> value;
  bool departs = false;     // is not what goes without saying
  bool is_derived = false;  // no choice
};

// The choices of a plan in the order of documents; those that a model cannot make are left out.
struct PlanSummary {
  std::vector<PlanValue> values;

  void set(std::string_view name, std::variant<std::int64_t, bool, std::string> value);  // appended where it is new
  [[nodiscard]] const PlanValue* find(std::string_view name) const;
  // 0, false or "" where the plan has no such value.
  [[nodiscard]] std::int64_t number(std::string_view name) const;
  [[nodiscard]] bool is_on(std::string_view name) const;
  [[nodiscard]] std::string text(std::string_view name) const;  // of any value: "8", "on", "ring"
};

[[nodiscard]] std::string text_of(const PlanValue& value);

struct Estimate {
  std::string model, cluster, stack, precision;
  bool samples_only = false;  // a recommender's: a sample is no sequence of tokens
  std::string task;           // "pretrain", "finetune", "inference"
  std::int64_t lora = 0;      // rank of the adapters; 0: every weight is trained
  std::string validity;       // what the figures of the hardware rest on: "measured", "generation", "prior"
  std::string validity_note;  // which of them is weakest
  std::int64_t global_batch = 0, seq = 0;
  bool feasible = true;
  std::string infeasible_reason;
  std::int64_t devices = 0;
  Seconds step_time;
  std::optional<Uncertainty> uncertainty;  // absent where nothing is known of its kind
  double samples_per_s = 0, tokens_per_s = 0;
  Flops model_flops, hardware_flops;
  FlopsPerSecond peak;  // dense, one device, at the GEMM precision
  double mfu = 0, hfu = 0;
  double slowest_pace = 1.0;  // time of kernels on the slowest node over a typical one's: what all kernels are taken to
                              // take
  bool causal_half = false;   // attention FLOPs counted once for the unmasked half only
  Breakdown breakdown;
  Seconds comm_total, comm_exposed;
  std::vector<GroupTime> comm_by_group;
  Memory memory;
  std::optional<Expense> cost, energy;  // absent where the cluster's description does not know
  PlanSummary plan;
  std::optional<Inference> inference;
  std::vector<Term> terms;             // when asked for
  std::vector<RankClassTime> classes;  // when asked for
  std::vector<std::string> not_modelled;
};

}  // namespace orrery::results
