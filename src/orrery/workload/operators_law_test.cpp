// Sums over the ranks of a layer that is split over tensor, context and expert parallelism.
#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/workload/operators.hpp"
#include "orrery/workload/test_operators.hpp"

namespace orrery::workload::test::operators_law_test {
namespace {

using hardware::AttentionKernel;
using hardware::Stack;

std::int64_t any(std::int64_t low, std::int64_t high) { return *rc::gen::inRange(low, high); }
std::int64_t any_degree() { return *rc::gen::element<std::int64_t>(1, 2, 4); }
bool maybe() { return *rc::gen::arbitrary<bool>(); }

// A random layer whose sizes the degrees of `part` divide, and the same layer without parallelism.
struct Cut {
  Model model;
  Stack stack;
  LayerKind kind;
  Slice one, part;

  [[nodiscard]] std::vector<Operator> whole() const { return layer_operators(model, stack, one, kind); }
  [[nodiscard]] std::vector<Operator> cut() const { return layer_operators(model, stack, part, kind); }
  // Number of ranks that share the work of `one`.
  [[nodiscard]] double ranks() const { return static_cast<double>(part.tp * part.cp); }
};

Model any_model(const Slice& part) {
  const std::int64_t kv = part.tp * part.cp * any(1, 3);
  Model model = llama(64 * any(1, 9), kv * any(1, 4), kv, part.tp * any(1, 300));
  model.head_dim = 16 * any(1, 9);
  model.gated_mlp = maybe();
  model.qk_norm = maybe();
  model.attention_gate = maybe();
  model.post_norms = maybe();
  model.pre_norms = !model.post_norms || maybe();
  model.dropout = maybe() ? 0.1 : 0.0;
  model.position = *rc::gen::element(Position::rotary, Position::relative, Position::alibi);
  if (maybe()) { model.latent = {any(0, 2) * any(1, 99), any(1, 99), any(1, 99), any(1, 99), any(1, 99)}; }
  model.experts.count = part.ep * any(1, 9);
  model.experts.active = any(1, model.experts.count + 1);
  model.experts.ffn = part.etp * any(1, 200);
  model.experts.shared_ffn = any(0, 2) * part.tp * any(1, 99);
  model.experts.shared_gate = model.experts.shared_ffn > 0 && maybe();
  return model;
}

// Sizes that tp x cp divides; Mamba has no context parallelism.
Mixer any_mixer(const Slice& part) {
  const std::int64_t ranks = part.tp * part.cp;
  Mixer mixer;
  mixer.kind = *rc::gen::element(MixerKind::mamba, MixerKind::mamba2, MixerKind::gated_delta);
  if (part.cp > 1 && mixer.kind == MixerKind::mamba) { mixer.kind = MixerKind::mamba2; }
  mixer.conv = any(1, 6);
  mixer.conv_bias = maybe();
  mixer.chunk = any(1, 300);
  if (mixer.kind == MixerKind::mamba) {
    mixer.inner = part.tp * any(1, 300);
    mixer.state = any(1, 33);
    mixer.rank = any(1, 65);
    mixer.inner_norms = maybe();
    return mixer;
  }
  const bool delta = mixer.kind == MixerKind::gated_delta;
  mixer.groups = delta ? 1 : part.tp * any(1, 3);
  mixer.key_heads = delta ? part.tp * any(1, 3) : 0;
  mixer.key_dim = delta ? any(1, 99) : 0;
  mixer.state = delta ? 0 : any(1, 99);
  mixer.heads = ranks * (delta ? mixer.key_heads : mixer.groups) * any(1, 3);
  mixer.head_dim = any(1, 99);
  return mixer;
}

Cut any_cut() {
  Cut c;
  c.part.tp = any_degree();
  c.part.cp = any_degree();
  c.part.ep = any_degree();
  c.part.etp = any_degree();
  c.part.cp_method = maybe() ? ContextMethod::ring : ContextMethod::ulysses;
  c.part.sequence_parallel = true;
  c.part.micro_batch = any(1, 5);
  c.part.seq = c.part.tp * c.part.cp * any(1, 500);
  c.one = slice(c.part.micro_batch, c.part.seq);
  c.one.precision = c.part.precision;
  c.model = any_model(c.part);
  c.kind = {maybe(), maybe(), maybe(), any(0, 2) * any(1, 3000)};
  if (c.kind.cross) { c.model.attention_gate = false; }
  if (maybe()) {
    c.model.mixer = any_mixer(c.part);
    c.kind.mixer = maybe() ? c.model.mixer.kind : MixerKind::none;
    c.kind.mlp = c.kind.mixer == MixerKind::none || maybe();
  }
  c.stack.attention.kernel = maybe() ? AttentionKernel::flash : AttentionKernel::plain;
  c.stack.attention.causal_skip = maybe();
  c.stack.fusion.elementwise = maybe();
  c.stack.fusion.decode_rotary = maybe();
  c.stack.fusion.heads = maybe();
  return c;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

RC_GTEST_PROP(CutLaw, flops_of_all_ranks_are_those_of_the_whole, ()) {
  const Cut c = any_cut();
  RC_ASSERT(close(c.ranks() * flops(c.cut()), flops(c.whole())));
}

// Every kernel: work that is split is computed exactly once over all ranks.
RC_GTEST_PROP(CutLaw, flops_of_every_operator_are_those_of_the_whole, ()) {
  const Cut c = any_cut();
  const auto whole = c.whole();
  for (const auto& op : c.cut()) {
    if (op.forward.flops.value() == 0.0) { continue; }
    const Operator& same = find(whole, op.name);
    RC_ASSERT(close(c.ranks() * op.forward.flops.value(), same.forward.flops.value()));
    RC_ASSERT(close(c.ranks() * op.backward_weight.flops.value(), same.backward_weight.flops.value()));
  }
}

// GEMMs of routed experts are split over ep x etp, the others over tp, except those that every rank repeats.
RC_GTEST_PROP(CutLaw, weights_of_all_ranks_are_those_of_the_model, ()) {
  const Cut c = any_cut();
  RC_ASSERT(parameters(c.whole()) == static_cast<double>(layer_parameters(c.model, c.kind)));
  const auto whole = c.whole();
  for (const auto& op : c.cut()) {
    if (op.parameters == 0.0) { continue; }
    const double held = find(whole, op.name).parameters;
    const auto of_experts = static_cast<double>(c.part.ep * c.part.etp);
    const auto of_tensors = static_cast<double>(c.part.tp);
    const bool cut = op.parameters * (op.expert ? of_experts : of_tensors) == held;
    const bool held_whole = !op.expert && op.parameters == held;
    RC_ASSERT(cut || held_whole);
  }
}

// Ulysses keeps a second copy of the core's output; experts with etp > 1 keep the gathered input.
RC_GTEST_PROP(CutLaw, ranks_keep_together_what_the_whole_keeps, ()) {
  Cut c = any_cut();
  c.part.cp_method = ContextMethod::ring;
  c.part.etp = 1;
  RC_ASSERT(close(c.ranks() * saved(c.cut()), saved(c.whole())));
}

RC_GTEST_PROP(CutLaw, backward_of_a_product_computes_twice_its_forward, ()) {
  const Cut c = any_cut();
  for (const auto& op : c.cut()) {
    if (op.forward.kind != KernelKind::gemm) { continue; }
    RC_ASSERT(
        close(op.backward_input.flops.value() + op.backward_weight.flops.value(), 2.0 * op.forward.flops.value()));
  }
}

RC_GTEST_PROP(CutLaw, shapes_hold_their_flops, ()) {
  const Cut c = any_cut();
  for (const auto& op : c.cut()) {
    for (const Kernel& kernel : {op.forward, op.backward_weight}) {
      if (kernel.kind != KernelKind::gemm) { continue; }
      const double shape = 2.0 * static_cast<double>(kernel.batch) * static_cast<double>(kernel.m) *
                           static_cast<double>(kernel.n) * static_cast<double>(kernel.k);
      RC_ASSERT(kernel.flops.value() <= shape * (1.0 + 1e-12));
    }
  }
}

// Combine returns what dispatch has sent; all tokens together send `active` copies each.
RC_GTEST_PROP(CutLaw, dispatched_copies_are_active_times_the_tokens, ()) {
  Cut c = any_cut();
  c.kind.experts = c.kind.mlp = true;
  const auto list = c.cut();
  const Bytes sent = find(list, "experts.dispatch").boundary_bytes;
  const auto copies = static_cast<double>(c.part.micro_batch * c.part.seq * c.model.experts.active);
  RC_ASSERT(close(c.ranks() * sent.value(), copies * static_cast<double>(c.model.hidden) * 2.0));
  RC_ASSERT(find(list, "experts.combine").boundary_bytes == sent);
  RC_ASSERT(find(list, "experts.enter").boundary_bytes == static_cast<double>(c.part.etp) * sent);
}

}  // namespace
}  // namespace orrery::workload::test::operators_law_test
