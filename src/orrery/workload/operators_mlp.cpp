// The feed-forward half of a layer: two matrix products around an activation, gated or not.
#include <vector>

#include "orrery/workload/operators_kernels.hpp"

namespace orrery::workload {

namespace {

double real(std::int64_t n) { return static_cast<double>(n); }

// y = act(x + bias), over W = tokens f / t elements. Fused: x in, y out; backward dy, x in, dx out. Apart: the sum with
// the bias, and the sums of its gradient, are kernels of their own. Keeps x; a relu needs only its output, which the
// next product keeps.
Operator plain_activation(const Model& model, const Sizes& z, bool fused) {
  const double inner = z.tokens * real(z.ffn) * z.element;
  Traffic forward{2.0 * inner, 1}, backward{3.0 * inner, 1};
  if (!fused && model.mlp_bias) {
    forward += {2.0 * inner, 1};
    backward += {inner, 1};
  }
  Operator op = streamed("mlp.activation", forward.kernel(), backward.kernel());
  op.saved = Bytes(model.activation == Activation::relu ? 0.0 : inner);
  return op;
}

// y = act(a) b with x = (a, b) of 2 W elements. Fused: x in, y out; backward dy, x in, dx out. Apart: act (2 W),
// product (3 W); backward two products (3 W each) and act (3 W), and act(a) is kept as well.
Operator gated_activation(const Model& model, const Sizes& z, bool fused) {
  const double inner = z.tokens * real(z.ffn) * z.element;
  Traffic forward = fused ? Traffic{3.0 * inner, 1} : Traffic{5.0 * inner, 2};
  Traffic backward = fused ? Traffic{5.0 * inner, 1} : Traffic{9.0 * inner, 3};
  if (!fused && model.mlp_bias) {
    forward += {4.0 * inner, 1};
    backward += {2.0 * inner, 1};
  }
  Operator op = streamed("mlp.activation", forward.kernel(), backward.kernel());
  op.saved = Bytes((fused ? 2.0 : 3.0) * inner);
  return op;
}

}  // namespace

void append_mlp(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  const std::int64_t width = (model.gated_mlp ? 2 : 1) * z.ffn;
  Operator in = linear("mlp.in", z, width, z.hidden);
  if (model.mlp_bias) { in.parameters += real(width); }
  in.saved = Bytes(z.split_tokens * real(z.hidden) * z.matrix_element);
  list.push_back(in);

  list.push_back(model.gated_mlp ? gated_activation(model, z, stack.fused_elementwise)
                                 : plain_activation(model, z, stack.fused_elementwise));

  Operator out = linear("mlp.out", z, z.hidden, z.ffn);
  out.saved = Bytes(z.tokens * real(z.ffn) * z.matrix_element);
  list.push_back(out);
}

}  // namespace orrery::workload
