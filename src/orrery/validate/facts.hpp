// What a row of measurements does not say, typed once: the network behind a model's name, the machine behind an
// accelerator's name, the software stack behind a family of measurements and that stack's habits.
//
// Nothing here is fitted to measurements; every entry says where it was read. docs/models/validation.md lists the
// tables.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/hardware/accelerator.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::validate {

// The network: a kind that takes its sizes from the row, or one entry of the model catalogue, whose sizes the row may
// repeat or leave out. `ffn_per_hidden` and `network.vocab` stand in for blank cells of a kind.
struct ModelFacts {
  std::vector<std::string_view> prefixes = {};  // of the model's name, as `dashed` spells it
  std::string_view catalogue = {};              // entry; empty: a kind
  workload::Model network = {};                 // of a kind: everything but the sizes, or those, too
  double ffn_per_hidden = 4.0;                  // width of the MLP / hidden
  std::int64_t ffn_multiple = 1;                // the width is rounded up to a multiple of this
  std::string_view skipped = {};                // not empty: why no prediction is made
  std::string_view source = {};
};

// The facts with the longest prefix of `model`, however it is spelled ("Llama 2 70B", "meta-llama/Llama-2-70b"); null
// when there are none.
[[nodiscard]] const ModelFacts* model_facts(std::string_view model);

// Of a model whose name says nothing, by the shape of its layers: a gated MLP where the keys and values have fewer
// heads than the queries or the MLP is not four times as wide as the layer, GPT otherwise.
[[nodiscard]] const ModelFacts& facts_of_shape(bool grouped_or_odd_width);

[[nodiscard]] std::span<const ModelFacts> all_model_facts();

// What a table of measurements calls an accelerator -> the catalogue's cluster that is built of it.
struct MachineFacts {
  std::string_view gpu_type, cluster;
  // Hosts share the innermost dimension: its size is not the number of accelerators of a host. A domain is filled as
  // far as whole domains make up the job.
  bool hosts_share_domain = false;
  std::optional<double> memory_GiB = {};  // where it differs from the catalogue's accelerator
  std::optional<double> memory_bandwidth_TBps = {};
  bool xla = false;  // runs what XLA compiles, fully sharded, and nothing else
};
[[nodiscard]] std::span<const MachineFacts> machine_facts();

// The one of that name, or else the one whose name is the longest beginning of `gpu_type` ("A100-80GB-SXM"), however
// the table spells it ("NVIDIA H100 80GB HBM3", "h100_sxm", "8xA100"). Null when the catalogue has no such machine.
[[nodiscard]] const MachineFacts* machine_of(std::string_view gpu_type);

// How a stack lays out embedding tables where a row says nothing.
struct TableHabits {
  workload::TableSharding one_node = workload::TableSharding::table, nodes = workload::TableSharding::table;
  std::int64_t replicated_below = 0;        // rows; of a job in one node
  std::int64_t replicated_below_nodes = 0;  // of several
};

// A stack profile, and what a job on it does where a row says nothing.
struct StackFacts {
  std::string_view stack;
  int zero = 0;
  bool sequence_parallel = false;  // when tp > 1
  workload::Adapter::Targets adapters = workload::Adapter::Targets::attention;
  hardware::Precision precision = hardware::Precision::bf16;  // bf16 where the accelerator lacks it
  bool recomputes_all = false;  // all layers where the table does not say; else as few as must be
  bool interleaves = false;     // its pipelines have a chunk for every layer where the table does not say
  TableHabits tables = {};
  bool casts_inputs = false;  // its tables of kernels time a layer, which makes narrow inputs of two-byte ones
  bool spreads_experts =
      false;  // over all ranks of a stage that share them evenly, where its tables say one or nothing
  bool cuts_micro_batch = false;  // what its tables call micro-batch is cut into as many as there are stages
  std::string_view source = {};
};

// Of mixtures in Megatron-Bridge, some recipes' (recipes.cpp says which).
extern const StackFacts kNemoRecorded, kNemoAllToAll;

// The profile of a family of measurements, by the longest prefix of its name; megatron-core for unknown families. An
// accelerator that only XLA's stack runs on overrules the family.
[[nodiscard]] const StackFacts& stack_of(std::string_view family, std::string_view gpu_type = {});

// The profile of what served a batch: by the engine's name where the row says it, else by the family; megatron-core
// for unknown ones.
struct EngineFacts {
  std::string_view engine, family;  // beginnings; of engines as `letters` spells them
  StackFacts stack;
  bool one_by_one = false;  // every sequence of a batch is a pass of its own
};
[[nodiscard]] const EngineFacts& engine_of(std::string_view engine, std::string_view family);

// What a table's metric is of: a step, or a part of a mixture's by itself.
enum class Measured : std::uint8_t { step, pass, exchange };
[[nodiscard]] Measured measured_by(std::string_view metric);

}  // namespace orrery::validate
