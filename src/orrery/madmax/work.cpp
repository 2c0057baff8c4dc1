#include "orrery/madmax/work.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace orrery::madmax {

namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

// The shape's index; alike ones are kept once.
std::int32_t shape_index(Work& work, const Shape& shape) {
  const auto alike = [&](const Shape& other) {
    return other.layer_class == shape.layer_class && other.parameters == shape.parameters &&
           other.flops == shape.flops && other.activations == shape.activations;
  };
  const auto found = std::find_if(work.shapes.begin(), work.shapes.end(), alike);
  const auto index = static_cast<std::int32_t>(found - work.shapes.begin());
  if (found == work.shapes.end()) { work.shapes.push_back(shape); }
  return index;
}

void add_tower(Work& work, const workload::Tower& tower, Part part) {
  std::int32_t number = 0;
  for (const auto& layer : tower.each()) {
    const double weights = real(layer.input) * real(layer.output);
    Shape shape{LayerClass::mlp, weights, 2.0 * weights, real(layer.output), 1.0};
    if (tower.has_experts()) {
      shape.layer_class = LayerClass::moe;
      shape.parameters *= real(tower.experts);
      shape.flops *= real(tower.active_experts);
      shape.experts = real(tower.experts);
    }
    work.layers.push_back({part, number++, shape_index(work, shape)});
  }
}

struct Transformer {
  std::int64_t layers = 0, width = 0, ffn = 0, seq = 0;
  std::int64_t experts = 0, active = 0;
};

void add_transformer(Work& work, const Transformer& t) {
  const double width = real(t.width), seq = real(t.seq), ffn = real(t.ffn);
  const Shape attention{LayerClass::attention, 4.0 * width * width, 8.0 * width * width * seq, seq * width, 1.0};
  Shape fc{LayerClass::fc, 2.0 * width * ffn, 4.0 * width * ffn * seq, seq * width, 1.0};
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

Work work_of_recommender(const workload::Recommender& model) {
  const auto size = workload::size_of(model);
  Work work;
  work.model = model.name;
  work.is_recommender = true;
  work.table_bytes = hardware::element_size(model.table_precision).value();
  work.dense_bytes = hardware::element_size(model.dense_precision).value();
  work.table_parameters = size.table_parameters;
  work.looked_up_bytes = size.looked_up_elements * work.table_bytes;
  add_tower(work, model.bottom, Part::bottom);
  work.reads_embedding = work.layers.size();
  if (model.interaction) {
    const auto& t = *model.interaction;
    add_transformer(work, {t.layers, t.hidden, t.ffn, t.seq, 0, 0});
  }
  add_tower(work, model.top, Part::top);
  return work;
}

// What the equations see of a transformer that is more than they know.
std::vector<std::string> not_counted(const workload::Model& model) {
  std::vector<std::string> found;
  const auto note = [&](bool has, const char* what) {
    if (has) { found.emplace_back(what); }
  };
  note(model.gated_mlp, "the third product of a gated MLP");
  note(model.kv_heads != model.heads || model.is_latent(), "key and value projections narrower than the model");
  note(model.experts.shared_ffn > 0, "shared experts");
  note(model.mtp_layers > 0, "modules that predict further tokens");
  return found;
}

Result<Work> work_of_transformer(const workload::Model& model, hardware::Precision precision, std::int64_t seq) {
  if (model.encoder_layers > 0) {
    return fail("MAD-Max's equations know one stack of layers, not an encoder and a decoder");
  }
  const auto& experts = model.experts;
  if (model.has_experts() && (experts.first_dense > 0 || experts.every > 1)) {
    return fail("MAD-Max's equations have experts in every layer or in none");
  }
  Work work;
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

bool Work::has(LayerClass layer_class) const {
  if (layer_class == LayerClass::emb) { return true; }
  return std::any_of(shapes.begin(), shapes.end(), [&](const Shape& s) { return s.layer_class == layer_class; });
}

std::vector<LayerClass> Work::classes() const {
  std::vector<LayerClass> found;
  for (int i = 0; i < kClasses; ++i) {
    if (has(static_cast<LayerClass>(i))) { found.push_back(static_cast<LayerClass>(i)); }
  }
  return found;
}

double Work::parameters() const {
  double sum = table_parameters;
  for (const auto& layer : layers) { sum += shapes[static_cast<std::size_t>(layer.shape)].parameters; }
  return sum;
}

double Work::flops() const {
  double sum = 0.0;
  for (const auto& layer : layers) { sum += shapes[static_cast<std::size_t>(layer.shape)].flops; }
  return sum;
}

Result<Work> work_of(const workload::AnyModel& model, hardware::Precision precision, std::int64_t seq) {
  if (const auto* recommender = std::get_if<workload::Recommender>(&model)) {
    if (seq > 0) { return fail(Place{"", 0, 0, "--seq"}, "a recommender has no sequence to choose"); }
    return work_of_recommender(*recommender);
  }
  const auto& transformer = std::get<workload::Model>(model);
  if (seq > 0 && transformer.is_vision()) {
    return fail(Place{"", 0, 0, "--seq"}, "a vision model's sequence is its patches");
  }
  return work_of_transformer(transformer, precision, seq);
}

}  // namespace orrery::madmax
