// What a model asks of one sample under MAD-Max's equations: a lookup in tables, then dense layers one after the other.
// No batch, no machine and no strategy yet.
//
// Counted: products of MLPs, of attention's four projections, of the two of a transformer's MLP. Not counted, as
// MAD-Max does not: attention scores, a third product of gated MLPs, narrow key and value heads, the vocabulary's
// product, norms, activations, biases.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::madmax {

// Where a dense layer is. A transformer layer is two: attention, then fc.
enum class Part : std::uint8_t { bottom, attention, fc, top };

// Classes that strategies are given for. `moe`: layers of experts; the top MLP of a recommender follows mlp and the fc
// of a transformer follows fc unless they have one of their own.
enum class LayerClass : std::uint8_t { emb, mlp, attention, fc, moe };
inline constexpr int kClasses = 5;
[[nodiscard]] std::string_view name_of(LayerClass layer_class);

// One size of dense layer, of one sample.
struct Shape {
  LayerClass layer_class = LayerClass::mlp;
  double parameters = 0;   // of all experts
  double flops = 0;        // forward; of the active experts
  double activations = 0;  // elements of the output
  double experts = 1;      // 1: none
};

struct Layer {
  Part part = Part::bottom;
  std::int32_t number = 0;  // within its part
  std::int32_t shape = 0;   // index into Work::shapes
};

struct Work {
  std::string model;
  bool is_recommender = false;
  std::int64_t seq = 0;  // tokens of a sample; 0: of a recommender
  double table_parameters = 0;
  double table_bytes = 0;      // of an element
  double looked_up_bytes = 0;  // of a sample
  double dense_bytes = 0;      // of an element of weights and activations: chooses the peak
  std::vector<Shape> shapes;
  std::vector<Layer> layers;             // in the order of forward
  std::size_t reads_embedding = 0;       // the first layer that cannot start before the lookup is exchanged
  bool gathers_early = false;            // vision models: weights are gathered ahead in backward (see schedule.hpp)
  std::vector<std::string> not_counted;  // of this model, beyond what is never counted

  [[nodiscard]] bool has(LayerClass layer_class) const;
  [[nodiscard]] std::vector<LayerClass> classes() const;
  [[nodiscard]] double parameters() const;  // tables and dense layers
  [[nodiscard]] double flops() const;       // forward, a sample
};

// `precision`: of a transformer, and of a recommender's dense layers unless its description says (`dense_precision`).
// `seq` 0: the model's longest sequence.
// Fails for what the equations do not cover: encoder and decoder, layers of several kinds.
[[nodiscard]] Result<Work> work_of(const workload::Model& model, hardware::Precision precision, std::int64_t seq);

}  // namespace orrery::madmax
