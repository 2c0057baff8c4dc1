// How a pipeline's share of layers is told to a program: by the simplest of the options that say exactly it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::launch {

enum class Split : std::uint8_t {
  one_stage,     // there is nothing to share out
  even,          // every virtual stage has as many layers
  ends_counted,  // ... when embedding, head or both count as a layer
  ends_set,      // ... beside those of the first and last stage, which are typed
  listed,        // none of these
};

struct Layout {
  Split split = Split::one_stage;
  std::vector<std::int64_t> layers;  // of each virtual stage, in the order of the model
};

[[nodiscard]] Layout layout_of(const workload::Model& model, const parallel::Plan& plan);

// The layout in Megatron's words, "Etttt|(tttt|)*6tttL": E embedding, t a layer, m a module for further tokens, L loss.
[[nodiscard]] std::string letters(const Layout& layout, std::int64_t mtp_layers);

// The same as torchtitan's names of modules, a list for each virtual stage.
[[nodiscard]] std::vector<std::vector<std::string>> module_names(const Layout& layout);

// Of each layer whether it has experts.
[[nodiscard]] std::vector<bool> expert_layers(const workload::Model& model);

// Those as a Python expression in Megatron's words, "([0]*3+[1]*58)", and as a plain list, "[0,0,0,1]".
[[nodiscard]] std::string expert_pattern(const std::vector<bool>& layers);
[[nodiscard]] std::string expert_list(const std::vector<bool>& layers);

}  // namespace orrery::launch
