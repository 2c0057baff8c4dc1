// Vision towers in Hugging Face configurations: the mapping "vision_config" of Qwen2-VL, Qwen2.5-VL, Llama 4 and
// Gemma 3 (SigLIP). Sources: huggingface/transformers,
// src/transformers/models/<type>/{configuration,modeling}_<type>.py, with their defaults for keys that published files
// leave out.
#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "orrery/workload/huggingface_families.hpp"
#include "orrery/workload/huggingface_keys.hpp"

namespace orrery::workload::huggingface {
namespace {

using config::Node;
using config::Record;

struct VisionFields {
  Count layers = 0, hidden = 0, heads = 0, ffn = 0, image = 0, patch = 0, channels = 3, frames = 1;
  Count merge = 1;
  Count window = 0;  // pixels
  std::vector<Count> full_layers;
  double ratio = 1.0;  // of pixel shuffle
  Count projector_in = 0, projector_out = 0;
};

Tower tower_of(const VisionFields& fields) {
  Tower tower;
  tower.layers = fields.layers;
  tower.hidden = fields.hidden;
  tower.heads = fields.heads;
  tower.ffn = fields.ffn;
  tower.image = fields.image;
  tower.patch = fields.patch;
  tower.channels = fields.channels;
  tower.frames = fields.frames;
  tower.merge = fields.merge;
  return tower;
}

Result<VisionFields> read(Record<VisionFields> record, const VisionFields& defaults, const Node& vision) {
  record.foreign();
  return record.read_over(defaults, vision);
}

Record<VisionFields> qwen_record(const char* hidden) {
  return Record<VisionFields>("vision_config", "Vision tower of Qwen")
      .optional("depth", &VisionFields::layers, "layers", kFrom1)
      .optional(hidden, &VisionFields::hidden, "width of the residual stream", kFrom1)
      .optional("num_heads", &VisionFields::heads, "heads", kFrom1)
      .optional("in_channels", &VisionFields::channels, "channels of a pixel", kFrom1)
      .optional("in_chans", &VisionFields::channels, "channels of a pixel", kFrom1)
      .optional("patch_size", &VisionFields::patch, "side of a patch, pixels", kFrom1)
      .optional("spatial_merge_size", &VisionFields::merge, "side of the square of patches of a token", kFrom1)
      .optional("temporal_patch_size", &VisionFields::frames, "frames in a patch", kFrom1);
}

Record<VisionFields> vit_record(const char* description) {
  return Record<VisionFields>("vision_config", description)
      .optional("num_hidden_layers", &VisionFields::layers, "layers", kFrom1)
      .optional("hidden_size", &VisionFields::hidden, "width of the residual stream", kFrom1)
      .optional("num_attention_heads", &VisionFields::heads, "heads", kFrom1)
      .optional("intermediate_size", &VisionFields::ffn, "inner width of the MLP", kFrom1)
      .optional("image_size", &VisionFields::image, "side of an image, pixels", kFrom1)
      .optional("patch_size", &VisionFields::patch, "side of a patch, pixels", kFrom1)
      .optional("num_channels", &VisionFields::channels, "channels of a pixel", kFrom1);
}

VisionFields qwen_defaults() {
  VisionFields fields;
  fields.layers = 32;
  fields.hidden = 1280;
  fields.heads = 16;
  fields.patch = 14;
  fields.merge = fields.frames = 2;
  return fields;
}

// Every n-th layer, or an error.
Result<Count> full_every(const VisionFields& fields, const Place& place) {
  if (fields.full_layers.empty()) { return 0; }
  const Count every = fields.full_layers.front() + 1;
  std::vector<Count> expected;
  for (Count layer = every - 1; layer < fields.layers; layer += every) { expected.push_back(layer); }
  if (expected != fields.full_layers) {
    return fail(place, "\"fullatt_block_indexes\" other than every n-th layer is not built yet");
  }
  return every;
}

// A square of merge x merge patches through two layers: as wide as its input, then as wide as the language model.
void add_merger(Tower& tower, Count hidden) {
  tower.projector = {tower.projected_width(), hidden};
  tower.projector_bias = true;
  tower.projector_norm = tower.norm;
}

}  // namespace

Result<Tower> qwen2_vl_tower(const Node& vision, const Node&, Count hidden) {
  ORRERY_TRY(fields, read(qwen_record("embed_dim"), qwen_defaults(), vision));
  fields.ffn = std::llround(number(vision, {"mlp_ratio"}, 4.0) * static_cast<double>(fields.hidden));
  Tower tower = tower_of(fields);
  add_merger(tower, hidden);
  return tower;
}

Result<Tower> qwen2_5_vl_tower(const Node& vision, const Node&, Count hidden) {
  VisionFields defaults = qwen_defaults();
  defaults.ffn = 3420;
  defaults.window = 112;
  defaults.full_layers = {7, 15, 23, 31};
  auto record = qwen_record("hidden_size");
  record.optional("intermediate_size", &VisionFields::ffn, "inner width of the MLP", kFrom1)
      .optional("window_size", &VisionFields::window, "side of a window of attention, pixels", kFrom0)
      .optional("fullatt_block_indexes", &VisionFields::full_layers, "layers that attend to the whole image");
  ORRERY_TRY(fields, read(std::move(record), defaults, vision));
  ORRERY_TRY(every, full_every(fields, vision.place));
  Tower tower = tower_of(fields);
  tower.gated_mlp = true;
  tower.norm = Normalisation::rmsnorm;
  tower.activation = Activation::silu;
  tower.window = fields.window / std::max<Count>(1, fields.patch);
  tower.global_every = every;
  add_merger(tower, hidden);
  return tower;
}

Result<Tower> llama4_tower(const Node& vision, const Node&, Count hidden) {
  VisionFields defaults;
  defaults.layers = 34;
  defaults.hidden = 768;
  defaults.heads = 16;
  defaults.ffn = 5632;
  defaults.image = 448;
  defaults.patch = 14;
  defaults.ratio = 0.5;
  defaults.projector_in = defaults.projector_out = 4096;
  auto record = vit_record("Vision tower of Llama 4");
  record.optional("pixel_shuffle_ratio", &VisionFields::ratio, "side of a patch in a token", kProbability)
      .optional("projector_input_dim", &VisionFields::projector_in, "width of the adapter's inner layer", kFrom1)
      .optional("projector_output_dim", &VisionFields::projector_out, "width of the adapter's output", kFrom1);
  ORRERY_TRY(fields, read(std::move(record), defaults, vision));
  fields.merge = fields.ratio > 0.0 ? std::llround(1.0 / fields.ratio) : 0;
  if (fields.merge < 1 || std::abs(fields.ratio * static_cast<double>(fields.merge) - 1.0) > 1e-9) {
    return fail(vision.place, fmt::format("\"pixel_shuffle_ratio\": {} must be 1 / n", fields.ratio));
  }
  Tower tower = tower_of(fields);
  tower.class_token = tower.learned_positions = true;
  tower.end_norms = 2;
  tower.projector = {fields.projector_in, fields.projector_out, hidden};
  return tower;
}

Result<Tower> gemma3_tower(const Node& vision, const Node& whole, Count hidden) {
  VisionFields defaults;
  defaults.layers = 12;
  defaults.hidden = 768;
  defaults.heads = 12;
  defaults.ffn = 3072;
  defaults.image = 224;
  defaults.patch = 16;
  ORRERY_TRY(fields, read(vit_record("SigLIP, the vision tower of Gemma 3"), defaults, vision));
  const Count tokens = count(whole, {"mm_tokens_per_image"}, 256);
  const auto side = static_cast<Count>(std::llround(std::sqrt(static_cast<double>(tokens))));
  const Count patches = fields.image / fields.patch;
  if (side * side != tokens || side < 1 || patches % side != 0) {
    return fail(whole.place, fmt::format("\"mm_tokens_per_image\": {} is no square that divides {} x {} patches",
                                         tokens, patches, patches));
  }
  fields.merge = patches / side;
  Tower tower = tower_of(fields);
  tower.patch_bias = tower.learned_positions = tower.averages = true;
  tower.end_norms = 1;
  tower.projector = {hidden};
  tower.projector_norm = Normalisation::rmsnorm;
  return tower;
}

}  // namespace orrery::workload::huggingface
