// FLOPs of a whole model in closed form, and the size of its KV cache.
#include <algorithm>
#include <array>

#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

namespace {

// The kinds of a model's layers, with counts: encoder or decoder, with or without experts and windows.
struct KindCount {
  LayerKind kind;
  double layers = 0;
};
struct Kinds {
  static constexpr std::size_t kMost = 8;
  std::array<KindCount, kMost> list;
  std::size_t count = 0;

  [[nodiscard]] const KindCount* begin() const { return list.data(); }
  [[nodiscard]] const KindCount* end() const { return list.data() + count; }

  void add(const LayerKind& kind, double layers) {
    auto* const last = list.data() + count;
    auto* const found = std::find_if(list.data(), last, [&](const KindCount& known) { return known.kind == kind; });
    if (found == last) { list[count++].kind = kind; }
    found->layers += layers;
  }
};

// MTP modules count as additional layers if `with_mtp`.
Kinds kinds_of(const Model& model, bool with_mtp) {
  Kinds kinds;
  for (std::int64_t layer = 0; layer < model.depth(); ++layer) { kinds.add(layer_kind(model, layer), 1.0); }
  if (with_mtp && model.mtp_layers > 0) { kinds.add(mtp_kind(model), real(model.mtp_layers)); }
  return kinds;
}

// Weights that the GEMMs of a layer apply to a token, and those of its adapters.
struct Weights {
  double own = 0;
  double adapter = 0;

  // `count` GEMMs with k x n weights; with adapter factors [k, r] and [r, n] if r is not 0.
  void add(double k, double n, std::int64_t r = 0, double count = 1.0) {
    own += count * k * n;
    adapter += count * (k + n) * real(r);
  }
};

void add_attention(Weights& w, const Model& model, std::int64_t r, bool cross) {
  const double h = real(model.hidden), query = real(model.query_width()), kv = real(model.kv_width());
  if (cross) {
    w.add(h, query, r);
    w.add(h, 2.0 * kv, r);
  } else {
    w.add(h, (model.attention_gate ? 2.0 : 1.0) * query + 2.0 * kv, r);
  }
  w.add(query, h, r);
}

void add_latent_attention(Weights& w, const Model& model, std::int64_t r) {
  const LatentAttention& latent = model.latent;
  const double h = real(model.hidden), heads = real(model.heads), rank = real(latent.kv_rank);
  const double query = heads * real(latent.nope_dim + latent.rope_dim), value = heads * real(latent.value_dim);
  if (latent.query_rank > 0) { w.add(h, real(latent.query_rank), r); }
  w.add(latent.query_rank > 0 ? real(latent.query_rank) : h, query, r);
  w.add(h, rank + real(latent.rope_dim), r);
  w.add(rank, heads * real(latent.nope_dim) + value, r);
  w.add(value, h, r);
}

// Mamba's projections of the step have no adapters.
void add_mixer(Weights& w, const Model& model, std::int64_t r) {
  const Mixer& m = model.mixer;
  const double h = real(model.hidden), inner = real(m.width());
  w.add(h, real(m.in_width()), r);
  w.add(inner, h, r);
  if (m.kind != MixerKind::mamba) { return; }
  w.add(inner, real(m.rank + 2 * m.state));
  w.add(real(m.rank), inner);
}

void add_mlp(Weights& w, const Model& model, double ffn, std::int64_t r, double count = 1.0) {
  const double h = real(model.hidden);
  w.add(h, (model.gated_mlp ? 2.0 : 1.0) * ffn, r, count);
  w.add(ffn, h, r, count);
}

Weights layer_weights(const Model& model, const LayerKind& kind, const Adapter& adapter) {
  const std::int64_t attention_rank = adapter.rank;
  const std::int64_t mlp_rank = adapter.targets == Adapter::Targets::all ? adapter.rank : 0;
  Weights w;
  if (kind.mixer == MixerKind::attention && model.is_latent()) {
    add_latent_attention(w, model, attention_rank);
  } else if (kind.mixer == MixerKind::attention) {
    add_attention(w, model, attention_rank, false);
  } else if (kind.mixer != MixerKind::none) {
    add_mixer(w, model, attention_rank);
  }
  if (kind.cross) { add_attention(w, model, attention_rank, true); }
  if (!kind.mlp) { return w; }
  if (!kind.experts) {
    add_mlp(w, model, real(model.ffn), mlp_rank);
    return w;
  }
  const Experts& experts = model.experts;
  w.add(real(model.hidden), real(experts.count));
  add_mlp(w, model, real(experts.ffn), mlp_rank, real(experts.active));
  if (experts.shared_ffn > 0) { add_mlp(w, model, real(experts.shared_ffn), mlp_rank); }
  if (experts.shared_gate) { w.add(real(model.hidden), 1.0); }
  return w;
}

// Sum of the depths of the core's two GEMMs, over all heads: FLOPs per pair / 2.
double core_depth(const Model& model) {
  const LatentAttention& latent = model.latent;
  return model.is_latent() ? real(model.heads) * real(latent.nope_dim + latent.rope_dim + latent.value_dim)
                           : 2.0 * real(model.query_width());
}

bool skips(const hardware::Stack& stack) {
  return stack.attention.kernel == hardware::AttentionKernel::flash && stack.attention.causal_skip;
}

// (query, key) pairs of a layer's core, one head and sequence. A kernel that does not skip masked blocks still counts
// at most the pairs inside a window.
double core_pairs(const hardware::Stack& stack, const LayerKind& kind, double s) {
  const bool causal = !kind.encoder;
  const double cross = kind.cross ? s * s : 0.0;
  if (skips(stack)) { return visible_pairs(s, real(kind.window), causal) + cross; }
  const double reach = kind.window == 0 ? s : std::min(s, real(kind.window) * (causal ? 1.0 : 2.0));
  return s * reach + cross;
}

// FLOPs of both GEMMs of every layer's core, or of its scan, forward, one sequence.
double core_flops(const Model& model, const hardware::Stack& stack, double s, bool with_mtp) {
  double pairs = 0.0, scans = 0.0;
  for (const auto& [kind, layers] : kinds_of(model, with_mtp)) {
    if (kind.mixer == MixerKind::attention) {
      pairs += layers * core_pairs(stack, kind, s);
    } else if (kind.mixer != MixerKind::none) {
      scans += layers * s * scan_volume(model.mixer, static_cast<std::int64_t>(s));
    }
  }
  return 2.0 * (core_depth(model) * pairs + scans);
}

Weights weights_of(const Model& model, const Adapter& adapter, bool with_mtp) {
  Weights sum;
  for (const auto& [kind, layers] : kinds_of(model, with_mtp)) {
    const Weights w = layer_weights(model, kind, adapter);
    sum.own += layers * w.own;
    sum.adapter += layers * w.adapter;
  }
  return sum;
}

// FLOPs of a vision tower for one sequence; `passes`: forward alone 1; with backward 3, without a gradient of the
// images.
double tower_flops(const Model& model, double passes) {
  const Tower& tower = model.tower;
  if (tower.images == 0) { return 0.0; }
  const Model layers = layers_of(tower);
  LayerKind kind;
  kind.encoder = true;
  const double positions = real(tower.positions()), window = real(tower.window * tower.window);
  double pairs = 0.0, projector = 0.0;
  double width = real(tower.projected_width());
  for (std::int64_t layer = 0; layer < tower.layers; ++layer) {
    pairs += positions * (tower.attends_in_windows(layer) ? window : positions);
  }
  for (const std::int64_t next : tower.projector) {
    projector += width * real(next);
    width = real(next);
  }
  const double rest = positions * real(tower.layers) * layer_weights(layers, kind, {}).own +
                      core_depth(layers) * pairs + real(tower.tokens()) * projector;
  const double patches = real(tower.patches() * tower.patch_values()) * real(tower.hidden);
  return 2.0 * real(tower.images) * (passes * rest + std::min(passes, 2.0) * patches);
}

// Multiply-adds of the classifier: one row per image.
double vision_volume(const Model& model) {
  const Vision& vision = model.vision;
  if (!model.is_vision()) { return 0.0; }
  return real(model.hidden) * real(vision.classes);
}

// Multiply-adds of the patch projection: one row per patch, none for the class token.
double patch_volume(const Model& model, double s) {
  const Vision& vision = model.vision;
  if (!model.is_vision()) { return 0.0; }
  return (s - 1.0) * real(vision.patch * vision.patch * vision.channels) * real(model.hidden);
}

}  // namespace

namespace {

// The state of one sequence, in fp32, and the last inputs of the convolution.
Bytes layer_state(const Mixer& m, hardware::Precision precision) {
  const double element = std::max(hardware::element_size(precision).value(), 2.0);
  return Bytes(real(m.state_size()) * kFloat + real((m.conv - 1) * m.conv_width()) * element);
}

}  // namespace

Bytes state_bytes(const Model& model, hardware::Precision precision) {
  Bytes sum;
  if (!model.has_mixers()) { return sum; }
  for (const auto& [kind, layers] : kinds_of(model, false)) {
    const bool has_state = kind.mixer != MixerKind::attention && kind.mixer != MixerKind::none;
    if (has_state) { sum += layers * layer_state(model.mixer, precision); }
  }
  return sum;
}

Bytes kv_cache(const Model& model, const LayerKind& kind, const Slice& slice, std::int64_t positions, bool narrow) {
  const double element = cache_element(slice.precision, slice.formats, narrow);
  if (kind.encoder || kind.part != DensePart::none || kind.mixer == MixerKind::none) { return Bytes(0.0); }
  if (kind.mixer != MixerKind::attention) {
    return layer_state(model.mixer, slice.precision) / real(slice.tp * slice.cp);
  }
  const double own = real(kind.window > 0 ? std::min(positions, kind.window) : positions);
  const double cached = own + (kind.cross ? real(positions) : 0.0);
  const std::int64_t kv_heads = heads_of_rank(model, slice).kv;
  const double width =
      model.is_latent() ? real(model.latent.kv_rank + model.latent.rope_dim) : 2.0 * real(kv_heads * model.head_dim);
  return Bytes(cached * width * element / real(slice.cp));
}

namespace {

// A sample has one position. Dense features get no gradient.
Flops recommender_flops(const Recommender& r, const hardware::Stack& stack, std::int64_t samples, bool trains) {
  const Multiplications multiplies = multiplications(r);
  Flops attention;
  if (r.interaction.kind == InteractionKind::transformer) {
    const Model layers = transformer_of(r);
    attention = trains ? model_flops(layers, stack, samples, layers.max_seq)
                       : prefill_flops(layers, stack, samples, layers.max_seq);
  }
  const double passes = trains ? 6.0 * multiplies.all - 2.0 * multiplies.first : 2.0 * multiplies.all;
  return Flops(real(samples) * passes) + attention;
}

}  // namespace

Flops model_flops(const Model& model, const hardware::Stack& stack, std::int64_t sequences, std::int64_t seq,
                  const Adapter& adapter) {
  if (model.is_recommender()) { return recommender_flops(model.recommender, stack, sequences, true); }
  const double s = real(seq);
  const Weights layers = weights_of(model, adapter, true);
  const double heads = 1.0 + real(model.mtp_layers);
  const double h = real(model.hidden);
  const double multiply_adds =
      s * (layers.own + heads * h * real(model.vocab) + 2.0 * h * h * real(model.mtp_layers)) + vision_volume(model);
  const double core = core_flops(model, stack, s, true);
  const bool frozen = adapter.rank > 0;
  // Forward, gradient of the input and, for trained weights, of the weight. Images have no gradient.
  const double gemms =
      (frozen ? 4.0 : 6.0) * multiply_adds + 6.0 * s * layers.adapter + (frozen ? 2.0 : 4.0) * patch_volume(model, s);
  return Flops(real(sequences) * (gemms + 3.0 * core + tower_flops(model, frozen ? 1.0 : 3.0)));
}

Flops prefill_flops(const Model& model, const hardware::Stack& stack, std::int64_t sequences, std::int64_t seq) {
  if (model.is_recommender()) { return recommender_flops(model.recommender, stack, sequences, false); }
  const double s = real(seq);
  const double multiply_adds = s * weights_of(model, {}, false).own + real(model.hidden) * real(model.vocab) +
                               vision_volume(model) + patch_volume(model, s);
  return Flops(real(sequences) * (2.0 * multiply_adds + core_flops(model, stack, s, false) + tower_flops(model, 1.0)));
}

Flops decode_flops(const Model& model, std::int64_t sequences, std::int64_t context) {
  const LatentAttention& latent = model.latent;
  const double depth =
      model.is_latent() ? real(model.heads * (2 * latent.kv_rank + latent.rope_dim)) : 2.0 * real(model.query_width());
  double multiply_adds = real(model.hidden) * real(model.vocab);
  for (const auto& [kind, layers] : kinds_of(model, false)) {
    if (kind.encoder) { continue; }
    const double own = real(kind.window > 0 ? std::min(context, kind.window) : context);
    double per_layer = layer_weights(model, kind, {}).own;
    if (kind.mixer == MixerKind::attention) {
      per_layer += depth * own;
    } else if (kind.mixer != MixerKind::none) {
      per_layer += step_volume(model.mixer);
    }
    if (kind.cross) {  // keys and values of the encoder's output are in the cache
      per_layer += depth * real(std::max<std::int64_t>(context - 1, 1));
      per_layer -= 2.0 * real(model.hidden) * real(model.kv_width());
    }
    multiply_adds += layers * per_layer;
  }
  return Flops(real(sequences) * 2.0 * multiply_adds);
}

}  // namespace orrery::workload
