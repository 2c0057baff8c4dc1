// Hugging Face config.json -> Model.
//
// Reads model_type gpt2, gpt_neox, opt, bloom, llama, mistral and qwen2, each with its own key names and with the
// defaults of the transformers library for keys that a file may leave out. The sizes that make the network what it is
// (layers, hidden, heads, vocabulary, MLP width, positions) have no default here: a file without them is an error.
// Keys that do not matter to cost are skipped unread; there are many in these files.
//
// Source of key names and defaults: huggingface/transformers, src/transformers/models/<type>/configuration_<type>.py.
// Left out: sliding windows (kept in the model, treated as full attention), rotary scaling (costs nothing),
// quantised checkpoints (only the shape is read), cross-attention.
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
