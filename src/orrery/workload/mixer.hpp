// Layers that mix positions without attention: a state of constant size per sequence instead of a cache that grows.
#pragma once

#include <cstdint>

namespace orrery::workload {

// What mixes the positions of a layer.
enum class MixerKind : std::uint8_t {
  attention,
  mamba,        // Mamba (arXiv:2312.00752): a selective scan per channel
  mamba2,       // Mamba-2 (arXiv:2405.21060): heads of a state-space dual (SSD), computed in chunks
  gated_delta,  // gated delta rule (Gated DeltaNet, arXiv:2412.06464; Qwen3-Next), computed in chunks
  none,         // the layer has no such half (Nemotron-H: a layer is one half)
};

// The mixers of a hybrid, or of a model without attention. `kind` attention: no layer has another mixer.
struct Mixer {
  MixerKind kind = MixerKind::attention;
  std::int64_t heads = 0;      // mamba2; gated_delta: of values
  std::int64_t head_dim = 0;   // of a value head
  std::int64_t key_heads = 0;  // gated_delta: of queries and keys; a divisor of `heads`
  std::int64_t key_dim = 0;    // gated_delta: of a query or key head
  std::int64_t inner = 0;      // mamba: channels
  std::int64_t state = 0;      // mamba, mamba2: numbers of state per channel
  std::int64_t groups = 1;     // mamba2: heads of a group share B and C
  std::int64_t rank = 0;       // mamba: rank of the step's projection
  std::int64_t conv = 4;       // positions of the causal convolution before the scan
  bool conv_bias = true;
  bool inner_norms = false;           // mamba: norms of step, B and C (Jamba)
  std::int64_t chunk = 256;           // positions of a chunk of the scan
  std::int64_t attention_every = 0;   // of every n layers ...
  std::int64_t attention_offset = 0;  // ... the one with this index has attention; 0, 0: none has

  [[nodiscard]] std::int64_t key_width() const { return key_heads * key_dim; }
  // Channels of the scan.
  [[nodiscard]] std::int64_t width() const { return kind == MixerKind::mamba ? inner : heads * head_dim; }
  // Channels of the convolution.
  [[nodiscard]] std::int64_t conv_width() const {
    switch (kind) {
      case MixerKind::mamba: return inner;
      case MixerKind::mamba2: return width() + 2 * groups * state;
      case MixerKind::gated_delta: return width() + 2 * key_width();
      case MixerKind::attention:
      case MixerKind::none: return 0;
    }
    return 0;
  }
  // Columns of the input projection: with the gate, and with a step per head (mamba2) or step and decay (gated_delta).
  [[nodiscard]] std::int64_t in_width() const {
    switch (kind) {
      case MixerKind::mamba: return 2 * inner;
      case MixerKind::mamba2: return width() + conv_width() + heads;
      case MixerKind::gated_delta: return width() + conv_width() + 2 * heads;
      case MixerKind::attention:
      case MixerKind::none: return 0;
    }
    return 0;
  }
  // Numbers of the state of one sequence.
  [[nodiscard]] std::int64_t state_size() const {
    return kind == MixerKind::gated_delta ? heads * head_dim * key_dim : width() * state;
  }

  friend bool operator==(const Mixer&, const Mixer&) = default;
};

// Multiply-adds of the matrix products of the scan per token, whole model width, one layer, sequences of `seq`
// positions: within chunks of q = min(chunk, seq), from chunk to state and from state to chunk. SSD with G groups, N
// states, H heads of P: q N G + H (q P + 2 N P). Delta rule, keys of k and values of v: H (q (3 k + 2 v) + 3 k v).
// Mamba's scan has no matrix product.
[[nodiscard]] double scan_volume(const Mixer& mixer, std::int64_t seq);
// ... of one new position: SSD 2 N P H, delta rule 3 k v H.
[[nodiscard]] double step_volume(const Mixer& mixer);

}  // namespace orrery::workload
