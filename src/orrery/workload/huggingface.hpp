// Hugging Face config.json -> Model.
//
// Reads the families that huggingface_model_types() lists, each with its own key names and with the defaults of the
// transformers library for optional keys. Sizes that define the network (layers, hidden, heads, vocabulary, MLP width,
// positions) have no default here, except where published files omit them (Gemma 3, T5): a file without them is an
// error. Keys without effect on the network are skipped; these files have many. What a file specifies but a Model
// cannot represent is an error.
//
// Source of key names and defaults: huggingface/transformers, src/transformers/models/<type>/configuration_<type>.py.
// Without effect on cost, but read for launch files: rotary positions, soft caps, sinks, epsilon of norms, the router's
// score (huggingface_details.cpp), and the formats of quantised checkpoints, for warnings where they are priced in
// others (huggingface_checkpoint.cpp). Not represented: layers that a checkpoint does not quantise, the vision tower of
// Gemma 3 and the MTP modules of DeepSeek-V3 (noted in the description), a bias of the output projection (Phi).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::workload {

// `config` must be a mapping. `name`: the name of the model. `as`: a type to read it as, whatever its "model_type".
// Keys that the family does not read and that may change the network are named in the model's warnings.
[[nodiscard]] Result<Model> model_from_huggingface(const config::Node& config, const std::string& name,
                                                   const std::string& as = {});

// The supported values of "model_type".
[[nodiscard]] std::vector<std::string> huggingface_model_types();

}  // namespace orrery::workload
