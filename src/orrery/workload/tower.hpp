// The vision tower of a language model: a vision transformer that turns images into tokens of the language model.
//
//   image -> patches -> layers -> squares of merge x merge patches become one vector -> projector -> tokens
//
// A square's vectors are concatenated (Qwen2.5-VL, Llama 4: pixel shuffle) or averaged (Gemma 3). The tokens replace
// positions of the sequence, so the language model's work does not depend on what its tokens come from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/workload/layer_functions.hpp"

namespace orrery::workload {

struct Tower {
  std::int64_t layers = 0;  // 0: the model has no tower
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
  bool gated_mlp = false;
  bool biases = true;  // of all projections of a layer
  Normalisation norm = Normalisation::layernorm;
  Activation activation = Activation::gelu;
  std::int64_t window = 0;        // patches of a window, inside which layers attend; 0: to the whole image
  std::int64_t global_every = 0;  // every n-th layer attends to the whole image; 0: none does

  std::int64_t image = 0;  // side of every image, pixels; 0: images have any size, and the job gives it
  std::int64_t patch = 0;  // side of a patch
  std::int64_t channels = 3;
  std::int64_t frames = 1;  // consecutive frames of a video in a patch; a still image is repeated
  bool patch_bias = false;
  bool class_token = false;
  bool learned_positions = false;  // a table with a row per position
  std::int64_t end_norms = 0;      // 1: a norm after the last layer; 2: and one before the first

  std::int64_t merge = 1;               // side of a square of patches that becomes one token
  bool averages = false;                // over a square; else concatenates
  std::vector<std::int64_t> projector;  // widths of its layers; the last is that of the language model
  bool projector_bias = false;
  std::optional<Normalisation> projector_norm;  // of its input; of the patches where these are concatenated

  // Of the job, not of the description: images in each sequence. 0: the tower is not used.
  std::int64_t images = 0;

  [[nodiscard]] bool attends_in_windows(std::int64_t layer) const {
    return window > 0 && (global_every == 0 || (layer + 1) % global_every != 0);
  }
  [[nodiscard]] std::int64_t patches() const { return (image / patch) * (image / patch); }
  [[nodiscard]] std::int64_t positions() const { return patches() + (class_token ? 1 : 0); }  // of an image
  [[nodiscard]] std::int64_t tokens() const { return patches() / (merge * merge); }  // of the language model, per image
  [[nodiscard]] std::int64_t patch_values() const { return patch * patch * channels * frames; }
  [[nodiscard]] std::int64_t projected_width() const { return averages ? hidden : hidden * merge * merge; }
  friend bool operator==(const Tower&, const Tower&) = default;
};

struct Model;
struct LayerKind;

// Its layers as a vision model without ends.
[[nodiscard]] Model layers_of(const Tower& tower);

// Trainable weights.
[[nodiscard]] std::int64_t parameters(const Tower& tower);

// The model with `images` images in each sequence; `image`: side of an image in pixels, if given. A program of a model
// with 0 images has no tower: trainers of text do not build it, and serving engines can leave it out. Errors: the model
// has no tower; a side that the patches do not divide or that is missing; more tokens of images than `seq`.
[[nodiscard]] Result<Model> with_images(Model model, std::int64_t images, std::optional<std::int64_t> image,
                                        std::int64_t seq);

}  // namespace orrery::workload
