// The work of one sample under MAD-Max's equations: a lookup in tables, then dense layers one after the other. Batch,
// machine and strategy come later.
//
// Counted: GEMMs of MLPs, of attention's four projections, of the two layers of a transformer's MLP. Left out, as in
// MAD-Max: attention scores, the third GEMM of gated MLPs, key and value heads fewer than query heads, the output
// layer, norms, activation functions, biases.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::madmax {

// The part of the model that a dense layer is in. A transformer layer counts as two: attention, then fc.
enum class Part : std::uint8_t { bottom, attention, fc, top };

// Classes of layers, one strategy each. `moe`: layers of experts; without a strategy of its own, a recommender's top
// MLP of experts uses that of mlp and a transformer's fc of experts that of fc.
enum class LayerClass : std::uint8_t { emb, mlp, attention, fc, moe };
inline constexpr int kClasses = 5;
[[nodiscard]] std::string_view name_of(LayerClass layer_class);

// One size of dense layer, for one sample.
struct LayerShape {
  LayerClass layer_class = LayerClass::mlp;
  double parameters = 0;   // of all experts
  double flops = 0;        // forward; of the active experts
  double activations = 0;  // elements of the output
  double experts = 1;      // 1: none
};

struct Layer {
  Part part = Part::bottom;
  std::int32_t number = 0;  // within its part
  std::int32_t shape = 0;   // index into SampleWork::shapes
};

struct SampleWork {
  std::string model;
  bool is_recommender = false;
  std::int64_t seq = 0;  // tokens of a sample; 0 for a recommender
  double table_parameters = 0;
  double table_bytes = 0;      // of an element
  double looked_up_bytes = 0;  // of a sample
  double dense_bytes = 0;      // of an element of weights and activations: selects the peak
  std::vector<LayerShape> shapes;
  std::vector<Layer> layers;             // in the order of forward
  std::size_t reads_embedding = 0;       // the first layer that waits for the all-to-all of looked-up rows
  bool gathers_early = false;            // vision models: backward gathers weights one layer ahead (see schedule.hpp)
  std::vector<std::string> not_counted;  // of this model, in addition to what is never counted

  [[nodiscard]] bool has(LayerClass layer_class) const;
  [[nodiscard]] bool is_recommender_with_transformer() const { return is_recommender && has(LayerClass::attention); }
  [[nodiscard]] std::vector<LayerClass> classes() const;
  [[nodiscard]] double parameters() const;  // tables and dense layers
  [[nodiscard]] double flops() const;       // forward, a sample
};

// `precision`: of a transformer, and of a recommender's dense layers without a `dense_precision` of their own.
// `seq` 0: the model's longest sequence.
// Fails for what the equations do not cover: encoder and decoder, layers of several kinds.
[[nodiscard]] Result<SampleWork> work_of(const workload::Model& model, hardware::Precision precision, std::int64_t seq);

}  // namespace orrery::madmax
