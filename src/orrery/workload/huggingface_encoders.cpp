// Hugging Face families with an encoder: T5 and vision transformers.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/workload/huggingface_families.hpp"

namespace orrery::workload::huggingface {
namespace {

using config::Record;

// ---- T5, 1.0 and 1.1 -----------------------------------------------------------------------------------------------

Record<Fields> t5_record() {
  return Record<Fields>("t5", "T5, its version 1.1 and Flan-T5")
      .optional("feed_forward_proj", &Fields::activation,
                "activation function of the MLP; prefix \"gated-\": the MLP is gated")
      .optional("num_decoder_layers", &Fields::decoder_layers, "layers of the decoder; null = num_layers", kSize)
      .optional("relative_attention_num_buckets", &Fields::buckets, "buckets of the relative position bias", kFrom1)
      .optional("dropout_rate", &Fields::hidden_dropout, "dropout everywhere", kProbability)
      .optional("tie_word_embeddings", &Fields::tied, "head and embedding share weights")
      .optional("is_encoder_decoder", &Fields::encoder_decoder, "the model has an encoder and a decoder")
      .optional("architectures", &Fields::architectures, "model classes of the checkpoint");
}

Fields t5_defaults() {
  Fields fields;
  fields.activation = "relu";
  fields.hidden_dropout = 0.1;
  fields.tied = true;
  return fields;
}

Fields mt5_defaults() {
  Fields fields = t5_defaults();
  fields.activation = "gated-gelu";
  fields.tied = false;
  return fields;
}

bool has_architecture(const Fields& fields, std::string_view part) {
  const auto& names = fields.architectures;
  return names && std::any_of(names->begin(), names->end(),
                              [&](const std::string& name) { return name.find(part) != std::string::npos; });
}

std::string t5_unsupported(const Fields& fields) {
  if (fields.buckets != kRelativeBuckets) {
    return fmt::format("\"relative_attention_num_buckets\": {} is not built yet; {} is", fields.buckets,
                       kRelativeBuckets);
  }
  if (!fields.encoder_decoder || has_architecture(fields, "EncoderModel")) {
    return "a T5 encoder without its decoder is not built yet";
  }
  return {};
}

void t5_shape(const Fields& fields, Model& model) {
  model.encoder_layers = fields.layers;
  model.layers = fields.decoder_layers.value_or(fields.layers);
  model.norm = Normalisation::rmsnorm;
  model.position = Position::relative;
  model.gated_mlp = fields.activation.starts_with("gated-");
}

constexpr SizeKeys kT5Keys{"num_layers", "d_model", "num_heads", "vocab_size", "n_positions", "d_ff", {}, "d_kv"};
constexpr std::array kT5Aliases = {Alias{"hidden_size", "d_model"}, Alias{"num_attention_heads", "num_heads"},
                                   Alias{"num_hidden_layers", "num_layers"}};
// The length of pre-training; version 1.1 has no key for it. d_kv is the library's default.
constexpr std::array kT5Fallbacks = {Fallback{"n_positions", 512}, Fallback{"d_kv", 64}};

// ---- vision transformers -------------------------------------------------------------------------------------------

Record<Fields> vit_record() {
  return Record<Fields>("vit", "Vision transformer")
      .optional("hidden_act", &Fields::activation, "activation function of the MLP")
      .optional("hidden_dropout_prob", &Fields::hidden_dropout, "dropout on the residual stream", kProbability)
      .optional("attention_probs_dropout_prob", &Fields::attention_dropout, "dropout on attention probabilities",
                kProbability)
      .optional("image_size", &Fields::image, "side of the image, pixels", kFrom1)
      .optional("patch_size", &Fields::patch, "side of a patch, pixels", kFrom1)
      .optional("num_channels", &Fields::channels, "channels of a pixel", kFrom1)
      .optional("qkv_bias", &Fields::attention_bias, "queries, keys and values have biases")
      .optional("id2label", &Fields::labels, "class names")
      .optional("num_labels", &Fields::label_count, "number of classes, without id2label", kSize)
      .optional("architectures", &Fields::architectures, "model classes of the checkpoint");
}

Fields vit_defaults() {
  Fields fields;
  fields.activation = "gelu";
  fields.attention_bias = true;
  fields.image = 224;
  fields.patch = 16;
  return fields;
}

std::string vit_unsupported(const Fields& fields) {
  return has_architecture(fields, "MaskedImageModeling") ? "a decoder of masked patches is not built yet" : "";
}

// A checkpoint without a classifier (ViTModel) has no classes; one with it has two unless it says otherwise.
Count classes(const Fields& fields) {
  const bool classifies = !fields.architectures || has_architecture(fields, "ImageClassification");
  if (!classifies) { return 0; }
  if (fields.labels) { return static_cast<Count>(fields.labels->size()); }
  return fields.label_count.value_or(fields.architectures ? 2 : 0);
}

void vit_shape(const Fields& fields, Model& model) {
  model.norm = Normalisation::layernorm;
  model.position = Position::learned;
  model.causal = false;
  model.vision = {fields.image, fields.patch, fields.channels, classes(fields)};
  all_biases(model);
  model.qkv_bias = fields.attention_bias;
}

constexpr SizeKeys kVitKeys{"num_hidden_layers", "hidden_size", "num_attention_heads", {}, {}, "intermediate_size"};

const std::array kEncoders = {
    Family{"t5", kT5Keys, kT5Aliases, t5_record, t5_defaults, t5_unsupported, t5_shape, "feed_forward_proj",
           kT5Fallbacks},
    Family{"mt5", kT5Keys, kT5Aliases, t5_record, mt5_defaults, t5_unsupported, t5_shape, "feed_forward_proj",
           kT5Fallbacks},
    Family{"vit", kVitKeys, {}, vit_record, vit_defaults, vit_unsupported, vit_shape},
};

}  // namespace

std::span<const Family> encoder_families() { return kEncoders; }

}  // namespace orrery::workload::huggingface
