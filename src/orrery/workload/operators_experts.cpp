// The feed-forward half with a mixture of experts: a router, dispatch and combine of token copies, a grouped GEMM over
// the experts of a rank, and shared experts.
//
// Uniform routing: every expert gets the same number of copies; of few tokens in inference, at random. Not modelled:
// the load-balancing loss (its GEMMs are of E numbers per token), token drops and padding to blocks of rows, dispatch
// in narrower precisions.
#include <algorithm>
#include <cmath>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

// k copies to N places reach N (1 - (1 - 1/N)^k). Of places that are whole groups or parts of them, N are those of the
// active groups. A place of several groups is missed by k copies with probability (1 - h / g)^k if it has h of the g
// active ones, a hypergeometric number.
double NodeDispatch::places_reached(double places) const {
  if (places >= groups) {
    const double allowed = std::max(1.0, places * active_groups / groups);
    return std::min(copies, allowed * (1.0 - std::pow(1.0 - 1.0 / allowed, copies)));
  }
  const double inside = groups / places, outside = groups - inside;
  const auto log_ways = [](double of, double chosen) {
    return std::lgamma(of + 1.0) - std::lgamma(chosen + 1.0) - std::lgamma(of - chosen + 1.0);
  };
  double missed = 0.0, all = 0.0;  // all: 1, but where places do not divide the groups
  for (double held = std::max(0.0, active_groups - outside); held <= std::min(inside, active_groups); held += 1.0) {
    const double log_probability =
        log_ways(inside, held) + log_ways(outside, active_groups - held) - log_ways(groups, active_groups);
    const double probability = std::exp(log_probability);
    all += probability;
    missed += probability * std::pow(1.0 - held / active_groups, copies);
  }
  return std::min(copies, places * (1.0 - missed / all));
}

// The sum of 1 - F(j)^places over j, where F is the distribution function of one place.
double expected_most(std::int64_t things, double probability, std::int64_t places) {
  if (probability <= 0.0 || probability >= 1.0) { return probability <= 0.0 ? 0.0 : real(things); }
  const double odds = std::log(probability) - std::log1p(-probability);
  double log_mass = real(things) * std::log1p(-probability), below = 0.0, most = 0.0;
  for (std::int64_t j = 0; j < things; ++j) {
    below = std::min(1.0, below + std::exp(log_mass));
    most += 1.0 - std::pow(below, real(places));
    log_mass += odds + std::log(real(things - j) / real(j + 1));
  }
  return most;
}

namespace {

// Numbers of token copies on one rank, that whose experts get most.
struct Routing {
  double sent = 0;          // copies that a rank exchanges, with padding to the capacity
  double rows = 0;          // rows that its experts receive
  std::int64_t local = 0;   // its experts
  double experts_read = 0;  // experts that receive any row
  // Copies are made at the destination: a token is sent to a rank once, however many of the rank's experts it uses.
  NodeDispatch once = {};    // empty: copies are made before the dispatch
  NodeDispatch travel = {};  // `once`, or copies by low-latency kernels
  double arriving = 0;       // tokens that the ranks of its experts receive from a rank, each once
};

// Whether the experts are on the ranks of a tensor-parallel group, which all have the same tokens. With sequence
// parallelism each has a part of them.
bool has_replicated_tokens(const hardware::Stack& stack, const Sizes& z) {
  const bool same_tokens = z.split_tokens >= z.tokens;
  return stack.dispatch.replicated_tokens && same_tokens && !z.training && z.tp > 1 && z.ep * z.etp == z.tp;
}

// Tokens of a rank for experts that are on more ranks than its tensor-parallel group. Engines without sequence
// parallelism divide them among the group, whose ranks all have them.
Sizes routed_sizes(const hardware::Stack& stack, Sizes z) {
  const bool same_tokens = z.split_tokens >= z.tokens;
  const bool divides = stack.dispatch.replicated_tokens && same_tokens && !z.training && z.tp > 1;
  if (divides && !has_replicated_tokens(stack, z)) { z.split_tokens = z.tokens / real(z.tp); }
  return z;
}

// Experts with a fixed capacity get exactly that number from every rank (Megatron-LM's moe_expert_capacity_factor with
// padding). Inference drops no tokens. A pass over few tokens does not use every expert: of T tokens that choose k of E
// at random, at least one uses a given expert with probability 1 - (1 - k/E)^T. The other ranks wait for the one that
// reads most. Training uses all.
Routing routing_of(const Experts& experts, const hardware::Stack& stack, const Sizes& z) {
  ORRERY_ASSERT(experts.count % z.ep == 0 && experts.ffn % z.etp == 0);
  const double count = real(experts.count), active = real(experts.active);
  Routing r;
  r.local = experts.count / z.ep;
  const double copies = z.split_tokens * active * z.expert_imbalance;
  const bool capped = z.training && experts.capacity_factor > 0.0;
  r.sent = capped ? count * std::ceil(copies / count * experts.capacity_factor) : copies;
  r.rows = r.sent * real(z.etp);
  double tokens = z.split_tokens * real(z.ep * z.etp);  // tokens that may choose an expert of this rank
  if (has_replicated_tokens(stack, z)) {
    r.sent = r.rows = copies / real(z.ep);
    tokens = z.split_tokens;
  }
  r.experts_read =
      z.training ? real(r.local) : expected_most(r.local, 1.0 - std::pow(1.0 - active / count, tokens), z.ep);
  if (stack.dispatch.copies == hardware::TokenCopies::per_node && z.ep > 1) {
    const bool limited = experts.groups > 0 && experts.active_groups > 0;
    r.once = {active, limited ? real(experts.groups) : 1.0, limited ? real(experts.active_groups) : 1.0};
    r.arriving = r.sent * r.once.places_reached(real(z.ep)) / active;
  }
  r.travel = r.once;
  if (stack.dispatch.low_latency && z.decoding && z.ep > 1) {
    r.once = {};
    r.travel = {active, 1.0, 1.0, true};
  }
  return r;
}

double hidden_bytes(double rows, const Sizes& z) { return rows * real(z.hidden) * z.element; }

// Logits in fp32, from two-byte inputs; every rank holds all weights. Keeps the norm's output, which shared experts and
// the permutation read as well.
void append_router(std::vector<Operator>& list, const Model& model, const Sizes& z) {
  Linear l;
  l.names.base = "experts.router";
  l.tag = OperatorTag::router;
  l.rows = z.split_tokens;
  l.n = model.experts.count;
  l.k = z.hidden;
  l.input = z.split(z.hidden);
  l.bias = model.mlp_bias ? real(l.n) : 0.0;
  l.wide = true;
  l.output = kFloat;
  append_linear(list, z, l);
}

// Softmax of the logits (in, out) and the k largest (in; indices and weights out), one kernel each; without fusion also
// the sort into the order of experts and its histogram, over indices. Backward of the softmax: gradient and output in,
// gradient out. Keeps probabilities, indices and weights.
Operator route(const Experts& experts, const Sizes& z, bool fused) {
  const double probabilities = z.split(experts.count) * kFloat;
  const double chosen = z.split(experts.active) * (kExpertId + kFloat);
  const double sorting = 4.0 * z.split(experts.active) * kExpertId;
  Traffic forward{3.0 * probabilities + chosen, 2};
  if (!fused) { forward += {sorting, 2}; }
  Operator op = streamed(OperatorTag::router, "experts.route", forward.kernel(), stream(3.0 * probabilities, 2));
  op.saved = Bytes(probabilities + chosen);
  return op;
}

// Tokens in, copies in the order of experts out: this rank's own before the dispatch, or those received. Backward:
// gradients of the copies in, their sums out, and one more sum for each other reader of the norm's output (router,
// shared experts). Keeps the row index of each copy.
Operator permute(const Routing& r, const Sizes& z, int other_readers) {
  const double pass = hidden_bytes(z.split_tokens, z), copies = hidden_bytes(r.sent, z);
  const double both = hidden_bytes(r.once.copies > 0.0 ? r.arriving : z.split_tokens, z) + copies;
  Operator op = streamed(OperatorTag::expert_exchange, "experts.permute", stream(both),
                         stream(both + 3.0 * pass * other_readers, 1 + other_readers));
  op.saved = Bytes(r.sent * kCopyRow);
  return op;
}

// Reorders received copies from rank-major to expert-major order, or back.
Operator reorder(std::string_view name, const Routing& r, const Sizes& z) {
  const Kernel pass = stream(2.0 * hidden_bytes(r.rows, z));
  return streamed(OperatorTag::expert_exchange, name, pass, pass);
}

// Copies in, weighted sums out (for copies made at the destination: partial sums, which the combine adds up); backward:
// gradients in, gradients of the copies out. The gradients of the weights need the experts' outputs, which are kept for
// them, unless the weights are applied in the activation (fused).
Operator unpermute(const Routing& r, const Sizes& z, bool fused) {
  const double pass = hidden_bytes(r.once.copies > 0.0 ? r.arriving : z.split_tokens, z);
  const double copies = hidden_bytes(r.sent, z);
  const double outputs = fused ? 0.0 : copies;
  Operator op = streamed(OperatorTag::expert_exchange, "experts.unpermute", stream(pass + copies),
                         stream(pass + copies + outputs));
  save_input(op, outputs, OperatorTag::expert_projection);
  return op;
}

// Dispatch may use a narrower format than combine.
double dispatched_element(const hardware::Stack& stack, const Sizes& z) {
  const hardware::DispatchPolicy& dispatch = stack.dispatch;
  if (z.precision == hardware::Precision::fp4 && dispatch.fp4_element > Bytes(0)) {
    return dispatch.fp4_element.value();
  }
  return dispatch.element > Bytes(0) ? dispatch.element.value() : z.element;
}

// Gradients of the combine go through the dispatch's direction.
Operator crossing(std::string_view name, Boundary kind, const Routing& r, const hardware::Stack& stack,
                  const Sizes& z) {
  const double back = hidden_bytes(r.sent, z);
  const double there = back * (dispatched_element(stack, z) / z.element);
  const bool outward = kind == Boundary::dispatch;
  Operator op = boundary(OperatorTag::expert_exchange, name, kind, outward ? there : back);
  op.boundary_back_bytes = Bytes(outward ? back : there);
  op.node_dispatch = r.travel;
  return op;
}

// The grouped GEMMs of a rank's experts.
Mlp routed_mlp(const Routing& r, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  Mlp mlp;
  mlp.in = {"experts.in", "experts.in.adapter_in", "experts.in.adapter_out"};
  mlp.out = {"experts.out", "experts.out.adapter_in", "experts.out.adapter_out"};
  mlp.activation = "experts.activation";
  mlp.tag = OperatorTag::expert_projection;
  mlp.activation_tag = OperatorTag::expert_activation;
  mlp.input_from = OperatorTag::expert_exchange;
  mlp.rows = r.rows;
  mlp.ffn = model.experts.ffn / z.etp;
  mlp.input = r.rows * real(z.hidden);
  mlp.bias_out = model.mlp_bias ? real(r.local * z.hidden) : 0.0;
  mlp.expert = true;
  mlp.groups = r.local;
  mlp.groups_read = r.experts_read;
  mlp.fused = stack.fusion.experts && !z.frozen();
  return mlp;
}

// The bias of the experts' outputs, weighted like these, where experts run one by one. Forward, for each expert: bias
// times weights (fp32 out), added to the output (two and four bytes in, four out); for all: one tensor of their sums,
// converted to two bytes. Backward: the gradient in four bytes, and for each expert converted to two, times the weights
// and summed over rows, times the bias and summed over columns.
Operator output_bias(const Routing& r, const Sizes& z) {
  const double outputs = r.rows * real(z.hidden);
  const double narrow = z.element, wide = kFloat;
  const double forward = wide + (narrow + 2.0 * wide) + 2.0 * wide + (wide + narrow);
  const double backward = (narrow + wide) + (wide + narrow) + 2.0 * (2.0 * wide + wide);
  Operator op = streamed(OperatorTag::expert_projection, "experts.bias", stream(forward * outputs, 4),
                         stream(backward * outputs, 6));
  op.forward.extra_kernels = 2 * (r.local - 1);
  op.backward_input.extra_kernels = 5 * (r.local - 1);
  return op;
}

// A rank's part of the experts' outputs for tokens that all ranks have. The gathered GEMMs read tokens by index, and
// the sum over a token's experts is the only other pass over copies.
void append_local(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z,
                  const Routing& r) {
  append_mlp(list, model, stack, z, routed_mlp(r, model, stack, z));
  list.push_back(unpermute(r, z, stack.fusion.elementwise));
}

// Copies are made before the dispatch and sorted by expert after it, or made in that order at the destination.
// Low-latency kernels read tokens, write rows in the order of experts, and add what returns: there are no passes
// besides them.
void append_routed(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  const Routing r = routing_of(model.experts, stack, z);
  if (has_replicated_tokens(stack, z)) {
    append_local(list, model, stack, z, r);
    return;
  }
  const bool once = r.once.copies > 0.0, before = !once && !r.travel.low_latency;
  const bool reorders = before && r.local > 1 && z.ep * z.etp > 1;
  const double gathered = hidden_bytes(r.rows, z);
  const int readers = model.experts.shared_ffn > 0 ? 2 : 1;
  if (before) { list.push_back(permute(r, z, readers)); }
  list.push_back(crossing("experts.dispatch", Boundary::dispatch, r, stack, z));
  if (once) { list.push_back(permute(r, z, readers)); }
  list.push_back(boundary(OperatorTag::expert_exchange, "experts.enter", Boundary::expert_enter, gathered));
  if (reorders) { list.push_back(reorder("experts.sort", r, z)); }
  append_mlp(list, model, stack, z, routed_mlp(r, model, stack, z));
  if (model.mlp_bias && stack.host.kernel_launch_time > Seconds(0) && z.training) { list.push_back(output_bias(r, z)); }
  if (reorders) { list.push_back(reorder("experts.unsort", r, z)); }
  list.push_back(boundary(OperatorTag::expert_exchange, "experts.leave", Boundary::expert_leave, gathered));
  if (once) { list.push_back(unpermute(r, z, stack.fusion.elementwise)); }
  list.push_back(crossing("experts.combine", Boundary::combine, r, stack, z));
  if (before) { list.push_back(unpermute(r, z, stack.fusion.elementwise)); }
}

// One number per token, from its hidden vector. Its input is kept with the router.
void append_shared_gate(std::vector<Operator>& list, const Sizes& z) {
  Linear l;
  l.names.base = "shared.gate";
  l.tag = OperatorTag::shared_expert_projection;
  l.rows = z.split_tokens;
  l.n = 1;
  l.k = z.hidden;
  l.wide = true;
  append_linear(list, z, l);
}

void append_shared(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  ORRERY_ASSERT(model.experts.shared_ffn % z.tp == 0);
  const double whole = hidden_bytes(z.tokens, z);
  const bool other_copy = z.frozen() || z.matrix_element < z.element;  // than the input kept with the router
  list.push_back(boundary(OperatorTag::shared_expert_projection, "shared.enter", Boundary::enter, whole));
  Mlp mlp;
  mlp.in = {"shared.in", "shared.in.adapter_in", "shared.in.adapter_out"};
  mlp.out = {"shared.out", "shared.out.adapter_in", "shared.out.adapter_out"};
  mlp.activation = "shared.activation";
  mlp.tag = OperatorTag::shared_expert_projection;
  mlp.activation_tag = OperatorTag::shared_expert_activation;
  mlp.rows = z.tokens;
  mlp.ffn = model.experts.shared_ffn / z.tp;
  mlp.input = other_copy ? z.split(z.hidden) : 0.0;
  mlp.bias_out = model.mlp_bias ? real(z.hidden) : 0.0;
  append_mlp(list, model, stack, z, mlp);
  if (!has_replicated_tokens(stack, z)) {  // else summed with the routed experts'
    list.push_back(boundary(OperatorTag::shared_expert_projection, "shared.leave", Boundary::leave, whole));
  }
  if (model.experts.shared_gate) { append_shared_gate(list, z); }
}

// Routed plus (gated) shared outputs: two in, one out. The gradient of a gate needs the ungated output, which is kept:
// this and the gradient in, the scaled gradient out.
Operator shared_sum(const Model& model, const Sizes& z) {
  const double pass = hidden_bytes(z.split_tokens, z);
  const bool gated = model.experts.shared_gate;
  Operator op =
      streamed(OperatorTag::expert_exchange, "shared.add", stream(3.0 * pass), gated ? stream(3.0 * pass) : Kernel{});
  save_input(op, gated ? pass : 0.0, OperatorTag::shared_expert_projection);
  return op;
}

}  // namespace

void append_experts(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  const bool shared = model.experts.shared_ffn > 0;
  append_router(list, model, z);
  list.push_back(route(model.experts, z, stack.fusion.elementwise));
  if (shared) { append_shared(list, model, stack, z); }
  const Sizes routed = routed_sizes(stack, z);
  append_routed(list, model, stack, routed);
  if (routed.split_tokens < z.split_tokens) {
    list.push_back(
        boundary(OperatorTag::expert_exchange, "experts.gather", Boundary::gather, hidden_bytes(z.tokens, z)));
  }
  if (shared) { list.push_back(shared_sum(model, z)); }
  if (has_replicated_tokens(stack, z)) {
    list.push_back(boundary(OperatorTag::expert_exchange, "experts.sum", Boundary::leave, hidden_bytes(z.tokens, z)));
  }
}

}  // namespace orrery::workload
