// What a row of measurements does not say, typed once: the kind of network behind a model's name, the machine behind an
// accelerator's name, the software stack behind a family of measurements and that stack's habits.
//
// Nothing here is fitted to measurements; every entry says where it was read. docs/models/validation.md lists the
// tables.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/workload/model.hpp"

namespace orrery::validate {

// The kind of network. Sizes come from the row; `ffn_per_hidden` and `vocab` stand in for blank cells.
struct ModelFacts {
  std::vector<std::string_view> prefixes;  // of the model's name, lower case
  workload::Activation activation = workload::Activation::gelu;
  workload::Normalisation norm = workload::Normalisation::layernorm;
  workload::Position position = workload::Position::learned;
  bool gated_mlp = false;
  bool biases = true;           // of all four projections of a layer
  bool tied_embeddings = true;  // head shares the embedding's weights
  bool parallel_residual = false;
  bool embedding_norm = false;
  double dropout = 0.0;
  double ffn_per_hidden = 4.0;    // width of the MLP / hidden
  std::int64_t ffn_multiple = 1;  // the width is rounded up to a multiple of this
  std::int64_t vocab = 0;
  std::string_view source;
};

// The facts with the longest prefix of `model`, compared without case; null when there are none.
[[nodiscard]] const ModelFacts* model_facts(std::string_view model);

// Every prefix of model_facts, for messages.
[[nodiscard]] std::string known_model_prefixes();

// What a table of measurements calls an accelerator -> the catalogue's cluster that is built of it.
struct MachineFacts {
  std::string_view gpu_type, cluster;
};
[[nodiscard]] std::span<const MachineFacts> machine_facts();

// Empty when the catalogue has no such machine.
[[nodiscard]] std::string_view cluster_name(std::string_view gpu_type);

// A stack profile, and what a job on it does where a row says nothing.
struct StackFacts {
  std::string_view stack;
  int zero = 0;
  bool sequence_parallel = false;  // when tp > 1
  std::string_view source;
};

// The profile of a family of measurements, by the longest prefix of its name; megatron-core for unknown families.
[[nodiscard]] const StackFacts& stack_of(std::string_view family);

}  // namespace orrery::validate
