// Columns of a table of measurements that a prediction may use, per kind of table. Blank cells are empty text or
// nullopt.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "orrery/validate/columns.hpp"

namespace orrery::validate {

// The model.
struct NetworkColumns {
  std::string model;
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, ffn, vocab;
  std::optional<std::int64_t> experts, topk, moe_ffn;
};

// The machine. Bandwidths are per accelerator and direction.
struct MachineColumns {
  std::string gpu_type, precision;
  std::optional<std::int64_t> gpus, gpus_per_node;
  std::optional<double> intra_bw_GBps, nic_bw_GBps_per_gpu;
};

struct Row {
  std::string family;      // chooses the stack profile only
  std::string unreadable;  // the first invalid cell and what is wrong with it; empty: none
};

// A training step of a dense or MoE model.
struct TrainingRow : Row, NetworkColumns, MachineColumns {
  std::string sp, recompute;
  std::string metric;  // of an ExpertRow: what is measured
  std::optional<std::int64_t> seq, tp, pp, dp, ep, cp, micro_batch, global_batch, vpp, zero, lora;
};

// A part of an MoE step alone: a pass over the expert half of a layer, or dispatch or combine.
struct ExpertRow : TrainingRow {};

// A batch of requests, from prompt to last token.
struct InferenceRow : Row, NetworkColumns, MachineColumns {
  std::string mode, engine;
  std::optional<std::int64_t> tp, pp, ep, batch, isl, osl;
};

// One kernel on one accelerator: batch x [m, k] x [k, n], or groups of them.
struct KernelRow : Row {
  std::string op, gpu_type, dtype;
  std::optional<std::int64_t> m, n, k, groups;
};

// One collective among all of `gpus`, or a message between two of them.
struct CollectiveRow : Row {
  std::string collective, algo, gpu_type, network, nccl_version;
  std::string nic_bw_GBps_per_gpu;  // tables have remarks there
  std::optional<std::int64_t> gpus, nodes, gpus_per_node;
  std::optional<double> size_bytes, intra_bw_GBps;
};

// A command (commands.hpp).
struct CommandRow : Row {
  std::string args;
  std::string table;  // the table's file, to which paths are relative
};

[[nodiscard]] std::span<const Field<TrainingRow>> training_fields();
[[nodiscard]] std::span<const Field<InferenceRow>> inference_fields();
[[nodiscard]] std::span<const Field<KernelRow>> kernel_fields();
[[nodiscard]] std::span<const Field<CollectiveRow>> collective_fields();
[[nodiscard]] std::span<const Field<CommandRow>> command_fields();

}  // namespace orrery::validate
