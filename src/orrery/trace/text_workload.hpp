// Workloads in the text format of ASTRA-sim 1.0, as execution graphs: a line per layer with the time and the collective
// of its forward pass, its input gradient and its weight gradient, under a header that names the parallelism
// of the training loop. docs/format/text-workload.md has the format and the meaning of every parallelism.
//
// The format describes a loop of one thread: compute, start a collective, wait for one. The graph has a node for each
// computation and each collective, and every node depends on what the loop has waited for before. All ranks are
// identical except for the process groups that they name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/graph/record.hpp"

namespace orrery::trace {

// The first word of a file.
enum class Parallelism : std::uint8_t {
  data,
  model,
  hybrid_data_model,
  hybrid_model_data,
  hybrid_transformer,
  hybrid_transformer_fwd_in_bckwd,
  hybrid_customized,
  hybrid_dlrm,
  hybrid_dlrm_enhanced,
  micro,
  distributed_inference,
};

[[nodiscard]] std::string_view name_of(Parallelism parallelism);  // "HYBRID_DATA_MODEL", as in files

struct TextLayer {
  struct Pass {
    std::uint64_t cycles = 0;
    std::optional<graph::CollectiveType> collective;  // nothing for NONE
    std::uint64_t bytes = 0;
  };

  std::string name;
  int line = 0;
  Pass forward;
  Pass input_gradient;
  Pass weight_gradient;
  std::uint64_t update_cycles = 0;         // between the end of a collective and the use of its result
  std::optional<Parallelism> parallelism;  // HYBRID_CUSTOMIZED: of this layer
};

struct TextWorkload {
  std::string file;
  int line = 1;  // of the header
  Parallelism parallelism = Parallelism::data;
  std::optional<std::uint64_t> model_group;        // HYBRID_TRANSFORMER…: ranks per model-parallel group
  std::optional<std::uint64_t> last_bottom_layer;  // HYBRID_DLRM…
  std::vector<std::uint64_t> checkpoints;          // HYBRID_TRANSFORMER_FWD_IN_BCKWD: layers whose input is kept
  std::vector<std::uint64_t> initiators;           // layers before whose gradient the forward pass is recomputed
  std::vector<TextLayer> layers;
};

// All mistakes of the text at once, with line and column.
[[nodiscard]] Result<TextWorkload> parse_text_workload(std::string_view text, const std::string& name);
[[nodiscard]] Result<TextWorkload> read_text_workload(const std::string& path);

// Whether a text begins as a workload does: with the name of a parallelism.
[[nodiscard]] bool is_text_workload(std::string_view text);

struct TextWorkloadOptions {
  // Sizes of the network dimensions, innermost first (neighbours have consecutive ranks). The number of ranks is their
  // product.
  std::vector<std::uint64_t> dimensions;

  std::uint64_t passes = 1;                  // iterations of the loop
  std::uint64_t cycle_ns = 1;                // duration of a cycle, the unit of the format
  std::optional<std::uint64_t> model_group;  // overrides the file

  // Whether collectives among some of the ranks also name a process group (its rank list is in the metadata), not only
  // the dimensions that they involve.
  bool process_groups = false;
};

struct TextGraph {
  graph::Graph graph;
  std::vector<std::uint64_t>
      dimensions;  // those of the options, one of them divided if the model-parallel groups end inside it
  std::vector<std::string> notes;  // parts of the file that have no effect with this parallelism
};

// The graph of one rank.
[[nodiscard]] Result<TextGraph> text_workload_graph(const TextWorkload& workload, const TextWorkloadOptions& options,
                                                    std::uint64_t rank = 0);

// The number of ranks. Fails without dimensions, or beyond 2^20 ranks (a file each).
[[nodiscard]] Result<std::uint64_t> ranks_of(const TextWorkloadOptions& options);

// Reads a workload and writes a Chakra file per rank, named by `files`. Returns the notes of TextGraph.
[[nodiscard]] Result<std::vector<std::string>> import_text_workload(const std::string& path,
                                                                    const std::vector<std::string>& files,
                                                                    const TextWorkloadOptions& options);

}  // namespace orrery::trace
