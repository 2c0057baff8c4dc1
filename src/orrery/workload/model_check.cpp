// Checks that a model's sizes describe a network.
#include <array>

#include <fmt/format.h>

#include "orrery/workload/model.hpp"

namespace orrery::workload {
namespace {

using Found = std::optional<Inconsistency>;

// A number of the model and its valid range. Upper limits are far above any real model.
struct Range {
  std::string_view name;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

template <class Ranges>
Found out_of_range(const Ranges& ranges) {
  for (const auto& range : ranges) {
    if (range.value >= range.least && range.value <= range.most) { continue; }
    if (range.least == 0) {
      return Inconsistency{range.name,
                           fmt::format("{} is {}; 0 to {} is accepted", range.name, range.value, range.most)};
    }
    if (range.value < range.least) {
      return Inconsistency{range.name,
                           fmt::format("{} is {}; it must be at least {}", range.name, range.value, range.least)};
    }
    return Inconsistency{range.name,
                         fmt::format("{} is {}; at most {} is accepted", range.name, range.value, range.most)};
  }
  return std::nullopt;
}

constexpr std::int64_t kMostLayers = 10'000;
constexpr std::int64_t kMostWidth = 10'000'000;
constexpr std::int64_t kMostRows = 100'000'000;
constexpr std::int64_t kMostPositions = 1'000'000'000;

Found sizes(const Model& model) {
  const std::int64_t least_vocab = model.is_vision() ? 0 : 1;
  return out_of_range(std::array{
      Range{"layers", model.layers, 1, kMostLayers},
      Range{"hidden", model.hidden, 1, 1'000'000},
      Range{"heads", model.heads, 1, 16'384},
      Range{"kv_heads", model.kv_heads, 1, 16'384},
      Range{"head_dim", model.head_dim, 1, 4'096},
      Range{"ffn", model.ffn, 1, kMostWidth},
      Range{"vocab", model.vocab, least_vocab, kMostRows},
      Range{"max_seq", model.max_seq, 1, kMostPositions},
      Range{"position_rows", model.position_rows, 0, kMostPositions},
      Range{"sliding_window", model.sliding_window, 0, kMostPositions},
      Range{"global_every", model.global_every, 0, kMostLayers},
      Range{"encoder_layers", model.encoder_layers, 0, kMostLayers},
      Range{"mtp_layers", model.mtp_layers, 0, 64},
  });
}

Found experts(const Model& model) {
  const Experts& experts = model.experts;
  if (experts.count == 0 && experts != Experts{}) {
    return Inconsistency{"experts", "experts has keys, but experts.count is 0; set it, or leave experts out"};
  }
  if (experts.count == 0) { return std::nullopt; }
  if (auto wrong = out_of_range(std::array{
          Range{"experts.count", experts.count, 1, 65'536},
          Range{"experts.active", experts.active, 1, 65'536},
          Range{"experts.ffn", experts.ffn, 1, kMostWidth},
          Range{"experts.shared_ffn", experts.shared_ffn, 0, kMostWidth},
          Range{"experts.first_dense", experts.first_dense, 0, kMostLayers},
          Range{"experts.every", experts.every, 1, kMostLayers},
          Range{"experts.groups", experts.groups, 0, 65'536},
          Range{"experts.active_groups", experts.active_groups, 0, 65'536},
      })) {
    return wrong;
  }
  if (experts.active > experts.count) {
    return Inconsistency{"experts.active",
                         fmt::format("experts.active {} is more than experts.count {}", experts.active, experts.count)};
  }
  if (experts.first_dense + experts.every > model.layers) {
    return Inconsistency{
        experts.first_dense >= model.layers ? "experts.first_dense" : "experts.every",
        fmt::format("experts.first_dense {} with experts.every {} leaves none of {} layers with experts",
                    experts.first_dense, experts.every, model.layers)};
  }
  if (experts.groups > 0 && experts.count % experts.groups != 0) {
    return Inconsistency{"experts.groups", fmt::format("experts.groups {1} does not divide experts.count {0}",
                                                       experts.count, experts.groups)};
  }
  if (experts.active_groups > experts.groups) {
    return Inconsistency{"experts.active_groups", fmt::format("experts.active_groups {} is more than experts.groups {}",
                                                              experts.active_groups, experts.groups)};
  }
  if (experts.shared_gate && experts.shared_ffn == 0) {
    return Inconsistency{"experts.shared_gate", "experts.shared_gate needs shared experts (experts.shared_ffn)"};
  }
  if (!(experts.capacity_factor >= 0.0 && experts.capacity_factor <= 1e6)) {
    return Inconsistency{"experts.capacity_factor",
                         fmt::format("experts.capacity_factor is {}; 0 to 1e6 is accepted", experts.capacity_factor)};
  }
  if (model.parallel_residual) {
    return Inconsistency{"parallel_residual", "parallel_residual is not supported with experts"};
  }
  return std::nullopt;
}

Found mixer_sizes(const Mixer& mixer) {
  constexpr std::int64_t kMostHeads = 16'384, kMostDim = 65'536;
  const bool delta = mixer.kind == MixerKind::gated_delta, scan = mixer.kind == MixerKind::mamba;
  if (auto wrong = out_of_range(std::array{
          Range{"mixer.conv", mixer.conv, 1, 1'024},
          Range{"mixer.chunk", mixer.chunk, 1, 1'000'000},
          Range{"mixer.attention_every", mixer.attention_every, 0, kMostLayers},
          Range{"mixer.inner", mixer.inner, scan ? 1 : 0, scan ? kMostWidth : 0},
          Range{"mixer.rank", mixer.rank, scan ? 1 : 0, scan ? kMostWidth : 0},
          Range{"mixer.state", mixer.state, delta ? 0 : 1, delta ? 0 : kMostDim},
          Range{"mixer.heads", mixer.heads, scan ? 0 : 1, scan ? 0 : kMostHeads},
          Range{"mixer.head_dim", mixer.head_dim, scan ? 0 : 1, scan ? 0 : kMostDim},
          Range{"mixer.key_heads", mixer.key_heads, delta ? 1 : 0, delta ? kMostHeads : 0},
          Range{"mixer.key_dim", mixer.key_dim, delta ? 1 : 0, delta ? kMostDim : 0},
          Range{"mixer.groups", mixer.groups, 1, kMostHeads},
      })) {
    return wrong;
  }
  if (mixer.heads % mixer.groups != 0) {
    return Inconsistency{"mixer.groups",
                         fmt::format("mixer.groups {1} does not divide mixer.heads {0}", mixer.heads, mixer.groups)};
  }
  if (delta && mixer.heads % mixer.key_heads != 0) {
    return Inconsistency{"mixer.key_heads", fmt::format("mixer.key_heads {1} does not divide mixer.heads {0}",
                                                        mixer.heads, mixer.key_heads)};
  }
  if (mixer.attention_offset != 0 && mixer.attention_offset >= mixer.attention_every) {
    return Inconsistency{"mixer.attention_offset", fmt::format("mixer.attention_offset {} must be below "
                                                               "mixer.attention_every {}",
                                                               mixer.attention_offset, mixer.attention_every)};
  }
  return std::nullopt;
}

Found mixers(const Model& model) {
  const Mixer& mixer = model.mixer;
  if (!model.has_mixers()) {
    if (mixer == Mixer{}) { return std::nullopt; }
    return Inconsistency{"mixer", "mixer has keys, but mixer.kind is \"attention\"; set it, or leave mixer out"};
  }
  if (mixer.kind == MixerKind::none) {
    return Inconsistency{"mixer.kind", "mixer.kind \"none\" describes no layer; valid: mamba, mamba2, gated_delta"};
  }
  if (auto wrong = mixer_sizes(mixer)) { return wrong; }
  if (model.encoder_layers > 0 || !model.causal || model.parallel_residual) {
    return Inconsistency{"mixer",
                         "layers without attention are supported in causal decoders without parallel_residual"};
  }
  return std::nullopt;
}

Found pattern(const Model& model) {
  if (model.pattern.empty()) { return std::nullopt; }
  const auto wrong = [](std::string what) { return Inconsistency{"pattern", std::move(what)}; };
  if (static_cast<std::int64_t>(model.pattern.size()) != model.layers) {
    return wrong(fmt::format("pattern has {} letters for {} layers", model.pattern.size(), model.layers));
  }
  const auto strange = model.pattern.find_first_not_of("M*-E");
  if (strange != std::string::npos) {
    return wrong(fmt::format("pattern has \"{}\" for layer {}; valid: M, *, -, E", model.pattern[strange], strange));
  }
  const bool mixes = model.pattern.find('M') != std::string::npos;
  if (mixes != model.has_mixers()) {
    return wrong("pattern has M for layers with a mixer; it needs mixer.kind, and mixer.kind needs it");
  }
  if ((model.pattern.find('E') != std::string::npos) != model.has_experts()) {
    return wrong("pattern has E for layers of experts; it needs experts, and experts need it");
  }
  if (model.encoder_layers > 0 || !model.causal || model.parallel_residual || model.mixer.attention_every > 0 ||
      model.experts.first_dense > 0 || model.experts.every != 1 || model.global_every > 0) {
    return wrong(
        "pattern says what each layer is; encoder_layers, parallel_residual, mixer.attention_every, "
        "experts.first_dense, experts.every and global_every are not supported with it");
  }
  return std::nullopt;
}

Found latent_sizes(const LatentAttention& latent) {
  if (latent.kv_rank == 0 && latent != LatentAttention{}) {
    return Inconsistency{"latent", "latent has keys, but latent.kv_rank is 0; set it, or leave latent out"};
  }
  if (latent.kv_rank == 0) { return std::nullopt; }
  return out_of_range(std::array{
      Range{"latent.query_rank", latent.query_rank, 0, 1'000'000},
      Range{"latent.kv_rank", latent.kv_rank, 1, 1'000'000},
      Range{"latent.nope_dim", latent.nope_dim, 1, 4'096},
      Range{"latent.rope_dim", latent.rope_dim, 0, 4'096},
      Range{"latent.value_dim", latent.value_dim, 1, 4'096},
  });
}

Found latent(const Model& model) {
  const LatentAttention& latent = model.latent;
  if (latent.kv_rank == 0) { return std::nullopt; }
  if (model.kv_heads != model.heads) {
    return Inconsistency{"kv_heads", fmt::format("kv_heads {} differs from heads {}; latent attention has one "
                                                 "key-value head per query head",
                                                 model.kv_heads, model.heads)};
  }
  if (model.head_dim != latent.nope_dim + latent.rope_dim) {
    return Inconsistency{"head_dim",
                         fmt::format("head_dim {} must be latent.nope_dim {} + latent.rope_dim {}; it may be left out",
                                     model.head_dim, latent.nope_dim, latent.rope_dim)};
  }
  if (model.qkv_bias || model.attention_output_bias) {
    return Inconsistency{model.qkv_bias ? "qkv_bias" : "attention_output_bias",
                         "biases are not supported with latent attention"};
  }
  if (model.qk_norm) {
    return Inconsistency{"qk_norm", "qk_norm is not supported with latent attention, which has its own norms"};
  }
  if (model.encoder_layers > 0) {
    return Inconsistency{"encoder_layers", "an encoder is not supported with latent attention"};
  }
  return std::nullopt;
}

Found tower(const Model& model) {
  const Tower& tower = model.tower;
  if (tower.layers == 0 && tower != Tower{}) {
    return Inconsistency{"tower", "tower has keys, but tower.layers is 0; set it, or leave tower out"};
  }
  if (tower.layers == 0) { return std::nullopt; }
  if (auto wrong = out_of_range(std::array{
          Range{"tower.layers", tower.layers, 1, 1'000},
          Range{"tower.hidden", tower.hidden, 1, 100'000},
          Range{"tower.heads", tower.heads, 1, 1'000},
          Range{"tower.ffn", tower.ffn, 1, 1'000'000},
          Range{"tower.patch", tower.patch, 1, 1'024},
          Range{"tower.image", tower.image, 0, 16'384},
          Range{"tower.channels", tower.channels, 1, 64},
          Range{"tower.frames", tower.frames, 1, 64},
          Range{"tower.merge", tower.merge, 1, 64},
          Range{"tower.window", tower.window, 0, 1'024},
          Range{"tower.global_every", tower.global_every, 0, 1'000},
      })) {
    return wrong;
  }
  if (tower.hidden % tower.heads != 0) {
    return Inconsistency{"tower.heads",
                         fmt::format("tower.heads {} does not divide tower.hidden {}", tower.heads, tower.hidden)};
  }
  if (tower.projector.empty() || tower.projector.back() != model.hidden) {
    return Inconsistency{
        "tower.projector",
        fmt::format("tower.projector must end with hidden {}, the width of the language model", model.hidden)};
  }
  for (const std::int64_t width : tower.projector) {
    if (auto wrong = out_of_range(std::array{Range{"tower.projector", width, 1, 1'000'000}})) { return wrong; }
  }
  const std::int64_t step = tower.patch * tower.merge;
  if (tower.image % step != 0) {
    return Inconsistency{"tower.image", fmt::format("tower.image {} is not a multiple of {} ({} patches of {} pixels)",
                                                    tower.image, step, tower.merge, tower.patch)};
  }
  if (tower.window % tower.merge != 0) {
    return Inconsistency{"tower.window",
                         fmt::format("tower.merge {} does not divide tower.window {}", tower.merge, tower.window)};
  }
  if (tower.image == 0 && (tower.learned_positions || tower.class_token)) {
    return Inconsistency{"tower.image", "tower.image must be given with tower.learned_positions or tower.class_token"};
  }
  if (tower.window > 0 && (tower.class_token || tower.image % (tower.patch * tower.window) != 0)) {
    return Inconsistency{"tower.window", "tower.window needs whole windows, and no tower.class_token"};
  }
  if (model.is_vision() || model.encoder_layers > 0 || !model.causal) {
    return Inconsistency{"tower", "a tower is supported with decoder-only language models"};
  }
  return std::nullopt;
}

Found vision(const Model& model) {
  const Vision& vision = model.vision;
  if (vision.image == 0 && vision != Vision{}) {
    return Inconsistency{"vision", "vision has keys, but vision.image is 0; set it, or leave vision out"};
  }
  if (vision.image == 0) { return std::nullopt; }
  if (auto wrong = out_of_range(std::array{
          Range{"vision.image", vision.image, 1, 16'384},
          Range{"vision.patch", vision.patch, 1, 16'384},
          Range{"vision.channels", vision.channels, 1, 4'096},
          Range{"vision.classes", vision.classes, 0, kMostRows},
      })) {
    return wrong;
  }
  if (vision.image % vision.patch != 0) {
    return Inconsistency{"vision.patch",
                         fmt::format("vision.patch {} does not divide vision.image {}", vision.patch, vision.image)};
  }
  if (model.max_seq != 0 && model.max_seq != vision.tokens()) {
    return Inconsistency{
        "max_seq",
        fmt::format("max_seq is {}, but an image has {} tokens ({} x {} patches and a class token)", model.max_seq,
                    vision.tokens(), vision.image / vision.patch, vision.image / vision.patch)};
  }
  if (model.vocab != 0) {
    return Inconsistency{
        "vocab",
        fmt::format("vocab is {}; a vision model has no vocabulary (its classes are vision.classes)", model.vocab)};
  }
  if (model.causal) {
    return Inconsistency{"causal", "causal must be false: in a vision model every patch attends to all others"};
  }
  if (model.encoder_layers > 0) {
    return Inconsistency{"encoder_layers", "encoder_layers must be 0: a vision model is one stack of layers"};
  }
  return std::nullopt;
}

Found layers(const Model& model) {
  if (model.global_every > 0 && model.sliding_window == 0) {
    return Inconsistency{"global_every",
                         fmt::format("global_every is {}, but sliding_window is 0: the other layers need "
                                     "a window",
                                     model.global_every)};
  }
  if (model.shared_norm && !model.parallel_residual) {
    return Inconsistency{"shared_norm", "shared_norm needs parallel_residual (attention and MLP in parallel)"};
  }
  if (!model.pre_norms && (!model.post_norms || model.parallel_residual)) {
    return Inconsistency{"pre_norms", "pre_norms: false needs post_norms, and no parallel_residual"};
  }
  if (model.quantized_4_bit == Quantized::experts && !model.has_experts()) {
    return Inconsistency{"quantized_4_bit", "experts needs routed experts"};
  }
  if (model.qk_norm_wide && !model.qk_norm) { return Inconsistency{"qk_norm_wide", "qk_norm_wide needs qk_norm"}; }
  if (model.attention_gate && (model.is_latent() || model.encoder_layers > 0)) {
    return Inconsistency{"attention_gate", "attention_gate is not supported with latent attention or an encoder"};
  }
  if (model.post_norms && model.parallel_residual) {
    return Inconsistency{"post_norms", "post_norms is not supported with parallel_residual"};
  }
  if (model.mtp_layers > 0 && !model.causal) {
    return Inconsistency{"mtp_layers", "mtp_layers (multi-token prediction) needs a causal model"};
  }
  if (model.encoder_layers == 0) { return std::nullopt; }
  if (!model.causal) { return Inconsistency{"causal", "causal must be true: a decoder behind an encoder is causal"}; }
  if (model.parallel_residual || model.post_norms || model.mtp_layers > 0) {
    return Inconsistency{"encoder_layers",
                         "parallel_residual, post_norms and mtp_layers are not supported with an encoder"};
  }
  return std::nullopt;
}

// An upper bound of the weights, in floating point: counts must stay far below 2^63.
Found too_many_weights(const Model& model) {
  constexpr double kMost = 4e18;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double experts = real(model.experts.count) * (3.0 * real(model.experts.ffn) + 2.0);
  const double inner = 3.0 * real(model.ffn) + 3.0 * real(model.experts.shared_ffn) + experts;
  const double width = real(model.heads) * real(model.head_dim + model.latent.nope_dim + model.latent.value_dim);
  const double kinds = model.encoder_layers > 0 ? 2.0 : 1.0;  // attention blocks per layer
  const double attention = kinds * (2.0 * width + 2.0 * real(model.kv_width())) +
                           real(model.latent.query_rank + model.latent.kv_rank + model.latent.rope_dim);
  const double latent = width * real(model.latent.query_rank + model.latent.kv_rank);
  const double mixing = real(model.mixer.in_width() + model.mixer.width());
  const double layer = real(model.hidden) * (inner + attention + mixing + 2.0 * real(model.hidden) + 8.0) + latent;
  const double tables =
      real(model.hidden) * (2.0 * real(model.vocab) + real(model.position_rows) + real(model.vision.classes) +
                            real(model.vision.patch * model.vision.patch * model.vision.channels));
  const double count = real(model.depth() + model.mtp_layers) * layer + tables;
  if (count <= kMost) { return std::nullopt; }
  return Inconsistency{model.has_experts() ? "experts" : "layers",
                       fmt::format("the model has about {:.0e} weights; at most {:.0e} are accepted", count, kMost)};
}

Found simple_rules(const Model& model) {
  if (model.heads % model.kv_heads != 0) {
    return Inconsistency{"kv_heads",
                         fmt::format("kv_heads {1} does not divide heads {0}", model.heads, model.kv_heads)};
  }
  if (!(model.dropout >= 0.0 && model.dropout < 1.0)) {
    return Inconsistency{"dropout", fmt::format("dropout is {}; it must be at least 0 and below 1", model.dropout)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Inconsistency> inconsistency(const Model& model) {
  if (model.is_recommender()) { return inconsistency(model.recommender); }
  if (model.heads < 1) {
    return Inconsistency{"heads", fmt::format("heads is {}; it must be at least 1", model.heads)};
  }
  if (model.head_dim == 0 && !model.is_latent() && model.hidden % model.heads != 0) {
    return Inconsistency{"hidden", fmt::format("heads {1} does not divide hidden {0}, and head_dim is not given",
                                               model.hidden, model.heads)};
  }
  if (auto wrong = latent_sizes(model.latent)) { return wrong; }
  if (auto wrong = vision(model)) { return wrong; }
  const Model whole = completed(model);
  for (const auto rule : {sizes, experts, latent, mixers, pattern, layers, tower, simple_rules, too_many_weights}) {
    if (auto wrong = rule(whole)) { return wrong; }
  }
  return std::nullopt;
}

}  // namespace orrery::workload
