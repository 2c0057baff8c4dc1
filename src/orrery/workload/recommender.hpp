// A recommender as numbers: embedding tables, a bottom MLP over dense features, an interaction of the two, a top MLP.
//
// Covers DLRM (arXiv:1906.00091), its DCNv2 variant (MLPerf), transformers between the vectors of a sample, and a top
// MLP that is a mixture of experts. Left out: sequences of a user's history, several tasks with heads of their own,
// tables whose vectors feed no interaction, skewed lookups (rows are accessed uniformly).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/hardware/accelerator.hpp"

namespace orrery::workload {

struct LayerKind;
struct Model;
struct ParameterCount;
struct Inconsistency;

// `count` embedding tables of one shape. A sample looks up `lookups` rows in each (its pooling factor, or hotness),
// whose sum is one vector of `width`.
struct Table {
  std::int64_t count = 1;
  std::int64_t rows = 0;
  std::int64_t width = 0;
  double lookups = 1.0;

  friend bool operator==(const Table&, const Table&) = default;
};

// How a sample's vectors, one of each table and the bottom MLP's output, become the top MLP's input.
enum class InteractionKind : std::uint8_t {
  dot,          // dot products of all pairs, concatenated with the bottom MLP's output; all vectors have one width
  concat,       // concatenation
  cross,        // DCNv2 (arXiv:2008.13535): concatenation, then x0 (W V x + b) + x, `layers` times
  transformer,  // encoder layers over them as tokens
  opaque,       // unknown: the vectors are read, and `width` numbers per sample are written
};

struct Interaction {
  InteractionKind kind = InteractionKind::dot;
  std::int64_t layers = 0;  // cross, transformer
  std::int64_t rank = 0;    // cross: inner width of W V; 0: one square matrix
  std::int64_t heads = 0;   // transformer
  std::int64_t ffn = 0;     // transformer: width of the MLP's inner layer
  std::int64_t tokens = 0;  // transformer; 0: a token for each vector
  std::int64_t width = 0;   // transformer: of a token, 0: of a vector; opaque: of the output
  std::int64_t output = 0;  // transformer: numbers that the top MLP reads of it; 0: all of all tokens

  friend bool operator==(const Interaction&, const Interaction&) = default;
};

// Several top MLPs; a router sends each sample to some of them.
struct TopExperts {
  std::int64_t count = 0;   // 0: one top MLP for all samples
  std::int64_t active = 0;  // top MLPs per sample

  friend bool operator==(const TopExperts&, const TopExperts&) = default;
};

struct Recommender {
  std::int64_t dense_features = 0;   // numbers of a sample that go into the bottom MLP
  std::vector<std::int64_t> bottom;  // widths of its layers
  std::vector<Table> tables;
  hardware::Precision table_precision = hardware::Precision::fp32;  // that tables are stored in
  Interaction interaction;
  std::vector<std::int64_t> top;  // widths of the top MLP's layers; the last one's numbers are the answer
  TopExperts top_experts;
  // --semantics mad-max only: number format of dense layers. Default, and always with physical semantics: --precision.
  std::optional<hardware::Precision> dense_precision;

  // Of all tables: how many there are, elements, numbers of a sample's vectors, rows that it looks up
  // and the numbers in those.
  [[nodiscard]] std::int64_t table_count() const;
  [[nodiscard]] double table_elements() const;
  [[nodiscard]] std::int64_t vectors_width() const;
  [[nodiscard]] double lookups() const;
  [[nodiscard]] double looked_up_elements() const;
  [[nodiscard]] std::int64_t bottom_width() const { return bottom.empty() ? 0 : bottom.back(); }
  // Vectors of a sample, the bottom MLP's included, and the numbers in them.
  [[nodiscard]] std::int64_t vectors() const { return table_count() + (bottom.empty() ? 0 : 1); }
  [[nodiscard]] std::int64_t joined_width() const { return vectors_width() + bottom_width(); }
  friend bool operator==(const Recommender&, const Recommender&) = default;
};

// Layers behind the tables and the bottom MLP: of the interaction, then of the top MLP; and what each is.
[[nodiscard]] std::vector<LayerKind> dense_layers(const Recommender& recommender);

// The transformer that an interaction's layers are of.
[[nodiscard]] Model transformer_of(const Recommender& recommender);

// Weights of the bottom MLP, and of one dense layer.
[[nodiscard]] std::int64_t bottom_parameters(const Recommender& recommender);
[[nodiscard]] std::int64_t dense_parameters(const Recommender& recommender, const LayerKind& kind);
// embedding: the tables; layers: everything else. active: the rows that a sample looks up, and its experts.
[[nodiscard]] ParameterCount parameter_count(const Recommender& recommender);

// Multiplications of one sample's GEMMs in the forward pass, including dot products between vectors, and those of the
// bottom MLP's first layer, whose input has no gradient. (Transformer layers are separate: their scores depend on the
// stack.)
struct Multiplications {
  double all = 0, first = 0;
};
[[nodiscard]] Multiplications multiplications(const Recommender& recommender);

[[nodiscard]] std::optional<Inconsistency> inconsistency(const Recommender& recommender);

}  // namespace orrery::workload
