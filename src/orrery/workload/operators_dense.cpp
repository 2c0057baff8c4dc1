// The layers of a recommender after its tables, and the loss. docs/models/recommenders.md has the formulas.
#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

namespace {

// Reads all vectors, writes the input of the next layer; backward: reads its gradient, writes theirs. The next layer
// keeps what is written.
void append_join(std::vector<Operator>& list, const Sizes& z, const LayerKind& kind) {
  const Kernel pass = stream(z.tokens * real(kind.in + kind.out) * z.element);
  list.push_back(streamed(OperatorTag::interaction, "interaction.join", pass, pass));
}

// Vectors of a sample [F, w] times their own transpose; the products of two different vectors are concatenated with the
// bottom MLP's output. Backward, both factors get a gradient: [F, F] x [F, w], twice.
void append_dot(std::vector<Operator>& list, const Recommender& r, const Sizes& z, const LayerKind& kind) {
  const std::int64_t vectors = r.vectors(), width = r.tables.front().width;
  const auto samples = static_cast<std::int64_t>(z.tokens);
  const double joined = z.tokens * real(kind.in) * z.element, out = z.tokens * real(kind.out) * z.element;
  const double square = z.tokens * real(vectors * vectors) * z.element;
  list.push_back(streamed(OperatorTag::interaction, "interaction.join", stream(2.0 * joined), stream(2.0 * joined)));
  Operator dot;
  dot.name = "interaction.dot";
  dot.tag = OperatorTag::interaction;
  dot.forward = gemm({samples, vectors, vectors, width, z.element, z.element}, z.precision);
  dot.forward.bytes = Bytes(joined + square);  // one tensor is both factors
  dot.backward_input = gemm({2 * samples, vectors, width, vectors, z.element, z.element}, z.precision);
  save_input(dot, joined, OperatorTag::interaction);
  list.push_back(dot);
  list.push_back(streamed(OperatorTag::interaction, "interaction.pairs", stream(square + out), stream(square + out)));
}

// x0 (W V x + b) + x. Forward: W V x, x0, x in, the sum out. Backward: its gradient, x0 and W V x + b in; gradients of
// W V x and, accumulated, of x0 out; the gradient of x is passed on, and V's is added to it. Keeps x for V (or the
// square matrix), the inner vector for W, and W V x + b.
void append_cross(std::vector<Operator>& list, const Recommender& r, const hardware::Stack& stack, const Sizes& z,
                  const LayerKind& kind) {
  const std::int64_t rank = r.interaction.rank;
  const double pass = z.tokens * real(kind.in) * z.element;
  const auto add_gemm = [&](std::string_view name, std::int64_t in, std::int64_t out, double bias) {
    Linear l;
    l.names.base = name;
    l.tag = l.input_from = OperatorTag::interaction;
    l.rows = z.tokens;
    l.n = out;
    l.k = in;
    l.input = z.tokens * real(in);
    l.bias = bias;
    append_linear(list, z, l);
  };
  if (rank > 0) {
    add_gemm("cross.in", kind.in, rank, 0.0);
    add_gemm("cross.out", rank, kind.out, real(kind.out));
  } else {
    add_gemm("cross.gemm", kind.in, kind.out, real(kind.out));
  }
  const bool fused = stack.fusion.elementwise;
  const Traffic forward = fused ? Traffic{4.0 * pass, 1} : Traffic{8.0 * pass, 3};  // sum, product, sum
  Traffic backward{6.0 * pass, 1};  // gradient, x0, W V x + b, sum of x0's in; two out
  if (!fused) { backward = {10.0 * pass, 4}; }
  backward += {3.0 * pass, 1};  // x's two gradients into one
  list.push_back(streamed(OperatorTag::interaction, "cross.join", forward.kernel(), backward.kernel()));
  list.back().saved = Bytes(pass);
}

void append_transformer(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack,
                        const Slice& slice) {
  const Model layers = transformer_of(model.recommender);
  Slice tokens = slice;
  tokens.seq = layers.max_seq;
  tokens.ep = tokens.etp = 1;
  list = layer_operators(layers, stack, tokens, layer_kind(layers, 0));
}

// Samples and the copies of them that are dispatched to experts.
struct SampleRouting {
  std::int64_t count = 0, local = 0;  // experts, and those of this rank
  double copies = 0;                  // copies of this rank's samples; it receives as many
};

SampleRouting sample_routing(const Recommender& r, const Sizes& z) {
  const TopExperts& experts = r.top_experts;
  ORRERY_ASSERT(experts.count % z.ep == 0);
  return {experts.count, experts.count / z.ep, z.tokens * real(experts.active)};
}

Operator crossing(std::string_view name, Boundary kind, double bytes) {
  Operator op = boundary(OperatorTag::expert_exchange, name, kind, bytes);
  op.boundary_back_bytes = Bytes(bytes);
  return op;
}

// A router of one GEMM, softmax and top-k; copies are sorted by expert and dispatched.
void append_opening(std::vector<Operator>& list, const Recommender& r, const Sizes& z, const LayerKind& kind) {
  const SampleRouting routing = sample_routing(r, z);
  Linear router;
  router.names.base = "experts.router";
  router.tag = OperatorTag::router;
  router.input_from = OperatorTag::mlp_projection;
  router.rows = z.tokens;
  router.n = routing.count;
  router.k = kind.in;
  router.input = z.tokens * real(kind.in);
  router.bias = real(routing.count);
  router.wide = true;
  router.output = kFloat;
  append_linear(list, z, router);
  const double probabilities = z.tokens * real(routing.count) * kFloat;
  const double chosen = routing.copies * (kExpertId + kFloat);
  list.push_back(streamed(OperatorTag::router, "experts.route", stream(3.0 * probabilities + chosen, 2),
                          stream(3.0 * probabilities, 2)));
  list.back().saved = Bytes(probabilities + chosen);
  const double pass = z.tokens * real(kind.in) * z.element, copies = routing.copies * real(kind.in) * z.element;
  list.push_back(streamed(OperatorTag::expert_exchange, "experts.permute", stream(pass + copies),
                          stream(pass + copies + 3.0 * pass, 2)));
  list.back().saved = Bytes(routing.copies * kCopyRow);
  list.push_back(crossing("experts.dispatch", Boundary::dispatch, copies));
}

// Combines the answers and computes their weighted sums.
void append_closing(std::vector<Operator>& list, const Recommender& r, const Sizes& z, const LayerKind& kind) {
  const SampleRouting routing = sample_routing(r, z);
  const double pass = z.tokens * real(kind.out) * z.element, copies = routing.copies * real(kind.out) * z.element;
  list.push_back(crossing("experts.combine", Boundary::combine, copies));
  list.push_back(
      streamed(OperatorTag::expert_exchange, "experts.unpermute", stream(pass + copies), stream(pass + 2.0 * copies)));
  save_input(list.back(), copies, OperatorTag::expert_projection);
}

void append_top(std::vector<Operator>& list, const Recommender& r, const hardware::Stack& stack, const Sizes& z,
                const LayerKind& kind) {
  Connected layer{"top.gemm", "top.activation", z.tokens, kind.in, kind.out, !kind.closes};
  if (kind.experts) {
    const SampleRouting routing = sample_routing(r, z);
    layer.samples = routing.copies;
    layer.expert = true;
    layer.groups = routing.local;
  }
  if (kind.opens) { append_opening(list, r, z, kind); }
  append_connected(list, stack, z, layer);
  if (kind.experts && kind.closes) { append_closing(list, r, z, kind); }
}

}  // namespace

// GEMM and bias; a relu, of whose output the next GEMM keeps what it needs. Fused: all in the GEMM's kernel, forward
// and backward. Not fused: bias, relu and, backward, relu and the bias's sum.
void append_connected(std::vector<Operator>& list, const hardware::Stack& stack, const Sizes& z,
                      const Connected& layer) {
  Linear l;
  l.names.base = layer.name;
  l.tag = l.input_from = layer.expert ? OperatorTag::expert_projection : OperatorTag::mlp_projection;
  l.rows = layer.samples;
  l.n = layer.out;
  l.k = layer.in;
  l.input = layer.samples * real(layer.in);
  l.bias = real(layer.groups * layer.out);
  l.expert = layer.expert;
  l.groups = layer.groups;
  l.groups_read = real(layer.groups);
  append_linear(list, z, l);
  if (stack.fusion.elementwise) { return; }
  const double pass = layer.samples * real(layer.out) * z.element;
  Traffic forward{2.0 * pass, 1}, backward{pass, 1};
  if (layer.relu) {
    forward += {2.0 * pass, 1};
    backward += {3.0 * pass, 1};
  }
  const OperatorTag tag = layer.expert ? OperatorTag::expert_activation : OperatorTag::mlp_activation;
  list.push_back(streamed(tag, layer.activation, forward.kernel(), backward.kernel()));
}

std::vector<Operator> dense_operators(const Model& model, const hardware::Stack& stack, const Slice& slice,
                                      const LayerKind& kind) {
  const Sizes z = sizes_of(model, stack, slice);
  const Recommender& r = model.recommender;
  std::vector<Operator> list;
  switch (kind.part) {
    case DensePart::none: break;
    case DensePart::join: append_join(list, z, kind); break;
    case DensePart::dot: append_dot(list, r, z, kind); break;
    case DensePart::cross: append_cross(list, r, stack, z, kind); break;
    case DensePart::transformer: append_transformer(list, model, stack, slice); break;
    case DensePart::top: append_top(list, r, stack, z, kind); break;
  }
  if (!z.training) { keep_forward_only(list); }
  return list;
}

// A logistic of each answer against its label, in fp32: both in, loss out; backward: both in, gradient out.
std::vector<Operator> answer_operators(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  const Sizes z = sizes_of(model, stack, slice);
  const double answers = z.tokens * real(model.recommender.top.back());
  const Kernel pass = stream(answers * (z.element + 2.0 * kFloat));
  std::vector<Operator> list{streamed(OperatorTag::head, z.training ? "loss" : "answer", pass, pass)};
  list.back().saved = Bytes(answers * kFloat);
  if (!z.training) { keep_forward_only(list); }
  return list;
}

}  // namespace orrery::workload
