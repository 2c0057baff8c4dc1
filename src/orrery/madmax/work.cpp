#include "orrery/madmax/work.hpp"

#include <algorithm>
#include <array>

#include "orrery/core/integers.hpp"

namespace orrery::madmax {

namespace {

// The index of the shape; identical shapes are stored once.
std::int32_t shape_index(SampleWork& work, const LayerShape& shape) {
  const auto is_same = [&](const LayerShape& other) {
    return other.layer_class == shape.layer_class && other.parameters == shape.parameters &&
           other.flops == shape.flops && other.activations == shape.activations;
  };
  const auto found = std::find_if(work.shapes.begin(), work.shapes.end(), is_same);
  const auto index = static_cast<std::int32_t>(found - work.shapes.begin());
  if (found == work.shapes.end()) { work.shapes.push_back(shape); }
  return index;
}

LayerShape fully_connected(double in, double out) { return {LayerClass::mlp, in * out, 2.0 * in * out, out, 1.0}; }

// Adds layers of one part, with consecutive numbers.
class PartBuilder {
 public:
  PartBuilder(SampleWork& work, Part part) : work_(&work), part_(part) {}

  void add(const LayerShape& shape) { work_->layers.push_back({part_, number_++, shape_index(*work_, shape)}); }

 private:
  SampleWork* work_;
  Part part_;
  std::int32_t number_ = 0;
};

struct Transformer {
  std::int64_t layers = 0, width = 0, ffn = 0, seq = 0;
  std::int64_t experts = 0, active = 0;
};

void add_transformer(SampleWork& work, const Transformer& t) {
  const double width = real(t.width), seq = real(t.seq), ffn = real(t.ffn);
  const LayerShape attention{LayerClass::attention, 4.0 * width * width, 8.0 * width * width * seq, seq * width, 1.0};
  LayerShape fc{LayerClass::fc, 2.0 * width * ffn, 4.0 * width * ffn * seq, seq * width, 1.0};
  if (t.experts > 0) {
    fc.layer_class = LayerClass::moe;
    fc.parameters *= real(t.experts);
    fc.flops *= real(t.active);
    fc.experts = real(t.experts);
  }
  for (std::int32_t i = 0; i < t.layers; ++i) {
    work.layers.push_back({Part::attention, i, shape_index(work, attention)});
    work.layers.push_back({Part::fc, i, shape_index(work, fc)});
  }
}

void add_bottom(SampleWork& work, const workload::Recommender& r) {
  PartBuilder part(work, Part::bottom);
  std::int64_t in = r.dense_features;
  for (const std::int64_t out : r.bottom) {
    part.add(fully_connected(real(in), real(out)));
    in = out;
  }
}

// The dense layers after the interaction of features: cross layers, which are GEMMs like those of an MLP, and the top
// MLP, all of whose layers are mixtures of experts if the model has experts.
void add_top(SampleWork& work, const workload::Recommender& r) {
  PartBuilder part(work, Part::top);
  for (const auto& kind : workload::dense_layers(r)) {
    const double in = real(kind.in), out = real(kind.out), rank = real(r.interaction.rank);
    if (kind.part == workload::DensePart::cross && rank > 0.0) {
      part.add(fully_connected(in, rank));
      part.add(fully_connected(rank, in));
    } else if (kind.part == workload::DensePart::cross) {
      part.add(fully_connected(in, in));
    }
    if (kind.part != workload::DensePart::top) { continue; }
    LayerShape shape = fully_connected(in, out);
    if (kind.experts) {
      shape.layer_class = LayerClass::moe;
      shape.parameters *= real(r.top_experts.count);
      shape.flops *= real(r.top_experts.active);
      shape.experts = real(r.top_experts.count);
    }
    part.add(shape);
  }
}

std::vector<std::string> not_counted(const workload::Recommender& r) {
  using Kind = workload::InteractionKind;
  std::vector<std::string> found;
  if (r.interaction.kind == Kind::dot) { found.emplace_back("dot products of the feature interaction"); }
  if (r.interaction.kind == Kind::cross) { found.emplace_back("cross layers except their GEMMs"); }
  if (r.top_experts.count > 0) { found.emplace_back("the router of experts"); }
  return found;
}

SampleWork work_of_recommender(const workload::Model& model, hardware::Precision precision) {
  const workload::Recommender& r = model.recommender;
  SampleWork work;
  work.model = model.name;
  work.is_recommender = true;
  work.not_counted = not_counted(r);
  work.table_bytes = hardware::element_size(r.table_precision).value();
  work.dense_bytes = hardware::element_size(r.dense_precision.value_or(precision)).value();
  work.table_parameters = r.table_elements();
  work.looked_up_bytes = r.looked_up_elements() * work.table_bytes;
  add_bottom(work, r);
  work.reads_embedding = work.layers.size();
  if (r.interaction.kind == workload::InteractionKind::transformer) {
    const workload::Model t = workload::transformer_of(r);
    add_transformer(work, {t.layers, t.hidden, t.ffn, t.max_seq, 0, 0});
  }
  add_top(work, r);
  return work;
}

// Parts of a transformer that the equations leave out.
std::vector<std::string> not_counted(const workload::Model& model) {
  std::vector<std::string> found;
  const auto note = [&](bool has, const char* what) {
    if (has) { found.emplace_back(what); }
  };
  note(model.gated_mlp, "the third GEMM of a gated MLP");
  note(model.kv_heads != model.heads || model.is_latent(), "key and value projections narrower than the model");
  note(model.experts.shared_ffn > 0, "shared experts");
  note(model.mtp_layers > 0, "multi-token prediction modules");
  return found;
}

Result<SampleWork> work_of_transformer(const workload::Model& model, hardware::Precision precision, std::int64_t seq) {
  if (model.encoder_layers > 0) {
    return fail("MAD-Max's equations cover one stack of layers, not encoder-decoder models");
  }
  if (model.has_mixers() || !model.pattern.empty()) {
    return fail("MAD-Max's equations cover layers of attention and an MLP, not state-space or linear-attention layers");
  }
  const auto& experts = model.experts;
  if (model.has_experts() && (experts.first_dense > 0 || experts.every > 1)) {
    return fail("MAD-Max's equations cover experts in every layer or in none");
  }
  SampleWork work;
  work.model = model.name;
  work.gathers_early = model.is_vision();
  work.not_counted = not_counted(model);
  work.dense_bytes = work.table_bytes = hardware::element_size(precision).value();
  const double width = real(model.hidden);
  if (model.is_vision()) {
    const std::int64_t side = model.vision.image / model.vision.patch;
    work.seq = side * side;  // no class token
    const double pixels = real(model.vision.patch * model.vision.patch * model.vision.channels);
    work.table_parameters = (pixels + real(work.seq)) * width;
  } else {
    work.seq = seq > 0 ? seq : model.max_seq;
    work.table_parameters = (real(model.vocab) + real(work.seq)) * width;
  }
  work.looked_up_bytes = 2.0 * real(work.seq) * width * work.table_bytes;  // a token's row and its position's
  const std::int64_t ffn = model.has_experts() ? experts.ffn : model.ffn;
  add_transformer(work, {model.layers, model.hidden, ffn, work.seq, experts.count, experts.active});
  return work;
}

}  // namespace

std::string_view name_of(LayerClass layer_class) {
  constexpr std::array<std::string_view, kClasses> kNames = {"emb", "mlp", "attention", "fc", "moe"};
  return kNames[static_cast<std::size_t>(layer_class)];
}

bool SampleWork::has(LayerClass layer_class) const {
  if (layer_class == LayerClass::emb) { return true; }
  return std::any_of(shapes.begin(), shapes.end(), [&](const LayerShape& s) { return s.layer_class == layer_class; });
}

std::vector<LayerClass> SampleWork::classes() const {
  std::vector<LayerClass> found;
  for (int i = 0; i < kClasses; ++i) {
    if (has(static_cast<LayerClass>(i))) { found.push_back(static_cast<LayerClass>(i)); }
  }
  return found;
}

double SampleWork::parameters() const {
  double sum = table_parameters;
  for (const auto& layer : layers) { sum += shapes[static_cast<std::size_t>(layer.shape)].parameters; }
  return sum;
}

double SampleWork::flops() const {
  double sum = 0.0;
  for (const auto& layer : layers) { sum += shapes[static_cast<std::size_t>(layer.shape)].flops; }
  return sum;
}

Result<SampleWork> work_of(const workload::Model& model, hardware::Precision precision, std::int64_t seq) {
  if (model.is_recommender()) {
    if (seq > 0) { return fail(Place{"", 0, 0, "--seq"}, "has no effect on a recommender, which has no sequence"); }
    return work_of_recommender(model, precision);
  }
  if (seq > 0 && model.is_vision()) {
    return fail(Place{"", 0, 0, "--seq"}, "has no effect on a vision model, whose sequence is its patches");
  }
  return work_of_transformer(model, precision, seq);
}

}  // namespace orrery::madmax
