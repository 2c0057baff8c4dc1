// Hugging Face config.json -> Model.
//
// Reads the families that huggingface_model_types() lists, each with its own key names and with the defaults of the
// transformers library for keys that a file may leave out. The sizes that make the network what it is (layers, hidden,
// heads, vocabulary, MLP width, positions) have no default here, except where published files leave them out (Gemma 3,
// T5): a file without them is an error. Keys that do not matter to cost are skipped unread; there are many in these
// files. What a file says and a Model cannot is an error.
//
// Source of key names and defaults: huggingface/transformers, src/transformers/models/<type>/configuration_<type>.py.
// Left out: rotary scaling and partial rotary dimensions (cost nothing to speak of), soft caps on scores and logits,
// attention sinks, quantised checkpoints (only the shape is read), the vision tower of Gemma 3 and the modules for
// further tokens of DeepSeek-V3 (the description says so), a bias of the output projection (Phi).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::workload {

// `config` must be a mapping that has "model_type". `name` is what the model is called.
[[nodiscard]] Result<Model> model_from_huggingface(const config::Node& config, const std::string& name);

// The values of "model_type" that can be read.
[[nodiscard]] std::vector<std::string> huggingface_model_types();

}  // namespace orrery::workload
