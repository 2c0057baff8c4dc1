#include "orrery/workload/tower.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/workload/model.hpp"

namespace orrery::workload {

Model layers_of(const Tower& tower) {
  Model model;
  model.layers = tower.layers;
  model.hidden = tower.hidden;
  model.heads = tower.heads;
  model.ffn = tower.ffn;
  model.gated_mlp = tower.gated_mlp;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = tower.biases;
  model.norm = tower.norm;
  model.activation = tower.activation;
  model.position = Position::none;
  model.causal = model.final_norm = false;
  model.max_seq = 1;
  return completed(std::move(model));
}

namespace {

std::int64_t norm_weights(Normalisation norm) { return norm == Normalisation::layernorm ? 2 : 1; }

}  // namespace

// Qwen2.5-VL normalises each patch before it concatenates a square; Gemma 3 the average of a square.
std::int64_t parameters(const Tower& tower) {
  const std::int64_t h = tower.hidden;
  std::int64_t count = tower.patch_values() * h;
  if (tower.patch_bias) { count += h; }
  if (tower.class_token) { count += h; }
  if (tower.learned_positions) { count += tower.positions() * h; }
  count += tower.end_norms * norm_weights(tower.norm) * h;
  LayerKind kind;
  kind.encoder = true;
  count += tower.layers * layer_parameters(layers_of(tower), kind);
  if (tower.projector_norm) { count += norm_weights(*tower.projector_norm) * h; }
  std::int64_t width = tower.projected_width();
  for (const std::int64_t next : tower.projector) {
    count += width * next + (tower.projector_bias ? next : 0);
    width = next;
  }
  return count;
}

namespace {

std::int64_t nearest_side(std::int64_t side, std::int64_t step) {
  return std::max(step, (side + step / 2) / step * step);
}

// The side of images, checked.
Result<std::int64_t> side_of_images(const Tower& tower, std::optional<std::int64_t> image) {
  const Place place{"", 0, 0, "--image-size"};
  if (tower.image > 0) {
    if (image.value_or(tower.image) == tower.image) { return tower.image; }
    return fail(place, fmt::format("every image of this vision tower is {0} x {0} pixels, not {1}; larger images are "
                                   "cut into tiles, each of which counts as an image",
                                   tower.image, *image));
  }
  if (!image) { return fail(place, "is missing: side of an image in pixels, for example 448"); }
  const std::int64_t unit = std::max(tower.window, tower.merge), step = tower.patch * unit;
  if (*image % step == 0) { return *image; }
  return fail(place, fmt::format("{0} is not a multiple of {1} ({2} x {2} patches of {3} pixels: {4}); nearest: {5}",
                                 *image, step, unit, tower.patch, tower.window > 0 ? "a window" : "a token",
                                 nearest_side(*image, step)));
}

}  // namespace

Result<Model> with_images(Model model, std::int64_t images, std::optional<std::int64_t> image, std::int64_t seq) {
  if (images == 0) {
    if (image) { return fail(Place{"", 0, 0, "--image-size"}, "needs --images of at least 1"); }
    return model;
  }
  const Place place{"", 0, 0, "--images"};
  if (!model.has_tower()) { return fail(place, fmt::format("{} has no vision tower", model.name)); }
  Tower& tower = model.tower;
  ORRERY_TRY(side, side_of_images(tower, image));
  tower.image = side;
  tower.images = images;
  if (images > seq / tower.tokens()) {
    return fail(place, fmt::format("{} images of {} tokens are longer than a sequence of {} tokens", images,
                                   tower.tokens(), seq));
  }
  return model;
}

}  // namespace orrery::workload
