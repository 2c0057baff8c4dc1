// The feed-forward half of a layer: two GEMMs with an activation between them, gated or not.
#include <algorithm>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

namespace {

// y = act(x + bias), over W = rows x ffn elements. Fused: x in, y out; backward dy, x in, dx out. Not fused: adding the
// bias, and summing its gradient, are separate kernels. Keeps x; relu and its square need only their output, which the
// next GEMM keeps if it is trained or has an adapter.
Operator plain_activation(const Model& model, const Sizes& z, const Mlp& mlp, bool fused) {
  const double inner = mlp.rows * real(mlp.ffn) * z.element;
  Traffic forward{2.0 * inner, 1}, backward{3.0 * inner, 1};
  if (!fused && model.mlp_bias) {
    forward += {2.0 * inner, 1};
    if (!z.frozen()) { backward += {inner, 1}; }
  }
  Operator op = streamed(mlp.activation_tag, mlp.activation, forward.kernel(), backward.kernel());
  const bool output_is_kept = !z.frozen() || z.adapts_all;
  const bool needs_output_only = model.activation == Activation::relu || model.activation == Activation::squared_relu;
  save_input(op, needs_output_only && output_is_kept ? 0.0 : inner, mlp.tag);
  return op;
}

// y = act(a) b with x = (a, b) of 2 W elements. Fused: x in, y out; backward dy, x in, dx out. Not fused: act (2 W),
// multiplication (3 W); backward two multiplications (3 W each) and act (3 W), and act(a) is kept as well. x may be
// kept in one byte.
Operator gated_activation(const Model& model, const Sizes& z, const Mlp& mlp, const hardware::Stack& stack) {
  const bool fused = stack.fusion.elementwise;
  const double inner = mlp.rows * real(mlp.ffn) * z.element;
  Traffic forward = fused ? Traffic{3.0 * inner, 1} : Traffic{5.0 * inner, 2};
  Traffic backward = fused ? Traffic{5.0 * inner, 1} : Traffic{9.0 * inner, 3};
  if (!fused && model.mlp_bias) {
    forward += {4.0 * inner, 1};
    if (!z.frozen()) { backward += {2.0 * inner, 1}; }
  }
  Operator op = streamed(mlp.activation_tag, mlp.activation, forward.kernel(), backward.kernel());
  const double kept = stack.storage.narrow_activations ? std::max(z.matrix_element, 1.0) / z.element : 1.0;
  save_input(op, 2.0 * kept * inner, mlp.tag);
  op.saved = Bytes((2.0 * kept + (fused ? 0.0 : 1.0)) * inner);
  return op;
}

Linear linear_of(const Linear::Names& names, const Sizes& z, const Mlp& mlp) {
  Linear l;
  l.names = names;
  l.tag = mlp.tag;
  l.rows = mlp.rows;
  l.adapted = z.adapts_all;
  l.expert = mlp.expert;
  l.groups = mlp.groups;
  l.groups_read = mlp.groups_read;
  return l;
}

}  // namespace

void append_mlp(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                const Mlp& mlp) {
  Linear in = linear_of(mlp.in, z, mlp);
  in.n = (model.gated_mlp ? 2 : 1) * mlp.ffn;
  in.k = z.hidden;
  in.input = mlp.input;
  in.input_from = mlp.input_from;
  in.bias = model.mlp_bias ? real(mlp.groups * in.n) : 0.0;
  in.casts_gradient = !mlp.fused;
  append_linear(list, z, in);
  Operator& first = list.back();

  Operator activation = model.gated_mlp ? gated_activation(model, z, mlp, stack)
                                        : plain_activation(model, z, mlp, stack.fusion.elementwise);
  const double inner = mlp.rows * real(mlp.ffn) * z.element;
  if (mlp.fused) {
    first.forward.bytes += Bytes(inner);  // writes the activated output in addition to its input, which is kept
    activation.alone = activation.forward;
    activation.forward = activation.backward_input = {};
  }
  list.push_back(activation);

  Linear out = linear_of(mlp.out, z, mlp);
  out.n = z.hidden;
  out.k = mlp.ffn;
  out.input = mlp.rows * real(mlp.ffn);
  out.input_from = mlp.activation_tag;
  out.bias = mlp.bias_out;
  out.casts_input = !mlp.fused;
  append_linear(list, z, out);
  // Its input gradient includes the activation's derivative: reads the kept input, writes as many elements.
  if (mlp.fused) { list.back().backward_input.bytes += Bytes((model.gated_mlp ? 3.0 : 1.0) * inner); }
}

Mlp dense_mlp(const Model& model, const Sizes& z, double input) {
  ORRERY_ASSERT(model.ffn % z.tp == 0);
  Mlp mlp;
  mlp.in = {"mlp.in", "mlp.in.adapter_in", "mlp.in.adapter_out"};
  mlp.out = {"mlp.out", "mlp.out.adapter_in", "mlp.out.adapter_out"};
  mlp.activation = "mlp.activation";
  mlp.rows = z.tokens;
  mlp.ffn = model.ffn / z.tp;
  mlp.input = input;
  return mlp;
}

}  // namespace orrery::workload
