// Recipes of InferenceX's disaggregated runs with TensorRT-LLM behind Dynamo.
#pragma once

#include <optional>

#include "orrery/validate/serving_rows.hpp"

namespace orrery::validate {

// What a recipe says of its decode engines.
struct DecodeRecipe {
  int drafts = 0;             // 0: no speculation
  bool attention_dp = false;  // over all ranks of an engine
  int batch = 0;              // sequences of a rank of attention dp, or of an engine without it; 0: not known
};

// Of the list of a row's day, by accelerator, model, format, lengths, drafts or none, decode engines and clients. If no
// list has these clients: of the nearest ones, without the batch. None: no list has such engines.
[[nodiscard]] std::optional<DecodeRecipe> trtllm_recipe(const ServingRow& row);

}  // namespace orrery::validate
