// State-space and linear-attention mixers: projections, causal convolution, scan, gated norm.
//
// Tensor parallelism splits channels, heads and groups (Megatron-LM core, ssm/mamba_mixer.py); context parallelism
// exchanges the sequence for heads around convolution and scan, whatever attention does (mamba_context_parallel.py).
// Left out: the arithmetic of Mamba's scan on vector units, imbalance of chunks, variable lengths.
#include <algorithm>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"

namespace orrery::workload {

namespace {

constexpr Linear::Names kIn{"mixer.in", "mixer.in.adapter_in", "mixer.in.adapter_out"};
constexpr Linear::Names kOut{"mixer.out", "mixer.out.adapter_in", "mixer.out.adapter_out"};
constexpr Linear::Names kSteps{"mixer.steps", {}, {}};
constexpr Linear::Names kStepUp{"mixer.step_up", {}, {}};

// Speed of the chunked scan relative to fused attention at the same FLOPs: SSD with N = 64 takes as long as
// FlashAttention-2 on an A100 at 2,048 positions (arXiv:2405.21060, figure 10): 2 h (4 N + 2 q) = 1,536 h FLOPs a token
// against 4 h s / 2 = 4,096 h.
constexpr double kScanRate = 0.4;

// Backward computes two products for each, and those of chunk states and scores again, which the kernels do not
// keep: 2.5 times the forward products, as fused attention. Its FLOPs count twice the forward ones; the rest is in the
// rate.
constexpr double kScanBackwardRate = 0.8 * kScanRate;

// Passes of a chunk's state through memory: written by chunk, read and written when states are summed, read for output.
constexpr double kStatePasses = 4.0;

// Sizes of one rank.
struct Part {
  std::int64_t width = 0, conv_width = 0, in_width = 0, heads = 0;
  double state = 0;  // numbers of a sequence's state
};

Part part_of(const Mixer& m, const Sizes& z) {
  ORRERY_ASSERT(m.width() % z.tp == 0 && m.conv_width() % z.tp == 0 && m.in_width() % z.tp == 0);
  return {m.width() / z.tp, m.conv_width() / z.tp, m.in_width() / z.tp, std::max<std::int64_t>(1, m.heads / z.tp),
          real(m.state_size()) / real(z.tp)};
}

Linear projection(const Linear::Names& names, const Sizes& z, std::int64_t n, std::int64_t k) {
  Linear l;
  l.names = names;
  l.tag = OperatorTag::attention_projection;
  l.rows = z.tokens;
  l.n = n;
  l.k = k;
  l.adapted = !names.adapter_in.empty();
  return l;
}

// Depthwise: each channel with its own weights over `conv` positions, and the activation; a decode step reads and
// writes the last positions of each channel.
Operator convolution(const Mixer& m, const Sizes& z, const Part& part) {
  const double tensor = z.whole(part.conv_width) * z.element;
  const double kept = z.decoding ? 2.0 * real(z.sequences * (m.conv - 1) * part.conv_width) * z.element : 0.0;
  Operator op = streamed(OperatorTag::mixer_core, "mixer.conv", stream(2.0 * tensor + kept),
                         stream(3.0 * tensor, z.frozen() ? 1 : 2));
  hold(op, z, real(part.conv_width) * (real(m.conv) + (m.conv_bias ? 1.0 : 0.0)));
  return op;
}

// Bytes in and out of the scan: the convolution's output, steps, and the result.
double scan_tensors(const Mixer& m, const Sizes& z, const Part& part) {
  const std::int64_t steps = m.kind == MixerKind::mamba ? part.width : part.in_width - part.width - part.conv_width;
  return z.whole(part.conv_width + steps + part.width) * z.element;
}

// One new position: the state is read and written. Bound by memory.
Operator step(const Mixer& m, const Sizes& z, const Part& part) {
  Operator op;
  op.name = "mixer.step";
  op.tag = OperatorTag::mixer_core;
  op.forward = stream(scan_tensors(m, z, part) + 2.0 * real(z.sequences) * part.state * kFloat);
  op.forward.held.kv_cache = Bytes(2.0 * real(z.sequences) * part.state * kFloat);
  op.forward.flops = Flops(2.0 * real(z.sequences) * step_volume(m) / real(z.tp));
  return op;
}

// Mamba: one pass, states stay on chip. The others: chunks, with the state of every chunk in memory.
Operator scan(const Mixer& m, const hardware::Stack& stack, const Sizes& z, const Part& part) {
  const double tensors = scan_tensors(m, z, part);
  if (m.kind == MixerKind::mamba) {
    return streamed(OperatorTag::mixer_core, "mixer.scan", stream(tensors), stream(2.0 * tensors));
  }
  const std::int64_t chunk = std::min(m.chunk, z.seq);
  const double states = kStatePasses * z.tokens / real(chunk) * part.state * kFloat;
  Kernel forward;
  forward.kind = KernelKind::attention;
  forward.precision = z.wide;
  forward.batch = z.sequences * ceil_div(part.heads, z.cp);
  forward.m = z.seq;
  forward.n = m.chunk;  // of a whole block: what starting one takes does not depend on the prompt
  forward.k = std::max<std::int64_t>(1, (m.head_dim + (m.kind == MixerKind::mamba2 ? m.state : m.key_dim)) / 2);
  forward.flops = Flops(2.0 * z.tokens * scan_volume(m, z.seq) / real(z.tp));
  forward.bytes = Bytes(tensors + states);
  forward.launches = 3;  // chunk states, their sums, outputs
  forward.rate = kScanRate;
  forward.native = stack.attention.native;
  Kernel backward = forward;
  backward.flops = 2.0 * forward.flops;
  backward.rate = kScanBackwardRate;
  backward.bytes = 2.0 * forward.bytes;
  backward.launches = 6;
  Operator op = streamed(OperatorTag::mixer_core, "mixer.scan", forward, backward);
  // The delta rule keeps queries, keys and values after the convolution, and the inverse of each chunk.
  if (m.kind == MixerKind::gated_delta) { op.saved = Bytes(z.whole(part.conv_width + part.heads * chunk) * z.element); }
  return op;
}

// Step, B and C from the channels, a partial sum on each rank, and the step of every channel (Mamba).
void append_steps(std::vector<Operator>& list, const Model& model, const Sizes& z, const Part& part) {
  const Mixer& m = model.mixer;
  const std::int64_t narrow = m.rank + 2 * m.state;
  const double tensor = z.whole(narrow) * z.element;
  Linear steps = projection(kSteps, z, narrow, part.width);
  steps.input_from = OperatorTag::mixer_core;
  append_linear(list, z, steps);
  list.push_back(boundary(OperatorTag::attention_projection, "mixer.steps_leave", Boundary::leave, tensor));
  if (m.inner_norms) {
    list.push_back(norm(OperatorTag::attention_projection, "mixer.steps_norm", model, z, z.split_tokens, narrow));
  }
  list.push_back(boundary(OperatorTag::attention_projection, "mixer.steps_enter", Boundary::enter, tensor));
  Linear up = projection(kStepUp, z, part.width, m.rank);
  up.input = z.split(narrow);
  up.input_from = OperatorTag::attention_projection;
  up.bias = real(part.width);
  append_linear(list, z, up);
}

// Weights of the scan: decay and skip per head (mamba2), decay per channel and state (mamba), decay and step per head
// (gated_delta).
double scan_weights(const Mixer& m, const Part& part) {
  switch (m.kind) {
    case MixerKind::mamba: return real(part.width) * real(m.state + 1);
    case MixerKind::mamba2: return 3.0 * real(part.heads);
    case MixerKind::gated_delta: return 2.0 * real(part.heads);
    case MixerKind::attention:
    case MixerKind::none: return 0.0;
  }
  return 0.0;
}

// norm(y) act(z), or for Mamba y act(z) alone, which the scan's kernel computes.
Operator gated_norm(const Model& model, const Sizes& z, const Part& part) {
  const double tensor = z.whole(part.width) * z.element;
  if (model.mixer.kind == MixerKind::mamba) {
    Operator op = streamed(OperatorTag::mixer_core, "mixer.gate", stream(3.0 * tensor), stream(5.0 * tensor));
    save_input(op, tensor, OperatorTag::mixer_core);
    return op;
  }
  Operator op =
      streamed(OperatorTag::mixer_core, "mixer.norm", stream(3.0 * tensor), stream(5.0 * tensor, z.frozen() ? 1 : 2));
  hold(op, z, real(model.mixer.kind == MixerKind::gated_delta ? model.mixer.head_dim : part.width));
  save_input(op, tensor, OperatorTag::mixer_core);
  return op;
}

}  // namespace

double scan_volume(const Mixer& m, std::int64_t seq) {
  const double q = real(std::min(m.chunk, seq)), v = real(m.head_dim), heads = real(m.heads);
  switch (m.kind) {
    case MixerKind::mamba2: return q * real(m.state * m.groups) + heads * (q * v + 2.0 * real(m.state) * v);
    case MixerKind::gated_delta: {
      const double k = real(m.key_dim);
      return heads * (q * (3.0 * k + 2.0 * v) + 3.0 * k * v);
    }
    case MixerKind::mamba:
    case MixerKind::attention:
    case MixerKind::none: return 0.0;
  }
  return 0.0;
}

double step_volume(const Mixer& m) {
  switch (m.kind) {
    case MixerKind::mamba2: return 2.0 * real(m.state_size());
    case MixerKind::gated_delta: return 3.0 * real(m.state_size());
    case MixerKind::mamba:
    case MixerKind::attention:
    case MixerKind::none: return 0.0;
  }
  return 0.0;
}

void append_mixer(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  const Mixer& m = model.mixer;
  const Part part = part_of(m, z);
  list.push_back(boundary(OperatorTag::attention_projection, "mixer.enter", Boundary::enter, whole_tensor(z)));
  Linear in = projection(kIn, z, part.in_width, z.hidden);
  in.input = z.split(z.hidden);
  in.kept = z.whole(part.in_width) * z.element;  // for convolution, scan and gate
  append_linear(list, z, in);
  const std::int64_t exchanged = part.in_width - part.width;
  if (z.cp > 1) {
    list.push_back(
        boundary(OperatorTag::mixer_core, "mixer.to_heads", Boundary::to_heads, z.whole(exchanged) * z.element));
  }
  list.push_back(convolution(m, z, part));
  if (m.kind == MixerKind::mamba) { append_steps(list, model, z, part); }
  list.push_back(z.decoding ? step(m, z, part) : scan(m, stack, z, part));
  hold(list.back(), z, scan_weights(m, part));
  if (z.cp > 1) {
    list.push_back(
        boundary(OperatorTag::mixer_core, "mixer.to_sequence", Boundary::to_sequence, z.whole(part.width) * z.element));
  }
  list.push_back(gated_norm(model, z, part));
  Linear out = projection(kOut, z, z.hidden, part.width);
  out.input = m.kind == MixerKind::mamba ? 0.0 : z.whole(part.width);
  out.input_from = OperatorTag::mixer_core;
  out.output_projection = true;
  append_linear(list, z, out);
}

}  // namespace orrery::workload
