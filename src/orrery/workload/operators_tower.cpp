// Operators of a vision tower, in forward order: patches, layers, projector. docs/models/operators.md has the tables.
//
// The tower works on whole images: context-parallel ranks all process the images of their sequence. Where tensor
// parallelism does not divide its heads and columns, every rank of a group computes all of it. It computes and is
// stored in at least 16 bits. Under adapters it is frozen, and has no backward pass.
#include <algorithm>

#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

namespace {

bool is_split(const Tower& tower, const Slice& slice) {
  return tower.heads % slice.tp == 0 && tower.ffn % slice.tp == 0;
}

// The slice of a model as that of its tower's images: a sequence is an image.
Slice of_images(const Tower& tower, Slice slice) {
  if (!is_split(tower, slice)) {
    slice.tp = 1;
    slice.sequence_parallel = false;
  }
  slice.micro_batch *= tower.images;
  slice.seq = tower.positions();
  slice.cp = slice.ep = slice.etp = 1;
  if (hardware::element_size(slice.precision) < Bytes(2.0)) { slice.precision = hardware::Precision::bf16; }
  slice.adapter = {};
  slice.formats = {};
  return slice;
}

// What of the operators remains for this plan.
void finish(std::vector<Operator>& list, const Tower& tower, const Slice& slice) {
  const bool alone = slice.tp > 1 && !is_split(tower, slice);
  const bool frozen = slice.adapter.rank > 0;
  for (auto& op : list) {
    if (alone) {
      op.boundary = Boundary::none;
      op.boundary_bytes = Bytes(0.0);
    }
    if (frozen) {
      op.frozen += op.parameters;
      op.parameters = 0.0;
      op.matrices = {};
    }
  }
  if (frozen || slice.pass != Pass::train) { keep_forward_only(list); }
}

// A GEMM whose weights every rank holds, on this rank's rows.
void append_whole(std::vector<Operator>& list, const Sizes& z, std::string_view name, double rows, std::int64_t k,
                  std::int64_t n, double bias, OperatorTag from) {
  Linear l;
  l.names.base = name;
  l.tag = OperatorTag::embedding;
  l.input_from = from;
  l.rows = rows;
  l.n = n;
  l.k = k;
  l.input = rows * real(k);
  l.bias = bias;
  l.wide = true;
  append_linear(list, z, l);
}

}  // namespace

// Patches in one GEMM. Positions and a class token are added in one kernel. Images have no gradient.
std::vector<Operator> tower_patches(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  const Tower& tower = model.tower;
  const Model layers = layers_of(tower);
  const Slice own = of_images(tower, slice);
  const Sizes z = sizes_of(layers, stack, own);
  std::vector<Operator> list;
  const double rows = z.split_tokens * real(tower.patches()) / real(tower.positions());
  append_whole(list, z, "tower.patches", rows, tower.patch_values(), z.hidden, tower.patch_bias ? real(z.hidden) : 0.0,
               OperatorTag::embedding);
  list.back().backward_input = {};
  if (tower.class_token || tower.learned_positions) {
    const double pass = z.split(z.hidden) * z.element;
    list.push_back(streamed(OperatorTag::embedding, "tower.positions", stream(2.0 * pass), stream(pass)));
    const double table = tower.learned_positions ? real(tower.positions()) : 0.0;
    hold(list.back(), z, (table + (tower.class_token ? 1.0 : 0.0)) * real(z.hidden));
  }
  if (tower.end_norms > 1) {
    list.push_back(norm("tower.first_norm", layers, z));
    list.back().input_from = OperatorTag::embedding;
  }
  finish(list, tower, slice);
  return list;
}

// Patches of a window are adjacent (Qwen2.5-VL sorts them so), and attention sees each window as a sequence.
std::vector<Operator> tower_layer(const Model& model, const hardware::Stack& stack, const Slice& slice, bool windowed) {
  const Tower& tower = model.tower;
  Slice own = of_images(tower, slice);
  if (windowed) {
    const std::int64_t window = tower.window * tower.window;
    own.micro_batch *= own.seq / window;
    own.seq = window;
  }
  LayerKind kind;
  kind.encoder = true;
  std::vector<Operator> list = layer_operators(layers_of(tower), stack, own, kind);
  finish(list, tower, slice);
  return list;
}

// Norms, then the layers of the projector on one vector per token, with an activation between them.
std::vector<Operator> tower_projector(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  const Tower& tower = model.tower;
  Model layers = layers_of(tower);
  const Sizes z = sizes_of(layers, stack, of_images(tower, slice));
  std::vector<Operator> list;
  if (tower.end_norms > 0) { list.push_back(norm("tower.last_norm", layers, z)); }
  const double images = real(z.sequences) * z.split_tokens / z.tokens;
  const double rows = images * real(tower.tokens()), patches = images * real(tower.patches());
  double normalised = patches;
  if (tower.averages) {
    const double read = patches * real(z.hidden) * z.element, written = rows * real(z.hidden) * z.element;
    list.push_back(
        streamed(OperatorTag::embedding, "projector.average", stream(read + written), stream(read + written)));
    normalised = rows;
  }
  if (tower.projector_norm) {
    layers.norm = *tower.projector_norm;
    list.push_back(norm(OperatorTag::norm, "projector.norm", layers, z, normalised, z.hidden));
    list.back().input_from = OperatorTag::residual;
  }
  std::int64_t width = tower.projected_width();
  for (std::size_t i = 0; i < tower.projector.size(); ++i) {
    const std::int64_t next = tower.projector[i];
    if (i > 0) {
      const double pass = rows * real(width) * z.element;
      list.push_back(streamed(OperatorTag::embedding, "projector.activation", stream(2.0 * pass), stream(3.0 * pass)));
      save_input(list.back(), pass, OperatorTag::embedding);
    }
    append_whole(list, z, "projector.linear", rows, width, next, tower.projector_bias ? real(next) : 0.0,
                 OperatorTag::embedding);
    width = next;
  }
  finish(list, tower, slice);
  return list;
}

Bytes tower_tensor(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  const Sizes z = sizes_of(layers_of(model.tower), stack, of_images(model.tower, slice));
  return Bytes(z.split(z.hidden) * z.element);
}

}  // namespace orrery::workload
