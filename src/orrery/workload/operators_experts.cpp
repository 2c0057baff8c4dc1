// The feed-forward half with a mixture of experts: a router, dispatch and combine of token copies, a grouped GEMM over
// the experts of a rank, and shared experts.
//
// Routing is balanced: every expert gets an even share of copies. Left out: the load-balancing loss (its products are
// of E numbers a token), drops and padding to blocks of rows, transfers in narrower precisions.
#include <algorithm>
#include <cmath>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

double NodeDispatch::places_reached(double places) const {
  const double most = std::max(1.0, reachable * places);
  return std::min(copies, most * (1.0 - std::pow(1.0 - 1.0 / most, copies)));
}

namespace {

// How many copies of tokens go where, on one rank.
struct Routing {
  double sent = 0;          // copies of this rank's tokens, padding to the capacity included
  double rows = 0;          // rows that its experts get
  std::int64_t local = 0;   // its experts
  double experts_read = 0;  // of them, those that get any row
  // Copies are made where the experts are: a token travels to a rank once, whatever number of its experts want it.
  NodeDispatch once = {};  // no copies: they are made before they travel
  double arriving = 0;     // tokens that its experts' ranks get from a rank, each once
};

// Experts with room for a fixed number of copies get just that number from every rank (Megatron-LM's
// moe_expert_capacity_factor with padding). Inference drops nothing.
// A pass over few tokens does not use every expert: of T tokens that choose k of E at random, at least one uses a given
// expert with probability 1 - (1 - k/E)^T. Where the mean of a rank is less than one expert, the ranks in use have one
// expert to run, and the others wait for them. Training uses all.
Routing routing_of(const Experts& experts, const hardware::Stack& stack, const Sizes& z) {
  ORRERY_ASSERT(experts.count % z.ep == 0 && experts.ffn % z.etp == 0);
  const double count = real(experts.count), active = real(experts.active);
  Routing r;
  r.local = experts.count / z.ep;
  const double copies = z.split_tokens * active;
  const bool capped = z.training && experts.capacity_factor > 0.0;
  r.sent = capped ? count * std::ceil(copies / count * experts.capacity_factor) : copies;
  r.rows = r.sent * real(z.etp);
  const double tokens = z.split_tokens * real(z.ep * z.etp);  // that any of this rank's experts may be chosen by
  r.experts_read =
      real(r.local) * (z.training ? 1.0 : std::max(1.0 / real(r.local), 1.0 - std::pow(1.0 - active / count, tokens)));
  if (stack.dispatch.copies == hardware::TokenCopies::per_node && z.ep > 1) {
    const bool limited = experts.groups > 0 && experts.active_groups > 0;
    r.once = {active, limited ? real(experts.active_groups) / real(experts.groups) : 1.0};
    r.arriving = r.sent * r.once.places_reached(real(z.ep)) / active;
  }
  return r;
}

double hidden_bytes(double rows, const Sizes& z) { return rows * real(z.hidden) * z.element; }

// Logits in fp32, from two-byte inputs; weights held whole by every rank. Keeps the norm's output, which shared experts
// and the permutation read as well.
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

// Softmax of the logits (in, out) and the k largest (in; identities and weights out), a kernel each; apart also the
// sort into the order of experts and its histogram, over identities. Backward of the softmax: gradient and output in,
// gradient out. Keeps probabilities, identities and weights.
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

// Tokens in, copies in the order of experts out: this rank's own before they travel, or those that have arrived.
// Backward: gradients of the copies in, their sums out, and one more sum for each other reader of the norm's output:
// the router, shared experts. Keeps the rows that copies went to.
Operator permute(const Routing& r, const Sizes& z, int other_readers) {
  const double pass = hidden_bytes(z.split_tokens, z), copies = hidden_bytes(r.sent, z);
  const double both = hidden_bytes(r.once.copies > 0.0 ? r.arriving : z.split_tokens, z) + copies;
  Operator op = streamed(OperatorTag::expert_exchange, "experts.permute", stream(both),
                         stream(both + 3.0 * pass * other_readers, 1 + other_readers));
  op.saved = Bytes(r.sent * kCopyRow);
  return op;
}

// Chunks of one rank's copies each -> chunks of one expert's copies each, or back.
Operator reorder(std::string_view name, const Routing& r, const Sizes& z) {
  const Kernel pass = stream(2.0 * hidden_bytes(r.rows, z));
  return streamed(OperatorTag::expert_exchange, name, pass, pass);
}

// Copies in, weighted sums out (of what goes back to a rank, where tokens travel once; the exchange adds up the rest);
// backward: gradients in, those of the copies out. The weights' gradients need the experts' outputs, which are kept for
// it, unless the weights enter with the activation (fused).
Operator unpermute(const Routing& r, const Sizes& z, bool fused) {
  const double pass = hidden_bytes(r.once.copies > 0.0 ? r.arriving : z.split_tokens, z);
  const double copies = hidden_bytes(r.sent, z);
  const double outputs = fused ? 0.0 : copies;
  Operator op = streamed(OperatorTag::expert_exchange, "experts.unpermute", stream(pass + copies),
                         stream(pass + copies + outputs));
  save_input(op, outputs, OperatorTag::expert_projection);
  return op;
}

// Copies to the experts may be narrower than what comes back; gradients of what comes back go to the experts.
Operator crossing(std::string_view name, Boundary kind, const Routing& r, const hardware::Stack& stack,
                  const Sizes& z) {
  const double back = hidden_bytes(r.sent, z);
  const double element = stack.dispatch.element > Bytes(0) ? stack.dispatch.element.value() : z.element;
  const double there = back * (element / z.element);
  const bool outward = kind == Boundary::dispatch;
  Operator op = boundary(OperatorTag::expert_exchange, name, kind, outward ? there : back);
  op.boundary_back_bytes = Bytes(outward ? back : there);
  op.node_dispatch = r.once;
  return op;
}

// The products of a rank's experts.
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

// The bias of the experts' outputs, weighted as they are, where experts go one by one. Forward, for each: bias times
// weights (fp32 out), its sum with the output (two and four bytes in, four out); of all: one tensor of their sums, that
// in two bytes. Backward: the gradient in four bytes, and for each in two again, times the weights and summed over
// rows, times the bias and summed over columns.
Operator output_bias(const Routing& r, const Sizes& z) {
  const double outputs = r.rows * real(z.hidden);
  const double narrow = z.element, wide = kFloat;
  const double forward = wide + (narrow + 2.0 * wide) + 2.0 * wide + (wide + narrow);
  const double backward = (narrow + wide) + (wide + narrow) + 2.0 * (2.0 * wide + wide);
  Operator op = streamed(OperatorTag::expert_projection, "experts.bias", stream(forward * outputs, 4),
                         stream(backward * outputs, 6));
  op.forward.further = 2 * (r.local - 1);
  op.backward_input.further = 5 * (r.local - 1);
  return op;
}

// Copies are made before they travel and put in the order of experts once they have arrived, or made in that order
// where they arrive.
void append_routed(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  const Routing r = routing_of(model.experts, stack, z);
  const bool once = r.once.copies > 0.0, reorders = !once && r.local > 1 && z.ep * z.etp > 1;
  const double gathered = hidden_bytes(r.rows, z);
  const int readers = model.experts.shared_ffn > 0 ? 2 : 1;
  if (!once) { list.push_back(permute(r, z, readers)); }
  list.push_back(crossing("experts.dispatch", Boundary::dispatch, r, stack, z));
  if (once) { list.push_back(permute(r, z, readers)); }
  list.push_back(boundary(OperatorTag::expert_exchange, "experts.enter", Boundary::expert_enter, gathered));
  if (reorders) { list.push_back(reorder("experts.sort", r, z)); }
  append_mlp(list, model, stack, z, routed_mlp(r, model, stack, z));
  if (model.mlp_bias && stack.host.expert_launch_time > Seconds(0) && z.training) { list.push_back(output_bias(r, z)); }
  if (reorders) { list.push_back(reorder("experts.unsort", r, z)); }
  list.push_back(boundary(OperatorTag::expert_exchange, "experts.leave", Boundary::expert_leave, gathered));
  if (once) { list.push_back(unpermute(r, z, stack.fusion.elementwise)); }
  list.push_back(crossing("experts.combine", Boundary::combine, r, stack, z));
  if (!once) { list.push_back(unpermute(r, z, stack.fusion.elementwise)); }
}

// One number a token, from its hidden vector. Its input is kept with the router.
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
  const bool other_copy = z.frozen() || z.matrix_element < z.element;  // than the one kept with the router
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
  list.push_back(boundary(OperatorTag::shared_expert_projection, "shared.leave", Boundary::leave, whole));
  if (model.experts.shared_gate) { append_shared_gate(list, z); }
}

// Routed plus (gated) shared outputs: two in, one out. A gate's gradient needs the ungated output, which is kept: it
// and the gradient in, the scaled gradient out.
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
  append_routed(list, model, stack, z);
  if (shared) { list.push_back(shared_sum(model, z)); }
}

}  // namespace orrery::workload
