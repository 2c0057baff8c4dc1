// A recommender as numbers (DLRM, arXiv 1906.00091): embedding tables that are looked up, a bottom MLP for dense
// features, an interaction of both, a top MLP. The description says what the network is; who shards what, and what a
// lookup or an exchange costs, is for those that read it.
//
// Left out: optimizer state of rows, skew of lookups, a dot or cross interaction (neither has weights worth a layer).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/hardware/accelerator.hpp"

namespace orrery::workload {

// Tables that are alike.
struct EmbeddingTables {
  std::int64_t count = 1;
  std::int64_t rows = 0;   // of each
  std::int64_t width = 0;  // elements of a row
  double pooling = 1.0;    // rows that a sample looks up in each table, on average

  friend bool operator==(const EmbeddingTables&, const EmbeddingTables&) = default;
};

// A stack of fully connected layers: `widths` of their outputs, or `layers` of one `width`.
struct Tower {
  std::int64_t input = 0;  // width of what enters; 0: the first layer's own
  std::vector<std::int64_t> widths;
  std::int64_t layers = 0, width = 0;
  std::int64_t experts = 0;         // every layer is a mixture of so many; 0: dense
  std::int64_t active_experts = 0;  // that a sample passes

  struct Layer {
    std::int64_t input = 0, output = 0;
  };
  [[nodiscard]] std::vector<Layer> each() const;
  [[nodiscard]] bool has_experts() const { return experts > 0; }
  friend bool operator==(const Tower&, const Tower&) = default;
};

// Transformer layers between the embeddings and the top MLP, over features as a sequence.
struct TransformerInteraction {
  std::int64_t layers = 0, heads = 0, hidden = 0, ffn = 0;
  std::int64_t seq = 0;  // features

  friend bool operator==(const TransformerInteraction&, const TransformerInteraction&) = default;
};

struct Recommender {
  std::string name;
  std::string description;
  std::vector<EmbeddingTables> tables;
  hardware::Precision table_precision = hardware::Precision::fp32;
  hardware::Precision dense_precision = hardware::Precision::fp32;  // MLPs and interaction
  Tower bottom, top;
  std::optional<TransformerInteraction> interaction;
  hardware::Sources sources;

  friend bool operator==(const Recommender&, const Recommender&) = default;
};

// What keeps the numbers from describing a network, and the member to blame as a JSON pointer: a tower without layers,
// more active experts than there are. Empty texts: nothing does.
struct RecommenderFault {
  std::string pointer, message;
};
[[nodiscard]] RecommenderFault fault_of(const Recommender& recommender);

struct RecommenderSize {
  double table_parameters = 0;
  double dense_parameters = 0;    // of MLPs, experts and interaction; no biases
  double looked_up_elements = 0;  // of tables, a sample
  double flops = 0;               // forward, a sample: products of MLPs, of active experts, of the interaction
};

// Attention of an interaction counts its four projections and not the scores.
[[nodiscard]] RecommenderSize size_of(const Recommender& recommender);

}  // namespace orrery::workload
