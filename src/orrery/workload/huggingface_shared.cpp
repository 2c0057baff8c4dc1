// What families of Hugging Face configurations have in common.
#include <algorithm>

#include <fmt/format.h>

#include "orrery/workload/huggingface_families.hpp"

namespace orrery::workload::huggingface {

using config::Record;

std::string anything(const Fields&) { return {}; }

void all_biases(Model& model) { model.qkv_bias = model.attention_output_bias = model.mlp_bias = true; }

Record<Fields> llama_like(const char* model_type, const char* doc) {
  return Record<Fields>(model_type, doc)
      .optional("hidden_act", &Fields::activation, "activation function of the MLP")
      .optional("attention_dropout", &Fields::attention_dropout, "dropout on attention probabilities", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights");
}

Fields llama_defaults() {
  Fields fields;
  fields.activation = "silu";
  return fields;
}

void llama_like_shape(Model& model) {
  model.norm = Normalisation::rmsnorm;
  model.position = Position::rotary;
  model.gated_mlp = true;
}

namespace {

Windows windows_of_types(const Fields& fields, const std::vector<std::string>& types) {
  const auto is_full = [](const std::string& type) { return type == "full_attention"; };
  const auto strange = std::find_if(types.begin(), types.end(), [&](const std::string& type) {
    return !is_full(type) && type != "sliding_attention";
  });
  if (strange != types.end()) {
    return {.unsupported = fmt::format(R"("layer_types" with "{}" is not built yet)", *strange)};
  }
  if (static_cast<Count>(types.size()) != fields.layers) {
    return {.unsupported = fmt::format("\"layer_types\" names {} layers of {}", types.size(), fields.layers)};
  }
  const auto full = std::count_if(types.begin(), types.end(), is_full);
  if (full == fields.layers) { return {}; }
  const Count window = fields.sliding_window.value_or(0);
  const Count every = full == 0 ? 0 : std::find_if(types.begin(), types.end(), is_full) - types.begin() + 1;
  for (Count i = 0; i < fields.layers; ++i) {
    const bool expected = every > 0 && (i + 1) % every == 0;
    if (is_full(types[static_cast<std::size_t>(i)]) == expected) { continue; }
    return {.unsupported = "\"layer_types\" other than every n-th layer with full attention is not built yet"};
  }
  return {window, every, {}};
}

}  // namespace

Windows windows(const Fields& fields) {
  if (!fields.use_sliding_window || !fields.sliding_window) { return {}; }
  if (fields.layer_types) { return windows_of_types(fields, *fields.layer_types); }
  if (fields.full_layers >= fields.layers) { return {}; }
  if (fields.full_layers > 0) {
    return {.unsupported = fmt::format("\"use_sliding_window\": true with \"max_window_layers\": {} of {} layers (a "
                                       "window in the last layers only) is not built yet",
                                       fields.full_layers, fields.layers)};
  }
  return {*fields.sliding_window, fields.window_period, {}};
}

std::string windows_unsupported(const Fields& fields) { return windows(fields).unsupported; }

void shape_windows(const Fields& fields, Model& model) {
  const Windows found = windows(fields);
  model.sliding_window = found.window;
  model.global_every = found.window > 0 ? found.global_every : 0;
}

}  // namespace orrery::workload::huggingface
