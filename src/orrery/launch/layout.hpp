// The distribution of layers over pipeline stages, in the simplest option of a program that expresses it exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::launch {

enum class LayerSplit : std::uint8_t {
  one_stage,     // no pipeline
  even,          // every virtual stage has the same number of layers
  ends_counted,  // ... if embedding, head or both count as a layer
  ends_set,      // ... except the first and last stage, whose numbers are given
  listed,        // none of these
};

struct Layout {
  LayerSplit split = LayerSplit::one_stage;
  std::vector<std::int64_t> layers;  // of each virtual stage, in the order of the model
};

[[nodiscard]] Layout layout_of(const workload::Model& model, const parallel::Plan& plan);

// The layout in Megatron's notation, "Etttt|(tttt|)*6tttL": E embedding, t a layer, m an MTP module, L loss.
[[nodiscard]] std::string layout_text(const Layout& layout, std::int64_t mtp_layers);

// The same as torchtitan's names of modules, a list for each virtual stage.
[[nodiscard]] std::vector<std::vector<std::string>> module_names(const Layout& layout);

// Of each layer whether it has experts.
[[nodiscard]] std::vector<bool> expert_layers(const workload::Model& model);

// The same as a Python expression for Megatron, "([0]*3+[1]*58)", and as a plain list, "[0,0,0,1]".
[[nodiscard]] std::string expert_pattern(const std::vector<bool>& layers);
[[nodiscard]] std::string expert_list(const std::vector<bool>& layers);

}  // namespace orrery::launch
