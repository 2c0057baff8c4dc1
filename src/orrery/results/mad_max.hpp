// What MAD-Max's equations say of one set of strategies, and of a search over all of them. Plain values; every time is
// of one iteration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/units.hpp"

namespace orrery::results {

// Busy times of the two streams of a device; they overlap and do not sum.
struct MadMaxBreakdown {
  Seconds gemm, embedding;                                     // compute stream
  Seconds all_to_all, all_reduce, all_gather, reduce_scatter;  // communication stream
  Seconds exposed;                                             // of the iteration, not filled by compute

  [[nodiscard]] Seconds communication() const { return all_to_all + all_reduce + all_gather + reduce_scatter; }
};

struct MadMaxClass {
  std::string name;      // "mlp"
  std::string strategy;  // "(tp,ddp)"
  std::int64_t copies = 1, shards = 1;
  std::int64_t local_batch = 0;  // samples of one copy
};

struct MadMaxEvent {
  std::string name;  // as MAD-Max calls it: "MLPTop9_b_c_wgt_ag."
  bool computes = false;
  std::string operation;  // "gemm", "embedding", "all_to_all", ...
  Seconds start, duration;
};

struct MadMaxEstimate {
  std::string model, cluster;
  std::string task;      // "pretrain", "finetune", "inference"
  std::string frozen;    // "emb,bottom"; empty: nothing is
  std::string strategy;  // "emb=(mp); mlp=(tp,ddp)"
  std::vector<MadMaxClass> classes;
  std::int64_t devices = 0, global_batch = 0;
  std::int64_t seq = 0;  // 0: a recommender's sample has none
  bool memory_rule = true;
  bool feasible = true;
  std::string infeasible_reason;
  Seconds step_time;
  double samples_per_s = 0, tokens_per_s = 0;
  Flops model_flops;  // of products, as executed
  double mfu = 0;
  MadMaxBreakdown breakdown;
  Bytes weights, needed, capacity;                       // of one device; `needed` is what the rule wants
  double gain = 0;                                       // of a search: samples_per_s over the baseline's
  double usd_per_device_hour = 0, watts_per_device = 0;  // 0: not known
  std::vector<std::string> not_modelled;
  std::vector<MadMaxEvent> events;  // in the order of issue, when asked for
};

struct MadMaxSearch {
  std::int64_t points = 0, evaluated = 0, feasible = 0;
  std::int64_t over_memory = 0;   // of the evaluated
  std::int64_t uneven_batch = 0;  // of the points: not whole samples
  MadMaxEstimate baseline;        // dense layers fsdp, tables as MAD-Max's own tasks have them; need not fit
  bool has_baseline = false;      // false: its batch is not whole samples
  std::vector<MadMaxEstimate> best;
  double wall_s = 0;
};

}  // namespace orrery::results
