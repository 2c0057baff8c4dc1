// The operators of a layer, in forward order. docs/models/operators.md has the tables.
#include "orrery/workload/operators.hpp"

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"
#include "orrery/workload/operators_join.hpp"

namespace orrery::workload {

namespace {

// Capacity for the longest layer: lists are created for every plan that is priced, so they should not grow.
constexpr std::size_t kLongestList = 56;

void append_any_attention(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                          const LayerKind& kind) {
  if (kind.mixer != MixerKind::attention) {
    append_mixer(list, model, stack, z);
  } else if (model.is_latent()) {
    append_latent_attention(list, model, stack, z, kind);
  } else {
    append_attention(list, model, stack, z, kind);
  }
}

void append_attention_half(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                           const Sizes& z, const LayerKind& kind) {
  if (model.pre_norms) { list.push_back(norm("attention.norm", model, z)); }
  append_any_attention(list, model, stack, z, kind);
  list.push_back(boundary(OperatorTag::attention_projection, "attention.leave", Boundary::leave, whole_tensor(z)));
  if (model.post_norms) {
    list.push_back(norm("attention.post_norm", model, z));
    list.back().input_from = OperatorTag::attention_projection;
  }
  const bool bias = model.attention_output_bias && kind.mixer == MixerKind::attention;
  list.push_back(join({"attention.residual", bias, true, true, 1, z.split_tokens}, z, stack.fusion.elementwise));
}

// The encoder's output is read by every decoder layer: the gradients are summed.
void append_cross_half(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  list.push_back(norm("cross.norm", model, z));
  append_cross_attention(list, model, stack, z);
  list.push_back(boundary(OperatorTag::attention_projection, "cross.leave", Boundary::leave, whole_tensor(z)));
  list.push_back(join({"cross.residual", model.attention_output_bias, true, true, 2, z.split_tokens}, z,
                      stack.fusion.elementwise));
}

void append_mlp_half(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                     const LayerKind& kind) {
  if (model.pre_norms) { list.push_back(norm("mlp.norm", model, z)); }
  if (kind.experts) {
    append_experts(list, model, stack, z);
  } else {
    list.push_back(boundary(OperatorTag::mlp_projection, "mlp.enter", Boundary::enter, whole_tensor(z)));
    append_mlp(list, model, stack, z, dense_mlp(model, z, z.split(z.hidden)));
    list.push_back(boundary(OperatorTag::mlp_projection, "mlp.leave", Boundary::leave, whole_tensor(z)));
  }
  if (model.post_norms) {
    list.push_back(norm("mlp.post_norm", model, z));
    list.back().input_from = kind.experts ? OperatorTag::expert_exchange : OperatorTag::mlp_projection;
  }
  const bool bias = model.mlp_bias && !kind.experts;  // experts have their own
  list.push_back(join({"mlp.residual", bias, true, true, 1, z.split_tokens}, z, stack.fusion.elementwise));
}

// x -> x + attention(norm(x)) -> . + mlp(norm(.)): two halves, each with its own enter and leave; in a decoder that
// attends to an encoder, a third one between them. In some hybrids a layer is one half.
void append_sequential_layer(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                             const Sizes& z, const LayerKind& kind) {
  if (kind.mixer != MixerKind::none) { append_attention_half(list, model, stack, z, kind); }
  if (kind.cross) { append_cross_half(list, model, stack, z); }
  if (kind.mlp) { append_mlp_half(list, model, stack, z, kind); }
}

// x + attention(norm1(x)) + mlp(norm2(x)) as in GPT-NeoX: dropout in each half, and the two partial sums are added on
// the rank, so that one leave serves both. With two norms, each half has its own enter. With one norm for both (Falcon,
// Phi) one enter serves both, and their gradients are summed before it. Operators before the leave work on all rows of
// partial sums, with or without sequence parallelism.
void append_parallel_layer(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                           const Sizes& z, const LayerKind& kind) {
  ORRERY_ASSERT(!kind.experts && !kind.cross && !model.post_norms);
  ORRERY_ASSERT(!(model.shared_norm && model.is_latent()));
  const bool fused = stack.fusion.elementwise, shared = model.shared_norm;
  list.push_back(norm("attention.norm", model, z));
  append_any_attention(list, model, stack, z, kind);
  if (model.attention_output_bias || z.dropout > 0.0) {
    list.push_back(join({"attention.join", model.attention_output_bias, true, false, 0, z.tokens}, z, fused));
  }
  if (!shared) {
    list.push_back(norm("mlp.norm", model, z));
    list.push_back(boundary(OperatorTag::mlp_projection, "mlp.enter", Boundary::enter, whole_tensor(z)));
  }
  append_mlp(list, model, stack, z, dense_mlp(model, z, shared ? 0.0 : z.split(z.hidden)));
  list.push_back(join({"mlp.join", model.mlp_bias, true, true, shared ? 1 : 0, z.tokens}, z, fused));
  list.push_back(boundary(OperatorTag::residual, "layer.leave", Boundary::leave, whole_tensor(z)));
  list.push_back(join({"layer.residual", false, false, true, shared ? 1 : 2, z.split_tokens}, z, fused));
}

// An encoder does nothing for a generated token, but its weights are stored.
void rest(std::vector<Operator>& list) {
  for (auto& op : list) {
    op.forward = {};
    op.growth = {};
    op.boundary = Boundary::none;
    op.boundary_bytes = Bytes(0.0);
  }
}

}  // namespace

Operator join(const Join& j, const Sizes& z, bool fused) {
  const double elements = j.tokens * real(z.hidden);
  const double pass = elements * z.element;
  const bool dropout = j.drops && z.dropout > 0.0;
  const double mask = dropout ? elements : 0.0;
  Traffic forward, backward;
  if (fused && (j.bias || dropout || j.adds)) {
    forward += {(j.adds ? 3.0 : 2.0) * pass + mask, 1};
  } else if (!fused) {
    if (j.bias) { forward += {2.0 * pass, 1}; }
    if (dropout) { forward += {2.0 * pass + mask, 1}; }
    if (j.adds) { forward += {3.0 * pass, 1}; }
  }
  if (dropout) { backward += {2.0 * pass + mask, 1}; }
  if (j.bias && !z.frozen() && !(fused && dropout)) { backward += {pass, 1}; }
  backward += {3.0 * pass * j.gradient_sums, j.gradient_sums};
  Operator op = streamed(j.tag, j.name, forward.kernel(), backward.kernel());
  hold(op, z, j.bias ? real(z.hidden) : 0.0);
  op.saved = Bytes(mask);
  return op;
}

Bytes dropped_activations(const Operator& op, TagSet replayed) {
  const bool input = replayed.contains(op.input_from), own = replayed.contains(op.tag);
  if (input && own) { return op.saved; }
  if (own) { return op.saved - op.saved_input; }
  return input ? op.saved_input : Bytes(0);
}

std::vector<Operator> layer_operators(const Model& model, const hardware::Stack& stack, const Slice& slice,
                                      const LayerKind& kind) {
  if (kind.part != DensePart::none) { return dense_operators(model, stack, slice, kind); }
  const Sizes z = sizes_of(model, stack, slice);
  std::vector<Operator> list;
  list.reserve(kLongestList);
  if (model.parallel_residual) {
    append_parallel_layer(list, model, stack, z, kind);
  } else {
    append_sequential_layer(list, model, stack, z, kind);
  }
  if (!z.training) { keep_forward_only(list); }
  if (z.decoding && kind.encoder) { rest(list); }
  return list;
}

}  // namespace orrery::workload
