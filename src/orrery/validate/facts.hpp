// What a row of measurements does not have: the model for a name, the machine for an accelerator's name, the software
// stack of a family of measurements and that stack's defaults.
//
// Nothing here is fitted to measurements; every entry has its source. docs/models/validation.md lists the tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/hardware/accelerator.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::validate {

// A model: a kind, whose sizes are in the row, or an entry of the model catalogue, whose sizes the row may repeat or
// leave out. `ffn_per_hidden` and `network.vocab` are the defaults of blank cells of a kind.
struct ModelFacts {
  std::vector<std::string_view> prefixes = {};  // of the model's name, as `dashed` spells it
  std::string_view catalogue = {};              // entry; empty: a kind
  workload::Model network = {};                 // of a kind: everything except sizes, which it may have
  double ffn_per_hidden = 4.0;                  // width of the MLP / hidden
  std::int64_t ffn_multiple = 1;                // the width is rounded up to a multiple of this
  std::string_view skipped = {};                // not empty: why no prediction is made
  std::string_view source = {};
};

// The facts with the longest prefix of `model` in any spelling ("Llama 2 70B", "meta-llama/Llama-2-70b"); null: none.
[[nodiscard]] const ModelFacts* model_facts(std::string_view model);

// For an unknown name, by the shape of the layers: a gated MLP where keys and values have fewer heads than queries or
// the MLP is not 4 x hidden, GPT otherwise.
[[nodiscard]] const ModelFacts& facts_of_shape(bool grouped_or_odd_width);

[[nodiscard]] std::span<const ModelFacts> all_model_facts();

// Name of an accelerator in tables -> the catalogue's cluster that is built of it.
struct MachineFacts {
  std::string_view gpu_type, cluster;
  // The innermost dimension connects several hosts; its size is not the accelerators of a host.
  bool hosts_share_domain = false;
  std::optional<double> memory_GiB = {};  // where it differs from the catalogue's accelerator
  std::optional<double> memory_bandwidth_TBps = {};
  bool xla = false;  // programs are compiled by XLA and fully sharded
};
[[nodiscard]] std::span<const MachineFacts> machine_facts();

// The machine whose name is the longest prefix of `gpu_type` ("A100-80GB-SXM") in any spelling ("NVIDIA H100 80GB
// HBM3", "h100_sxm", "8xA100"). Null when the catalogue has none.
[[nodiscard]] const MachineFacts* machine_of(std::string_view gpu_type);

// A stack's placement of embedding tables where a row does not state it.
struct TableDefaults {
  workload::TableSharding one_node = workload::TableSharding::table, nodes = workload::TableSharding::table;
  std::int64_t replicated_below = 0;        // rows; of a job in one node
  std::int64_t replicated_below_nodes = 0;  // of several
};

// A stack profile, and its defaults for what a row does not state.
struct StackFacts {
  std::string_view stack;
  int zero = 0;
  bool keeps_weights_with_stages =
      false;                       // with pipeline stages, zero 3 is 2: no gather of weights in each micro-batch
  bool sequence_parallel = false;  // when tp > 1
  workload::Adapter::Targets adapters = workload::Adapter::Targets::attention;
  hardware::Precision precision = hardware::Precision::bf16;  // bf16 where the accelerator lacks it
  std::optional<parallel::Recompute> recompute = {};          // default: no more layers than must be
  bool interleaves = false;                                   // default vpp: one chunk per layer of a stage
  bool ends_are_layers = false;  // embedding and head count as layers when these are distributed over stages
  TableDefaults tables = {};
  bool casts_inputs = false;   // its tables of kernels include the cast of two-byte inputs to the GEMM's format
  bool scales_blocks = false;  // its fp8 GEMMs have a scale per block, whatever the column dtype says
  double kernel_gap_us = 0.0;  // before each kernel of its tables of kernels, which a host launched one by one
  bool expert_parallel_over_all =
      false;  // ep where its tables have 1 or nothing: all ranks of a stage that divide the experts
  bool splits_micro_batch = false;  // micro-batch of its tables is split into as many as there are stages
  std::string_view source = {};
};

// Of some MoE recipes of Megatron-Bridge (recipes.cpp).
extern const StackFacts kNemoRecorded, kNemoAllToAll;

// The profile of a family of measurements, by the longest prefix of its name; megatron-core for unknown families. On an
// accelerator with XLA only, XLA's stack.
[[nodiscard]] const StackFacts& stack_of(std::string_view family, std::string_view gpu_type = {});

// The profile of an inference engine: by its name where stated, else by the family; vllm for unknown ones.
struct EngineFacts {
  std::string_view engine, family;  // beginnings; of engines as `letters` spells them
  StackFacts stack;
};
[[nodiscard]] const EngineFacts& engine_of(std::string_view engine, std::string_view family);

// What a table's metric measures: a step, or a part of an MoE step alone.
enum class Measured : std::uint8_t { step, pass, all_to_all };
[[nodiscard]] Measured measured_by(std::string_view metric);

}  // namespace orrery::validate
